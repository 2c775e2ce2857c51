"""Processes that share a space of objects: transactions, single calls, checkpoints, and trims.

Queues, values of a map, and objects of a class of their own are lists that values are appended to,
so that :func:`tests.history.check_transactions` can check the results.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from unittest import mock

from tests.history import ListTransaction, Result, TransactionHistory
from zlog.aio import Log
from zlog.errors import ZlogError
from zlog.objects import (
    AlreadyCommitted,
    Conflict,
    OutcomeUnknown,
    Replicated,
    ResultLost,
    Stopped,
    Transaction,
)
from zlog.objects._decided import DECIDED_MAX
from zlog.objects.aio import Space

from .clients import Client

SPACE = "shop"
MAP = "map"
QUEUES = ["queue-0", "queue-1"]
LISTS = ["list-0", "list-1"]
CELLS = ["a", "b", "c"]
KEYS = [*QUEUES, *LISTS, *CELLS]

IDS_KEPT = 6
"""Ids of transactions that are tried again, by whichever process."""

DECIDED_MAX_SMALL = 8


@contextmanager
def small_pieces(*, forget: bool) -> Iterator[None]:
    """States and entries travel in small parts; a space that forgets remembers few ids."""
    remembered = DECIDED_MAX_SMALL if forget else DECIDED_MAX
    with (
        mock.patch("zlog.objects._decided.DECIDED_MAX", remembered),
        mock.patch.multiple("zlog.objects._checkpoint", PIECE_BYTES=200, PIECES_AT_ONCE=2),
        mock.patch("zlog.objects._restore.PIECES_AT_ONCE", 2),
        mock.patch("zlog.objects._replica._SLICE", 3),
    ):
        yield


Value = int | str


class List(Replicated):
    """A list of values; a command appends one, and returns all."""

    def __init__(self) -> None:
        self.values: list[Value] = []

    def apply(self, command: Value) -> list[Value]:
        self.values.append(command)
        return [*self.values]

    def snapshot(self) -> list[Value]:
        return self.values

    def restore(self, state: list[Value]) -> None:
        self.values = state


class Work:
    """What all actors know, whatever dies.

    Args:
        history: where their transactions go.
        ids: whether transactions are given ids that are used again.

    Attributes:
        ids: of transactions that may have taken effect or not, with the attempts at each.
    """

    def __init__(self, history: TransactionHistory, *, ids: bool) -> None:
        self.history = history
        self.uses_ids = ids
        self.ids: dict[str, list[ListTransaction]] = {}
        self._values = 0

    def value(self) -> Value:
        """Return a value that no one has appended."""
        self._values += 1
        return self._values

    def choose_id(self, chance: random.Random) -> str | None:
        """Return an id for a transaction: none, a new one, or one that was used."""
        kind = chance.random()
        if not self.uses_ids or kind < 0.5:
            return None
        if self.ids and kind < 0.75:
            return chance.choice([*self.ids])
        name = f"id-{self.value()}"
        self.ids[name] = []
        if len(self.ids) > IDS_KEPT:
            del self.ids[next(iter(self.ids))]
        return name


class Actor(Client):
    """A process that has a replica of the space."""

    work: Work
    timeout = 0.7  # so that outcomes are often unknown

    async def run(self) -> None:
        """Do things until ``done``."""
        log = (await self._open()).log
        while not self.done:
            try:
                async with Space.open(log, SPACE, types=[List]) as space:
                    await self._play(space)
            except Stopped:
                raise
            except ZlogError as error:
                self.trace(self.process.name, f"could not open the space: {error}")
                await asyncio.sleep(0.1)

    async def _play(self, space: Space) -> None:
        """Do things, up to three at the same time, with one replica."""
        count = self.chance.randint(5, 60)
        together = self.chance.choice((1, 1, 2, 3))
        await asyncio.gather(*(self._play_one(space, count) for _ in range(together)))

    async def _play_one(self, space: Space, count: int) -> None:
        for _ in range(count):
            if self.done:
                return
            await asyncio.sleep(self.chance.uniform(0, self.think))
            if self.chance.random() < 0.05:
                self._freeze("write")
            actions, weights = zip(*_ACTIONS.items(), strict=True)
            (action,) = self.chance.choices(actions, weights)
            self.trace(self.process.name, action.__name__.removeprefix("_"))
            await self._try(action(self, space))

    async def _try(self, operation: Awaitable[object]) -> None:
        try:
            await super()._try(operation)
        except Stopped as error:
            self.complain(f"{self.process.name} stopped: {error}")

    async def _transact(self, space: Space) -> object:
        """A transaction that is tried until it is committed, or given up."""
        attempts = Attempts(self.work, self.process.name, self.work.choose_id(self.chance))
        tries = self.chance.choice((1, 3, 20))

        async def body(txn: Transaction) -> None:
            noted = attempts.begin()
            await self._steps(txn, noted)
            attempts.leave()

        return await attempts.note(space.transact(body, attempts=tries, id=attempts.id))

    async def _transact_once(self, space: Space) -> object:
        attempts = Attempts(self.work, self.process.name, None)

        async def once() -> None:
            async with space.transaction() as txn:
                await self._steps(txn, attempts.begin())

        return await attempts.note(once())

    async def _steps(self, txn: Transaction, noted: ListTransaction) -> None:
        """Read and append here and there, and sometimes take long for it."""
        slow = self.chance.choice((0.0, 0.0, 0.02, 0.2))
        only_reads = self.chance.random() < 0.2
        for _ in range(self.chance.randint(1, 5)):
            if slow:
                await asyncio.sleep(self.chance.uniform(0, slow))
            if self.chance.random() < 0.1:
                read_all(txn, noted)
            key = self.chance.choice(KEYS)
            if only_reads or self.chance.random() < 0.4:
                read(txn, noted, key)
            else:
                append(txn, noted, key, self.work.value())

    async def _append(self, space: Space) -> object:  # type: ignore[override]
        """One call that appends."""
        attempts = Attempts(self.work, self.process.name, None)
        key = self.chance.choice([*QUEUES, *LISTS])
        value = self.work.value()

        async def once() -> None:
            noted = attempts.begin()
            noted.append(key, value)
            if key in QUEUES:
                await space.queue(key).push(value)
            else:
                noted.read(key, await space.object(List, key).call(value))

        try:
            return await attempts.note(once())
        except ResultLost as error:
            self.complain(f"P24: {self.process.name}: {error}")
            raise

    async def _read(self, space: Space) -> object:  # type: ignore[override]
        """One call that reads."""
        attempts = Attempts(self.work, self.process.name, None)
        key = self.chance.choice([*KEYS, MAP])

        async def once() -> None:
            noted = attempts.begin()
            if key == MAP:
                found = dict(await space.map(MAP).items())
                for cell in CELLS:
                    noted.read(cell, found.get(cell, ()))
            elif key in CELLS:
                noted.read(key, await space.map(MAP).get(key, ()))
            elif key in QUEUES:
                noted.read(key, await space.queue(key).items())
            else:
                noted.read(key, await space.object(List, key).read(values_of))

        return await attempts.note(once())

    async def _checkpoint(self, space: Space) -> object:
        trim = self.chance.random() < 0.5
        start = await space.checkpoint(trim=trim)
        return f"checkpoint at {start}{', and trimmed' if trim else ''}"


class Attempts:
    """What one process knows of its attempts at a transaction.

    An attempt lies between the end of the body of the one before, or the call, and its own end.
    """

    def __init__(self, work: Work, process: str, id: str | None) -> None:
        self.id = id
        self._work = work
        self._process = process
        self._since = work.history.event()
        self._noted: ListTransaction | None = None

    def begin(self) -> ListTransaction:
        """Note another one; the one before was refused."""
        self._end(Result.REFUSED)
        self._noted = self._work.history.begin(self._process, id=self.id, invoked=self._since)
        if self.id is not None and self.id in self._work.ids:
            self._work.ids[self.id].append(self._noted)
        return self._noted

    def leave(self) -> None:
        """Note that the body has ended."""
        self._since = self._work.history.event()

    async def note(self, call: Awaitable[object]) -> str:
        """Wait for a call, and note what came of it."""
        try:
            await call
        except Conflict as error:
            self._end(Result.REFUSED, error)
            raise
        except AlreadyCommitted as error:
            self._committed_before(error)
            raise
        except ZlogError as error:
            self._end(Result.FAILED, error)
            if isinstance(error, OutcomeUnknown) and self.id is None and self._work.uses_ids:
                assert self._noted is not None  # it was tried
                self._noted.id = error.id
                self._work.ids[error.id] = [self._noted]
            raise
        self._end(Result.OK)
        return "done"

    def _committed_before(self, error: AlreadyCommitted) -> None:
        """Find out which attempt that was, if only one can have been."""
        self._end(Result.FAILED, error)
        unknown = (Result.PENDING, Result.FAILED)
        known = self._work.ids.get(self.id or "", [])
        may_be = [each for each in known if each.result in unknown]
        if len(may_be) == 1 and not any(each.result is Result.OK for each in known):
            self._work.history.end(may_be[0], Result.OK, str(error))

    def _end(self, result: Result, error: Exception | None = None) -> None:
        if self._noted is not None:
            said = "" if error is None else f"{type(error).__name__}: {error}"
            self._work.history.end(self._noted, result, said)


def values_of(found: List) -> list[Value]:
    """Return a copy of what a list holds."""
    return [*found.values]


def kind_of(key: str) -> str:
    """Return what has the list of a key: a queue, a list, or the map of cells."""
    return key.partition("-")[0]


def read(txn: Transaction, noted: ListTransaction, key: str) -> list[Value]:
    """Read a list in a transaction."""
    kind = kind_of(key)
    if kind == "queue":
        found = txn.queue(key).items()
    elif kind == "list":
        found = txn.object(List, key).read(values_of)
    else:
        found = txn.map(MAP).get(key, [])
    noted.read(key, found)
    return found


def append(txn: Transaction, noted: ListTransaction, key: str, value: Value) -> None:
    """Append to a list in a transaction; to a value of a map by writing it anew."""
    kind = kind_of(key)
    if kind == "queue":
        txn.queue(key).push(value)
        noted.append(key, value)
    elif kind == "list":
        noted_values = txn.object(List, key).call(value)
        noted.append(key, value)
        noted.read(key, noted_values)
    else:
        found = read(txn, noted, key)
        txn.map(MAP).put(key, [*found, value])
        noted.append(key, value)


def read_all(txn: Transaction, noted: ListTransaction) -> None:
    """Read all values of the map at once, as a range."""
    found = dict(txn.map(MAP).items())
    for cell in CELLS:
        noted.read(cell, found.get(cell, ()))


async def audit(
    log: Log, work: Work, trace: Callable[[str, str], None], keys: Sequence[str] = KEYS
) -> None:
    """Read and append everywhere, from what is played, and from a checkpoint."""
    for turn in ("as it was played", "from a checkpoint"):
        async with Space.open(log, SPACE, types=[List]) as space:
            trace("auditor", f"{turn}: begins at {space.position}")
            for appends in (True, False):
                attempts = Attempts(work, "auditor", None)

                def body(
                    txn: Transaction, attempts: Attempts = attempts, appends: bool = appends
                ) -> None:
                    noted = attempts.begin()
                    for key in keys:
                        trace("auditor", f"{key}: {read(txn, noted, key)}")
                        if appends:
                            append(txn, noted, key, work.value())
                    attempts.leave()

                await attempts.note(space.transact(body))
            await space.checkpoint(trim=turn == "as it was played")


_ACTIONS: dict[Callable[[Actor, Space], Awaitable[object]], int] = {
    Actor._transact: 30,
    Actor._transact_once: 10,
    Actor._append: 15,
    Actor._read: 15,
    Actor._checkpoint: 2,
}
