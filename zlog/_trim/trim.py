"""Trimming single positions, and all below a point."""

from __future__ import annotations

import errno
from collections.abc import Sequence

from zlog._base.codes import Code
from zlog._base.deadline import Deadline
from zlog._base.io import Call
from zlog._base.refusals import refused_call
from zlog._layout.layout import Layout
from zlog._layout.object_calls import change_positions
from zlog._layout.reclaim import reclaim
from zlog._native import messages
from zlog.errors import HeldByCursor, ZlogError
from zlog.view import ObjectRef, Stripe, View

_RECORDS_PER_CALL = 1024
"""What one call frees at most, so that it never keeps an OSD busy for long."""


async def trim(layout: Layout, positions: Sequence[int], deadline: Deadline) -> None:
    """Trim single positions, written or not."""

    def request(view: View, ref: ObjectRef, group: list[int]) -> bytes:
        return messages.trim(view.epoch, ref.spacing.packed, group)

    await change_positions(layout, "trim", request, positions, deadline)


async def trim_to(
    layout: Layout, position: int, deadline: Deadline, *, past_cursors: bool = False
) -> None:
    """Trim every position below ``position``: first for all readers, then object by object.

    The head lets no trim pass a tail that it does not know: the caller has seen that ``position``
    is one, or below. The trim point is recorded in the head before any space is freed. Stripes that
    lie wholly below it have their objects removed; the one that it cuts gives its records back. If
    this dies half-way, the positions are trimmed all the same, and the next call frees what is
    left. An object that fails, as an older class does at a record of a newer version, is passed
    over: all else is freed before its error is raised.

    Raises:
        HeldByCursor: a cursor lies below ``position``, and the trim may not go ``past_cursors``.
            The head decides that in the same step that records the point, so no cursor is made
            in between.
    """
    while not _below_tail(layout.view, position):
        if await layout.raise_tail(layout.view, position, deadline):
            break
    held = await layout.head.trim_point_raise(
        layout.address.log_id, position, deadline, past_cursors=past_cursors
    )
    if held is not None:
        raise HeldByCursor(
            f"can't trim to {position}: a cursor of log {layout.view.log!r} is at {held}",
            position=held,
        )
    view = await layout.refresh(deadline)
    point = view.trim_point
    cut = await layout.stripe_at(point, deadline)
    refused: ZlogError | None = None
    if cut is not None and cut.start < point:
        refused = await _free_records(layout, cut, point, deadline)
    await reclaim(layout, deadline)
    if refused is not None:
        raise refused


def _below_tail(view: View, position: int) -> bool:
    """Whether the head lets a trim go so far; that of a mirror may go anywhere."""
    known = max(view.tail_floor, view.live_stripe.start, view.trim_point)
    return position <= known or view.mirror


async def _free_records(
    layout: Layout, stripe: Stripe, point: int, deadline: Deadline
) -> ZlogError | None:
    """Free what lies below ``point`` inside the objects of a stripe that goes on above it.

    Returns why an object did not, if one did not.
    """
    left = {ref.name for ref in layout.objects(layout.view, stripe)}
    refused: ZlogError | None = None
    while left:

        def calls(view: View) -> list[Call]:
            request = messages.trim_to(view.epoch, point, _RECORDS_PER_CALL)
            return [Call(name, "trim_to", request) for name in sorted(left)]

        names = sorted(left)
        _, replies = await layout.guarded(calls, deadline)
        for name, reply in zip(names, replies, strict=True):
            if reply.code not in (Code.OK, -errno.ENOENT):
                refused = refused_call(reply.code, "trim_to", name)
            if reply.code != Code.OK or not messages.trim_to_reply(reply.payload).more:
                left.discard(name)
    return refused
