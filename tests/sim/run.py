"""One run: a cluster, clients, faults, repairs, and the checkers."""

from __future__ import annotations

import asyncio
import contextlib
import enum
import gc
import logging
import random
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.history import (
    History,
    RecordedLog,
    RecordedWriter,
    TransactionHistory,
    Violation,
    check,
    check_transactions,
)
from zlog._trim.retention import Retention
from zlog.aio import Log
from zlog.errors import ZlogError
from zlog.objects.aio import Space
from zlog.testing import VirtualLoop
from zlog.testing._process import PROCESS

from ..support.logs import UNITS
from .actors import SPACE, Actor, Work, audit, small_pieces
from .clients import KINDS, LOG, TIMEOUT, Client, Compactor, Decider, compact
from .cluster import Cluster, Execute, Objects
from .exclusive import Contender, small_writer_rounds
from .nemesis import Nemesis
from .producers import Attempter, Part, Producer, append_part, small_rounds
from .trace import Trace

TOKEN_SHARE = 0.3
"""Of the runs, in which clients and sequencers have a token, and more sequencers are killed."""


class Kind(enum.Enum):
    """What is special about the log of a run."""

    NOTHING = "nothing"
    EXACTLY_ONCE = "exactly-once"
    """Producers append to it exactly once."""
    EXCLUSIVE = "exclusive"
    """It has exclusive writers."""
    COMPACTION = "compaction"
    """It is compacted by key. Such a run takes longer, and less is done in a second: what is young
    stays."""
    OBJECTS = "objects"
    """It carries a space of objects, and only that is checked. No seed decides for it."""
    ORDERED = "ordered"
    """Its object orders it, and appends have conditions. No seed decides for it."""


_SHARES = {
    Kind.NOTHING: 0.25,
    Kind.EXACTLY_ONCE: 0.3,
    Kind.EXCLUSIVE: 0.25,
    Kind.COMPACTION: 0.2,
}

COMPACT_AFTER_SECONDS = 4.0
"""Longer than a client goes on trying an append."""

SPACE_SECONDS = 4.0
"""By which a run with a space takes longer: its calls consist of several of the log's."""

LATE_SECONDS = 6.0
"""Until then everything that was on its way to the store has arrived."""

FIRST_PORT = 7000
"""Where the first sequencer listens."""

SECONDS_MAX = 300.0
"""Of virtual time. A run that takes longer is stuck."""


