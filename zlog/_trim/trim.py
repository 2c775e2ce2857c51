"""Trims single positions, or all positions below a point."""

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
"""The maximum number of records that one call frees, so that it does not occupy an OSD for long."""


async def trim(layout: Layout, positions: Sequence[int], deadline: Deadline) -> None:
    """Trim single positions, whether they are written or not."""

    def request(view: View, ref: ObjectRef, group: list[int]) -> bytes:
        return messages.trim(view.epoch, ref.striping.packed, group)

    await change_positions(layout, "trim", request, positions, deadline)


async def trim_to(
    layout: Layout, position: int, deadline: Deadline, *, past_cursors: bool = False
) -> None:
    """Trim every position below ``position``, which must not be above the tail.

    The head first records the trim point. Then the objects of stripes that are wholly below it are
    removed, and the objects of the stripe that contains it free their records below it. If this
    client dies after the first step, the positions are trimmed anyway, and the next call frees the
    rest. If an object fails, the other objects are freed before the error is raised.

    Raises HeldByCursor if a cursor is below ``position`` and ``past_cursors`` is not set. The head
    checks this in the same step that records the point, so no cursor can be created in between.
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
    offloaded = cut is not None and layout.offloaded.file_of(cut) is not None
    if cut is not None and cut.start < point and not offloaded:
        refused = await _free_records(layout, cut, point, deadline)
    await reclaim(layout, deadline)
    if refused is not None:
        raise refused


def _below_tail(view: View, position: int) -> bool:
    """Whether the head accepts this trim point. A mirror's trim point is not limited."""
    known = max(view.tail_floor, view.live_stripe.start, view.trim_point)
    return position <= known or view.mirror


async def _free_records(
    layout: Layout, stripe: Stripe, point: int, deadline: Deadline
) -> ZlogError | None:
    """Free the records below ``point`` in a stripe's objects. Returns an object's error, if any."""
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
