"""Making a mirror a log of its own, which takes appends."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

from zlog._base.deadline import Deadline
from zlog._base.options import MIRROR_ENDED, MIRROR_OF
from zlog._layout.views import Edit
from zlog._read.read import Reader
from zlog._trim.trim import trim
from zlog.view import View

_TRIMMED_AT_ONCE = 16384


async def promote(reader: Reader, deadline: Deadline) -> None:
    """End a mirror; a log that is none is left alone.

    1. A view that says that the mirror has ended. Its seals keep out what is still being copied,
       and the copier, which looks at the view then, stops.
    2. Above the tail may lie parts of what was being copied, whose positions readers have not seen.
       All of them are trimmed, so that the log is a copy of its source up to one position, and
       no entry there follows one that it lacks.
    3. A view without the mark: appends begin above these.

    A repeated call goes on where it died.
    """
    layout = reader.layout
    view = await layout.change(_marked(MIRROR_ENDED), deadline)
    if not view.mirror:
        return
    floor = (await layout.refresh(deadline)).tail_floor
    end = await reader.positions.written_end(deadline)
    for start in range(floor, end, _TRIMMED_AT_ONCE):
        await trim(reader, range(start, min(start + _TRIMMED_AT_ONCE, end)), deadline)
    await layout.change(_marked(None), deadline)


def _marked(mark: str | None) -> Edit:
    """Return the edit that gives a mirror another mark, or none; others are left as they are."""

    def edit(view: View) -> View | None:
        if not view.mirror or view.options[MIRROR_OF] == mark:
            return None
        options = {key: value for key, value in view.options.items() if key != MIRROR_OF}
        if mark is not None:
            options[MIRROR_OF] = mark
        return replace(view, options=MappingProxyType(options))

    return edit
