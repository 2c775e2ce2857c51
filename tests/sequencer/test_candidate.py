"""Who leads, and for how long: several sequencers in one thread, in virtual time."""

from __future__ import annotations

import asyncio
import errno
import functools
import itertools
import random
from collections.abc import Callable, Coroutine

import pytest

from zlog.seqr.election.candidate import Candidate, Role
from zlog.seqr.election.lease import Lease
from zlog.seqr.election.lock import Holder
from zlog.seqr.namespaces import Namespace
from zlog.testing import run_virtually

from ..client.faulty import slow_io
from .locks import LockStore, StoreView

LEASE = 3.0
_numbers = itertools.count()
NAMESPACE = Namespace("logs", "")


class Host:
    """One sequencer's candidate, with everything around it in the test's hand."""

    def __init__(
        self, store: LockStore, name: str, *, latency: float = 0.002, guest: bool = False
    ) -> None:
        self.name = name
        self.guest = guest
        self.store = StoreView(store)
        self.io = slow_io(self.store, len(name), latency / 2, latency)
        self.heard: list[str] = []
        self.gone: set[str] = set()  # the addresses without a listener, as it sees them
        self.start()

    def start(self) -> None:
        """Begin as a new process at the same address."""
        lease = Lease(self.io, self.address, f"{self.name}-{next(_numbers)}", LEASE)
        self.candidate = Candidate(
            NAMESPACE, self.io, lease, self.address, self._note, guest=self.guest, watch=self._watch
        )
        self.task = asyncio.ensure_future(self.candidate.run())

    @property
    def address(self) -> str:
        return f"tcp://{self.name}:1"

    @property
    def role(self) -> Role:
        return self.candidate.role

    def freeze(self) -> None:
        """Do nothing more; time goes on."""
        self.task.cancel()

    def thaw(self) -> None:
        self.task = asyncio.ensure_future(self.candidate.run())

    def nudge(self) -> None:
        """Tell it that the leader's connection ended."""
        self._notify()

    # What the candidate tells, and its watch.

    def _note(self, candidate: Candidate) -> None:
        if candidate.role is Role.LEADER:
            self.heard.append("began")
        elif candidate.role is Role.STANDBY:
            self.heard.append("ended")
            if self.guest:
                self.freeze()
        elif self.heard[-1:] != ["in doubt"]:
            self.heard.append("in doubt")

    def _watch(self, notify: Callable[[], None]) -> _Watch:
        self._notify = notify
        return _Watch(self)


