"""Locks and elections: one holder at a time, in order, and tokens for where that is not enough."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Sequence
from typing import Any

import pytest

import zlog
from zlog._io import drive
from zlog.objects import LockLost, LockTimeout, OutcomeUnknown, Space, _lease

from .test_transactions import Slow


def test_waiters_get_the_lock_in_order(space: Space, other: Space) -> None:
    order: list[str] = []
    held = space.lock("lock").acquire("first")
    threads = []

    def take(client: Space, name: str) -> None:
        with client.lock("lock").acquire(name, lease=30) as held:
            order.append(name)
            tokens.append(held.token)

    tokens = [held.token]
    for i in range(6):
        name = f"{i}"
        threads.append(threading.Thread(target=take, args=((space, other)[i % 2], name)))
        threads[-1].start()
        while len(space.lock("lock").waiting()) <= i:
            pass
    holder = other.lock("lock").holder()
    assert holder is not None
    assert (holder.owner, holder.token) == ("first", held.token)
    assert [each.owner for each in other.lock("lock").waiting()] == [*"012345"]
    held.release()
    held.release()
    for each in threads:
        each.join()
    assert order == [*"012345"]
    assert tokens == sorted({*tokens})
    assert space.lock("lock").holder() is None


def test_timed_out_lock_request_is_withdrawn(space: Space, other: Space) -> None:
    with space.lock("lock").acquire("me", lease=60) as held:
        with pytest.raises(LockTimeout, match="'me'"):
            other.lock("lock").acquire("you", timeout=0.05)
        assert other.lock("lock").waiting() == []
        held.check()
        assert 0 < held.remaining() <= 60
    assert held.remaining() == 0
    with pytest.raises(LockLost):
        held.check()
    with pytest.raises(ValueError, match="above 0"):
        space.lock("lock").acquire(lease=0)


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("free", [True, False], ids=["free", "held"])
def test_an_interrupted_request_is_withdrawn(
    space: Space, other: Space, monkeypatch: pytest.MonkeyPatch, when: str, free: bool
) -> None:
    """The interrupt comes where the request is in the log, and its position not yet known."""
    held = space.lock("lock").acquire("me", lease=60)
    if free:
        held.release()
    port = other._replica.port
    append = port.append

    async def interrupted(data: bytes, tags: Sequence[str]) -> int:
        monkeypatch.undo()
        if when == "after":
            await append(data, tags)
        raise KeyboardInterrupt

    monkeypatch.setattr(port, "append", interrupted)
    with pytest.raises(KeyboardInterrupt):
        other.lock("lock").acquire("you", lease=60)
    assert space.lock("lock").waiting() == []
    holder = space.lock("lock").holder()
    assert (holder and holder.owner) == (None if free else "me")


def test_unanswered_lock_request_is_withdrawn(space: Space, other: Space) -> None:
    """Its entries are in the log, and the client does not know."""
    slow = Slow(other, 2)
    with pytest.raises(OutcomeUnknown):
        other.lock("lock").acquire("you", lease=3600)
    assert slow.appended[0] < space.lock("lock").acquire("me", timeout=60).token


def test_expired_lease_loses_lock(space: Space, other: Space) -> None:
    lost = space.lock("lock").acquire("me", lease=0.2, keep=False)
    space.lock("lock").local.holder()
    began = time.monotonic()
    got = other.lock("lock").acquire("you", lease=60, keep=False)
    assert time.monotonic() - began >= 0.2
    assert lost.remaining() == 0
    assert got.token > lost.token
    with pytest.raises(LockLost, match="does not hold"):
        lost.renew()
    lost.release()
    holder = space.lock("lock").holder()
    assert holder is not None
    assert holder.owner == "you"


def test_lease_starts_when_lock_is_granted(space: Space, other: Space) -> None:
    first = space.lock("lock").acquire(lease=60)
    timer = threading.Timer(0.5, first.release)
    timer.start()
    with other.lock("lock").acquire(lease=0.4, keep=False) as held:
        assert held.remaining() > 0
    timer.join()


def test_renewed_lease_is_not_ended_by_waiter(space: Space, other: Space) -> None:
    """As one that wants the lock saw it, the holder had renewed nothing for its lease."""
    held = space.lock("lock").acquire(lease=60, keep=False)
    seen = other.lock("lock").holder()
    assert seen is not None
    held.renew()
    drive(_lease._expire(other._replica, "lock", seen))
    now = other.lock("lock").holder()
    assert now is not None
    assert now.token == held.token
    drive(_lease._expire(other._replica, "lock", now))
    assert other.lock("lock").holder() is None


@pytest.mark.parametrize("lease", [0, -1.0, math.inf, math.nan])
def test_lease_must_be_finite(space: Space, lease: float) -> None:
    with pytest.raises(ValueError, match="a lease must be a finite number of seconds"):
        space.lock("lock").acquire(lease=lease)


def test_very_long_lease_is_renewed(space: Space) -> None:
    others = {*threading.enumerate()}
    with space.lock("lock").acquire(lease=1e300):
        (renewing,) = {*threading.enumerate()} - others
        renewing.join(0.2)
        assert renewing.is_alive()


def test_a_failed_release_can_be_repeated(
    space: Space, other: Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = space.lock("lock").acquire(lease=60)

    def fail(*_: Any) -> Any:
        raise zlog.StoreTimeout("no answer")

    with monkeypatch.context() as patch:
        patch.setattr(space._replica, "carry_out", fail)
        with pytest.raises(zlog.StoreTimeout):
            held.release()
    held.release()
    assert other.lock("lock").holder() is None


def test_renewed_lease_keeps_lock(space: Space, other: Space) -> None:
    with space.lock("lock").acquire("me", lease=0.3), pytest.raises(LockTimeout):
        other.lock("lock").acquire("you", timeout=1)
    with other.lock("lock").acquire("you", timeout=10):
        pass


def test_closing_space_ends_renewals(space: Space, other: Space) -> None:
    space.lock("lock").acquire("me", lease=0.3)
    space.close()
    other.lock("lock").acquire("you", timeout=10)


def test_election_has_one_leader(space: Space, other: Space) -> None:
    watch = other.election("leader").watch()
    assert other.election("leader").leader() is None
    leads = space.election("leader").campaign("one:80")
    leader = other.election("leader").leader()
    assert leader is not None
    assert leader.owner == "one:80"
    with pytest.raises(LockTimeout):
        other.election("leader").campaign("two:80", timeout=0.05)
    leads.release()
    other.election("leader").campaign("two:80", timeout=10)
    owners = []
    while owners[-1:] != ["two:80"]:
        change = next(watch).changes[0].value
        owners.append(change and change.owner)
    assert owners[0] == "one:80"
    assert None in owners


def test_lock_request_uses_timeout_of_log_handle() -> None:
    with zlog.connect("mem://") as store:
        holding = Space.open(zlog.Log.create(store, "orders"), "space").lock("lock").acquire()
        impatient = Space.open(zlog.Log.open(store, "orders", timeout=0.2), "space")
        with holding:
            for ask in (impatient.lock("lock").acquire, impatient.election("lock").campaign):
                with pytest.raises(LockTimeout):
                    ask("you")
