"""Actors: processes that share a space of objects, and keep journals of their transactions.

What they do in a transaction is what the simulation's actors do; see ``tests/sim/actors.py``. New
lists come into use all the time, since each read finds a list as a whole.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Awaitable, Callable, Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

import zlog
import zlog.aio
from tests.history import ListTransaction, Result, TransactionHistory
from zlog.objects import AlreadyCommitted, Conflict, Stopped, Transaction
from zlog.objects.aio import Space

from ..sim import actors
from ..sim.actors import SPACE, Attempts, List, Work
from .journal import InFile, numbered, records
from .role import PATIENCE, SEQUENCER_TIMEOUT, Client

LOG = "objects"

_KINDS = ("queue-0", "queue-1", "list-0", "list-1", "a", "b")
_LIST_SECONDS = 3
"""How long a list is in use, about."""

_REPLICA_SECONDS = 5.0
"""How long a actor keeps its replica, at most."""


class TransactionJournal(InFile, TransactionHistory):
    """The transactions of one process; each is written before it can take effect, and after."""

    def end(self, transaction: ListTransaction, result: Result, error: str = "") -> None:
        """Note that an attempt ends."""
        super().end(transaction, result, error)
        self.write(transaction)


def merge(paths: Iterable[Path]) -> TransactionHistory:
    """Return the transactions of all processes that kept these journals; some have none."""
    history = TransactionHistory()
    history.transactions = numbered(records(paths))
    return history


def journal_of(path: Path) -> Path:
    """Return where a client whose journal is ``path`` keeps its transactions."""
    return path.with_suffix(".transactions")


class _Work(Work):
    """What one process knows; its values are its own."""

    def __init__(self, process: str, journal: TransactionJournal) -> None:
        super().__init__(journal, ids=True)
        self._process = process

    def value(self) -> str:
        """Return a value that no process has appended."""
        return f"{self._process}.{super().value()}"


class Actor(Client):
    """A replica of the space: transactions, single calls, checkpoints and trims."""

    async def begin(self) -> None:
        self._journal = TransactionJournal(journal_of(self.over))
        self._work = _Work(self.log.process, self._journal)
        await self._try(self.log.tail())  # its journal shows that it works

    async def next(self) -> None:
        settings = {"hole_timeout": 1.0, "sequencer_timeout": SEQUENCER_TIMEOUT}
        timeout = self.timeout() or PATIENCE
        async with (
            zlog.aio.Log.open(self.store, LOG, timeout=timeout, **settings) as log,
            Space.open(log, SPACE, types=[List]) as space,
        ):
            end = time.monotonic() + self.chance.uniform(0, _REPLICA_SECONDS)
            while time.monotonic() < end and not self._is_told():
                await self.pause()
                await self._try(self._one(space))

    def _is_told(self) -> bool:
        return self.told.done or self.told.over != self._patient

    async def _one(self, space: Space) -> None:
        (action,) = self.chance.choices((self._transact, self._call, self._checkpoint), (40, 20, 1))
        try:
            await action(space)
        except (AlreadyCommitted, Conflict):
            pass
        except Stopped as error:
            sys.exit(f"the space stopped: {error}")

    def _key(self) -> str:
        number = int(time.monotonic() / _LIST_SECONDS) - self.chance.choice((0, 0, 0, 1))
        return f"{self.chance.choice(_KINDS)}@{number}"

    async def _transact(self, space: Space) -> None:
        attempts = Attempts(self._work, self.log.process, self._work.choose_id(self.chance))

        def body(txn: Transaction) -> None:
            noted = attempts.begin()
            only_reads = self.chance.random() < 0.2
            for _ in range(self.chance.randint(1, 5)):
                if only_reads or self.chance.random() < 0.4:
                    actors.read(txn, noted, self._key())
                else:
                    actors.append(txn, noted, self._key(), self._work.value())
            attempts.leave()
            self._journal.write(noted)

        call = space.transact(body, attempts=self.chance.choice((1, 3, 20)), id=attempts.id)
        await attempts.note(call)

    async def _call(self, space: Space) -> None:
        """One call, that appends or reads."""
        attempts = Attempts(self._work, self.log.process, None)
        noted = attempts.begin()
        key, value = self._key(), self._work.value()
        calls: dict[str, Callable[[], Awaitable[Any]]] = {
            "queue": lambda: space.queue(key).push(value),
            "list": lambda: space.object(List, key).call(value),
            "read": lambda: space.map(actors.MAP).get(key, ()),
        }
        kind = actors.kind_of(key) if actors.kind_of(key) in calls else "read"
        if kind != "read":
            noted.append(key, value)
        self._journal.write(noted)

        async def once() -> None:
            found = await calls[kind]()
            if kind != "queue":
                noted.read(key, found)

        await attempts.note(once())

    async def _checkpoint(self, space: Space) -> None:
        await space.checkpoint(trim=self.chance.random() < 0.5)


async def audit(url: str, path: Path, keys: Iterable[str]) -> None:
    """Read and append to all lists, from what is played and from a checkpoint."""
    journal = TransactionJournal(journal_of(path))
    work = _Work("auditor", journal)
    with closing(journal), await zlog.aio.connect(url) as store:
        async with zlog.aio.Log.open(store, LOG, timeout=PATIENCE) as log:
            await actors.audit(log, work, lambda *_: None, sorted(keys))
