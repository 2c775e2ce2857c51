"""Trimming all positions below a point."""

from __future__ import annotations

import errno

from zlog import _native
from zlog._deadline import Deadline
from zlog._io import Call
from zlog._layout import Layout
from zlog.errors import HeldByCursor, from_errno
from zlog.view import ObjectRef, View

_RECORDS_PER_CALL = 1024
"""What one call frees at most, so that it never keeps an OSD busy for long."""


async def trim_to(
    layout: Layout, position: int, deadline: Deadline, *, past_cursors: bool = False
) -> None:
    """Trim every position below ``position``: first for all readers, then object by object.

    The trim point is recorded in the head before any space is freed. If this dies half-way, the
    positions are trimmed all the same, and the next call frees what is left.

    Raises:
        HeldByCursor: a cursor lies below ``position``, and the trim may not go ``past_cursors``.
            The head decides that in the same step that records the point, so no cursor is made
            in between.
    """
    held = await layout.head.trim_point_raise(
        layout.address.log_id, position, deadline, past_cursors=past_cursors
    )
    if held is not None:
        raise HeldByCursor(
            f"can't trim to {position}: a cursor of log {layout.view.log!r} is at {held}",
            position=held,
        )
    await layout.refresh(deadline)
    left = {ref.name for ref in _objects_below(layout.view, position)}
    while left:

        def calls(view: View) -> list[Call]:
            request = _native.encode_trim_to(view.epoch, position, _RECORDS_PER_CALL)
            return [Call(name, "trim_to", request) for name in sorted(left)]

        names = sorted(left)
        _, replies = await layout.guarded(calls, deadline)
        for name, reply in zip(names, replies, strict=True):
            if reply.code < 0 and reply.code != -errno.ENOENT:
                raise from_errno(reply.code, f"trim_to on {name}")
            if reply.code < 0 or not _native.decode_more(reply.payload):
                left.discard(name)


def _objects_below(view: View, position: int) -> list[ObjectRef]:
    return [
        ref for stripe in view.stripes if stripe.start < position for ref in view.objects(stripe)
    ]
