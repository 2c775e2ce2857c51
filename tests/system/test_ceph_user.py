"""Sequencers as a cluster's administrator has them: with a user of their own, and in `ceph -s`."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

import zlog
from zlog._base.deadline import Deadline
from zlog._catalog.head import Head
from zlog._io import BlockingIo, drive
from zlog._layout.views import change_view, take_over, with_new_stripe
from zlog.seqr.election.maintenance import Duties

from ..cli.conftest import Cli
from ..client import planted
from ..client.faulty import FaultyStore
from ..support.ceph import CephCluster, ClusterSpec, ceph
from ..support.certificates import Authority
from ..support.sequencer import SequencerProcess
from ..support.waiting import wait_until
from .test_caps import CLASS, LOCK, SETS, allowed


def test_sequencer_needs_the_lock_class(user: Callable[..., str]) -> None:
    result = Cli(user(CLASS))("seqr", "--listen", "127.0.0.1:0")
    assert result.code == 6
    assert "refuses Ceph's class `lock`" in result.err
    assert LOCK.replace("zlog ", "POOL ", 1) in result.err


@pytest.fixture
def managed(
    new_ceph_cluster: Callable[[ClusterSpec], CephCluster],
) -> CephCluster:
    """A cluster with a manager."""
    return new_ceph_cluster(ClusterSpec(manager=True))


@pytest.mark.long
def test_ceph_status_shows_sequencers_and_leader(managed: CephCluster, tmp_path: Path) -> None:
    certificate = Authority(tmp_path, "authority").sign("seqr")
    with (
        SequencerProcess(managed.url()) as leader,
        SequencerProcess(managed.url(), "--tls-cert", certificate) as standby,
    ):

        def roles() -> dict[str, Any]:
            found = json.loads(ceph(managed, "service", "status", "--format", "json"))
            daemons = found.get("zlog-seqr", {})
            return {name: daemon["status"].get("role") for name, daemon in daemons.items()}

        assert standby.address.startswith("tls://")
        names = [each.address.partition("://")[2] for each in (leader, standby)]
        wait_until(lambda: roles() == dict(zip(names, ("leader", "standby"), strict=True)))
        assert "zlog-seqr: 2 daemons active" in ceph(managed, "-s")
        services = json.loads(ceph(managed, "service", "dump", "--format", "json"))["services"]
        metadata = services["zlog-seqr"]["daemons"][names[0]]["metadata"]
        assert metadata["address"] == leader.address
        assert metadata["pool"] == managed.pool
        leader.kill()
        wait_until(lambda: roles()[names[1]] == "leader")


def test_orphans_need_permission_to_list_objects(user: Callable[..., str]) -> None:
    url = user(CLASS)
    with zlog.connect(url) as store:
        log = zlog.Log.create(store, "orders")
        log.append(b"x")
        audit = log.check()
        assert list(audit) == []
        assert not audit.summary.listed
    for words, told in (["check"], True), (["check", "--no-orphans"], False):
        result = Cli(url)(*words, "orders")
        assert (result.code, result.out) == (0, b"")
        assert ("orphaned objects were not searched for" in result.err) == told


def test_check_with_read_permission_finds_orphans(user: Callable[..., str]) -> None:
    url = user(CLASS, "allow r pool=zlog")
    with zlog.connect(url) as store:
        log = zlog.Log.create(store, "orders")
        name = planted.make_orphan(log, 7)
        (finding,) = log.check()
        assert (finding.kind, finding.object) == (zlog.FindingKind.ORPHAN, name)


LOCK_METHODS = ("lock", "unlock", "break_lock", "get_info")


def caps(*uses: str) -> tuple[str, ...]:
    """Return the caps for these uses of docs/operating.md, method by method."""
    return allowed(" ".join(method for use in uses for method in SETS[use]))


def sequencer_caps() -> list[str]:
    """Return the caps of the row "be the sequencer", and those on Ceph's class `lock`."""
    return [*caps("be the sequencer"), *(f"{LOCK} {method}" for method in LOCK_METHODS)]


