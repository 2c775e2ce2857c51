"""Positions that a stripe object can't report to a reader by tags, or has lost to a trim."""

from __future__ import annotations

from collections.abc import Collection

from zlog._base.codes import State
from zlog._base.striping import Places, Spacing
from zlog._layout.layout import Layout
from zlog._native.replies import Selected
from zlog.entry import Gap

MISSING_AT_ONCE = 65536
"""Positions of a range of which an object can't tell anything, looked at at a time."""


def doubtful_places(
    spacing: Spacing, number: int, found: Selected, begin: int, end: int
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


def trimmed_part(layout: Layout, gap: Gap, indexes: Collection[int] | None) -> Gap | None:
    """Return the part of a trimmed gap that some objects of each stripe have; None: they have none.

    Positions of stripes that the view does not name any more count as those of all objects.
    """
    if indexes is None:
        return gap
    view = layout.view
    named = min(gap.end, max(gap.position, view.stripes[0].start))
    own = [
        places
        for first, last, stripe in layout.known_stripes(view, named, gap.end)
        for places in stripe.spacing.parts(first, last)
        if places.number in indexes
    ]
    start = min((places.start for places in own), default=gap.end)
    end = max((places[-1] + 1 for places in own), default=named)
    start = gap.position if gap.position < named else start
    return gap._replace(position=start, end=end) if start < end else None
