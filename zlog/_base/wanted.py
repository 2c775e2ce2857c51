"""The tags that a reader searches for."""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal, NamedTuple

from zlog._native.new_entries import tags_checked

Match = Literal["any", "all"]
"""Whether an entry must have any of the requested tags, or all of them."""


class Wanted(NamedTuple):
    """The tags that a reader searches for.

    Attributes:
        tags: the tags, at least one.
        every: whether an entry must have all of them.
    """

    tags: tuple[str, ...]
    every: bool

    @classmethod
    def of(cls, tags: Collection[str], match: Match) -> Wanted:
        """Check the tags and the match that a caller passed.

        Raises InvalidTag or TypeError for invalid or too many tags, and ValueError without tags.
        """
        if match not in ("any", "all"):
            raise ValueError(f'match must be "any" or "all", not {match!r}')
        checked = tags_checked(tags)
        if not checked:
            raise ValueError("`tags` is empty; omit it to read all entries")
        return cls(checked, match == "all")

    def fit(self, tags: Collection[str]) -> bool:
        """Whether an entry with the given tags matches."""
        test = all if self.every else any
        return test(tag in tags for tag in self.tags)