class _Watch:
    """A watch that sees what its host is told."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def follow(self, leader: Holder) -> None:
        pass

    def gone(self, leader: Holder) -> bool:
        return leader.description in self._host.gone

    def stop(self) -> None:
        pass


async def leader_of(*hosts: Host, within: float = 60.0) -> Host:
    """Wait until one of the hosts leads."""
    loop = asyncio.get_running_loop()
    end = loop.time() + within
    while True:
        leaders = [host for host in hosts if host.role is Role.LEADER]
        if leaders:
            (leader,) = leaders
            return leader
        assert loop.time() < end, "no candidate leads"
        await asyncio.sleep(0.001)


async def leader_and_other(store: LockStore) -> tuple[Host, Host]:
    """Start two, and wait until one of them leads."""
    hosts = [Host(store, name) for name in "ab"]
    leader = await leader_of(*hosts)
    hosts.remove(leader)
    return leader, hosts[0]


def virtually(test):
    """Run an async test in virtual time; whatever it leaves running ends with it."""

    @functools.wraps(test)
    def run(*args, **options) -> None:
        run_virtually(alone(test(*args, **options)))

    return run


async def alone(test: Coroutine[None, None, None]) -> None:
    before = asyncio.all_tasks()
    try:
        await test
    finally:
        left = asyncio.all_tasks() - before
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)


def now() -> float:
    return asyncio.get_running_loop().time()


@virtually
async def test_frozen_leader_loses_lease_and_steps_down():
    leader, other = await leader_and_other(LockStore())
    await asyncio.sleep(10)
    left = leader.candidate.lease.left
    leader.freeze()
    began = now()
    assert await leader_of(other) is other
    assert left <= now() - began < left + 0.2
    assert leader.role is Role.LEADER  # for all it knows
    await asyncio.sleep(20)
    leader.thaw()
    await asyncio.sleep(0.1)
    assert leader.role is Role.STANDBY
    assert leader.heard == ["began", "ended"]
    assert leader.candidate.leader == other.address


@virtually
async def test_frozen_leader_without_successor_resumes():
    a = Host(LockStore(), "a")
    await leader_of(a)
    a.freeze()
    await asyncio.sleep(20)
    assert not a.candidate.lease.left
    a.thaw()
    await asyncio.sleep(0.1)
    assert a.role is Role.LEADER
    assert a.candidate.lease.left > 2
    assert a.heard == ["began", "began"]  # others may have led in between: it looks at all logs


@virtually
async def test_killed_leader_is_replaced_immediately():
    store = LockStore()
    a, b, c = (Host(store, name) for name in "abc")
    leader = await leader_of(a, b, c)
    others = [host for host in (a, b, c) if host is not leader]
    await asyncio.sleep(10)
    leader.freeze()
    began = now()
    for host in others:
        host.gone.add(leader.address)
        host.nudge()
    await leader_of(*others)
    assert now() - began < 0.05
    await asyncio.sleep(10)
    assert sorted(host.role.value for host in others) == ["leader", "standby"]


@virtually
async def test_restarted_sequencer_reclaims_its_lease_immediately():
    a = Host(LockStore(), "a")
    await leader_of(a)
    a.freeze()
    a.start()
    began = now()
    await leader_of(a)
    assert now() - began < 0.05


@virtually
async def test_unreachable_live_leader_is_deposed_only_once():
    """Where connections are refused that others can make, leases would change hands for ever."""
    store = LockStore()
    a, b = Host(store, "a"), Host(store, "b")
    a.gone.add(b.address)
    b.gone.add(a.address)
    await asyncio.sleep(60)
    changes = len(a.heard) + len(b.heard)
    assert changes <= 5
    await asyncio.sleep(600)
    assert len(a.heard) + len(b.heard) == changes
    await leader_of(a, b)


@virtually
async def test_leader_survives_store_outage_in_doubt():
    a = Host(LockStore(), "a")
    await leader_of(a)
    began = now()
    a.store.error = errno.ETIMEDOUT
    await asyncio.sleep(LEASE / 2)
    assert a.role is Role.LEADER
    await asyncio.sleep(LEASE)
    assert a.role is Role.IN_DOUBT
    assert now() - began < 2 * LEASE
    a.store.error = 0
    await asyncio.sleep(1)
    assert a.role is Role.LEADER
    assert a.heard == ["began", "in doubt", "began"]


@virtually
async def test_resigned_leader_is_replaced_at_next_poll():
    leader, other = await leader_and_other(LockStore())
    await asyncio.sleep(5)
    leader.freeze()
    assert await leader.candidate.resign()
    other.nudge()
    began = now()
    await leader_of(other)
    assert now() - began < 0.05


@virtually
async def test_resigning_standby_does_not_affect_leader():
    store = LockStore()
    a = Host(store, "a")
    await leader_of(a)
    b = Host(store, "b")
    await asyncio.sleep(1)
    b.freeze()
    assert not await b.candidate.resign()
    await asyncio.sleep(5)
    assert a.role is Role.LEADER
    assert a.candidate.others == []


@virtually
async def test_guest_does_not_reclaim_lost_lease():
    """It leads only for a client's sake, and must not bring back what others have cleared away."""
    store = LockStore()
    guest = Host(store, "a", guest=True)
    await leader_of(guest)
    await asyncio.sleep(20)
    assert guest.heard == ["began"]
    assert guest.candidate.lease.left > LEASE / 2
    assert "zlog.sequencers" not in store.names()
    store.clear()
    await asyncio.sleep(0.8)
    assert guest.heard == ["began", "ended"]


@pytest.mark.parametrize("error", [errno.EPERM, errno.EACCES])
@virtually
async def test_missing_lock_permission_is_reported(error):
    a = Host(LockStore(), "a")
    a.store.error = error
    await a.candidate.tried.wait()
    failure = a.candidate.failure
    assert failure is not None
    assert not failure.retryable
    assert "class lock" in failure.hint
    assert a.role is Role.STANDBY
    a.store.error = 0
    await leader_of(a)
    await asyncio.sleep(1)
    assert a.candidate.failure is None


@pytest.mark.parametrize("seed", range(10))
@virtually
async def test_at_most_one_candidate_holds_lease(seed):
    """Whatever freezes, however slow the store is, and whatever the store does not answer."""
    dice = random.Random(seed)
    store = LockStore()
    hosts = [Host(store, name, latency=dice.choice((0.01, 0.5, 2.0))) for name in "abcd"]
    led = set()
    for _ in range(400):
        await asyncio.sleep(dice.uniform(0, 0.5))
        sure = [host.name for host in hosts if host.candidate.lease.left]
        led.update(sure)
        assert len(sure) <= 1, f"seed {seed}: {sure}"
        host = dice.choice(hosts)
        if host.task.done():
            host.thaw()
        elif dice.random() < 0.2:
            host.freeze()
        elif dice.random() < 0.2:
            host.store.error = dice.choice((0, errno.ETIMEDOUT))
    assert len(led) > 1, f"seed {seed}: no leader ever had a successor"
