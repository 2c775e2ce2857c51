"""The client processes of a run: starting, killing, replacing and ending them."""

from __future__ import annotations

import itertools
import json
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from ..support.programs import REPOSITORY

PATIENCE_SECONDS = 240.0
"""Far above what anything takes: it tells what is stuck from what is slow."""

_LOOK_SECONDS = 0.02


@dataclass(frozen=True)
class Load:
    """How the clients use the log.

    Attributes:
        url: of the store.
        log: the name.
        think: seconds between two operations of a client, at most.
        hole_timeout: see :meth:`zlog.Log.open`.
    """

    url: str
    log: str
    think: float
    hole_timeout: float


class ClientProcess:
    """One client, from its start to its end; see ``client.py``.

    Attributes:
        journal: the file that tells what it did.
    """

    def __init__(
        self, load: Load, role: str, name: str, seed: int, folder: Path, *, blocking: bool
    ) -> None:
        self.role = role
        self.name = name
        self.journal = folder / f"{name}.journal"
        options = {
            **asdict(load),
            "role": role,
            "name": name,
            "seed": seed,
            "journal": str(self.journal),
            "blocking": blocking,
        }
        self._said = folder / f"{name}.stderr"
        command = [sys.executable, "-m", "tests.faults.client", json.dumps(options)]
        with self._said.open("w") as stderr:
            self._process = subprocess.Popen(command, cwd=REPOSITORY, stderr=stderr)

    def wait_until_it_listens(self) -> None:
        """Wait until it has opened the log, and heeds signals."""
        _wait(lambda: self.ended() or self.journal.exists())

    def wait_until_it_works(self) -> None:
        """Wait until it has begun its first operation."""
        self.wait_until_it_listens()
        _wait(lambda: self.ended() or self.journal.stat().st_size > 0)

    def tell(self, number: signal.Signals) -> None:
        """Send a signal."""
        self._process.send_signal(number)

    def became_patient(self) -> int:
        """When it did, in nanoseconds, having been told that all faults are over; else 0."""
        over = self.journal.with_suffix(".over")
        return int(over.read_text()) if over.exists() else 0

    def kill(self) -> None:
        """End it as a crash would."""
        self._process.kill()
        self._process.wait()

    def finish(self, deadline: float) -> str:
        """Wait until it has ended by itself; returns what is wrong with that, if anything."""
        try:
            code = self._process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            self.kill()
            return f"P13: {self.name} is stuck"
        return "" if code == 0 else f"{self.name} ended with {code}:\n{self._said.read_text()}"

    def complaint(self) -> str:
        """Say what is wrong if it has ended unasked."""
        return self.finish(time.monotonic()) if self.ended() else ""

    def ended(self) -> bool:
        """Whether it runs no more."""
        return self._process.poll() is not None


class Clients:
    """All clients of a run.

    Args:
        loads: what they do; one that is started takes the next of these, by turns.
        roles: their roles, by name; those whose names end in ``b`` block.
        chance: makes their seeds.
        folder: for their journals.
    """

    def __init__(
        self, loads: Sequence[Load], roles: dict[str, str], chance: random.Random, folder: Path
    ) -> None:
        self._loads = itertools.cycle(loads)
        self._chance = chance
        self._folder = folder
        self._lives = dict.fromkeys(roles, 0)
        self._running = {name: self._start(name, role) for name, role in roles.items()}
        self.journals = [client.journal for client in self._running.values()]
        self.complaints: list[str] = []

    def _start(self, name: str, role: str) -> ClientProcess:
        self._lives[name] += 1
        return ClientProcess(
            next(self._loads),
            role,
            f"{name}.{self._lives[name]}",
            self._chance.getrandbits(32),
            self._folder,
            blocking=name.endswith("b"),
        )

    def names(self) -> list[str]:
        """Return all names, each of a client that runs."""
        return list(self._running)

    def wait_until_they_work(self) -> None:
        """Wait until each has begun its first operation."""
        for client in self._running.values():
            client.wait_until_it_works()

    def running(self, name: str) -> ClientProcess:
        """Return the process that has a name now."""
        return self._running[name]

    def kill(self, name: str) -> None:
        """Kill one; ``replace`` starts another in its place."""
        client = self._running[name]
        self._complain(client.complaint())
        client.kill()

    def replace(self, name: str) -> None:
        """Start one where another was killed."""
        client = self._running[name] = self._start(name, self._running[name].role)
        self.journals.append(client.journal)

    def become_patient(self) -> int:
        """Tell all that the faults are over; returns when the last one heeds it, in nanoseconds.

        One that does not is complained about; one that has ended before, by ``finish``.
        """
        clients = list(self._running.values())
        for client in clients:
            client.wait_until_it_listens()
            client.tell(signal.SIGUSR1)
        heeds = _wait(lambda: all(c.ended() or c.became_patient() for c in clients))
        if not heeds:
            missing = [client.name for client in clients if not client.became_patient()]
            self._complain(f"P13: {', '.join(missing)}: stuck in an operation")
        return max(client.became_patient() for client in clients)

    def finish(self, *roles: str) -> None:
        """Tell the clients of these roles to end, wait for it, and complain of those that fail."""
        ending = {name: each for name, each in self._running.items() if each.role in roles}
        for client in ending.values():
            client.tell(signal.SIGTERM)
        deadline = time.monotonic() + PATIENCE_SECONDS
        for name, client in ending.items():
            self._complain(client.finish(deadline))
            del self._running[name]

    def kill_all(self) -> None:
        """End what still runs."""
        for client in self._running.values():
            client.kill()
        self._running = {}

    def _complain(self, complaint: str) -> None:
        if complaint:
            self.complaints.append(complaint)


def _wait(reached: Callable[[], bool]) -> bool:
    """Wait for something that comes soon; False if it does not."""
    end = time.monotonic() + PATIENCE_SECONDS
    while not reached():
        if time.monotonic() > end:
            return False
        time.sleep(_LOOK_SECONDS)
    return True
