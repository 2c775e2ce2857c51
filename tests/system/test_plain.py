"""Logs on clusters whose OSDs lack the class, or whose client may not use it."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest

import zlog
from zlog._native import messages
from zlog._native.rados import CephStore
from zlog.admin import librados_file
from zlog.errors import ClassNotLoaded

from ..client.transfers import exported, imported, mirrored
from ..support.ceph import CephCluster, ClusterSpec
from ..support.logs import leave_hole
from ..support.programs import REPOSITORY
from ..support.sequencer import SequencerProcess

STOCK = pytest.mark.parametrize("ceph_cluster", [ClusterSpec(with_class=False)], indirect=True)
SECONDS = 60
READ_WRITE = "allow rw pool=zlog"
"""The OSD caps of a client that has a pool and a key."""


def plain(store: zlog.Store) -> bool:
    """Whether the store's methods run in this process."""
    return cast(CephStore, store).plain


def use(store: zlog.Store) -> None:
    """Do with a log what is done with logs."""
    with zlog.Log.create(store, "orders", width=2, stripe_unit=2) as log:
        assert log.append_many([b"%d" % i for i in range(100)]) == list(range(100))
        large = b"x" * 300_000
        assert log.append(large) == 100
        assert [entry.data for entry in log.read_range(98)] == [b"98", b"99", large]
        entries = iter(log.follow(99))
        assert [next(entries).position for _ in range(2)] == [99, 100]
        log.trim_to(10)
        cursor = log.cursor("billing", create="earliest")
        cursor.commit(50)
        log.reconfigure(width=3)
        assert log.append(b"after") == 101
        assert zlog.Log.open(store, "orders").cursor("billing").position == 50
        assert log.tail() == 102
        for appended in (2, 0):
            assert log.append_once([b"one", b"two"], producer="s", sequence=1) == appended
        assert not list(log.check())
        assert zlog.Log.list(store) == ["orders"]


@pytest.mark.parametrize(
    "ceph_cluster",
    [ClusterSpec(with_class=False), ClusterSpec()],
    indirect=True,
    ids=["not installed", "not allowed"],
)
def test_log_works_without_class(user: Callable[..., str]) -> None:
    with zlog.connect(user(READ_WRITE)) as store:
        use(store)
        assert plain(store)


@STOCK
def test_logs_are_mirrored_trimmed_and_removed(user: Callable[..., str], tmp_path: Path) -> None:
    lines = (REPOSITORY / "docs" / "design.md").read_bytes().splitlines()
    with zlog.connect(user(READ_WRITE)) as store, zlog.connect(tmp_path / "here") as here:
        with zlog.Log.create(store, "orders", width=2, stripe_unit=2) as log:
            log.append_many(lines)
            export = exported(log)
            assert mirrored(log, here, "orders") == len(lines)
        imported(store, "copy", export)
        with zlog.Log.open(store, "copy") as copy:
            assert exported(copy) == export
            copy.set_retention(zlog.Retention(entries=10))
            copy.apply_retention()
            assert [entry.data for entry in copy.read_range(copy.earliest())] == lines[-10:]
        zlog.Log.remove(store, "orders")
        assert zlog.Log.list(store) == ["copy"]


def test_methods_run_in_client_if_librados_cannot_call_a_class(
    ceph_cluster: CephCluster, tmp_path: Path
) -> None:
    """The copy lacks the deprecated function, as a later librados may."""
    function = b"\0rados_read_op_exec\0"
    library = Path(librados_file()).read_bytes()
    assert function in library
    lacking = library.replace(function, function.replace(b"exec", b"gone"))
    (tmp_path / "librados.so.2").write_bytes(lacking)
    program = f"""if True:
        import zlog
        from tests.system.test_plain import plain, use

        with zlog.connect({ceph_cluster.url("no-class-calls")!r}) as store:
            use(store)
            assert plain(store)
        """
    environment = {**os.environ, "LD_LIBRARY_PATH": str(tmp_path)}
    command = [sys.executable, "-c", program]
    subprocess.run(command, cwd=REPOSITORY, env=environment, check=True, timeout=SECONDS)


@pytest.mark.parametrize("sequencers", [0, 1])
def test_readers_need_to_read_the_pool(user: Callable[..., str], sequencers: int) -> None:
    writer = user(READ_WRITE, name="writer")
    started = [SequencerProcess(writer) for _ in range(sequencers)]
    with (
        zlog.connect(writer) as store,
        zlog.connect(user("allow r pool=zlog", name="reader")) as only_reads,
        zlog.Log.create(store, "orders", width=2, stripe_unit=2) as log,
        zlog.Log.open(only_reads, "orders", hole_timeout=0.1) as read,
    ):
        log.append_many([b"a", b"b"])
        assert bool(log.view.sequencer) == bool(sequencers)
        assert read.tail() == 2
        assert [entry.data for entry in read.read_range(0)] == [b"a", b"b"]
        follower = iter(read.follow(1))
        assert next(follower).position == 1
        log.append(b"c")
        assert next(follower).position == 2
        assert read.stat().tail == 3
        assert not list(read.check())
        if sequencers:
            hole = leave_hole(log)
            log.append(b"d")
            with pytest.raises(ClassNotLoaded, match="fill"):
                list(read.read_range(hole))
            waits = zlog.Log.open(only_reads, "orders", hole_timeout=None).read_range(hole)
            assert [type(item) for item in waits] == [zlog.Gap, zlog.Entry]
    for sequencer in started:
        assert sequencer.stop() == 0


def test_removed_object_is_noticed(ceph_cluster: CephCluster) -> None:
    url = f"{ceph_cluster.url('removed')}&class=never"
    with zlog.connect(url) as one, zlog.connect(url) as other:
        assert one.execute("stripe", "seal", messages.seal(1, 1, 0, True))[0] == 0
        assert other.execute("stripe", "remove", messages.remove(1))[0] == 0
        assert one.execute("stripe", "seal", messages.seal(2, 1, 0, False))[0] == -errno.ENOENT
        assert one.execute("stripe", "seal", messages.seal(1, 1, 0, True))[0] == 0


def test_installed_class_is_used(ceph_cluster: CephCluster) -> None:
    with zlog.connect(ceph_cluster.url("class-is-used")) as store:
        zlog.Log.create(store, "orders", width=1).append(b"")
        assert not plain(store)


@STOCK
def test_required_class_is_missing(ceph_cluster: CephCluster) -> None:
    url = f"{ceph_cluster.url('required')}&class=require"
    with zlog.connect(url) as store, pytest.raises(ClassNotLoaded, match="class"):
        zlog.Log.create(store, "orders", width=1)


def test_writer_continues_after_osd_restart(ceph_cluster: CephCluster) -> None:
    with zlog.connect(ceph_cluster.url("restarted", plain=True)) as store:
        log = zlog.Log.create(store, "orders", width=1)
        log.append(b"before")
        ceph_cluster.osd("stop", 0)
        ceph_cluster.osd("start", 0)
        assert log.append(b"after") == 1
        assert [entry.data for entry in log.read_range(0)] == [b"before", b"after"]
