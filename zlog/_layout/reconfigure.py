"""Changing a log's width, unit and options, and starting a new stripe, while it is used."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from types import MappingProxyType

from zlog._base.deadline import Deadline
from zlog._base.log_options import LogOptions
from zlog._base.options import MIRROR_OF, has_retention
from zlog._catalog.rights import check_change
from zlog._layout.layout import Layout
from zlog._layout.reclaim import reclaim
from zlog._layout.rescue import end_of_entries
from zlog._layout.views import Edit, Recount, with_new_stripe
from zlog.errors import ZlogError
from zlog.view import View


async def reconfigure(layout: Layout, changes: LogOptions, deadline: Deadline) -> View:
    """Bring in a view with another width or unit, other options, or all of it.

    A width and a unit that the live stripe has already start no new stripe, so that a call whose
    reply was lost can be made again. If nothing is to change, nothing is done.

    Raises:
        ValueError: an option is zlog's own.
    """
    if MIRROR_OF in (changes.options or {}):
        raise ValueError(f"option {MIRROR_OF!r} is zlog's own: `zlog access promote` ends a mirror")

    def edit(view: View) -> View | None:
        options = changes.applied_to(view.options)
        wanted = view
        if options != view.options:
            wanted = replace(view, options=MappingProxyType(options))
        changed = with_new_stripe(wanted, changes.width, changes.unit)
        if changed.live_stripe.spacing != view.live_stripe.spacing:
            wanted = changed
        return None if wanted is view else wanted

    view = await _change(layout, edit, deadline)
    if has_retention(changes.applied_to({})):
        with contextlib.suppress(ZlogError):  # a hint, and found again
            await layout.directory.retained.add(view.log, deadline)
    return view


async def roll(layout: Layout, deadline: Deadline, *, rescue: bool = False) -> View:
    """End the live stripe and start the next one, of the same width.

    Of several clients that do so at once one does it for all.

    Args:
        layout: of the log.
        deadline: budget of the call.
        rescue: start it where the log's entries end, if the tail was moved far away from them.
    """
    ended = (await layout.refresh(deadline)).live_stripe

    def edit(view: View) -> View | None:
        live = view.live_stripe
        return with_new_stripe(view) if live.id == ended.id else None

    async def recount(view: View, tail: int, deadline: Deadline) -> int:
        return await end_of_entries(layout.io, view, tail, deadline)

    return await _change(layout, edit, deadline, recount if rescue else None)


async def _change(
    layout: Layout, edit: Edit, deadline: Deadline, recount: Recount | None = None
) -> View:
    await check_change(layout.io, layout.view, deadline)
    before = layout.view.epoch
    view = await layout.change(edit, deadline, recount=recount)
    if view.epoch > before:
        with contextlib.suppress(ZlogError):  # it is found again; the layout is what was asked for
            await reclaim(layout, deadline)
    return view