@dataclass
class Outcome:
    """What came of a run."""

    seed: int
    violations: list[str]
    digest: str = ""
    operations: int = 0
    store_calls: int = 0
    seconds: float = 0.0
    lines: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether everything was as it should be."""
        return not self.violations


def run(
    seed: int,
    execute: Execute = Objects.execute,
    *,
    kind: Kind | None = None,
    show: bool = False,
) -> Outcome:
    """Run one seed. Only its number, and the code, decide what happens.

    Args:
        seed: of everything.
        execute: what the objects do with a call.
        kind: of run; None: the seed decides that, too.
        show: print what happens while it happens.
    """
    loop = VirtualLoop(seed)
    if kind is None:
        (kind,) = random.Random(f"{seed}.kind").choices([*_SHARES], [*_SHARES.values()])
    simulation = _Simulation(loop, seed, execute, Trace(show=show), kind)
    said = logging.Handler(logging.WARNING)
    said.emit = simulation.note_log  # type: ignore[method-assign]
    logger = logging.getLogger("zlog")
    logger.addHandler(said)
    logger.propagate = False
    collecting = gc.isenabled()
    gc.disable()  # what it finalizes, and when, is no part of the seed
    try:
        loop.set_exception_handler(simulation.note_error)
        work = asyncio.wait_for(simulation.run(), SECONDS_MAX)
        with contextlib.suppress(asyncio.TimeoutError), simulation.small():
            loop.run_until_complete(work)
            simulation.finished = True
    except Exception:  # noqa: BLE001 - whatever it is, it is this seed's
        simulation.complain(traceback.format_exc())
    finally:
        loop.close()
        logger.removeHandler(said)
        logger.propagate = True
        if collecting:
            gc.enable()
    return simulation.outcome()


_THINK = {Kind.COMPACTION: 0.1, Kind.OBJECTS: 0.01}
"""Seconds between two operations of a client."""

_CLIENTS = ("client", "follower", "selector", "exact", "contender", "compactor", "actor", "decider")

_ROLES: dict[str, type[Client]] = {
    "exact": Attempter,
    "contender": Contender,
    "compactor": Compactor,
    "actor": Actor,
    "decider": Decider,
}
"""Of processes, by what their names begin with; all others are clients of no special kind."""


class _Simulation:
    def __init__(
        self,
        loop: VirtualLoop,
        seed: int,
        execute: Execute,
        trace: Trace,
        kind: Kind,
    ) -> None:
        self._loop = loop
        self._seed = seed
        self._chance = random.Random(f"{seed}.plan")
        self._trace = trace
        more = random.Random(f"{seed}.more")
        self._token = more.random() < TOKEN_SHARE
        self._kind = kind
        self._compacts = kind is Kind.COMPACTION
        self._exclusive = kind is Kind.EXCLUSIVE
        by_object = kind is Kind.OBJECTS and random.Random(f"{seed}.ordered").random() < 0.4
        self._ordered = kind is Kind.ORDERED or by_object
        produces = kind in (Kind.EXACTLY_ONCE, Kind.ORDERED)
        self._producer = Producer(more) if produces else None
        self._trims = self._producer is None or more.random() < 0.3
        self._forgets = kind is Kind.OBJECTS and more.random() < 0.3
        self._work: Work | None = None
        if kind is Kind.OBJECTS:
            self._work = Work(TransactionHistory(loop.time), ids=not self._forgets)
            self._trims = False  # a space's cursor holds back only those who ask for it
        # Hasty readers would always fill what a frozen attempt was granted.
        self._hole_timeout = more.choice((0.1, 1.5)) if self._producer else 0.1
        self._cluster = Cluster(loop, seed, trace, execute, token=self._token)
        self._history = History(loop.time)
        self._clients: dict[str, Client] = {}
        self._complaints: list[str] = []
        self._over = False
        self.finished = False

    def small(self) -> contextlib.AbstractContextManager[None]:
        """Limits that are low enough to be met."""
        if self._work is not None:
            return small_pieces(forget=self._forgets)
        return small_writer_rounds() if self._exclusive else small_rounds()

    async def run(self) -> None:
        chance, cluster = self._chance, self._cluster
        cluster.faults.latency = (0.0001, chance.choice((0.001, 0.005, 0.02)))
        cluster.faults.again = chance.choice((0.0, 0.05, 0.2))
        sequencers = chance.choice((0, 1, 2, 2, 3))
        for number in range(sequencers):
            self._restart(f"seqr-{number}")
        await self._in("creator", self._create)
        for number in range(chance.randint(2, 4) - self._exclusive - 2 * bool(self._work)):
            self._restart(f"client-{number}")
        for number in range(chance.randint(2, 4) if self._work else 0):
            self._restart(f"actor-{number}")
        for number in range(chance.randint(2, 3) if self._exclusive else 0):
            self._restart(f"contender-{number}")
        if self._work is None:
            self._restart("follower-0")
            self._restart("selector-0")
        for number in range(chance.randint(2, 3) if self._producer else 0):
            self._restart(f"exact-{number}")
        for number in range(2 if self._compacts else 0):
            self._restart(f"compactor-{number}")
        for number in range(3 if self._kind is Kind.ORDERED else 0):
            self._restart(f"decider-{number}")
        calm = chance.choice((0.15, 0.4, 1.0) if self._work is None else (0.4, 0.8))
        nemesis = Nemesis(cluster, chance, self._restart, calm, self._token)
        trouble = asyncio.ensure_future(nemesis.run())
        more = self._compacts * COMPACT_AFTER_SECONDS + bool(self._work) * SPACE_SECONDS
        await asyncio.sleep(chance.uniform(2.0, 6.0) + more)
        trouble.cancel()
        self._trace("nemesis", "repairs everything")
        cluster.repair()
        await self._finish()
        if self._work is None:
            self._history.note_repaired()
            await self._in("auditor", self._audit)
        else:
            self._work.history.note_repaired()
            await self._in("auditor", self._audit_space)

    async def _create(self) -> None:
        process = self._cluster.processes["creator"]
        options = self._chance.choice(({}, {}, {"stripe_records": "8"}))
        width, stripe_unit = self._chance.randint(1, 4), self._chance.choice(UNITS)
        log = await Log.create(
            self._cluster.store(process),
            LOG,
            width=None if self._ordered else width,
            stripe_unit=stripe_unit,
            options=options,
            ordering="object" if self._ordered else None,
        )
        if self._compacts:
            retention = Retention(compact_after=COMPACT_AFTER_SECONDS)
            await self._history.watch(log, "creator").set_retention(retention)
        if self._work is not None:
            async with Space.open(log, SPACE):
                pass
        await log.close()

    async def _finish(self) -> None:
        """Let all clients finish what they do."""
        self._over = True
        for client in self._clients.values():
            client.done = True
        await asyncio.sleep(TIMEOUT + 2 * LATE_SECONDS / 3)
        for name, process in list(self._cluster.processes.items()):
            if name.startswith(_CLIENTS):
                process.kill()

    async def _audit(self) -> None:
        """Append and read all; wait for what comes late; and read again."""
        process = self._cluster.processes["auditor"]
        store = self._cluster.store(process)
        opened = await Log.open(store, LOG, timeout=10.0, sequencer_timeout=1.0)
        log = self._history.watch(opened, "auditor")
        if self._producer:
            for part in self._producer.parts:
                await append_part(log, part, self._chance)
        writer = await log.writer("auditor") if self._exclusive else None
        appender: RecordedLog | RecordedWriter = writer or log
        for turn in range(2):
            for number in range(3):
                await appender.append(f"auditor.{turn}.{number}".encode())
            if writer is not None and self._chance.random() < 0.5:
                await writer.release()
                writer, appender = None, log
            await log.tail()
            async for item in log.read_range(0, hole_timeout=0.1):
                self._trace("auditor", f"-> {item}")
            for tag in KINDS:
                async for item in log.read_range(tags=(tag,), hole_timeout=0.1):
                    self._trace("auditor", f"{tag} -> {item}")
            for _ in range(2 if self._compacts else 0):
                self._trace("auditor", await compact(log))
                await asyncio.sleep(COMPACT_AFTER_SECONDS)
            await asyncio.sleep(LATE_SECONDS)
        if self._producer:
            await self._append_again(log, self._producer.parts)
        async for finding in opened.check():
            if finding.serious:
                self.complain(f"the audit: {finding}")

    async def _audit_space(self) -> None:
        """Read and append everywhere; wait for what comes late; and do it again."""
        assert self._work is not None  # there is one
        store = self._cluster.store(self._cluster.processes["auditor"])
        log = await Log.open(store, LOG, timeout=10.0, sequencer_timeout=1.0)
        await audit(log, self._work, self._trace)
        await asyncio.sleep(LATE_SECONDS)
        await audit(log, self._work, self._trace)

    async def _append_again(self, log: RecordedLog, parts: list[Part]) -> None:
        """Append parts that are complete: nothing may be added."""
        for part in parts:
            appended = await append_part(log, part, self._chance)
            if appended and not self._trims:
                self.complain(f"P15: {part} was complete, and {appended} entries were missing")

    async def _in(self, name: str, work: Callable[[], object]) -> None:
        task = self._cluster.process(name).start(work())  # type: ignore[arg-type]
        try:
            await task
        except ZlogError as error:
            self.complain(f"{name}: {type(error).__name__}: {error}")

    def _restart(self, name: str) -> None:
        kind, _, number = name.partition("-")
        if kind == "seqr":
            self._cluster.start_sequencer(name, FIRST_PORT + int(number))
            return
        if self._over or not number:
            return
        process = self._cluster.process(name)
        role = _ROLES.get(kind, Client)
        client = self._clients[name] = role(
            process,
            self._cluster.store(process),
            self._history,
            self._trace,
            random.Random(self._chance.random()),
            _THINK.get(self._kind, 0.05),
            self.complain,
            trims=self._trims,
            hole_timeout=self._hole_timeout,
        )
        if isinstance(client, Attempter):
            assert self._producer is not None  # it is for this
            client.producer = self._producer
        if isinstance(client, Actor):
            assert self._work is not None  # it is for this
            client.work = self._work
        follows = {"follower": None, "selector": ("even", KINDS[0])}
        process.start(client.follow(follows[kind]) if kind in follows else client.run())

    def complain(self, what: str) -> None:
        """Note something that must never happen."""
        self._complaints.append(what)

    def note_log(self, record: logging.LogRecord) -> None:
        """Note what clients and sequencers log; a traceback is a mistake of the logging code."""
        process = PROCESS.get()
        self._trace(process.name if process else "", record.getMessage())
        if record.exc_info:
            text = logging.Formatter().formatException(record.exc_info)
            self.complain(f"{record.getMessage()}\n{text}")

    def note_error(self, _: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
        """Note exceptions that were not caught."""
        error = context.get("exception")
        if isinstance(error, BaseException):
            text = "".join(traceback.format_exception(error))
        else:
            text = ""
        self.complain(f"{context.get('message')}\n{text}")

    def outcome(self) -> Outcome:
        """Check the history."""
        if not self.finished and not self._complaints:
            self.complain(f"P13: not over after {SECONDS_MAX} s")
        violations: list[Violation]
        if self._work is None:
            violations, digest = check(self._history), self._history.digest()
            count = len(self._history.operations)
        else:
            history = self._work.history
            violations, digest = check_transactions(history), history.digest()
            count = len(history.transactions)
        return Outcome(
            self._seed,
            [*map(str, violations), *self._complaints],
            digest,
            count,
            self._cluster.objects.applied,
            self._loop.time(),
            self._trace.lines,
        )
