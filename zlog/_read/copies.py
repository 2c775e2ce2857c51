"""Reading from other copies of an object what its primary one has damaged."""

from __future__ import annotations

from collections.abc import Callable

from zlog._base.codes import Code
from zlog._base.deadline import Deadline
from zlog._base.io import Io
from zlog._read.items import Decode, Slot, is_bad, is_open
from zlog._replica.replicas import (
    POSITION_IN_VAIN_SECONDS,
    SECONDS_MAX,
    Copies,
    helped,
    in_vain,
    note_in_vain,
)
from zlog.errors import StoreTimeout

_PAUSE_SECONDS = 0.25
_PAUSE_SECONDS_MAX = 2.0
"""Between two rounds of asking."""


async def read_copies(
    io: Io,
    object: str,
    decode: Decode,
    request: Callable[[list[int]], bytes],
    damaged: list[int],
    found: dict[int, Slot],
    writers: dict[int, bytes] | None,
    deadline: Deadline,
) -> None:
    """Read from other copies of an object what its primary one has damaged.

    What a copy has not is no answer: it may be the next one that has lost something. And while
    OSDs come and go, the primary one may answer for all of them: so they are asked again, and
    nothing is said to be lost before all copies have said so.

    Args:
        io: the world.
        object: its name.
        decode: decodes the replies.
        request: makes the request to read some positions.
        damaged: positions.
        found: has the gaps that they are, and gets the entries. Where the layout has changed
            meanwhile these positions are left out, to be read anew.
        writers: gets the ids of their writers, unless it is None.
        deadline: of the whole call.

    Raises:
        StoreTimeout: not all copies answered.
    """
    left = [p for p in damaged if not in_vain(io, object, p)]
    short = deadline.sooner(SECONDS_MAX)
    pause = _PAUSE_SECONDS
    while left:
        copies = Copies(io, object, "read", request(left), deadline)
        sound = await _first_sound(copies, object, decode, left, writers, short)
        if sound is None:
            for position in left:
                del found[position]
            return
        if sound:
            helped(io, object)
            found.update(sound)
            left = [p for p in left if p not in sound]
            continue
        last = pause > _PAUSE_SECONDS_MAX or short.expired
        if await copies.all_answered() and (copies.told_apart or last):
            note_in_vain(io, object, left, deadline, POSITION_IN_VAIN_SECONDS)
            return
        if last:
            raise StoreTimeout(
                f"position {left[0]}: damaged or gone in each copy of object {object} that"
                " answered; one that may have it did not",
                hint="Try again once its OSDs are up and clean (`ceph health detail`).",
            )
        await io.sleep(pause)
        pause *= 2


async def _first_sound(
    copies: Copies,
    name: str,
    decode: Decode,
    asked: list[int],
    writers: dict[int, bytes] | None,
    deadline: Deadline,
) -> dict[int, Slot] | None:
    """Return what the first copy that has any of some positions holds there.

    None: the layout has changed.
    """
    async for reply in copies.replies(deadline):
        if reply.code == Code.STALE_EPOCH:
            return None
        slots: dict[int, Slot] = {}
        ids: dict[int, bytes] = {}
        if reply.code == Code.OK:
            decode(reply.payload, name, asked, slots, ids)
        sound = {p: s for p, s in slots.items() if not (is_bad(s) or is_open(s))}
        if sound:
            if writers is not None:
                writers.update((p, ids[p]) for p in ids if p in sound)
            return sound
    return {}
