"""OSDs that freeze just when another one is back: where Ceph's own recovery loses writes.

Three OSDs have all copies. One is frozen until it counts as down, and goes on; as soon as it is up
again, another one is frozen, and so on. With Ceph's defaults recovery may then bring an object back
without bytes, or keys, that it takes for granted (docs/operating.md). Meanwhile batches are written
to the bytestreams of stripe objects, and others, which have keys, are sealed again and again, which
changes attributes alone: many calls at a time for each. In the end each OSD's copy of everything is
read, and all have to be alike. Where Ceph keeps its defaults, an audit heals the log before that.
"""

from __future__ import annotations

import itertools
import random
import threading
import time
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

import zlog
from zlog._native import core, messages

from ..conformance import requests
from ..conformance.objects import TIME, WRITER, Stripe
from ..conformance.replies import Code, State
from ..conformance.requests import Entry
from ..conformance.wire import u64
from ..support.ceph import CephCluster
from ..support.copies import LOOKS
from .copies import differences, digests, each_osd_in_turn

PGS = 8
"""So few that each has many calls under way when its OSDs freeze."""

WRITTEN = 24
SEALED = 24
"""Objects of either kind: a stripe of one log."""

WIDTH = WRITTEN + SEALED

DEPTH = 16
"""Calls under way for each."""

ENTRY_BYTES = 9_000
BATCH = 4
"""Entries of a write: together they go to the bytestream."""

KEYS = 40
PAUSE_SECONDS = 0.02
GAP_SECONDS_MAX = 1.2
"""From an OSD's being up to the next one's freezing, at most."""

NOTICED_SECONDS = 90.0
LOG = "thawed"
AUDITS_MAX = 5
_LAST_EPOCH = 2**62
_READ_POSITIONS = 1000


@dataclass
class Outcome:
    """What came of it.

    Attributes:
        seed: decides who freezes, and when.
        freezes: how many OSDs were frozen.
        seconds: that it took.
        operations: what was acknowledged: entries, seals; and calls that failed.
        audited: findings of the audits that healed, by kind.
        found: how many acknowledged entries were found as something else, by what that is and which
            OSD served them.
        wrong: what must not be, in words; empty: all is well.
    """

    seed: int
    freezes: int
    seconds: float = 0.0
    operations: Counter[str] = field(default_factory=Counter)
    audited: Counter[str] = field(default_factory=Counter)
    found: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """What is printed for programs."""
        return asdict(self)


class _Used(ABC):
    """A stripe object to which one call after the other is made.

    Args:
        name: of the object.
        index: among the objects of its stripe.
        epoch: it is sealed by.

    Attributes:
        acknowledged: the positions of entries that must be there.
        done: what was acknowledged, and how many calls failed.
    """

    method: str

    def __init__(self, name: str, index: int, epoch: int) -> None:
        self.name = name
        self.acknowledged: list[int] = []
        self.done: Counter[str] = Counter()
        self._index = index
        self._epoch = epoch

    def _positions(self, first: int, count: int) -> range:
        start = self._index + first * WIDTH
        return range(start, start + count * WIDTH, WIDTH)

    def run(self, io: Any, over: threading.Event) -> None:
        """Make calls until it is over. One that fails may have been carried out or not."""
        under_way: deque[tuple[int, Any]] = deque()
        for number in itertools.count():
            if over.wait(PAUSE_SECONDS):
                break
            request = self._request(number)
            under_way.append((number, io.aio_execute(self.name, "zlog", self.method, request)))
            if len(under_way) == DEPTH:
                self._finish(*under_way.popleft())
        for number, call in under_way:
            self._finish(number, call)

    def _finish(self, number: int, call: Any) -> None:
        call.wait_for_complete()
        good = call.get_return_value() == Code.OK
        self.done.update({self.method if good else f"failed {self.method}": 1})
        if good:
            self._acknowledge(number)

    @abstractmethod
    def _request(self, number: int) -> bytes: ...

    @abstractmethod
    def _acknowledge(self, number: int) -> None: ...

    def judge(self, store: zlog.Store) -> Iterator[str]:
        """Give what each acknowledged entry is that is not there as it was written."""
        stripe = Stripe(store, self.name, WIDTH, self._index)
        for start in range(0, len(self.acknowledged), _READ_POSITIONS):
            rest = self.acknowledged[start : start + _READ_POSITIONS]
            while rest:
                rows = stripe.verify(_LAST_EPOCH, rest, 32 << 20).value.rows
                states = [row.state for row in rows for _ in range(row.length)]
                for position, state in zip(rest, states, strict=False):
                    if state != State.WRITTEN:
                        answer = stripe.fill(_LAST_EPOCH, [position])
                        refused = answer.code in (Code.READ_ONLY, Code.LOST)
                        yield f"{state.name.lower()}{'' if refused else ' and filled'}"
                rest = rest[len(states) :]


