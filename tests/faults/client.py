"""A client process: it uses a log as its role says, keeps a journal, and gives up nothing.

SIGUSR1 tells it that all faults are over: from its next operation on, which it notes in a file, it
gives every operation the time that it may need, and dies of the first one that fails. SIGTERM tells
it to end.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import sys
import time
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any

import zlog
import zlog.aio
import zlog.offload
from tests.history import RecordedWriter
from zlog._base.wanted import Match

from ..support.logs import TAGS, all_of, tags_of
from .actors import Actor
from .blocking import Blocking, InTurns
from .enrolments import Enroller
from .journal import Journal
from .role import PATIENCE, SEQUENCER_TIMEOUT, Client, Told

SCAN_SECONDS = 1.0
"""How long a reader reads on. What it has read counts as found at any time since it began."""

IDLE_SECONDS = 10.0
"""How long it waits for the next item: longer than it takes to fill a hole."""

KEPT = 1500
"""Entries below the last reader's cursor that stay."""

MATCHES: tuple[Match, Match] = ("any", "all")

_PRODUCER = "job"
_PARTS = 2
"""Of a sequence."""

_SEQUENCES_KEPT = 3
_FORGETS = 0.3
"""How often a producer says, after a sequence, that all but the last ones are done."""

_PAUSE = 5
"""A producer waits this many times ``think`` before each sequence."""

_HOLD_SECONDS = 6.0
"""How long a contender keeps the log, at most."""

_RECOVERS = 0.1
_RELEASES = 0.2
"""How often one reads all that is there, and gives the log back in the end."""


class Writer(Client):
    """Appends, in every way, and looks at what it has appended."""

    async def begin(self) -> None:
        self._mine: deque[int] = deque([0], maxlen=50)

    def next(self) -> Awaitable[object]:
        actions, weights = zip(*_ACTIONS.items(), strict=True)
        (action,) = self.chance.choices(actions, weights)
        return action(self)

    async def _append(self) -> None:
        entry = self.entry()
        position = await self.log.append(entry, tags=tags_of(entry), timeout=self.timeout())
        self._mine.append(position)

    async def _append_at_once(self) -> None:
        """Several, which travel together in asyncio."""
        entries = [self.entry() for _ in range(self.chance.randint(2, 8))]
        self._mine += await all_of(self.log.append(each, tags=tags_of(each)) for each in entries)

    async def _append_many(self) -> None:
        entries = [self.entry() for _ in range(self.chance.randint(2, 12))]
        tags = tags_of(entries[0])
        self._mine += await self.log.append_many(entries, tags=tags, timeout=self.timeout())

    async def _read(self) -> None:
        await self.log.read(self.chance.choice(self._mine), timeout=self.timeout())

    async def _tail(self) -> None:
        await self.log.tail(timeout=self.timeout())

    async def _fill(self) -> None:
        position = max(self._mine) + self.chance.randint(-2, 4)
        await self.log.fill(max(0, position), timeout=self.timeout())


_ACTIONS: dict[Callable[[Writer], Awaitable[None]], int] = {
    Writer._append: 50,
    Writer._append_at_once: 10,
    Writer._append_many: 12,
    Writer._read: 16,
    Writer._tail: 8,
    Writer._fill: 4,
}


class Contender(Client):
    """Takes the log from those like it, writes until it has enough or is fenced, and comes back."""

    async def next(self) -> None:
        await asyncio.sleep(self.chance.uniform(0, _HOLD_SECONDS / 3))
        writer = await self.log.writer(timeout=self.timeout())
        if self.chance.random() < _RECOVERS:
            async for _ in writer.recover():
                pass
        end = time.monotonic() + self.chance.uniform(0, _HOLD_SECONDS)
        while time.monotonic() < end and not (self.told.done or writer.writer.fenced):
            await asyncio.sleep(self.chance.choice((0, self.chance.uniform(0, self.think))))
            await self._try(self._write(writer))
        if self.chance.random() < _RELEASES:
            await writer.release(timeout=self.timeout())
        else:
            await writer.close()

    async def _write(self, writer: RecordedWriter) -> None:
        kinds = 3 if isinstance(writer.writer, InTurns) else 4
        kind, count = self.chance.randrange(kinds), self.chance.randint(2, 12)
        if kind == 0:
            await writer.append(self.entry(), timeout=self.timeout())
        elif kind == 1:
            entries = [self.entry() for _ in range(count)]
            await writer.append_many(entries, timeout=self.timeout())
        elif kind == 2:
            for _ in range(count):
                await writer.submit(self.entry())
            if self.chance.random() < 0.5:
                await writer.flush(timeout=self.timeout())
        else:
            await all_of(writer.append(self.entry()) for _ in range(count))


class Follower(Client):
    """Follows the log from its cursor on, which it moves after what it has read."""

    async def begin(self) -> None:
        name = self.log.process.partition(".")[0]  # as the one that was killed before it
        while True:
            try:
                self._cursor = await self.log.log.cursor(name, create="earliest")
            except zlog.ZlogError:
                if self.told.over:
                    raise
            else:
                break
        self._position = self._cursor.position

    async def next(self) -> None:
        began = time.monotonic()
        async with aclosing(self.log.follow(self._position)) as items:
            while time.monotonic() < began + SCAN_SECONDS:
                try:
                    item = await asyncio.wait_for(anext(items), IDLE_SECONDS)
                except asyncio.TimeoutError:
                    break
                self._position = item.end
        await self._cursor.commit(self._position)

    async def end(self) -> None:
        """Read the rest."""
        tail = await self.log.tail()
        async with aclosing(self.log.read_range(self._position, tail)) as items:
            async for _ in items:
                pass


