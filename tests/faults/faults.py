"""What goes wrong: each kind of fault, and the plan of a run, which its seed decides."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple
from unittest import mock

import zlog
from zlog.seqr.election.lease import LEASE_SECONDS_DEFAULT

from ..support.ceph import CephCluster
from ..support.logs import UNITS
from ..support.programs import ZLOG
from ..support.replicas import LOOKS, Disk, opened_disk
from .clients import Clients
from .partitions import cut_off
from .power import fail
from .sequencers import Sequencers

CUT = {"ms_inject_socket_failures": "200"}
"""One of this many messages finds its connection broken."""

SLOW = {
    "osd_debug_inject_dispatch_delay_probability": "0.2",
    "osd_debug_inject_dispatch_delay_duration": "0.1",
}

OSD_CUT_OFF = "OSD cut off"
POWER_LOST = "power lost"

CLUSTER_OPTIONS = ("osd:osd max markdown count=1000",)
"""What a cluster's ceph.conf needs for a run of many faults. An OSD ends itself when it was marked
down five times in ten minutes, though it lives; frozen or cut off, it is."""

_ALL = 1000
_CLOCK_MINUTES_MAX = 30
"""Cephx, whose tickets are good for an hour, lets no daemon in whose clock is off by more."""

_CUT_SECONDS = 0.3
_WIDTH_MAX = 12


class Site(NamedTuple):
    """What suffers."""

    cluster: CephCluster
    sequencers: Sequencers
    clients: Clients
    log: str


Fault = Callable[[Site, random.Random], AbstractContextManager[None]]
"""Begins when it is entered, and is repaired when it is left."""


def killed(*, osds: int = 0, monitors: bool = False, power: bool = False) -> Fault:
    """Kill ``osds`` OSDs, and the majority of the monitors, by SIGKILL; start them later.

    Without monitors connected clients go on, and no new one can connect. Where the power fails,
    too, the OSDs' disks lose what was not synced.
    """

    @contextmanager
    def fault(site: Site, chance: random.Random) -> Iterator[None]:
        spec = site.cluster.spec
        numbers = chance.sample(range(spec.osds), min(osds, spec.osds))
        names = "abcdefghi"[: spec.monitors // 2 + 1] if monitors else ""
        for name in names:
            site.cluster.monitor("kill", name)
        for number in numbers:
            site.cluster.osd("kill", number)
        if power:
            fail(chance)
        yield
        for name in names:
            site.cluster.monitor("start", name)
        for number in numbers:
            site.cluster.osd("start", number)

    return fault


@contextmanager
def osd_frozen(site: Site, chance: random.Random) -> Iterator[None]:
    """SIGSTOP: first its clients wait, then it counts as down. What it had begun, it ends later."""
    number = chance.randrange(site.cluster.spec.osds)
    site.cluster.osd("freeze", number)
    yield
    site.cluster.osd("thaw", number)


@contextmanager
def osd_slow(site: Site, chance: random.Random) -> Iterator[None]:
    """It sleeps before some of its operations, and never counts as down."""
    who = f"osd.{chance.randrange(site.cluster.spec.osds)}"
    with _configured(site, {who: SLOW}):
        yield


@contextmanager
def osd_cut_off(site: Site, chance: random.Random) -> Iterator[None]:
    """A partition; see ``partitions.py``. Only where the run has a network of its own."""
    osds = site.cluster.spec.osds
    with cut_off(chance.randrange(osds), osds, chance):
        yield


@contextmanager
def osd_clock_wrong(site: Site, chance: random.Random) -> Iterator[None]:
    """It is killed, and started with a clock that is fast or slow by up to half an hour."""
    number = chance.randrange(site.cluster.spec.osds)
    minutes = chance.choice((-1, 1)) * chance.randint(1, _CLOCK_MINUTES_MAX)
    source, library = Path(__file__).with_name("clock.c"), site.cluster.conf.with_name("clock.so")
    subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-o", library, source], check=True)
    preloaded = [str(library), *filter(None, [os.environ.get("LD_PRELOAD")])]
    clock = {"LD_PRELOAD": ":".join(preloaded), "CLOCK_SECONDS": str(60 * minutes)}
    site.cluster.osd("kill", number)
    with mock.patch.dict(os.environ, clock):
        site.cluster.osd("start", number)
    yield
    site.cluster.osd("kill", number)
    site.cluster.osd("start", number)


@contextmanager
def bit_flipped(site: Site, chance: random.Random) -> Iterator[None]:
    """A bit of something that an OSD stores of a stripe object; an audit repairs it later."""
    url = site.cluster.url()
    with zlog.connect(url) as store, zlog.Log.open(store, site.log) as log:
        names = [ref.name for stripe in log.view.stripes[-2:] for ref in log.view.objects(stripe)]
    osd = chance.randrange(site.cluster.spec.osds)
    with opened_disk(site.cluster, osd, "") as disk, suppress(LookupError):  # removed meanwhile
        _flip_bit(disk, chance.choice(names), chance)
    yield
    command = [ZLOG, "--store", url, "check", site.log, "--repair", "--replicas", str(LOOKS)]
    subprocess.run(command, capture_output=True, check=False)  # the run's own audit reports


def _flip_bit(disk: Disk, name: str, chance: random.Random) -> None:
    places = [("bytes", ""), ("attr", "zlog.header"), *(("omap", key) for key in disk.keys(name))]
    kind, key = chance.choice([*places[:2], chance.choice(places)])
    value = bytearray(disk.get(name, kind, key))
    if value:
        value[chance.randrange(len(value))] ^= 1 << chance.randrange(8)
        disk.set(name, kind, bytes(value), key)


@contextmanager
def ceph_connections_cut(site: Site, _: random.Random) -> Iterator[None]:
    """OSDs and clients break their connections now and then, with what is under way in them."""
    with _configured(site, {"osd": CUT, "client": CUT}):
        yield


@contextmanager
def _configured(site: Site, options: dict[str, dict[str, str]]) -> Iterator[None]:
    """Set options of running daemons and clients, by whose they are."""
    import rados

    def ask(**words: str) -> None:
        with rados.Rados(conffile=str(site.cluster.conf)) as cluster:
            code, _, message = cluster.mon_command(json.dumps(words), b"")
        assert code == 0, message

    for who, each in options.items():
        for name, value in each.items():
            ask(prefix="config set", who=who, name=name, value=value)
    yield
    for who, each in options.items():
        for name in each:
            ask(prefix="config rm", who=who, name=name)


@contextmanager
def sequencer_killed(site: Site, _: random.Random) -> Iterator[None]:
    """The one that leads. A new one comes later."""
    leader = site.sequencers.leader()
    leader.process.kill()
    yield
    site.sequencers.replace(leader)


@contextmanager
def sequencer_frozen(site: Site, _: random.Random) -> Iterator[None]:
    """SIGSTOP to the one that leads, across a fail-over; then it goes on as if it still led."""
    leader = site.sequencers.leader()
    leader.process.freeze()
    yield
    leader.process.thaw()


@contextmanager
def sequencer_connections_cut(site: Site, _: random.Random) -> Iterator[None]:
    """All connections to sequencers break, several times a second."""
    over = threading.Event()

    def cut_again() -> None:
        while not over.wait(_CUT_SECONDS):
            site.sequencers.cut()

    with ThreadPoolExecutor(1) as pool:
        cutting = pool.submit(cut_again)
        try:
            yield
        finally:
            over.set()
            cutting.result()


@contextmanager
def sequencer_replies_lost(site: Site, _: random.Random) -> Iterator[None]:
    """What clients ask for is granted, and they never hear of it."""
    site.sequencers.lose_replies(True)
    yield
    site.sequencers.lose_replies(False)
    site.sequencers.cut()


@contextmanager
def client_killed(site: Site, chance: random.Random) -> Iterator[None]:
    """Any writer or reader, which is then started anew."""
    name = chance.choice(site.clients.names())
    site.clients.kill(name)
    yield
    site.clients.replace(name)


@contextmanager
def client_frozen(site: Site, chance: random.Random) -> Iterator[None]:
    """SIGSTOP to any of them, which goes on as if nothing had been."""
    client = site.clients.running(chance.choice(site.clients.names()))
    client.tell(signal.SIGSTOP)
    yield
    client.tell(signal.SIGCONT)


@contextmanager
def width_changed(site: Site, chance: random.Random) -> Iterator[None]:
    """`zlog reconfigure`, which is killed where it has not ended when the fault is over."""
    width, stripe_unit = chance.randint(1, _WIDTH_MAX), chance.choice(UNITS)
    command = [ZLOG, "--store", site.cluster.url(), "reconfigure", site.log]
    command += ["--width", str(width), "--stripe-unit", str(stripe_unit)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        yield
        process.kill()


class Kind(NamedTuple):
    """A kind of fault.

    Attributes:
        make: it.
        domain: faults of one domain never come at the same time, others may.
        seconds: how long it lasts, at least and at most.
    """

    make: Fault
    domain: str
    seconds: tuple[float, float]


KINDS: dict[str, Kind] = {
    "OSD killed": Kind(killed(osds=1), "Ceph", (1.0, 8.0)),
    "two OSDs killed": Kind(killed(osds=2), "Ceph", (1.0, 6.0)),
    "monitors killed": Kind(killed(monitors=True), "Ceph", (1.0, 8.0)),
    "monitors and an OSD killed": Kind(killed(osds=1, monitors=True), "Ceph", (1.0, 6.0)),
    "Ceph killed": Kind(killed(osds=_ALL, monitors=True), "Ceph", (0.5, 4.0)),
    POWER_LOST: Kind(killed(osds=_ALL, monitors=True, power=True), "Ceph", (0.5, 4.0)),
    "OSD frozen": Kind(osd_frozen, "Ceph", (1.0, 10.0)),
    "OSD slow": Kind(osd_slow, "Ceph", (3.0, 8.0)),
    OSD_CUT_OFF: Kind(osd_cut_off, "Ceph", (2.0, 10.0)),
    "OSD's clock wrong": Kind(osd_clock_wrong, "Ceph", (3.0, 8.0)),
    "bit flipped": Kind(bit_flipped, "Ceph", (1.0, 4.0)),
    "connections to Ceph cut": Kind(ceph_connections_cut, "Ceph", (3.0, 8.0)),
    "sequencer killed": Kind(sequencer_killed, "sequencers", (0.5, 6.0)),
    "sequencer frozen": Kind(
        sequencer_frozen, "sequencers", (LEASE_SECONDS_DEFAULT / 2, 2.5 * LEASE_SECONDS_DEFAULT)
    ),
    "connections to sequencers cut": Kind(sequencer_connections_cut, "sequencers", (1.0, 4.0)),
    "replies of sequencers lost": Kind(sequencer_replies_lost, "sequencers", (0.2, 3.0)),
    "client killed": Kind(client_killed, "clients", (0.1, 1.0)),
    "client frozen": Kind(client_frozen, "clients", (0.2, 8.0)),
    "width changed": Kind(width_changed, "layout", (0.5, 3.0)),
}


EVERYWHERE = tuple(kind for kind in KINDS if kind != OSD_CUT_OFF)
"""The kinds that need no network of their own."""


class Planned(NamedTuple):
    """A fault to come: ``at`` and ``seconds`` from the beginning of the run."""

    kind: str
    at: float
    seconds: float
    seed: int


def plan(
    chance: random.Random, seconds: float, kinds: Sequence[str], hurry: float = 1.0
) -> list[Planned]:
    """Choose what goes wrong in that many seconds: every kind as often as any other.

    Args:
        chance: decides.
        seconds: for all of it, repairing included.
        kinds: of faults.
        hurry: what to divide all times by.
    """
    planned: list[Planned] = []
    free: dict[str, float] = {}
    at = 0.0
    while True:
        for kind in chance.sample(kinds, len(kinds)):
            _, domain, (least, most) = KINDS[kind]
            lasts = chance.uniform(least, most) / hurry
            at = max(at, free.get(domain, 0.0))
            if at + lasts > seconds:
                return planned
            planned.append(Planned(kind, at, lasts, chance.getrandbits(32)))
            free[domain] = at + lasts + 1.0 / hurry
            # Every third one goes on when the next begins.
            alone = chance.random() < 2 / 3
            at += lasts + chance.uniform(1.0, 4.0) / hurry if alone else lasts / 2
