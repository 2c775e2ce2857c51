"""Queues, whose workers take the entries of a log one by one."""

from __future__ import annotations

from datetime import datetime
from math import inf
from operator import index
from typing import TYPE_CHECKING

from zlog.aio.log import Log
from zlog.entry import Entry, Gap
from zlog.errors import StoreUnavailable
from zlog.extension import AsyncioPort, PositionSpec, ProcessBound, no_entry
from zlog.extension import drive_aio as drive
from zlog.groups._member import check_group, check_lease, cursor_name, log_name
from zlog.groups._queue import Claim, QueueMember
from zlog.groups.aio.own_log import open_own
from zlog.names import check_log_name

if TYPE_CHECKING:
    from typing_extensions import Self

LEASE_SECONDS = 30.0


def _seconds(seconds: float) -> float:
    if not 0 <= seconds < inf:
        raise ValueError(f"a number of seconds must be finite and not negative, not {seconds:g}")
    return seconds


class Job:
    """An entry that this worker is to process. Acknowledge it with :meth:`ack` or :meth:`nack`.

    Attributes:
        position: the entry's position.
        attempt: how often the entry was given to a worker, including this time.
    """

    __slots__ = ("_claim", "_inner", "attempt", "position")

    def __init__(self, inner: QueueMember, claim: Claim) -> None:
        """Wrap a claim; programs get jobs from a queue."""
        self._inner = inner
        self._claim = claim
        self.position = claim.position
        self.attempt = claim.attempt

    @property
    def item(self) -> Entry | Gap:
        """The entry, or a gap if it is lost."""
        item = self._claim.item
        assert item is not None
        return item

    @property
    def entry(self) -> Entry:
        """The entry.

        Raises:
            CorruptEntry, ForgedEntry, UnsupportedVersion: the entry is lost or cannot be read.
        """
        item = self.item
        if isinstance(item, Gap):
            raise no_entry(item, self._inner.data.log)
        return item

    @property
    def data(self) -> bytes:
        """The entry's data. Raises as :attr:`entry` does."""
        return self.entry.data

    @property
    def tags(self) -> tuple[str, ...]:
        """The entry's tags. Raises as :attr:`entry` does."""
        return self.entry.tags

    @property
    def timestamp(self) -> datetime:
        """When the entry was appended. Raises as :attr:`entry` does."""
        return self.entry.timestamp

    def remaining(self) -> float:
        """Return the remaining seconds of the lease by this machine's clock."""
        return self._inner.left(self._claim)

    async def ack(self, *, flush: bool = False) -> None:
        """Acknowledge the job, so that it is not given to a worker again.

        The call returns at once, and acknowledgements are sent together within some milliseconds.
        If the process dies before that, the job is given to a worker again.

        Args:
            flush: wait until this and all earlier acknowledgements are durable, or counted in
                :attr:`Queue.refused` because another worker may have the job.
        """
        self._inner.ack(self._claim)
        if flush:
            await drive(self._inner.flush())

    async def nack(self, *, delay: float = 0.0, error: str = "", flush: bool = False) -> None:
        """Return the job, to be given to a worker again.

        Args:
            delay: the number of seconds before that.
            error: why the job has failed, which its dead letter will contain, up to 100 bytes.
            flush: wait until this is durable.

        Raises:
            ValueError: the delay is negative or not finite.
        """
        self._inner.nack(self._claim, _seconds(delay), str(error))
        if flush:
            await drive(self._inner.flush())

    async def release(self, *, flush: bool = False) -> None:
        """Give the job back as if no worker had had it, so that the attempt does not count.

        Args:
            flush: wait until this is durable.
        """
        self._inner.nack(self._claim, 0.0, "", counts=False)
        if flush:
            await drive(self._inner.flush())

    def extend(self, seconds: float | None = None) -> None:
        """Let the job's lease end ``seconds`` from now; None means the queue's lease.

        Raises:
            ValueError: the number of seconds is negative or not finite.
        """
        self._inner.extend(self._claim, seconds if seconds is None else _seconds(seconds))

    def __repr__(self) -> str:
        return f"<zlog.groups.aio.Job at {self.position}, attempt {self.attempt}>"


