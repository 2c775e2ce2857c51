"""Random calls of the object class at live OSDs, which have to survive them and keep the rest.

Several threads send sound, damaged, invented and lying requests of every method, at once, to stripe
objects, heads and directories that they share, to objects that are missing, and to ones in which
another client has stored something. A log that stands beside them must not notice. Another log is
attacked by a client that knows what it does (`attacks.py`), with documented caps on a cluster.
"""

from __future__ import annotations

import errno
import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import zlog
from zlog._native.core import EmbeddedStore

from ..conformance import hostile
from ..conformance.messages import METHODS
from ..conformance.replies import Code, code_name
from ..conformance.stored import Content, door_to
from ..conformance.victims import Victims, targets, wrong_with
from ..support.ceph import CephCluster, ceph, with_keyring
from ..support.logs import UNITS
from ..system.test_caps import SETS
from .attacks import CAPS, attack

THREADS = 4
CALLS_PER_VICTIMS = 2000
"""After this many calls the objects are useless, since some request has raised their epoch."""

GROWTH_MIB_MAX = 512
"""How much larger an OSD may get; one that believed the lies would need gigabytes."""

SHORT_LOGS = (
    "osd:osd_min_pg_log_entries=100",
    "osd:osd_max_pg_log_entries=500",
    "osd:osd_target_pg_log_entries_per_osd=1000",
    "osd:osd_pg_log_dups_tracked=100",
)
"""Settings of an OSD. By default it remembers up to 300,000 operations, and memstore gigabytes."""

WRONG_MAX = 20
_ENTRIES = 100
_CRASHED = ("Caught signal", "ceph_assert", "terminate called", "*** Aborted")
_ODD = "odd.object"
_METHODS = (*METHODS,)
_LIES = tuple(hostile.lies())
_MALFORMED = {method: tuple(hostile.malformed(method)) for method in METHODS}


@dataclass
class Bombardment:
    """What came of it.

    Attributes:
        seed: that made the requests.
        seconds: that it took.
        answers: how many there were, by method and code.
        growth_mib: by how much the OSDs' memory grew; 0 without OSDs.
        wrong: what must not be, in words; empty: all is well.
    """

    seed: int
    seconds: float = 0.0
    answers: Counter[tuple[str, int]] = field(default_factory=Counter)
    growth_mib: float = 0.0
    wrong: list[str] = field(default_factory=list)

    def codes(self) -> list[tuple[str, dict[str, int]]]:
        """How often each method gave each code, by name."""
        methods = sorted({method for method, _ in self.answers})
        return [(method, self._codes_of(method)) for method in methods]

    def _codes_of(self, method: str) -> dict[str, int]:
        found = sorted((code, n) for (each, code), n in self.answers.items() if each == method)
        return {str(code) if code > max(Code) else code_name(code): n for code, n in found}

    @property
    def calls(self) -> int:
        """How many requests were answered."""
        return self.answers.total()


def bombard(
    connect: Callable[[], AbstractContextManager[zlog.Store]],
    seed: int,
    seconds: float,
    threads: int = THREADS,
    attacker: Callable[[], AbstractContextManager[zlog.Store]] | None = None,
) -> Bombardment:
    """Send requests for some seconds, and look at the log beside them.

    Args:
        connect: opens the store; called once for each thread.
        seed: decides each thread's requests, but not in which order the threads' arrive.
        seconds: for how long.
        threads: how many send at the same time.
        attacker: opens the store for one who attacks a log; None: with `connect`.
    """
    found = Bombardment(seed)
    unit = random.Random(seed).choice(UNITS)
    with ExitStack() as open_stores:
        hostile = open_stores.enter_context((attacker or connect)())
        stores = [open_stores.enter_context(connect()) for _ in range(threads + 1)]
        log = zlog.Log.create(stores[0], f"bystander-{seed}", width=2, unit=unit)
        entries = [b"entry %d" % number * (number + 1) for number in range(_ENTRIES)]
        log.append_many(entries)
        shared = _Shared(stores[0], f"hostile.{seed}")
        began = time.monotonic()
        senders = [_Sender(shared, store, seed, n) for n, store in enumerate(stores[1:])]
        attacked = zlog.Log.create(stores[0], f"attacked-{seed}", width=2, unit=unit)
        with ThreadPoolExecutor(threads + 1) as pool:
            victim = pool.submit(
                attack, attacked, zlog.Log.open(hostile, attacked.name), seed, began + seconds
            )
            list(pool.map(lambda sender: sender.run(began + seconds), senders))
        found.wrong += victim.result()
        found.seconds = time.monotonic() - began
        for sender in senders:
            found.answers += sender.answers
            found.wrong += sender.wrong
        found.wrong += _beside(log, entries)
    return found


