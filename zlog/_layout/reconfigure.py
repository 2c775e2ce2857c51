"""Changes a log's ordering, striping or options, or starts a new stripe, while it is in use."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import replace
from types import MappingProxyType

from zlog._base.codes import ENTRIES_MAX, OBJECT_TAIL_MAX, POSITION_MAX
from zlog._base.deadline import Deadline
from zlog._base.io import Call, Io
from zlog._base.log_options import LogOptions
from zlog._base.options import check_unreserved, has_retention
from zlog._catalog.rights import check_change
from zlog._layout.layout import Layout
from zlog._layout.reclaim import reclaim
from zlog._layout.views import Edit, Recount, sequencer_of, with_new_stripe
from zlog._native import messages
from zlog._native.replies import decode_read
from zlog.errors import ZlogError
from zlog.view import ObjectRef, View

_RESCUE_GAP = 1 << 20
"""How long a gap in each object must be, in positions. Dead writers leave far shorter ones."""

_RESCUE_BYTES_MAX = 4 << 20
"""How many bytes of data one read of one object may return."""


async def reconfigure(layout: Layout, changes: LogOptions, deadline: Deadline) -> View:
    """Change a log's ordering, width, stripe unit or options by making a new view.

    It is safe to repeat a call: if the newest view already has these values, nothing changes.
    Raises ValueError for an option that only zlog itself may set, and if the log cannot have the
    ordering or the width.
    """
    check_unreserved(changes.options or {})

    def edit(view: View) -> View | None:
        ordered = view.ordered if changes.ordered is None else changes.ordered
        if ordered:
            _check_ordered(view, changes.width)
        options = changes.applied_to(view.options)
        wanted = view
        if options != view.options:
            wanted = replace(view, options=MappingProxyType(options))
        if ordered != view.ordered:
            wanted = replace(wanted, ordered=ordered, sequencer="")
            wanted = replace(wanted, sequencer=sequencer_of(layout.io, wanted))
        width = 1 if ordered else changes.width
        changed = with_new_stripe(wanted, width, changes.stripe_unit)
        if ordered != view.ordered or changed.live_stripe.striping != view.live_stripe.striping:
            wanted = changed
        return None if wanted is view else wanted

    view = await _change(layout, edit, deadline)
    if has_retention(changes.applied_to({})):
        with contextlib.suppress(ZlogError):  # the list is only a hint
            await layout.directory.retained.add_all([view.log], deadline)
    return view


def _check_ordered(view: View, width: int | None) -> None:
    """Raise ValueError if a log cannot be ordered by its object, or not with this width."""
    reason = ""
    if view.mirror:
        reason = "it is a mirror; first promote it (`zlog access promote LOG`)"
    elif view.writer is not None:
        reason = "it has an exclusive writer; first open it to all (`zlog access fence LOG`)"
    elif view.mac is not None:
        reason = "its entries have MACs, which cover their positions"
    if reason:
        raise ValueError(f"log {view.log!r} cannot be ordered by its object: {reason}")
    if width not in (None, 1):
        raise ValueError(
            f"log {view.log!r} is ordered by its object, so its width is 1, not {width}; let a"
            " sequencer order it first (`zlog reconfigure LOG --ordering sequencer`)"
        )


async def roll(layout: Layout, deadline: Deadline, *, rescue: bool = False) -> View:
    """End the live stripe and start the next one with the same width.

    If several clients call this at once, the stripe ends only once. Use ``rescue`` if a hostile
    client has raised the tail: the new stripe then starts directly after the log's entries.
    """
    ended = (await layout.refresh(deadline)).live_stripe

    def edit(view: View) -> View | None:
        return with_new_stripe(view) if view.live_stripe.id == ended.id else None

    async def recount(view: View, tail: int, deadline: Deadline) -> int:
        return await _end_of_entries(layout.io, view, tail, deadline)

    return await _change(layout, edit, deadline, recount if rescue else None)


async def _change(
    layout: Layout, edit: Edit, deadline: Deadline, recount: Recount | None = None
) -> View:
    await check_change(layout.io, layout.view, deadline)
    before = layout.view.epoch
    view = await layout.change(edit, deadline, recount=recount)
    if view.epoch > before:
        with contextlib.suppress(ZlogError):  # the change is made; the next reclaim continues
            await reclaim(layout, deadline)
    return view


async def _end_of_entries(io: Io, view: View, tail: int, deadline: Deadline) -> int:
    """Return ``tail``, or if it is implausibly high, the end of the log's entries.

    With an old object class, a hostile client can raise the tail up to 2^63 by taking a high
    position. The log's own entries are those before the first long gap. The live stripe must be
    sealed with the epoch of ``view``, so that nothing is written during the search.
    """
    live = view.live_stripe
    if tail - live.start <= live.width * OBJECT_TAIL_MAX:
        return tail
    start = end = max(live.start, view.trim_point)
    gap = live.width * _RESCUE_GAP
    at = {ref: ref.striping.first_at(start, ref.number) for ref in view.objects(live)}

    def read(ref: ObjectRef, places: Sequence[int]) -> bytes:
        return messages.read(view.epoch, False, _RESCUE_BYTES_MAX, ref.striping.packed, places)

    while at:
        asked = {ref: ref.positions(p, POSITION_MAX + 1)[:ENTRIES_MAX] for ref, p in at.items()}
        calls = [Call(ref.name, "read", read(ref, places)) for ref, places in asked.items()]
        replies = await io.execute(calls, deadline)
        for (ref, first), reply in zip([*at.items()], replies, strict=True):
            reply.check_call("read", ref.name)
            found = decode_read(reply.payload, asked[ref], None)  # only the states are needed
            if taken := found.taken_end():
                end = max(end, ref.striping.after(first, taken - 1) + 1)
            at[ref] = ref.striping.after(first, len(found))
        at = {ref: first for ref, first in at.items() if first < min(end + gap, POSITION_MAX)}
    return end
