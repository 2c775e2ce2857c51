"""Making a mirror a log of its own, which takes appends."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from types import MappingProxyType

from zlog._base.deadline import Deadline
from zlog._base.options import MIRROR_ENDED, MIRROR_OF
from zlog._catalog.rights import check_change
from zlog._layout.object_calls import change_positions
from zlog._layout.views import Edit
from zlog._native import messages
from zlog._positions.positions import Positions
from zlog._read.read import Reader
from zlog._trim.trim import trim_to
from zlog.view import ObjectRef, View

_TRIMMED_AT_ONCE = 16384


class _Promoted(Exception):
    """Another call has finished the promotion."""


async def promote(reader: Reader, deadline: Deadline) -> None:
    """End a mirror; a log that is none is left alone.

    1. A view that says that the mirror has ended. Its seals keep out what is still being copied,
       and the copier, which looks at the view then, stops.
    2. Above the tail may lie parts of what was being copied, whose positions readers have not seen.
       All of them are trimmed, so that the log is a copy of its source up to one position, and
       no entry there follows one that it lacks.
    3. A view without the mark: appends begin above these.

    A repeated call goes on where it died. Of two at once each takes its second step in views that
    say that the mirror has ended, and in their epochs: what is appended after the other's third is
    out of its reach.
    """
    layout = reader.layout
    await check_change(layout.io, layout.view, deadline, trims=True)
    view = await layout.change(marked(MIRROR_ENDED), deadline)
    if not view.mirror:
        return
    with contextlib.suppress(_Promoted):
        await _trim_rest(reader.positions, view, deadline)
        await layout.change(marked(None), deadline)


async def _trim_rest(positions: Positions, ended: View, deadline: Deadline) -> None:
    """Trim all above the tail.

    Raises:
        _Promoted: the log is no mirror any more.
    """
    layout = positions.layout
    if ended.trim_point > ended.tail_floor:  # the copier died while it began the mirror there
        await trim_to(layout, ended.trim_point, deadline, past_cursors=True)
    view, end = await positions.written_end(deadline, _check_ended)

    def request(view: View, ref: ObjectRef, group: list[int]) -> bytes:
        _check_ended(view)
        return messages.trim(view.epoch, ref.spacing.packed, group)

    for start in range(max(view.tail_floor, view.trim_point), end, _TRIMMED_AT_ONCE):
        some = range(start, min(start + _TRIMMED_AT_ONCE, end))
        await change_positions(layout, "trim", request, some, deadline)


def _check_ended(view: View) -> None:
    if view.options.get(MIRROR_OF) != MIRROR_ENDED:
        raise _Promoted


def marked(mark: str | None, before: str | None = None) -> Edit:
    """Return the edit that gives a mirror another mark, or none; others are left as they are.

    Args:
        mark: the new one.
        before: the only one that it takes the place of; None: any.
    """

    def edit(view: View) -> View | None:
        if not view.mirror or view.options[MIRROR_OF] == mark:
            return None
        if before is not None and view.options[MIRROR_OF] != before:
            return None
        options = {key: value for key, value in view.options.items() if key != MIRROR_OF}
        if mark is not None:
            options[MIRROR_OF] = mark
        return replace(view, options=MappingProxyType(options))

    return edit
