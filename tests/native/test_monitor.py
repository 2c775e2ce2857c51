"""Questions to Ceph's monitors: answered over the store's own connection, or refused in words."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

import zlog
from zlog._base import monitor
from zlog._base.deadline import Deadline
from zlog._io import AsyncioIo, BlockingIo, drive

from ..support.ceph import CephCluster


async def asked_on_a_loop(store: zlog.Store, prefix: str, **arguments: str) -> Any:
    io = AsyncioIo(store)
    try:
        return await monitor.ask(io, Deadline(30), prefix, **arguments)
    finally:
        await io.close()


def asked(store: zlog.Store, prefix: str, **arguments: str) -> Any:
    return drive(monitor.ask(BlockingIo(store), Deadline(30), prefix, **arguments))


def test_monitor_answers_command(ceph_cluster: CephCluster) -> None:
    with zlog.connect(ceph_cluster.url()) as store:
        pools = asked(store, "osd pool ls", detail="detail")
        assert ceph_cluster.pool in {pool["pool_name"] for pool in pools}
        assert asked(store, "osd ls") == asyncio.run(asked_on_a_loop(store, "osd ls")) == [0]


def test_refusal_quotes_monitor_message(ceph_cluster: CephCluster) -> None:
    with (
        zlog.connect(ceph_cluster.url()) as store,
        pytest.raises(zlog.StoreUnavailable, match="refused `no such command`: command not known"),
    ):
        asked(store, "no such command")


def test_frozen_monitor_call_times_out(ceph_cluster: CephCluster) -> None:
    with zlog.connect(f"{ceph_cluster.url()}&timeout=3") as store:
        ceph_cluster.monitor("freeze")
        try:
            began = time.monotonic()
            with pytest.raises(zlog.StoreTimeout, match="did not answer `health` in time"):
                drive(monitor.ask(BlockingIo(store), Deadline(0.3), "health"))
            assert time.monotonic() - began < 2
            with pytest.raises(zlog.StoreTimeout):  # the first is still asked, and waited for
                drive(monitor.ask(BlockingIo(store), Deadline(0.3), "health"))
        finally:
            ceph_cluster.monitor("thaw")


@pytest.mark.parametrize("store_url", ["mem", "embedded"], indirect=True)
def test_other_stores_refuse_monitor_commands(store_url: str) -> None:
    with (
        zlog.connect(store_url) as store,
        pytest.raises(zlog.StoreUnavailable, match="not supported"),
    ):
        asked(store, "health")