class Queue(ProcessBound):
    """A queue of a log's entries. Each entry is given to one worker at a time, as a job.

    ``async with`` opens and closes the queue. Its jobs come in the order of their positions, except
    that jobs are repeated after failures. Threads may share a queue.

        async with Queue(log, "mail", lease=30, attempts=5, dead_letters="undelivered") as queue:
            async for job in queue:
                await send(job.data)
                await job.ack()
    """

    def __init__(
        self,
        log: Log,
        name: str,
        *,
        lease: float = LEASE_SECONDS,
        attempts: int | None = None,
        dead_letters: str | None = None,
        start: PositionSpec = "earliest",
        worker: str = "",
    ) -> None:
        """Describe a worker of a queue. The first worker creates the queue.

        Args:
            log: the log, which must stay open.
            name: 1 to 64 letters, digits, ``_``, ``.`` or ``-``.
            lease: after how many seconds a job is given to another worker, if its worker has died
                or has neither acknowledged nor extended it. It must be longer than any pause of the
                process.
            attempts: how often a job is tried before it becomes a dead letter. None means as
                stored, or else 5.
            dead_letters: the log of the dead letters, which is created if necessary. Without one,
                jobs are tried without end. None means as stored, and ``""`` no log.
            start: where a new queue begins: a position, ``"earliest"`` or ``"latest"``.
            worker: a name for the worker in statistics.

        Raises:
            ValueError, TypeError: an argument is invalid.
        """
        check_group(log.name, name)
        check_lease(lease)
        if attempts is not None and index(attempts) < 1:
            raise ValueError(f"a job needs at least 1 attempt, not {attempts}")
        if not isinstance(worker, str):
            raise TypeError(f"a worker's name must be a str, not {worker!r}")
        if dead_letters:
            check_log_name(dead_letters)
            if dead_letters == log.name or dead_letters.startswith(log_name(log.name, "")):
                raise ValueError(f"the dead letters need a log of their own, not {dead_letters!r}")
        self.log = log
        self.name = name
        self._lease = lease
        self._changes = {"attempts": attempts, "dead_letters": dead_letters}
        self._start = start
        self._worker = worker
        self._inner: QueueMember | None = None
        self._logs: list[Log] = []

    async def open(self) -> Self:
        """Open the queue; ``async with`` does so.

        Raises:
            GroupDiffers: the name belongs to an ordered group.
            ValueError: the queue was opened before.
        """
        if self._inner is not None:
            raise ValueError(f"queue {self.name!r} was opened before; create another Queue")
        log = self.log
        own, replica = await open_own(log, self.name, self._lease)
        self._logs = [own]
        try:
            cursor = await log.cursor(cursor_name(self.name), create=self._start)
            inner = QueueMember(
                AsyncioPort(log), replica, self.name, self._worker, self._lease, self._open_dead
            )
            await drive(inner.begin({"start": cursor.position}, self._changes))
        except BaseException:
            await own.close()
            raise
        self._inner = inner
        return self

    async def _open_dead(self, name: str) -> AsyncioPort:
        """Open the log of dead letters."""
        dead = await Log.open(self.log.store, name, create=True)
        self._logs.append(dead)
        return AsyncioPort(dead)

    @property
    def _opened(self) -> QueueMember:
        if self._inner is None:
            raise StoreUnavailable(
                f"queue {self.name!r} is not open",
                hint="Use the queue in a `with` block, or call `open`.",
                retryable=False,
            )
        return self._inner

    @property
    def refused(self) -> int:
        """How many jobs were acknowledged or returned after this worker had lost them."""
        return self._opened.refused

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Job:
        inner = self._opened
        [claim] = inner.hand_out(1) or await drive(inner.take(1, None))
        return Job(inner, claim)

    async def take(self, count: int = 1, *, wait: float | None = None) -> list[Job]:
        """Return 1 to ``count`` jobs, or none if there are none for ``wait`` seconds.

        A worker takes at most 1000 jobs from the group at once.
        """
        if count < 1:
            raise ValueError(f"take at least 1 job, not {count}")
        inner = self._opened
        return [Job(inner, each) for each in await drive(inner.take(count, wait))]

    async def flush(self) -> None:
        """Wait until all acknowledgements are durable or counted in :attr:`refused`."""
        await drive(self._opened.flush())

    async def close(self) -> None:
        """Send all acknowledgements, return the other jobs, and close the queue.

        It is safe to call this twice.
        """
        try:
            if self._inner is not None:
                await drive(self._inner.close(leave=True))
        finally:
            for log in self._logs:
                await log.close()

    async def __aenter__(self) -> Self:
        return await self.open()

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"<zlog.groups.aio.Queue {self.name!r} of {self.log.name!r}>"