class _Written(_Used):
    """Gets batches that go to its bytestream."""

    method = "write"

    def _request(self, number: int) -> bytes:
        entries = [
            Entry(p, p, (b"%d of %s " % (p, self.name.encode()) * ENTRY_BYTES)[:ENTRY_BYTES])
            for p in self._positions(number * BATCH, BATCH)
        ]
        crcs = [core.crc32c(u64(each.position) + each.data) for each in entries]
        return requests.write(self._epoch, TIME, WRITER, WIDTH, entries, crcs)

    def _acknowledge(self, number: int) -> None:
        self.acknowledged += self._positions(number * BATCH, BATCH)


class _Sealed(_Used):
    """Has keys, of which nothing changes any more."""

    method = "seal"

    def __init__(self, name: str, index: int, epoch: int) -> None:
        super().__init__(name, index, epoch)
        self.acknowledged += self._positions(0, KEYS)

    def put_keys(self, store: zlog.Store) -> None:
        """Write its entries, which are so small that they become keys."""
        stripe = Stripe(store, self.name, WIDTH, self._index)
        for position in self.acknowledged:
            assert stripe.put(self._epoch, position, b"%d" % position).code == Code.OK

    def _request(self, number: int) -> bytes:
        return messages.seal(self._epoch + 1 + number, WIDTH, self._index, False)

    def _acknowledge(self, number: int) -> None:
        """Only the epoch has changed."""


def freeze_as_others_come_back(
    cluster: CephCluster, seed: int, freezes: int, *, heal: bool = False
) -> Outcome:
    """Freeze that many OSDs one after the other, and compare all that is stored.

    Args:
        cluster: of several OSDs with all copies; it belongs to the run alone.
        seed: decides which OSD freezes next, and how soon.
        freezes: how many.
        heal: have an audit put right what copies have lost, before they are compared.
    """
    outcome = Outcome(seed, freezes)
    began = time.monotonic()
    with zlog.connect(cluster.url()) as store:
        view = zlog.Log.create(store, LOG, width=WIDTH, unit=1).view
        names = [ref.name for ref in view.objects(view.live_stripe)]
        written = [_Written(names[i], i, view.epoch) for i in range(WRITTEN)]
        sealed = [_Sealed(names[i], i, view.epoch) for i in range(WRITTEN, WIDTH)]
        for each in sealed:
            each.put_keys(store)
    used: list[_Used] = [*written, *sealed]
    with _working(cluster, used):
        _freeze(cluster, random.Random(seed), freezes)
    if heal:
        outcome.audited = _heal(cluster)
    copies = {}
    for osd, client in each_osd_in_turn(cluster):
        with zlog.connect(cluster.url()) as store:
            outcome.found.update(
                f"{each.method}, {what} at osd.{osd}" for each in used for what in each.judge(store)
            )
        copies[osd] = digests(client, cluster.pool)
    outcome.operations = sum((each.done for each in used), Counter())
    outcome.wrong += [f"{n} acknowledged: {what}" for what, n in sorted(outcome.found.items())]
    outcome.wrong += differences(copies)
    outcome.seconds = round(time.monotonic() - began, 1)
    return outcome


def _heal(cluster: CephCluster) -> Counter[str]:
    """Audit and heal the log until an audit of all copies finds no damage."""
    audited: Counter[str] = Counter()
    with zlog.connect(cluster.url()) as store, zlog.Log.open(store, LOG) as log:
        for _ in range(AUDITS_MAX):
            kinds = Counter(each.kind.value for each in log.check(heal=True, copies=LOOKS))
            audited += kinds
            if not kinds.keys() - {"hole"}:
                break
    return audited


def _freeze(cluster: CephCluster, chance: random.Random, times: int) -> None:
    frozen = chance.randrange(cluster.spec.osds)
    for turn in range(times):
        cluster.osd("freeze", frozen, wait=NOTICED_SECONDS)
        cluster.osd("thaw", frozen, wait=NOTICED_SECONDS)
        if turn < times - 1:
            time.sleep(chance.uniform(0.0, GAP_SECONDS_MAX))
        frozen = chance.choice([osd for osd in range(cluster.spec.osds) if osd != frozen])


@contextmanager
def _working(cluster: CephCluster, used: Sequence[_Used]) -> Iterator[None]:
    """Have all objects used, each by a thread."""
    import rados

    over = threading.Event()
    with rados.Rados(conffile=str(cluster.conf)) as client, client.open_ioctx(cluster.pool) as io:
        threads = [threading.Thread(target=each.run, args=(io, over)) for each in used]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            over.set()
            for thread in threads:
                thread.join()
