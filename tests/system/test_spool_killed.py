"""A spool on a cluster that does not answer, whose processes are killed meanwhile."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import zlog

from ..cli.conftest import Cli
from ..support.ceph import CephCluster, ClusterSpec

WRITER = """
import sys, time, zlog
directory, url, session = sys.argv[1:]
with zlog.Spool(directory, url, "orders") as spool:
    number = 0
    while True:
        spool.append_many([b"%s:%d" % (session.encode(), number + i) for i in range(50)])
        number += 50
        print(number, flush=True)
        time.sleep(0.01)
"""
SEED = 5


@pytest.mark.parametrize("frozen", [[0, 1], [1]], ids=["all", "one"])
def test_spool_killed_during_outage(
    new_ceph_cluster: Callable[[ClusterSpec], CephCluster], tmp_path: Path, frozen: list[int]
) -> None:
    """With one OSD frozen, only a part of a batch may be in the log when an attempt fails."""
    chances = random.Random(SEED)
    cluster = new_ceph_cluster(ClusterSpec(osds=2))
    url, folder = cluster.url(), str(tmp_path / "spool")
    with zlog.connect(url) as store:
        zlog.Log.create(store, "orders", width=4, stripe_unit=16).close()
    acknowledged = [tmp_path / f"session{number}" for number in range(6)]
    for session, file in enumerate(acknowledged):
        if session == 1:
            for osd in frozen:
                cluster.osd("freeze", osd)
        if session == 4:
            for osd in frozen:
                cluster.osd("thaw", osd)
        with (
            file.open("wb") as out,
            subprocess.Popen(
                [sys.executable, "-c", WRITER, folder, url, str(session)], stdout=out
            ) as writer,
            Cli(url).start("forward", folder, "--follow") as forwarder,
        ):
            time.sleep(chances.uniform(2, 4))
            first, second = chances.sample([writer, forwarder], 2)
            first.send_signal(signal.SIGKILL)
            time.sleep(chances.uniform(0, 1))
            second.send_signal(signal.SIGKILL)
    Cli(url).ok("forward", folder)
    found: list[list[int]] = [[] for _ in acknowledged]
    with zlog.connect(url) as store, zlog.Log.open(store, "orders") as log:
        for item in log.read_range():
            if isinstance(item, zlog.Entry):
                session, number = map(int, item.data.split(b":"))
                found[session].append(number)
    for numbers, file in zip(found, acknowledged, strict=True):
        assert numbers == [*range(len(numbers))]
        lines = file.read_text().split()
        assert len(numbers) >= int(lines[-1] if lines else 0)
    assert sum(map(len, found)) > 1000