@pytest.mark.long
def test_documented_caps_suffice_for_sequencer(user: Callable[..., str]) -> None:
    url = user(*sequencer_caps(), name="seqr")
    with (
        SequencerProcess(url) as leader,
        SequencerProcess(url) as standby,
        zlog.connect(user(CLASS, name="owner")) as own,
    ):
        log = zlog.Log.create(own, "orders", width=2, stripe_unit=2, stripe_records=2)
        for number in range(10):  # each a record: a stripe is full again and again
            assert log.append(b"x") == number
        assert log.view.sequencer == leader.address
        leader.kill()
        wait_until(lambda: standby.role() == "leader")
        assert log.append(b"x") == 10
        assert log.view.sequencer == standby.address
        assert standby.stop() == 0
        assert log.append(b"x") == 11
        assert list(log.check()) == []


def test_lost_stripe_without_caps_for_retention(user: Callable[..., str]) -> None:
    """A take-over that was overtaken has made a stripe for nothing, and may not remove it."""
    alone, retention = user(*sequencer_caps()), user(*caps("enforce retention"), name="keep")
    with zlog.connect(user(CLASS, name="owner")) as own, zlog.connect(alone) as store:
        log = zlog.Log.create(own, "orders", width=2, stripe_unit=2, stripe_records=1)
        log.append_many([b"a", b"b"])
        owner = BlockingIo(own, "the owner")

        others = [lambda view: with_new_stripe(view, 3)]

        def overtake(_: int, method: str) -> None:
            if method == "view_propose" and others:
                drive(change_view(owner, "orders", others.pop(), Deadline(30)))

        io = BlockingIo(FaultyStore(store, overtake), "a sequencer")
        assert drive(take_over(io, "orders", "tcp://127.0.0.1:1", Deadline(30))).tail == 2
        head, log_id = Head(owner, "orders"), log.view.log_id
        assert [width for _, width in drive(head.pending_stripes(log_id, Deadline(30)))[1]] == [2]
        with zlog.connect(retention) as keeping:
            drive(Duties(BlockingIo(keeping, "the duties")).round())
        assert drive(head.pending_stripes(log_id, Deadline(30)))[1] == []


@pytest.mark.parametrize("sequenced", [True, False], ids=["behind-a-sequencer", "without-one"])
def test_documented_caps_allow_delivery(user: Callable[..., str], sequenced: bool) -> None:
    """The first attempt and one that finds what the first was granted; in a stripe, and in two."""
    append = "append with a sequencer" if sequenced else "append, with or without one"
    uses = ["read", "append with a sequencer", append, "exactly-once append"]
    app = user(*caps(*uses), name="app")
    owner = user(CLASS, LOCK, name="owner")
    with (
        SequencerProcess(owner) if sequenced else nullcontext(),
        zlog.connect(owner) as own,
        zlog.connect(app) as store,
    ):
        log = zlog.Log.create(own, "orders", width=2, stripe_unit=2)
        log.append(b"first")
        mine = zlog.Log.open(store, "orders")
        assert mine.append_once([b"a", b"b"], producer="crm", sequence=1) == 2
        log.reconfigure(width=3)
        log.append(b"other")
        assert mine.append_once([b"b", b"c", b"a"], producer="crm", sequence=1) == 1
        mine.complete_sequences("crm", before=2)
        assert [each.name for each in mine.producers()] == ["crm"]
        with pytest.raises(zlog.SequenceSuperseded):
            mine.append_once([b"a"], producer="crm", sequence=1)
        found = [item.data for item in log.read_range(0)]  # type: ignore[union-attr]
        assert found == [b"first", b"a", b"b", b"other", b"c"]


def test_append_caps_do_not_allow_append_once(user: Callable[..., str]) -> None:
    rows = "read", "append with a sequencer", "append, with or without one"
    app, owner = user(*caps(*rows), name="app"), user(CLASS, name="owner")
    with zlog.connect(owner) as own, zlog.connect(app) as store:
        zlog.Log.create(own, "orders", width=2, stripe_unit=2)
        mine = zlog.Log.open(store, "orders")
        assert mine.append(b"x") == 0
        with pytest.raises(zlog.ClassNotLoaded, match="cannot append exactly once to") as refused:
            mine.append_once([b"a"], producer="crm", sequence=1)
        assert "delivery_begin" in refused.value.call
