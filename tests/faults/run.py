"""One run: clients on a log, faults planned by a seed, repairs, an audit, and the checkers."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path

import zlog
import zlog.aio
from tests.history import History, Result, TransactionHistory, check, check_transactions

from ..support.ceph import CephCluster
from ..support.logs import TAGS, UNITS
from . import actors, enrolments
from .clients import PATIENCE_SECONDS, Clients, Load
from .faults import EVERYWHERE, KINDS, Planned, Site, plan
from .journal import Journal, merge
from .sequencers import Sequencers
from .stalls import Stall, Window, longest_stalls

LOG = "orders"
MONITORS = 3
MIXED = "mixed"
PLAIN = "plain"
WAYS = {MIXED: (False, True), "class": (False,), PLAIN: (True,)}
"""Whether clients do without the object class, by turns."""


@dataclass
class Outcome:
    """What came of a run.

    Attributes:
        seed: that planned it.
        seconds: that it took.
        stripes: that the log's last views had.
        operations: how many of each kind the history has, the processes' own reads included.
        enrolments: in the log of courses.
        transactions: of spaces of objects, by their result.
        unknown: how many of the operations failed or timed out, or were under way when their
            process died.
        faults: how many there were, by kind.
        stalls: the longest ones, by kind of fault.
        wrong: what must not be, in words; empty: all is well.
    """

    seed: int
    seconds: float = 0.0
    stripes: int = 0
    operations: dict[str, int] = field(default_factory=dict)
    transactions: dict[str, int] = field(default_factory=dict)
    enrolments: int = 0
    unknown: int = 0
    faults: dict[str, int] = field(default_factory=dict)
    stalls: dict[str, Stall] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)

    def check(self, history: History) -> None:
        """Count what was done, and say what is wrong with it."""
        done = history.operations
        self.operations = dict(Counter(operation.action.value for operation in done))
        uncertain = (Result.PENDING, Result.FAILED)
        self.unknown = sum(operation.result in uncertain for operation in done)
        self.wrong += map(str, check(history))

    def check_transactions(self, history: TransactionHistory) -> None:
        """Count transactions by what came of them, and say what is wrong with these."""
        results = Counter(each.result.value for each in history.transactions)
        self.transactions = dict(results)
        self.wrong += map(str, check_transactions(history))


@dataclass(frozen=True)
class Crowd:
    """Who uses the log, and how often.

    Attributes:
        roles: by name.
        stripe_records: so few that stripes end all the time.
        think: seconds between two operations of a client, at most.
        sequencers: how many.
    """

    roles: dict[str, str]
    stripe_records: int
    think: float = 0.1
    sequencers: int = 2


_WRITERS = {"w0": "writer", "w1": "writer", "w2b": "writer", "w3b": "writer"}
_READERS = {"r0": "follower", "r1": "follower", "r2": "ranger", "r3b": "ranger"}
_SELECTORS = {"q0": "selector", "q1b": "selector"}
_OTHERS = {"t0": "trimmer", "d0": "producer", "d1b": "producer", "s0": "remover"}
_ENROLLERS = {"e0": "enroller", "e1": "enroller"}
_OFFLOADERS = {"o0": "offloader", "o1": "offloader"}
FULL = Crowd(
    {**_WRITERS, **_READERS, **_SELECTORS, **_OTHERS, **_OFFLOADERS, **_ENROLLERS},
    stripe_records=2000,
)
SMALL = Crowd(
    {
        "w0": "writer",
        "w1b": "writer",
        "r0": "follower",
        "r1b": "ranger",
        "q0": "selector",
        **_OTHERS,
        "o0": "offloader",
        "e0": "enroller",
        "e1": "enroller",
    },
    stripe_records=10,
)


EXCLUSIVE = Crowd(
    {
        **dict.fromkeys(("c0", "c1", "c2b"), "contender"),
        "w0": "writer",
        **_READERS,
        "t0": "trimmer",
    },
    stripe_records=2000,
)
"""Contenders for a log; a writer that is refused meanwhile."""

ENROLLERS = Crowd(
    {**{f"e{n}": "enroller" for n in range(10)}, "w0": "writer", "r0": "follower", "t0": "trimmer"},
    stripe_records=200,
)
"""Enrolments in a log that its object orders, next to a log in use."""

OBJECTS = Crowd(
    {
        **dict.fromkeys(("p0", "p1", "p2", "p3"), "actor"),
        "w0": "writer",
        "r0": "follower",
        "t0": "trimmer",
    },
    stripe_records=2000,
)
"""Replicas of a space of objects, in a log of its own, next to a log in use."""


def run_on_ceph(
    cluster: CephCluster,
    folder: Path,
    seed: int,
    seconds: float,
    crowd: Crowd = FULL,
    kinds: tuple[str, ...] = EVERYWHERE,
    hurry: float = 1.0,
    way: str = MIXED,
) -> Outcome:
    """Have clients use a log on a cluster while faults come, for that many seconds.

    Args:
        cluster: of several OSDs with all copies; it belongs to the run alone.
        folder: for journals.
        seed: decides which faults come when, and what clients do first; not who is faster.
        seconds: of faults.
        crowd: who uses the log.
        kinds: of faults.
        hurry: what to divide all times of the plan by.
        way: of ``WAYS``, for clients and sequencers.
    """
    chance = random.Random(seed)
    outcome = Outcome(seed)
    began = time.monotonic()
    url = cluster.url()
    urls = [cluster.url(plain=plain) for plain in WAYS[way]]
    with ExitStack() as stack:
        with zlog.connect(url) as store:
            stripe_unit, records = chance.choice(UNITS), crowd.stripe_records
            for log in (LOG, actors.LOG):
                zlog.Log.create(
                    store, log, width=4, stripe_unit=stripe_unit, stripe_records=records
                )
            zlog.Log.create(store, enrolments.LOG, ordering="object", stripe_records=records)
        sequencers = Sequencers(urls, crowd.sequencers)
        stack.callback(sequencers.end)
        loads = [Load(each, LOG, crowd.think, 1.0) for each in urls]
        clients = Clients(loads, crowd.roles, chance, folder)
        stack.callback(clients.kill_all)
        clients.wait_until_they_work()
        site = Site(cluster, sequencers, clients, LOG)
        windows = have(plan(chance, seconds, kinds, hurry), site)
        history = come_to_rest(clients, url, folder)
        played = what_was_played(clients, url, folder, history.repaired)
        outcome.stripes = stripes_of(url)
        journals = clients.journals
        outcome.enrolments, wrong = enrolments.check_enrolments(url, journals)
        outcome.wrong += wrong
        outcome.wrong += [*clients.complaints, *sequencers.complaints()]
    outcome.check(history)
    outcome.check_transactions(played)
    outcome.faults = dict(Counter(window.kind for window in windows))
    outcome.stalls = longest_stalls(history, windows)
    outcome.seconds = round(time.monotonic() - began, 1)
    return outcome


def have(planned: list[Planned], site: Site) -> list[Window]:
    """Have the faults come at their times; returns when each was there."""
    began = time.monotonic()
    domains = {KINDS[each.kind].domain for each in planned}
    windows: list[Window] = []
    given_up = threading.Event()

    def suffer(domain: str) -> None:
        for each in planned:
            later = began + each.at - time.monotonic()
            if KINDS[each.kind].domain == domain and not given_up.wait(max(0.0, later)):
                start = time.monotonic_ns()
                with KINDS[each.kind].make(site, random.Random(each.seed)):
                    given_up.wait(each.seconds)
                windows.append(Window(each.kind, start, time.monotonic_ns()))

    with ThreadPoolExecutor(len(domains)) as pool:
        try:
            list(pool.map(suffer, domains))
        except BaseException:
            given_up.set()
            raise
    return sorted(windows, key=lambda window: window.began)


def come_to_rest(clients: Clients, url: str, folder: Path) -> History:
    """End a run whose faults are over; returns what all clients and an auditor did.

    First the clients go on, and nothing may fail any more. Then writers end, then readers, which
    read all that is left. Last, a new reader reads everything twice and audits it.
    """
    repaired = clients.become_patient()
    clients.finish(
        "writer", "contender", "trimmer", "producer", "remover", "actor", "offloader", "enroller"
    )
    clients.finish("follower", "ranger", "selector")
    journal = folder / "auditor.journal"
    clients.complaints += asyncio.run(audit(url, journal))
    history = merge([*clients.journals, journal])
    history.repaired = repaired
    return history


def what_was_played(
    clients: Clients, url: str, folder: Path, repaired: float
) -> TransactionHistory:
    """Return the transactions of all actors, and of an auditor who looks at all their lists."""
    journals = [actors.journal_of(path) for path in clients.journals]
    keys = {step.key for each in actors.merge(journals).transactions for step in each.steps}
    auditor = folder / "auditor.journal"
    if keys:
        asyncio.run(actors.audit(url, auditor, keys))
    history = actors.merge([*journals, actors.journal_of(auditor)])
    history.repaired = repaired
    return history


def stripes_of(url: str) -> int:
    """Return how many stripes the log's last 128 views had."""
    with zlog.connect(url) as store:
        views = zlog.Log.open(store, LOG).views()
    return len({stripe.id for view in views for stripe in view.stripes})


async def audit(url: str, path: Path) -> list[str]:
    """Append, read all, twice, and look below; returns what is wrong."""
    with await zlog.aio.connect(url) as store, closing(Journal(path)) as journal:
        opened = await zlog.aio.Log.open(store, LOG, timeout=PATIENCE_SECONDS)
        log = journal.watch(opened, "auditor")
        await log.fence()
        for turn in range(2):
            await log.append_many([f"auditor.{turn}.{n}".encode() for n in range(20)])
            await log.tail()
            async for _ in log.read_range():
                pass
            for tag in TAGS:
                async for _ in log.read_range(tags=(tag,)):
                    pass
        wrong = [f"zlog check: {each}" async for each in opened.check() if each.serious]
        await opened.close()
    return wrong
