"""Processes that contend for being the one that writes, and what they do while they are."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from unittest import mock

from tests.history import RecordedWriter
from zlog.errors import Fenced

from ..support.logs import all_of, tags_of
from .clients import Client


@contextmanager
def small_writer_rounds() -> Iterator[None]:
    """Rounds of an exclusive writer have up to three entries, so that two are under way."""
    with (
        mock.patch("zlog._append.exclusive.ROUND_ENTRIES_MAX", 3),
        mock.patch.multiple("zlog._append.rounds", ROUND_ENTRIES_MAX=3, _ROUND_ENTRIES_SPLIT=1),
    ):
        yield


class Contender(Client):
    """A process that takes the log, writes until it has enough or is fenced, and comes back."""

    async def run(self) -> None:
        """Take the log again and again until ``done``."""
        self._log = await self._open()
        while not self.done:
            await asyncio.sleep(self.chance.uniform(0, 0.6))
            await self._try(self._hold())

    async def _hold(self) -> None:
        self.trace(self.process.name, "takes the log")
        writer = await self._log.writer(self._name)
        self.trace(self.process.name, f"has the log from {writer.writer.start} on")
        if self.chance.random() < 0.5:
            await self._try(self._recover(writer))
        for _ in range(self.chance.randint(1, 40)):
            if self.done or writer.writer.fenced is not None:
                break
            await asyncio.sleep(self.chance.choice((0, self.chance.uniform(0, self.think))))
            await self._try(self._write(writer))
        if writer.writer.fenced is not None:
            await self._write_in_vain(writer)
        elif (end := self.chance.random()) < 0.25:
            await writer.release()
            self.trace(self.process.name, "gave the log back")
        elif end < 0.6:
            await writer.close()

    def _write(self, writer: RecordedWriter) -> Awaitable[object]:
        if self.chance.random() < 0.05:
            self._freeze("write")
        actions, weights = zip(*_WRITES.items(), strict=True)
        (action,) = self.chance.choices(actions, weights)
        self.trace(self.process.name, action.__name__.removeprefix("_"))
        return action(self, writer)

    async def _write_in_vain(self, writer: RecordedWriter) -> None:
        """A writer that knows that it is fenced is told so again."""
        for append in (writer.append(self._entry()), writer.append_many([self._entry()])):
            try:
                await append
            except Fenced as error:
                self.trace(self.process.name, f"is fenced: {error}")
            else:
                self.complain(f"P19: {self.process.name} was fenced, and its append confirmed")

    async def _recover(self, writer: RecordedWriter) -> object:
        """Read what is there, which has no holes but from before it was exclusive."""
        found = [item async for item in writer.recover()]
        return f"recovered {len(found)} items up to {writer.writer.start}"

    async def _append_one(self, writer: RecordedWriter) -> object:
        entry = self._entry()
        return await writer.append(entry, tags=tags_of(entry))

    async def _append_several(self, writer: RecordedWriter) -> object:
        return await writer.append_many([self._entry() for _ in range(self.chance.randint(1, 10))])

    async def _submit_several(self, writer: RecordedWriter) -> object:
        """Hand in several, one after the other, and wait for all of them or for none."""
        futures: list[asyncio.Future[int]] = []
        for _ in range(self.chance.randint(2, 12)):
            future = await writer.submit(self._entry())
            future.add_done_callback(lambda done: self._check_order(futures, done))
            futures.append(future)
            if self.chance.random() < 0.2:
                await asyncio.sleep(self.chance.uniform(0, 0.01))
        if self.chance.random() < 0.5:
            await writer.flush()
            return [future.result() for future in futures]
        return None

    async def _write_as_the_layout_changes(self, writer: RecordedWriter) -> None:
        """Change it while one round is held back, and later ones are written."""
        self.store.hold = 0.2
        for _ in range(self.chance.randint(2, 6)):
            await writer.submit(self._entry())
            await asyncio.sleep(self.chance.uniform(0, 0.03))
        await self._log.log.reconfigure(width=self.chance.randint(1, 5))

    def _check_order(self, futures: list[asyncio.Future[int]], done: asyncio.Future[int]) -> None:
        if done.exception() is None and not all(
            each.done() for each in futures[: futures.index(done)]
        ):
            self.complain(f"P17: {self.process.name} had {done.result()} confirmed out of order")

    async def _append_at_the_same_time(self, writer: RecordedWriter) -> object:
        count = self.chance.randint(2, 8)
        return await all_of(writer.append(self._entry()) for _ in range(count))

    async def _read_last(self, writer: RecordedWriter) -> object:
        """Find what is confirmed."""
        confirmed = writer.writer.confirmed
        return await self._log.read(confirmed - 1) if confirmed else None

    async def _look_at_tail(self, writer: RecordedWriter) -> object:
        """Find that the tail is what is confirmed, or what will be soon."""
        confirmed, tail = writer.writer.confirmed, await self._log.tail()
        if tail < confirmed:
            self.complain(f"P5: {self.process.name} had {confirmed} confirmed, the tail is {tail}")
        return tail

    async def _trim_below(self, writer: RecordedWriter) -> object:
        return await writer.trim(writer.writer.confirmed // 2) if self.trims else None


_WRITES: dict[Callable[[Contender, RecordedWriter], Awaitable[object]], int] = {
    Contender._append_one: 30,
    Contender._append_several: 15,
    Contender._submit_several: 25,
    Contender._append_at_the_same_time: 10,
    Contender._write_as_the_layout_changes: 2,
    Contender._read_last: 10,
    Contender._look_at_tail: 6,
    Contender._trim_below: 1,
}
