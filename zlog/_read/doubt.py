"""Positions that a stripe object can't tell of to a reader by tags."""

from __future__ import annotations

from zlog._base.protocol import State
from zlog._base.spacing import Places, Spacing
from zlog._native import core

MISSING_AT_ONCE = 65536
"""Positions of a range of which an object can't tell anything, looked at at a time."""


def doubtful_places(
    spacing: Spacing, number: int, found: core.Selected, begin: int, end: int
) -> list[Places]:
    """Return the positions of ``[begin, end)`` that an object could not look into, ascending."""
    least = spacing.first_at(begin, number)
    doubtful = [
        Places(spacing, max(first, least), min(end, last + 1))
        for first, last, state in found.gaps
        if state != State.TRIMMED
    ]
    above = begin if found.highest is None else max(begin, found.highest + 1)
    doubtful.append(spacing.places(above, end, number))
    return doubtful


def next_of(spans: list[Places], most: int, *, reverse: bool) -> tuple[list[int], bool]:
    """Return ``most`` of the positions at most, ascending, and whether these are all.

    They are the first ones, or in reverse the last: a hostile writer's hole has millions.
    """
    taken: list[int] = []
    for span in reversed(spans) if reverse else spans:
        room = most - len(taken)
        if reverse:
            taken[:0] = span[max(0, len(span) - room) :]
        else:
            taken += span[:room]
        if len(span) > room:
            return taken, False
    return taken, True
