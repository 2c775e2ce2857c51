"""Asks other replicas of an object if the primary replica is damaged."""

from __future__ import annotations

import contextlib
import errno
import functools
import logging
from collections.abc import AsyncIterator, Iterable

from zlog._base.codes import Code
from zlog._base.deadline import Deadline
from zlog._base.io import TIMED_OUT, Call, Io, Reply
from zlog._base.monitor import Placement, placement, pool_size
from zlog.errors import StoreUnavailable

_logger = logging.getLogger(__name__)

TRIES_MAX = 24
"""Replicas are chosen at random. If one of three is sound, 24 tries miss it in one of 10**4 calls.
If two are sound, they miss both in one of 10**11 calls."""

SECONDS_MAX = 5.0
"""The longest time to ask replicas."""

_INSTANCE_BYTES = 8

_NO_ANSWER = (Code.STALE_EPOCH, -errno.EOPNOTSUPP, -errno.EPERM)
"""Answers that tell nothing: the view is out of date, or the OSD cannot or may not answer."""

_BUSY_SECONDS = 0.01
"""The pause before another attempt while the store asks replicas for other calls."""

_FAILED_SECONDS = 10.0
"""If no replica could answer a method, how long to wait before asking again for that method."""

POSITION_FAILED_SECONDS = 60.0
"""The same for a position. It must be longer than a call, which takes some seconds per object. A
repair of the primary is noticed at once."""

_FAILED_MAX = 1 << 16


class Replicas:
    """Asks randomly chosen replicas of an object, one after another.

    Use this if a call has found damage in the primary. The ``method`` must be one that only reads.
    It asks for at most SECONDS_MAX seconds.
    """

    def __init__(
        self, io: Io, object: str, method: str, request: bytes, deadline: Deadline
    ) -> None:
        self._io = io
        self._object = object
        self._start = functools.partial(
            io.store.ask_replica, object=object, method=method, request=request
        )
        self._deadline = deadline
        self._instances: set[int] = set()  # numbers of OSD processes; 0 if unknown
        self._one_replica = False
        self._place: Placement | None = None
        self._size: int | None = None
        self._asked = 0

    @property
    def told_apart(self) -> bool:
        """Whether all answers name their OSDs. Only a current class does this."""
        return 0 not in self._instances

    async def replies(self, deadline: Deadline | None = None) -> AsyncIterator[Reply]:
        """Ask until all replicas have answered, TRIES_MAX is reached, or the time is up."""
        deadline = (deadline or self._deadline).sooner(SECONDS_MAX)
        while self._asked < TRIES_MAX and not deadline.expired:
            reply = await self._io.run(self._start, deadline)
            if reply.code == -errno.ETIMEDOUT:
                return
            if reply.code == -errno.EOPNOTSUPP and not reply.payload:
                self._one_replica = True
                return
            if reply.code == -errno.EBUSY:
                await self._io.sleep(_BUSY_SECONDS)
                continue
            self._asked += 1
            answer = bytes(reply.payload)
            instance = int.from_bytes(answer[:_INSTANCE_BYTES], "little")
            there = instance != 0 or reply.code != -errno.ENOENT
            if there and reply.code not in _NO_ANSWER:
                self._instances.add(instance)
            yield Reply(reply.code, answer[_INSTANCE_BYTES:])
            if self._asked == 1:
                await self._look()
            elif self.told_apart and len(self._instances) == self._size:
                return

    async def _look(self) -> None:
        """Find out how many replicas there are. This is called if the first answer is not enough.

        Earlier answers are not counted, because a restarted OSD would be counted twice.
        """
        with contextlib.suppress(StoreUnavailable):
            self._size = await pool_size(self._io, self._deadline)
            self._place = await placement(self._io, self._object, self._deadline)
        if self.told_apart:
            self._instances.clear()

    async def all_answered(self) -> bool:
        """Return whether every replica of the object has answered.

        If the answers do not show which OSD sent them, this returns whether all replicas are up.
        Returns False if an OSD has come or gone in the meantime.
        """
        if self._one_replica:
            return True
        if self._size is None or self._place is None:
            return False
        with contextlib.suppress(StoreUnavailable):
            now = await placement(self._io, self._object, self._deadline)
            there = len(self._instances if self.told_apart else now.acting)
            return now == self._place and there >= self._size
        return False


def helped(io: Io, object: str) -> None:
    """Count a read of sound data in another replica. Log the first one for each object."""
    io.replica_reads[object] += 1
    if io.replica_reads[object] == 1:
        _logger.warning(
            "the primary replica of object %s is damaged; another replica has the data."
            " `zlog check --repair` repairs it",
            object,
        )


def failed_lately(io: Io, object: str, what: str | int) -> bool:
    """Whether replicas were recently asked for a position or a method without success."""
    return io.monotonic() < io.failed_reads.get((object, what), 0.0)


def note_failed(
    io: Io,
    object: str,
    what: Iterable[str | int],
    deadline: Deadline,
    seconds: float | None = None,
) -> None:
    """Record that replicas were asked without success, if the call had enough time."""
    if deadline.expired:
        return
    if len(io.failed_reads) > _FAILED_MAX:
        io.failed_reads.clear()
    until = io.monotonic() + (_FAILED_SECONDS if seconds is None else seconds)
    io.failed_reads.update(((object, each), until) for each in what)


async def elsewhere(io: Io, call: Call, reply: Reply, deadline: Deadline) -> Reply:
    """Return the sound replicas' answer if the primary's stored bytes are damaged.

    One sound answer is enough for a read of positions, because entries never change. For any other
    call, a replica may have missed the last change, so all replicas must answer, and the answers of
    all sound replicas must agree. If a replica does not answer, the call times out.
    """
    if reply.code != -errno.EIO or not isinstance(call.payload, bytes):
        return reply
    replicas = Replicas(io, call.object, call.method, call.payload, deadline)
    sound: dict[tuple[int, bytes], Reply] = {}
    async for other in replicas.replies():
        if other.code >= 0:
            sound[other.code, bytes(other.payload)] = other
            if call.method == "read":
                break
    if not (sound and call.method == "read") and not await replicas.all_answered():
        what = (call.object, call.method)
        _logger.warning(
            "object %s: the primary replica is damaged and not all others answered, so %s has"
            " to wait",
            *what,
        )
        return TIMED_OUT
    if len(sound) != 1:
        return reply
    helped(io, call.object)
    return next(iter(sound.values()))
