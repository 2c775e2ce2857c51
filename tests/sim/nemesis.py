"""What goes wrong in a run, and when."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass

from zlog._base.names import DIRECTORY_OBJECT, directory_shard
from zlog.testing import Process

from .clients import LOG
from .cluster import LEASE_SECONDS, Cluster, stripe_objects


@dataclass
class Nemesis:
    """Makes one fault after the other.

    Attributes:
        cluster: that suffers.
        chance: decides.
        restart: starts a process anew that was killed, by its name.
        calm: seconds between two faults, at most.
        hunt: whether it kills sequencers more often than others.
    """

    cluster: Cluster
    chance: random.Random
    restart: Callable[[str], None]
    calm: float
    hunt: bool

    def __post_init__(self) -> None:
        self._faults = [
            self._pause,
            self._depose,
            self._kill,
            self._cut,
            self._restore,
            self._break,
            self._stall,
            self._cut_off,
            self._bad_store,
            self._bad_network,
        ]
        if self.hunt:
            self._faults.append(self._kill_sequencer)

    async def run(self) -> None:
        """Go on until cancelled."""
        while True:
            await asyncio.sleep(self.chance.uniform(0, self.calm))
            self.chance.choice(self._faults)()

    def _pause(self) -> None:
        """SIGSTOP, and SIGCONT after a while: also a leader, beyond its lease."""
        process = self._some_process()
        seconds = self.chance.choice((0.05, 0.3, 1.0, 2.0))
        self._say(f"pauses {process.name} for {seconds} s")
        process.pause()
        self._after(seconds, process.resume)

    def _depose(self) -> None:
        """Pause a sequencer for longer than a lease, so that another leads when it goes on."""
        process = self._some_sequencer()
        if process is not None:
            seconds = self.chance.uniform(1.0, 2.5) * LEASE_SECONDS
            self._say(f"pauses {process.name} for {seconds:.2f} s")
            process.pause()
            self._after(seconds, process.resume)

    def _kill(self) -> None:
        self._kill_one(self._some_process())

    def _kill_sequencer(self) -> None:
        process = self._some_sequencer()
        if process is not None and not process.dead:
            self._kill_one(process)

    def _kill_one(self, process: Process) -> None:
        self._say(f"kills {process.name}")
        process.kill()
        self._after(self.chance.uniform(0, 0.5), lambda: self.restart(process.name))

    def _cut(self) -> None:
        names = sorted(self.cluster.processes)
        if len(names) > 1:
            one, other = self.chance.sample(names, 2)
            self._say(f"cuts {one} off from {other}")
            self.cluster.loop.network.cut(one, other)
            self._after(self.chance.uniform(0.1, 2.0), self.cluster.loop.network.restore)

    def _restore(self) -> None:
        self.cluster.loop.network.restore()

    def _break(self) -> None:
        count = self.cluster.loop.network.break_some(self.chance.uniform(0, 1))
        self._say(f"breaks {count} connections")

    def _stall(self) -> None:
        names = stripe_objects(self.cluster.objects, LOG)
        names += [f"zlog.{LOG}.head", DIRECTORY_OBJECT, directory_shard("logs", LOG)]
        name, seconds = self.chance.choice(names), self.chance.uniform(0.05, 1.0)
        self._say(f"stalls {name} for {seconds:.2f} s")
        self.cluster.stall(name, seconds)

    def _cut_off(self) -> None:
        process = self._some_process()
        seconds = self.chance.uniform(0.1, 1.5)
        self._say(f"cuts {process.name} off from the store for {seconds:.2f} s")
        cut_off = self.cluster.objects.cut_off
        cut_off.add(process.name)
        self._after(seconds, lambda: cut_off.discard(process.name))

    def _bad_store(self) -> None:
        """The store is slow, loses requests or replies, or does things late or twice."""
        faults, kind = self.cluster.faults, self.chance.randrange(6)
        rate = self.chance.choice((0.02, 0.1, 0.3))
        name = ("slow", "never", "silent", "late", "again", "refused")[kind]
        self._say(f"has the store be bad: {name} {rate}")
        setattr(faults, name, rate)
        self._after(self.chance.uniform(0.1, 1.0), lambda: setattr(faults, name, 0.0))

    def _bad_network(self) -> None:
        faults = self.cluster.loop.network.faults
        name = self.chance.choice(("slow", "broken"))
        rate = self.chance.choice((0.01, 0.05, 0.2))
        self._say(f"has the network be bad: {name} {rate}")
        setattr(faults, name, rate)
        self._after(self.chance.uniform(0.1, 1.0), lambda: setattr(faults, name, 0.0))

    def _some_sequencer(self) -> Process | None:
        names = [name for name in sorted(self.cluster.processes) if name.startswith("seqr")]
        return self.cluster.processes[self.chance.choice(names)] if names else None

    def _some_process(self) -> Process:
        alive = [each for _, each in sorted(self.cluster.processes.items()) if not each.dead]
        return self.chance.choice(alive) if alive else Process("nobody")

    def _after(self, seconds: float, callback: Callable[[], object]) -> None:
        self.cluster.loop.call_later(seconds, callback)

    def _say(self, what: str) -> None:
        self.cluster.trace("nemesis", what)