def bombard_cluster(
    cluster: CephCluster, seed: int, seconds: float, threads: int = THREADS
) -> Bombardment:
    """The same on a cluster, whose OSDs have to be the same processes afterwards, and not grown."""
    before, size = cluster.pids(), _memory_mib(cluster)
    namespace = f"hostile-{seed}"
    with TemporaryDirectory() as folder:
        url = _attackers_url(cluster, namespace, Path(folder))
        found = bombard(
            lambda: zlog.connect(cluster.url(namespace)),
            seed,
            seconds,
            threads,
            lambda: zlog.connect(url),
        )
    found.growth_mib = _memory_mib(cluster) - size
    if cluster.pids() != before:
        found.wrong.append(f"the daemons were {before}, and are {cluster.pids()}")
    if found.growth_mib > GROWTH_MIB_MAX:
        found.wrong.append(f"the OSDs grew by {found.growth_mib:.0f} MiB")
    for path in sorted((cluster.conf.parent / "log").glob("osd.*.log")):
        text = path.read_text(errors="replace")
        found.wrong += [f"{path.name} says {words!r}" for words in _CRASHED if words in text]
    return found


def _attackers_url(cluster: CephCluster, namespace: str, folder: Path) -> str:
    """The store as a user with documented caps has it."""
    keyring = folder / "keyring"
    caps = ", ".join(f"allow pool {cluster.pool} class zlog {method}" for method in SETS[CAPS])
    words = ["mon", "allow r", "osd", caps, "-o", str(keyring)]
    ceph(cluster, "auth", "get-or-create", f"client.{namespace}", *words)
    conf = with_keyring(cluster, keyring, folder / "ceph.conf")
    return f"ceph://{cluster.pool}/{namespace}?conf={conf}&id={namespace}"


class _Shared:
    """The objects that all threads send their requests to; new ones from time to time."""

    def __init__(self, store: zlog.Store, prefix: str) -> None:
        self.odd = f"{prefix}.{_ODD}"
        if not isinstance(store, EmbeddedStore):  # which has no way in but the class
            attrs = dict.fromkeys((b"zlog.header", b"zlog.head", b"zlog.sequencer"), b"\xff" * 9)
            odd = Content(attrs, {b"\0\1\2": b"x" * 100, b"": b""}, b"y" * 5000)
            with door_to(store) as door:
                door.save(self.odd, odd)
        self.victims = Victims(store, prefix)
        self._calls = 0
        self._lock = threading.Lock()

    def targets(self, method: str) -> tuple[str, str]:
        """The objects that a method is and is not for."""
        with self._lock:
            self._calls += 1
            if self._calls % CALLS_PER_VICTIMS == 0:
                self.victims.replace()
            return targets(method, self.victims)


class _Sender:
    """One thread."""

    def __init__(self, shared: _Shared, store: zlog.Store, seed: int, number: int) -> None:
        self._shared = shared
        self._store = store
        self._random = random.Random(f"{seed}.{number}")
        self.answers: Counter[tuple[str, int]] = Counter()
        self.wrong: list[str] = []

    def run(self, until: float) -> None:
        """Send until then, or until too much is wrong."""
        while time.monotonic() < until and len(self.wrong) < WRONG_MAX:
            method, request = self._request()
            right, other = self._shared.targets(method)
            name = self._random.choice((right, right, right, other, self._shared.odd))
            self._send(name, method, request)

    def _request(self) -> tuple[str, bytes]:
        chance = self._random
        method = chance.choice(_METHODS)
        kind = chance.random()
        if kind < 0.3:
            return method, hostile.SOUND[method]
        if kind < 0.7:
            return method, hostile.mutated(chance, method)
        if kind < 0.8:
            return method, hostile.noise(chance)
        if kind < 0.9:
            return method, chance.choice(_MALFORMED[method])
        return chance.choice(_LIES)

    def _send(self, name: str, method: str, request: bytes) -> None:
        code, reply = self._store.execute(name, method, request, timeout=30)
        self.answers[method, code] += 1
        odd = name == self._shared.odd and code in (-errno.EIO, -errno.EINVAL)
        problem = "" if odd and not reply else wrong_with(name, method, code, reply)
        if problem:
            shown = f"{method} of {request.hex()} on {name}"
            self.wrong.append(f"{problem}: {shown}: {code} {reply.hex()}")


def _beside(log: zlog.Log, entries: list[bytes]) -> list[str]:
    """Look at the log that the calls did not address."""
    wrong = []
    if [entry.data for entry in log.read_range(0)] != entries:
        wrong.append("the log beside does not read as it was written")
    if log.append(b"and on it goes") != len(entries):
        wrong.append("the log beside does not go on")
    wrong += [f"the log beside: {finding}" for finding in log.check(orphans=False)]
    return wrong


def _memory_mib(cluster: CephCluster) -> float:
    """What the OSDs have in memory, as far as it can be seen from here."""
    total = 0.0
    for name, pid in cluster.pids().items():
        status = Path(f"/proc/{pid}/status")
        if name.startswith("osd") and status.exists():
            (line,) = (each for each in status.read_text().splitlines() if "VmRSS" in each)
            total += int(line.split()[1]) / 1024
    return total