class Ranger(Client):
    """Reads ranges anywhere."""

    async def next(self) -> None:
        tail = await self.log.tail(timeout=self.timeout())
        if tail:
            earliest = await self.log.log.earliest(timeout=self.timeout())
            start = self.chance.randrange(max(0, min(earliest, tail - 1) - 10), tail)
            end = min(tail, start + self.chance.randint(1, 40))
            items = self.log.read_range(start, end)
            async with aclosing(items):
                async for _ in items:
                    pass


class Selector(Client):
    """Reads ranges by tags, forwards and backwards, and asks for the last entry with a tag."""

    async def next(self) -> None:
        tail = await self.log.tail(timeout=self.timeout())
        tags = self.chance.sample(TAGS, self.chance.randint(1, 2))
        if self.chance.random() < 0.2:
            await self.log.last(tags[0], timeout=self.timeout())
            return
        start = max(0, tail - self.chance.randint(1, 400))
        match = self.chance.choice(MATCHES)
        reverse = self.chance.random() < 0.4
        items = self.log.read_range(start, tail, tags=tags, match=match, reverse=reverse)
        async with aclosing(items):
            async for _ in items:
                pass


class Trimmer(Client):
    """Trims what all followers have read."""

    async def next(self) -> None:
        await asyncio.sleep(1.0)
        cursors = await self.log.log.cursors(timeout=self.timeout())
        if cursors:
            end = min(cursor.position for cursor in cursors) - KEPT
            await self.log.trim_to(max(0, end), timeout=self.timeout())


class Producer(Client):
    """Appends sequences exactly once, which another client appends at the same time."""

    async def begin(self) -> None:
        self._sequence = 0

    async def next(self) -> None:
        await asyncio.sleep(_PAUSE * self.think)
        chance = random.Random(self._sequence)  # the same entries in each process
        for part in range(_PARTS):
            entries = [
                f"once.{self._sequence}.{part}.{number}.".encode() + chance.randbytes(size)
                for number, size in enumerate(chance.choices((0, 10, 3000), k=3))
            ]
            await self._append_once(part, entries)
        if self.chance.random() < _FORGETS:
            await self.log.log.complete_sequences(
                _PRODUCER, before=max(0, self._sequence - _SEQUENCES_KEPT)
            )
        self._sequence += 1

    async def _append_once(self, part: int, entries: list[bytes]) -> None:
        """Try once. Of two clients that try at the same time the class tells one to end."""
        with contextlib.suppress(zlog.SequenceSuperseded):
            await self.log.append_once(
                entries,
                producer=_PRODUCER,
                sequence=self._sequence,
                part=part,
                timeout=self.timeout(),
            )


class Remover(Client):
    """Makes a log of its own, uses and removes it, again and again."""

    async def begin(self) -> None:
        await self._try(self.log.tail())  # its journal shows that it works

    async def next(self) -> None:
        store, name = self.store, f"scrap-{self.log.process}"
        with contextlib.suppress(zlog.LogNotFound):
            await zlog.aio.Log.remove(store, name, timeout=self.timeout() or PATIENCE)
        log = await zlog.aio.Log.create(store, name, timeout=PATIENCE)
        entries = [f"{name}.{self.chance.random()}".encode() for _ in range(10)]
        try:
            await log.append_many(entries)
            found = [each.data async for each in log.read_range() if isinstance(each, zlog.Entry)]
        finally:
            await log.close()
        if sorted(found) != sorted(entries):
            sys.exit(f"log {name!r} held {found}, not what was appended to it: {entries}")


class Offloader(Client):
    """Ends stripes, and moves them into files beside the journals."""

    async def begin(self) -> None:
        await self._try(self.log.tail())  # its journal shows that it works

    async def next(self) -> None:
        await asyncio.sleep(1.0)
        await self.log.log.roll(timeout=self.timeout())
        await asyncio.to_thread(self._offload)

    def _offload(self) -> None:
        name, folder = self.log.log.view.log, str(self.over.parent / "offloaded")
        with zlog.connect(self.store.url) as store:
            timeout = self.timeout()
            with zlog.Log.open(store, name, timeout=timeout, hole_timeout=1.0) as log:
                for _ in zlog.offload.Offloader(log, folder).run():
                    pass


ROLES = {
    role.__name__.lower(): role
    for role in (
        *(Writer, Contender, Follower, Ranger, Selector, Trimmer, Producer, Remover, Actor),
        Offloader,
        Enroller,
    )
}


async def main() -> None:
    """Run as the JSON object on the command line says; see ``clients.py``."""
    options = json.loads(sys.argv[1])
    told = Told()
    store, log = await _open(options, told)
    journal = Path(options["journal"])
    client = ROLES[options["role"]](
        Journal(journal).watch(log, options["name"]),  # type: ignore[arg-type]
        store,
        told,
        random.Random(options["seed"]),
        options["think"],
        journal.with_suffix(".over"),
    )
    await client.run()


async def _open(options: dict[str, Any], told: Told) -> tuple[zlog.Store, zlog.aio.Log | Blocking]:
    settings = {
        "timeout": PATIENCE,
        "hole_timeout": options["hole_timeout"],
        "sequencer_timeout": SEQUENCER_TIMEOUT,
    }
    while True:
        try:
            store = await zlog.aio.connect(options["url"])
            if options["blocking"]:
                return store, Blocking(zlog.Log.open(store, options["log"], **settings))
            return store, await zlog.aio.Log.open(store, options["log"], **settings)
        except zlog.ZlogError:
            if told.over:
                raise


if __name__ == "__main__":
    asyncio.run(main())
