"""Turns a mirror into an independent log that takes appends."""

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
    """Turn a mirror into an independent log. A log that is not a mirror is not changed.

    1. A new view marks the mirror as ended. Its seals fence the copying process, which then stops.
    2. Positions above the tail are trimmed, because they may belong to an unfinished round.
    3. Another view removes the mark, so that clients can append above these positions.

    If a call is interrupted, the next call continues. The trims of the second step are refused in a
    view without the mark, so they cannot remove entries that were appended after the third step.
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
    """Trim all positions above the tail.

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

    for start in range(max(view.tail_floor, view.trim_point), end, _TRIMMED_AT_ONCE):
        some = range(start, min(start + _TRIMMED_AT_ONCE, end))
        await change_positions(layout, "trim", request, some, deadline)


def _check_ended(view: View) -> None:
    if view.options.get(MIRROR_OF) != MIRROR_ENDED:
        raise _Promoted


def marked(mark: str | None, before: str | None = None) -> Edit:
    """Return an edit that replaces or removes a mirror's mark. It leaves other logs alone.

    Args:
        mark: the new mark; None removes the mark.
        before: change only a mirror with this mark; None means any mirror.
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
