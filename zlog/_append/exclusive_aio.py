"""Appends of an exclusive writer on an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from zlog._append.append import Appender
from zlog._append.exclusive import Exclusive
from zlog._append.outcomes import again, not_confirmed, not_sent
from zlog._append.room import RECOUNT_SECONDS, Room
from zlog._append.rounds import ROUND_BYTES_MAX, ROUND_ENTRIES_MAX, Handed
from zlog._base.deadline import Deadline
from zlog._native.gather import Append, Gathering
from zlog._native.new_entries import entries_owned
from zlog.environment import world_of
from zlog.errors import ZlogError

if TYPE_CHECKING:
    from zlog._native.new_entries import NewEntry


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


class AsyncioAppends(Exclusive):
    """The appends of a writer on the running event loop.

    Attributes:
        append: returns the coroutine that appends one entry, as that of `zlog.aio.Log` does. Those
            that begin in one turn of the loop are handed in together.
    """

    def prepare(self, appender: Appender, room: Room) -> None:
        """Get ready; no request is made."""
        self._loop = loop = asyncio.get_running_loop()
        self._appender = appender
        self._room = room
        self._gathering = Gathering(
            loop,
            self.hand_in_gathered,
            appender.check,
            appender.entry_bytes_max,
            room.window_bytes,
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
            all_of_it or failed is not None or self.unconfirmed_bytes < self._room.window_bytes
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

    async def append_all(
        self, entries: Sequence[NewEntry], deadline: Deadline, *, own: bool, many: bool = False
    ) -> Any:
        """Append entries, and return the position or positions once they are confirmed.

        Args:
            entries: at least one.
            deadline: of the call.
            own: whether the call has a time-out of its own. Else its round's budget counts.
            many: whether to return all positions.
        """
        outcome = await self._submit(entries, deadline, awaited=True, many=many)
        if not own:
            return await outcome
        try:
            return await asyncio.wait_for(outcome, deadline.remaining())
        except (TimeoutError, asyncio.TimeoutError):
            raise not_confirmed() from None

    async def submit(
        self, entries: Sequence[NewEntry], deadline: Deadline, *, many: bool = False
    ) -> asyncio.Future[Any]:
        """Submit entries, once there is room; returns the future of the position or positions."""
        if not entries:
            none: asyncio.Future[range] = self._loop.create_future()
            none.set_result(range(0))
            return none
        return await self._submit(entries, deadline, awaited=False, many=many)

    async def _submit(
        self, entries: Sequence[NewEntry], deadline: Deadline, *, awaited: bool, many: bool
    ) -> asyncio.Future[Any]:
        self._appender.check(entries)
        room = self._room
        outcome: asyncio.Future[Any] = self._loop.create_future()
        handed = Handed(entries_owned(entries), outcome, awaited=awaited, many=many)
        while not room.has(handed.size):
            await room.recount(handed.size, deadline)
            if not room.has(handed.size):
                await self._changed(deadline.sooner(RECOUNT_SECONDS))
                if deadline.expired and not room.has(handed.size):
                    raise room.not_sent(handed.size)
        failed = self.hand_in_gathered(all_of_it=True)  # which came before
        if failed is not None:
            raise again(failed)
        if self.hand_in(handed):
            self.spawn()
        return outcome

    async def flush(self, deadline: Deadline) -> None:
        """Wait until all that was submitted is confirmed, or has failed."""
        while not self.idle:
            if not await self._changed(deadline):
                raise not_confirmed()
        self.raise_untold()

    async def close(self, deadline: Deadline) -> None:
        """Wait for what is under way."""
        await self.flush(deadline)

    async def _changed(self, deadline: Deadline) -> bool:
        """Wait until there may be more room; returns whether that was in time."""
        change = self._loop.create_future()
        self._waiting_for_change.append(change)
        try:
            await asyncio.wait_for(change, deadline.remaining())
        except (TimeoutError, asyncio.TimeoutError):
            return False
        return True
