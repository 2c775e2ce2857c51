"""One run: a cluster, clients, faults, healing, and the judgement."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import random
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field

from zlog.aio import Log
from zlog.errors import ZlogError
from zlog.testing import History, Violation, VirtualLoop, check
from zlog.testing._process import PROCESS

from .clients import LOG, TIMEOUT, Client
from .cluster import Cluster, Execute, Objects
from .nemesis import Nemesis
from .trace import Trace

LATE_SECONDS = 6.0
"""Until then everything that was on its way to the store has arrived."""

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
    wrap: Callable[[Objects], Execute] = lambda objects: objects.execute,
    *,
    show: bool = False,
) -> Outcome:
    """Run one seed. Only its number, and the code, decide what happens.

    Args:
        seed: of everything.
        wrap: makes the objects do something else.
        show: print what happens while it happens.
    """
    loop = VirtualLoop(seed)
    simulation = _Simulation(loop, seed, wrap, Trace(show=show))
    said = _Said(simulation)
    sequencers = logging.getLogger("zlog.seqr")
    sequencers.addHandler(said)
    sequencers.propagate = False
    collecting = gc.isenabled()
    gc.disable()  # what it finalizes, and when, is no part of the seed
    try:
        loop.set_exception_handler(simulation.note_error)
        work = asyncio.wait_for(simulation.run(), SECONDS_MAX)
        with contextlib.suppress(asyncio.TimeoutError):
            loop.run_until_complete(work)
            simulation.finished = True
    except Exception:  # noqa: BLE001 - whatever it is, it is this seed's
        simulation.complain(traceback.format_exc())
    finally:
        loop.close()
        sequencers.removeHandler(said)
        sequencers.propagate = True
        if collecting:
            gc.enable()
    return simulation.outcome()


class _Said(logging.Handler):
    """What sequencers log, as a part of the trace."""

    def __init__(self, simulation: _Simulation) -> None:
        super().__init__(logging.WARNING)
        self._simulation = simulation

    def emit(self, record: logging.LogRecord) -> None:
        self._simulation.note_log(record)


class _Simulation:
    def __init__(
        self, loop: VirtualLoop, seed: int, wrap: Callable[[Objects], Execute], trace: Trace
    ) -> None:
        self._loop = loop
        self._seed = seed
        self._chance = random.Random(f"{seed}.plan")
        self._trace = trace
        self._cluster = Cluster(loop, seed, trace, wrap)
        self._history = History(loop.time)
        self._clients: dict[str, Client] = {}
        self._complaints: list[str] = []
        self._over = False
        self.finished = False

    async def run(self) -> None:
        chance, cluster = self._chance, self._cluster
        cluster.faults.latency = (0.0001, chance.choice((0.001, 0.005, 0.02)))
        cluster.faults.again = chance.choice((0.0, 0.05, 0.2))
        for number in range(chance.choice((0, 1, 2, 2, 3))):
            self._restart(f"seqr-{number}")
        await self._in("creator", self._create)
        for number in range(chance.randint(2, 4)):
            self._restart(f"client-{number}")
        self._restart("follower-0")
        nemesis = Nemesis(cluster, chance, self._restart, chance.choice((0.15, 0.4, 1.0)))
        trouble = asyncio.ensure_future(nemesis.run())
        await asyncio.sleep(chance.uniform(2.0, 6.0))
        trouble.cancel()
        self._trace("nemesis", "heals everything")
        cluster.heal()
        await self._settle()
        self._history.heal()
        await self._in("auditor", self._audit)

    async def _create(self) -> None:
        process = self._cluster.processes["creator"]
        options = self._chance.choice(({}, {}, {"stripe_records": "8"}))
        log = await Log.create(
            self._cluster.store(process), LOG, width=self._chance.randint(1, 4), options=options
        )
        await log.close()

    async def _settle(self) -> None:
        """Let everybody come to an end with what they do."""
        self._over = True
        for client in self._clients.values():
            client.done = True
        await asyncio.sleep(TIMEOUT + 2 * LATE_SECONDS / 3)
        for name, process in list(self._cluster.processes.items()):
            if name.startswith(("client", "follower")):
                process.kill()

    async def _audit(self) -> None:
        """Append and read all; wait for what comes late; and read again."""
        process = self._cluster.processes["auditor"]
        store = self._cluster.store(process)
        opened = await Log.open(store, LOG, timeout=10.0, sequencer_timeout=1.0)
        log = self._history.watch(opened, "auditor")
        for turn in range(2):
            for number in range(3):
                await log.append(f"auditor.{turn}.{number}".encode())
            await log.tail()
            async for item in log.read_range(0, hole_timeout=0.1):
                self._trace("auditor", f"-> {item}")
            await asyncio.sleep(LATE_SECONDS)
        async for finding in opened.check():
            if finding.serious:
                self.complain(f"the audit: {finding}")

    async def _in(self, name: str, work: Callable[[], object]) -> None:
        task = self._cluster.process(name).start(work())  # type: ignore[arg-type]
        try:
            await task
        except ZlogError as error:
            self.complain(f"{name}: {type(error).__name__}: {error}")

    def _restart(self, name: str) -> None:
        kind, _, number = name.partition("-")
        if kind == "seqr":
            self._cluster.start_sequencer(name, 7000 + int(number))
            return
        if self._over or not number:
            return
        process = self._cluster.process(name)
        client = self._clients[name] = Client(
            process,
            self._cluster.store(process),
            self._history,
            self._trace,
            random.Random(self._chance.random()),
            0.05,
            self.complain,
        )
        process.start(client.follow() if kind == "follower" else client.run())

    def complain(self, what: str) -> None:
        """Note something that must never happen."""
        self._complaints.append(what)

    def note_log(self, record: logging.LogRecord) -> None:
        """Note what a sequencer says; a traceback is a mistake of its own."""
        process = PROCESS.get()
        self._trace(process.name if process else "", record.getMessage())
        if record.exc_info:
            text = logging.Formatter().formatException(record.exc_info)
            self.complain(f"{record.getMessage()}\n{text}")

    def note_error(self, _: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
        """Note what nobody has caught."""
        error = context.get("exception")
        if isinstance(error, BaseException):
            text = "".join(traceback.format_exception(error))
        else:
            text = ""
        self.complain(f"{context.get('message')}\n{text}")

    def outcome(self) -> Outcome:
        """Judge."""
        if not self.finished and not self._complaints:
            self.complain(f"P13: not over after {SECONDS_MAX} s")
        violations: list[Violation] = check(self._history)
        return Outcome(
            self._seed,
            [*map(str, violations), *self._complaints],
            self._history.digest(),
            len(self._history.operations),
            self._cluster.objects.applied,
            self._loop.time(),
            self._trace.lines,
        )
