"""Where the prefix of an exclusive log ends that readers see, over changes of the layout."""

from __future__ import annotations

from collections.abc import Callable

from zlog._base.deadline import Deadline
from zlog._layout.confirmed import confirmed_end
from zlog._layout.layout import Layout
from zlog.view import View


async def prefix_end(
    layout: Layout, view: View, known: Callable[[View], int | None], deadline: Deadline
) -> tuple[View, int | None]:
    """Return where the confirmed entries end, and the view that says so, ``view`` or a newer one.

    Args:
        layout: of the log; it brings in newer views.
        view: in which to begin.
        known: says of a view below where all positions are known to be written, from the live
            stripe's start on. None ends the search without an end. It may raise.
        deadline: budget of the call.
    """
    while (start := known(view)) is not None:
        end = await confirmed_end(layout.io, view, start, deadline)
        if end is not None:
            return view, end
        view = await layout.advance(view, deadline)
    return view, None
