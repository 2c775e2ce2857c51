"""Where the entries of a log end whose tail was moved far away from them.

An object class from before there were bounds let a hostile client do that, with one position near
2^63: taken in an object, or shown as a tail. Then no position is left, and no new view can come.
"""

from __future__ import annotations

from zlog._base.codes import ENTRIES_MAX, OBJECT_TAIL_MAX, POSITION_MAX
from zlog._base.deadline import Deadline
from zlog._base.io import Call, Io
from zlog._base.striping import Places
from zlog._native import messages
from zlog._native.replies import decode_read
from zlog.view import ObjectRef, View

_GAP = 1 << 20
"""Positions of each object: far more than writers that died leave between entries."""

_BYTES_MAX = 4 << 20
"""Data that one read of one object may bring back."""


async def end_of_entries(io: Io, view: View, tail: int, deadline: Deadline) -> int:
    """Return where the log's entries end: before the first long gap, if ``tail`` is out of bounds.

    Otherwise ``tail``. The live stripe is looked at from its beginning on, or from the trim point.

    Args:
        io: the world.
        view: with an epoch that the live stripe is sealed with: nothing more is written there.
        tail: one past the last position that is taken, or was shown as a tail.
        deadline: budget of the call.
    """
    live = view.live_stripe
    if tail - live.start <= live.width * OBJECT_TAIL_MAX:
        return tail
    start = end = max(live.start, view.trim_point)
    gap = live.width * _GAP
    at = {ref: ref.spacing.first_at(start, ref.number) for ref in view.objects(live)}
    while at:
        calls = [_call(view, ref, first) for ref, first in at.items()]
        replies = await io.execute(calls, deadline)
        for (ref, first), reply in zip([*at.items()], replies, strict=True):
            reply.check_call("read", ref.name)
            found = decode_read(reply.payload, _asked(ref, first), None)  # for its states
            if taken := found.taken_end():
                end = max(end, ref.spacing.after(first, taken - 1) + 1)
            at[ref] = ref.spacing.after(first, found.count)
        at = {ref: first for ref, first in at.items() if first < min(end + gap, POSITION_MAX)}
    return end


def _call(view: View, ref: ObjectRef, first: int) -> Call:
    request = messages.read(view.epoch, False, _BYTES_MAX, ref.spacing.packed, _asked(ref, first))
    return Call(ref.name, "read", request)


def _asked(ref: ObjectRef, first: int) -> Places:
    return ref.places(first, POSITION_MAX + 1)[:ENTRIES_MAX]
