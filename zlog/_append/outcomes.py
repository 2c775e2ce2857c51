"""What became of each append of a round."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from zlog.errors import StoreTimeout, ZlogError

E = TypeVar("E", bound=BaseException)


@dataclass(frozen=True, slots=True)
class Failed:
    """A round that failed, perhaps after some of its entries were acknowledged.

    Attributes:
        error: why.
        positions: of each entry; None: it was not acknowledged.
    """

    error: BaseException
    positions: Sequence[int | None]

    def outcomes(self) -> list[int | BaseException]:
        """Return what became of each append of the round."""
        if len(self.positions) == 1:
            return [self.error_of_all()]
        return [again(self.error) if each is None else each for each in self.positions]

    def error_of_all(self, before: Sequence[int] = (), not_sent: int = 0) -> BaseException:
        """Return the error of a list of entries that this round is a part of.

        Args:
            before: positions of the entries in earlier rounds.
            not_sent: how many entries were left for later rounds.
        """
        if isinstance(self.error, ZlogError):
            self.error.positions = (*before, *self.positions, *[None] * not_sent)
        return self.error


def not_sent(
    why: str = "those before it were not acknowledged",
    remedy: str = "The store is slow or unreachable (`zlog doctor`).",
) -> StoreTimeout:
    """Return the error of an append whose time was up while it waited to be sent."""
    error = StoreTimeout(f"the entry was not sent in time: {why}")
    error.hint = f"It is not in the log. {remedy}"
    error.positions = (None,)
    return error


def not_confirmed() -> StoreTimeout:
    """Return the error of a call that did not wait until entries were confirmed."""
    return StoreTimeout(
        "the time was up before all that was handed in was confirmed",
        hint="It is on its way, and may be in the log. The store is slow or unreachable"
        " (`zlog doctor`).",
    )


def again(error: E) -> E:
    """Return an error that others get, too, as that of one append, which has no position."""
    own = copy.copy(error)
    own.__cause__ = error
    if isinstance(own, ZlogError):
        own.positions = (None,)
    return own
