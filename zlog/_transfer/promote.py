"""Turns a mirror into an independent log that takes appends."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from types import MappingProxyType

from zlog._base.deadline import Deadline
from zlog._base.options import MIRROR_ENDED, MIRROR_OF, ended, promoted
from zlog._catalog.rights import check_change
from zlog._layout.object_calls import change_positions
from zlog._native import messages
from zlog._positions.positions import Positions
from zlog._read.read import Reader
from zlog._trim.trim import trim_to
from zlog.view import ObjectRef, View

_TRIMMED_AT_ONCE = 16384


class _Promoted(Exception):
    """Another call has finished the promotion."""


async def promote(reader: Reader, deadline: Deadline) -> None:
    """Turn a mirror into an independent log. A log that is not a mirror is not changed.

    1. A new view marks the mirror as ended. Its seals fence the copying process, which then stops.
    2. Positions above the tail are trimmed, because they may belong to an unfinished round. Records
       of producers may name them as well.
    3. Another view replaces the mark by the source's id and the tail, so that clients can append
       above these positions.

    If a call is interrupted, the next call continues. The trims of the second step are refused in a
    view without the mark, so they cannot remove entries that were appended after the third step.
    """
    layout = reader.layout
    await check_change(layout.io, layout.view, deadline, trims=True)
    view = await layout.change(_end, deadline)
    if not view.mirror:
        return
    with contextlib.suppress(_Promoted):
        tail = await _trim_rest(reader.positions, view, deadline)
        await layout.change(lambda view: _independent(view, tail), deadline)


def _end(view: View) -> View | None:
    if not view.mirror or view.options[MIRROR_OF] == MIRROR_ENDED:
        return None
    return replace(view, options=MappingProxyType(ended(view.options)))


def _independent(view: View, tail: int) -> View | None:
    if view.options.get(MIRROR_OF) != MIRROR_ENDED:
        return None
    return replace(view, options=MappingProxyType(promoted(view.options, tail)))


async def _trim_rest(positions: Positions, ended: View, deadline: Deadline) -> int:
    """Trim all positions above the mirror's tail, and return the tail.

    Raises:
        _Promoted: the log is no longer a mirror.
    """
    layout = positions.layout
    if ended.trim_point > ended.tail_floor:  # the copying process died at its first trim
        await trim_to(layout, ended.trim_point, deadline, past_cursors=True)
    view, end, _ = await positions.taken_end(deadline, _check_ended)

    def request(view: View, ref: ObjectRef, group: list[int]) -> bytes:
        _check_ended(view)
        return messages.trim(view.epoch, ref.striping.packed, group)

    tail = max(view.tail_floor, view.trim_point)
    for start in range(tail, end, _TRIMMED_AT_ONCE):
        some = range(start, min(start + _TRIMMED_AT_ONCE, end))
        await change_positions(layout, "trim", request, some, deadline)
    return tail


def _check_ended(view: View) -> None:
    if view.options.get(MIRROR_OF) != MIRROR_ENDED:
        raise _Promoted
