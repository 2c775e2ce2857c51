"""Workers of a group as processes, which are killed, paused and replaced all the time.

A worker is this module, too. It writes what it does to a journal, which the checker reads.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
import zlib
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import zlog
from zlog.groups import Group, Groups, Queue, SlotsLost

from ..support.programs import REPOSITORY
from . import history
from .history import Event, History, check_ordered, check_queue

LOG, GROUP, DEAD = "work", "g", "dead"
LEASE, ATTEMPTS, SLOTS, WORKERS = 3.0, 10, 16, 8
_THINK = 0.01
_DRAIN_SECONDS = 300.0


@dataclass
class Outcome:
    """What came of a run.

    Attributes:
        fail_over: how long the slots of dead and paused workers got no entries, in seconds: half of
            them, and nine of ten. If the next owner dies at once as well, it takes longer.
    """

    wrong: list[str]
    entries: int
    seconds: float
    duplicates: int = 0
    dead_letters: int = 0
    fail_over: tuple[float, float] = (0.0, 0.0)
    actions: dict[str, int] = field(default_factory=dict)


class Workers:
    """The processes, and the times of their faults."""

    def __init__(self, url: str, mode: str, folder: Path) -> None:
        self.events: list[Event] = []
        self._command = [sys.executable, "-m", __name__, url, mode, str(folder)]
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._left: list[subprocess.Popen[bytes]] = []
        self._number = 0

    def fill(self) -> None:
        """Start workers, until there are enough."""
        while len(self._running) < WORKERS:
            self._number += 1
            name = f"w{self._number}"
            process = subprocess.Popen([*self._command, name], cwd=REPOSITORY)
            self._running[name] = process

    def kill(self, name: str) -> None:
        """Kill one."""
        self.note(history.FAULT, name)
        process = self._running.pop(name)
        process.kill()
        process.wait()

    def leave(self, name: str) -> None:
        """Have one leave."""
        self._left.append(self._running.pop(name))
        self._left[-1].terminate()

    def pause(self, name: str, seconds: float) -> None:
        """Pause one for some time, unless it is killed meanwhile."""
        process = self._running[name]
        self.note(history.FAULT, name)
        process.send_signal(signal.SIGSTOP)

        def resume() -> None:
            self.note(history.RESUMED, name)
            process.send_signal(signal.SIGCONT)

        threading.Timer(seconds, resume).start()

    def note(self, kind: str, name: str) -> None:
        """Note a fault."""
        self.events.append([kind, time.monotonic(), name])

    @property
    def names(self) -> list[str]:
        """Those that run."""
        return [*self._running]

    def end(self) -> None:
        """Have all leave, and wait for them."""
        for process in self._running.values():
            process.terminate()
        for process in (*self._running.values(), *self._left):
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def run(
    url: str, folder: Path, mode: str, *, seconds: float, entries: int = 0, seed: int = 1
) -> Outcome:
    """Have workers process a new log for some seconds, one of which is killed every second.

    Args:
        entries: how many to append before; without them, entries are appended all the time.
    """
    chance, began = random.Random(seed), time.monotonic()
    workers, actions = Workers(url, mode, folder), Counter[str]()
    with zlog.connect(url) as store, zlog.Log.create(store, LOG, width=4) as log:
        slots = _append(log, chance, entries)
        workers.fill()
        while f"group.{GROUP}" not in {cursor.name for cursor in log.cursors()}:
            time.sleep(0.05)  # nothing may be trimmed before that
        end = time.monotonic() + seconds
        try:
            while time.monotonic() < end:
                due = time.monotonic() + 1.0
                while time.monotonic() < due:
                    slots |= _append(log, chance, 0 if entries else 5)
                    time.sleep(0.05)
                actions.update(["killed", _act(workers, log, chance)])
                workers.kill(chance.choice(workers.names))
                workers.fill()
            end = time.monotonic() + _DRAIN_SECONDS
            while (stat := Groups(log).stat(GROUP)).lag and time.monotonic() < end:
                time.sleep(0.2)
        finally:
            workers.end()
        played = History([*workers.events, *_journals(folder)])
        outcome = Outcome([], len(slots), round(time.monotonic() - began, 1))
        outcome.actions = dict(actions)
        if mode == "ordered":
            outcome.wrong = check_ordered(played, slots)
            outcome.fail_over = _fail_over(played)
        else:
            dead = dead_letters(store)
            outcome.wrong = check_queue(played, {*slots}, dead, ATTEMPTS, lease=LEASE)
            outcome.duplicates, outcome.dead_letters = played.duplicates(), len(dead)
        if stat.lag:
            outcome.wrong.append(f"G1: entries are left: {stat}")
        return outcome


def _append(log: zlog.Log, chance: random.Random, count: int) -> dict[int, int]:
    """Append entries. Returns their slots by their positions."""
    tags = [f"key{chance.randrange(200)}" for _ in range(count)]
    found: dict[int, int] = {}
    for start in range(0, count, 1000):
        some = tags[start : start + 1000]
        positions = log.append_many([b"x" * 100] * len(some), tags_each=[[tag] for tag in some])
        found |= {p: zlib.crc32(t.encode()) % SLOTS for p, t in zip(positions, some, strict=True)}
    return found


def _act(workers: Workers, log: zlog.Log, chance: random.Random) -> str:
    """Do something besides the kill of a worker."""
    what, names = chance.random(), workers.names
    if what < 0.2:
        workers.pause(chance.choice(names), chance.uniform(1, 2) * LEASE)
        return "paused"
    if what < 0.35:
        workers.leave(chance.choice(names))
        return "left"
    if what < 0.5:
        log.reconfigure(width=chance.randint(1, 6))
        return "width changed"
    if what < 0.7:
        try:
            log.trim_to(log.tail())
        except zlog.HeldByCursor as held:
            log.trim_to(held.position)
        return "trimmed"
    return "nothing else"


def _journals(folder: Path) -> list[Event]:
    """Return what the workers have noted. The last line of a journal may be cut off."""
    texts = [path.read_text() for path in folder.glob("*.journal")]
    lines = [line for text in texts for line in text.splitlines(keepends=True)]
    return [json.loads(line) for line in lines if line.endswith("\n")]


def dead_letters(store: zlog.Store) -> set[int]:
    """Return the positions of the entries that became dead letters, each of them once."""
    try:
        with zlog.Log.open(store, DEAD) as log:
            tags = [tag for item in log.read_range() for tag in getattr(item, "tags", ())]
    except zlog.LogNotFound:
        return set()
    found = [int(tag[14:]) for tag in tags if tag.startswith("dead-position:")]
    assert len(found) == len({*found}), "a dead letter is there twice"
    return {*found}


def _fail_over(played: History) -> tuple[float, float]:
    """Return for how long the slots of a killed worker got no entries."""
    times, owned = list[float](), dict[int, str]()
    since: dict[int, float] = {}
    for kind, when, who, *what in played.events:
        if kind == history.FAULT:
            since |= {slot: when for slot, owner in owned.items() if owner == who}
        if kind == history.BATCH:
            for slot, _ in what[0]:
                if owned.get(slot) != who:
                    times += [when - since.pop(slot)] if slot in since else []
                owned[slot] = who
    times.sort()
    return (times[len(times) // 2], times[len(times) * 9 // 10]) if times else (0.0, 0.0)


class Worker:
    """What a worker's process does."""

    def __init__(self, mode: str, folder: Path, name: str) -> None:
        self.name = name
        self.ended = False
        self._mode = mode
        self._journal = os.open(folder / f"{name}.journal", os.O_CREAT | os.O_APPEND | os.O_WRONLY)
        signal.signal(signal.SIGTERM, self._end)

    def _end(self, *_: object) -> None:
        self.ended = True

    def note(self, kind: str, *what: Any) -> None:
        """Note an event."""
        line = json.dumps([kind, time.monotonic(), self.name, *what]) + "\n"
        os.write(self._journal, line.encode())

    def run(self, url: str) -> None:
        """Work until told to end."""
        with zlog.connect(url) as store, zlog.Log.open(store, LOG) as log:
            while not self.ended:
                try:
                    self._queue(log) if self._mode == "queue" else self._ordered(log)
                except zlog.ZlogError as error:
                    sys.stderr.write(f"{self.name}: {error!r}\n")

    def _queue(self, log: zlog.Log) -> None:
        chance, acked, refused = random.Random(self.name), list[int](), 0
        queue = Queue(
            log, GROUP, lease=LEASE, attempts=ATTEMPTS, dead_letters=DEAD, worker=self.name
        )
        with queue:
            while not self.ended:
                jobs = queue.take(5, wait=0.5)
                for job in jobs:
                    self.note(history.GOT, job.position, job.attempt)
                for job in jobs:
                    time.sleep(_THINK)
                    if chance.random() < 0.02:
                        delay = chance.choice((0.0, 1.0))
                        self.note(history.NACKED, job.position, job.attempt, delay)
                        job.nack(delay=delay, error="by chance")
                        continue
                    self.note(history.DONE, job.position)
                    job.ack()
                    acked.append(job.position)
                if len(acked) > 50 or not jobs:
                    queue.flush()
                    if queue.refused == refused:
                        self.note(history.ACKED, acked)
                    acked, refused = [], queue.refused
            self.note(history.FAULT)

    def _ordered(self, log: zlog.Log) -> None:
        with Group(log, GROUP, slots=SLOTS, lease=LEASE, entries_max=50).join() as member:
            while not self.ended:
                if (batch := member.next(wait=0.5)) is None:
                    continue
                tokens, items = [*batch.slots.items()], batch.by_slot()
                pairs = [(slot, item.position) for slot in items for item in items[slot]]
                self.note(history.BATCH, tokens, sorted(pairs, key=lambda pair: pair[1]))
                time.sleep(_THINK)
                began, lost = time.monotonic(), tuple[int, ...]()
                try:
                    member.commit(batch)
                except SlotsLost as error:
                    lost = error.slots
                kept = [pair for pair in tokens if pair[0] not in lost]
                self.note(history.COMMITTED, began, kept, batch.end)
            self.note(history.FAULT)


if __name__ == "__main__":
    url, mode, folder, name = sys.argv[1:]
    Worker(mode, Path(folder), name).run(url)
