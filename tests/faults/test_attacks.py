"""A log is used while a client with documented caps attacks it."""

from __future__ import annotations

import time
from collections.abc import Callable

import zlog
from zlog._base.codes import POSITION_MAX, Code

from ..support.ceph import CephCluster
from ..support.logs import fill_at
from ..support.sequencer import SequencerProcess
from ..system.test_caps import APPENDING, LOCK, READING, SETS, allowed
from .attacks import CAPS, attack

CHANGING = f"{APPENDING} epoch_next seal view_propose"


def test_attacks_do_not_affect_user(memory: zlog.Store) -> None:
    log = zlog.Log.create(memory, "attacked", width=2, stripe_unit=2)
    hostile = zlog.Log.open(memory, "attacked")
    assert attack(log, hostile, 2, time.monotonic() + 1) == []


def test_attacks_do_not_affect_user_on_ceph(
    ceph_cluster: CephCluster, user: Callable[..., str]
) -> None:
    before = ceph_cluster.pids()
    with (
        zlog.connect(user("allow pool zlog class zlog", name="owner")) as own,
        zlog.connect(user(*allowed(" ".join(SETS[CAPS])), name="hostile")) as hostile,
    ):
        log = zlog.Log.create(own, "attacked", width=2)
        attacker = zlog.Log.open(hostile, "attacked")
        assert attack(log, attacker, 1, time.monotonic() + 2) == []
    assert ceph_cluster.pids() == before


def test_writer_overtakes_hostile_fills(user: Callable[..., str]) -> None:
    with (
        zlog.connect(user(LOCK, "allow pool zlog class zlog", name="owner")) as store,
        SequencerProcess(store.url),
        zlog.connect(user(*allowed(READING), name="attacker")) as hostile,
        zlog.connect(user(*allowed(CHANGING), name="writer")) as own,
    ):
        zlog.Log.create(store, "attacked", width=2, stripe_unit=2).append_many([b"entry"] * 3)
        attacker = zlog.Log.open(hostile, "attacked")
        for ref in attacker.view.objects():
            assert fill_at(attacker, ref.positions(3, POSITION_MAX)[:65536]) == Code.OK
        victim = zlog.Log.open(own, "attacked", timeout=10)
        assert victim.read(victim.append(b"fourth")).data == b"fourth"
