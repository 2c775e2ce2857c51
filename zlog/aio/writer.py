"""The exclusive writer of a log, for asyncio: what :meth:`zlog.aio.Log.writer` returns."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Coroutine, Iterable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

from zlog._append.append import Appender
from zlog._append.exclusive import Exclusive
from zlog._append.outcomes import again, not_confirmed, not_sent
from zlog._append.place import take
from zlog._append.room import RECOUNT_SECONDS, Limits, Room
from zlog._append.rounds import ROUND_BYTES_MAX, ROUND_ENTRIES_MAX, Handed
from zlog._base.deadline import Deadline, Timeout
from zlog._base.environment import world_of
from zlog._client import LogClient, Tags, new_entries, new_entry
from zlog._log.writer import WriterHandle
from zlog._native import core
from zlog._native.core import Append, Gathering
from zlog.entry import Entry, Gap
from zlog.errors import ZlogError

if TYPE_CHECKING:
    from typing_extensions import Self

    from zlog._native.core import NewEntry


class _Gathered:
    """The outcome of appends that were handed in together."""

    def __init__(self, gathering: Gathering, appends: list[Append]) -> None:
        self._gathering = gathering
        self._appends = appends

    def done(self) -> bool:
        return False

    def set_result(self, positions: range) -> None:
        self._gathering.complete(self._appends, positions)

    def set_exception(self, error: BaseException) -> None:
        self._gathering.complete(self._appends, [again(error) for _ in self._appends])


class _Appends(Exclusive):
    """Those of a writer on the running event loop.

    Attributes:
        append: returns the coroutine that appends one entry, as that of `zlog.aio.Log` does. Those
            that begin in one turn of the loop are handed in together.
    """

    def prepare(self, appender: Appender, window_bytes: int) -> None:
        """Get ready; no request is made."""
        self._loop = loop = asyncio.get_running_loop()
        self._window_bytes = window_bytes
        self._gathering = Gathering(
            loop,
            self.hand_in_gathered,
            appender.check,
            appender.entry_bytes_max,
            window_bytes,
            self._timeout,
            world_of(loop).clock,
        )
        self.append = self._gathering.append
        self._failed: ZlogError | None = None  # what was handed in, since freed() was called
        self._agents: set[asyncio.Task[None]] = set()
        self._waiting_for_change: list[asyncio.Future[None]] = []

    def _fail(self, error: ZlogError) -> None:
        super()._fail(error)
        self._failed = error if len(self._gathering) else None

    def spawn(self) -> None:
        agent = self._loop.create_task(self.run())
        self._agents.add(agent)
        agent.add_done_callback(self._agents.discard)

    def hand_in_gathered(
        self, failed: ZlogError | None = None, *, all_of_it: bool = False
    ) -> ZlogError | None:
        """Hand in what has gathered, as far as the window has room.

        None of it comes behind an entry that is missing: where one fails, or its time is up before
        there was room, so do all that gathered behind it.

        Args:
            failed: what entries before it failed with.
            all_of_it: also beyond the window.

        Returns:
            What it failed with. What comes right behind it has to, too.
        """
        gathering = self._gathering
        while len(gathering) and (
            all_of_it or failed is not None or self.unconfirmed_bytes < self._window_bytes
        ):
            entries, appends, late = gathering.take(ROUND_ENTRIES_MAX, ROUND_BYTES_MAX)
            gathering.complete(late, [not_sent() for _ in late])
            if late and failed is None:
                failed = not_sent()
            if not entries:
                continue
            outcome = _Gathered(gathering, appends)
            try:
                handed = Handed(entries, outcome, awaited=True, many=True)
                if failed is None and self.hand_in(handed):
                    self.spawn()
            except ZlogError as error:
                failed = error
            if failed is not None:
                outcome.set_exception(failed)
        gathering.alert = not len(gathering)
        return failed

    @property
    def idle(self) -> bool:
        return super().idle and not len(self._gathering)

    def freed(self) -> None:
        failed, self._failed = self._failed, None
        self.hand_in_gathered(failed)
        waiting, self._waiting_for_change = self._waiting_for_change, []
        for each in waiting:
            if not each.done():
                each.set_result(None)

    async def changed(self, deadline: Deadline) -> bool:
        """Wait until there may be more room; returns whether that was in time."""
        change = self._loop.create_future()
        self._waiting_for_change.append(change)
        try:
            await asyncio.wait_for(change, deadline.remaining())
        except (TimeoutError, asyncio.TimeoutError):
            return False
        return True


class Writer(WriterHandle):
    """The only client that appends to a log. See :class:`zlog.Writer` for what each call does."""

    _appends: _Appends

    def append(
        self, data: bytes, *, tags: Tags = (), timeout: Timeout = ...
    ) -> Coroutine[Any, Any, int]:
        """Append one entry and return its position; see :meth:`zlog.Writer.append`."""
        entry = data if tags == () else new_entry(data, tags)
        if timeout is ... and self._room.capacity is None:
            return self._appends.append(entry)
        return self._append((entry,), timeout)

    async def append_many(
        self,
        entries: Iterable[bytes],
        *,
        tags: Tags = (),
        tags_each: Iterable[Tags] | None = None,
        timeout: Timeout = ...,
    ) -> range:
        """Append entries and return their positions; see :meth:`zlog.Writer.append_many`."""
        items = new_entries(entries, tags, tags_each)
        if not items:
            return range(0)
        positions: range = await self._append(items, timeout, many=True)
        return positions

    async def submit(
        self, data: bytes, *, tags: Tags = (), timeout: Timeout = ...
    ) -> asyncio.Future[int]:
        """Hand an entry in, once there is room; returns the future of its position.

        See :meth:`zlog.Writer.submit`.
        """
        entry = new_entry(data, tags)
        return await self._submit((entry,), self._deadline(timeout), awaited=False)

    async def submit_many(
        self,
        entries: Iterable[bytes],
        *,
        tags: Tags = (),
        tags_each: Iterable[Tags] | None = None,
        timeout: Timeout = ...,
    ) -> asyncio.Future[range]:
        """Hand entries in, once there is room; returns the future of their positions.

        See :meth:`zlog.Writer.submit_many`.
        """
        items = new_entries(entries, tags, tags_each)
        if items:
            return await self._submit(items, self._deadline(timeout), awaited=False, many=True)
        none: asyncio.Future[range] = asyncio.get_running_loop().create_future()
        none.set_result(range(0))
        return none

    async def flush(self, *, timeout: Timeout = ...) -> None:
        """Wait until all that was handed in is confirmed, or has failed."""
        deadline = self._deadline(timeout)
        while not self._appends.idle:
            if not await self._appends.changed(deadline):
                raise not_confirmed()
        self._appends.raise_untold()

    async def recover(self) -> AsyncIterator[Entry | Gap]:
        """Iterate over what the log held when it was taken; see :meth:`zlog.Writer.recover`."""
        reader = await self._recovery()
        while (items := await reader.next()) is not None:
            for item in items:
                yield item

    async def trim(self, position: int, *, timeout: Timeout = ...) -> None:
        """Trim every position below ``position``; see :meth:`zlog.Writer.trim`."""
        await self._trim(position, timeout)

    async def reset(self, *, timeout: Timeout = ...) -> int:
        """Trim all that is confirmed, and return where the log begins then."""
        position = self.confirmed
        await self.trim(position, timeout=timeout)
        return position

    async def release(self, *, timeout: Timeout = ...) -> None:
        """Wait for what is under way, and give the log back; see :meth:`zlog.Writer.release`."""
        await self.flush(timeout=timeout)
        await self._give_back(timeout)

    async def close(self) -> None:
        """Wait for what is under way. The log stays this writer's; see :meth:`release`."""
        await self.flush()

    async def _append(
        self, entries: Sequence[NewEntry], timeout: Timeout, *, many: bool = False
    ) -> Any:
        deadline = self._deadline(timeout)
        outcome = await self._submit(entries, deadline, awaited=True, many=many)
        if timeout is ...:  # its round has a budget of its own
            return await outcome
        try:
            return await asyncio.wait_for(outcome, deadline.remaining())
        except (TimeoutError, asyncio.TimeoutError):
            raise not_confirmed() from None

    async def _submit(
        self, entries: Sequence[NewEntry], deadline: Deadline, *, awaited: bool, many: bool = False
    ) -> asyncio.Future[Any]:
        self._client.appender.check(entries)
        appends, room = self._appends, self._room
        outcome: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        handed = Handed(core.entries_owned(entries), outcome, awaited=awaited, many=many)
        while not room.has(handed.size):
            await room.recount(handed.size, deadline)
            if not room.has(handed.size):
                await appends.changed(deadline.sooner(RECOUNT_SECONDS))
                if deadline.expired and not room.has(handed.size):
                    raise room.not_sent(handed.size)
        failed = appends.hand_in_gathered(all_of_it=True)  # which came before
        if failed is not None:
            raise again(failed)
        if appends.hand_in(handed):
            appends.spawn()
        return outcome

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # What the block has raised tells more than what became of the rest.
        with contextlib.suppress(*(() if error is None else (ZlogError,))):
            await self.close()


async def open_writer(
    client: LogClient,
    name: str | None,
    limits: Limits,
    timeout: Timeout,
) -> Writer:
    """Take the log; see :meth:`zlog.Log.writer`."""
    deadline = client.deadline(timeout)
    writer, view, end = await take(client.layout, name, deadline)
    appends = _Appends(client.layout, writer, view, end, client.settings.timeout)
    appends.prepare(client.appender, limits.window_bytes)
    room = Room(appends, limits)
    await room.count(deadline)
    return Writer(client, appends, room)
