"""bench append: it measures what it says, and leaves nothing behind."""

from __future__ import annotations

import json
import signal
from array import array
from pathlib import Path

import pytest

import zlog
from zlog.cli.bench.workload import Sample, Workload, rate_of

from .conftest import Cli, Inside

QUICK = ("bench", "append", "--seconds", "0.1", "--json")


def test_rates_and_quantiles() -> None:
    samples = [
        Sample(500, 1.0, array("d", (i / 1000 for i in range(500)))),
        Sample(500, 2.0, array("d", (i / 1000 for i in range(500, 1000)))),
    ]
    rate = rate_of("x", samples, 4, 100, "so")
    assert (rate.calls, rate.entries, rate.bytes) == (750, 3000, 300_000)
    assert rate.latencies == {"p50": 500, "p99": 990, "p99.9": 999, "max": 999}


def test_a_benchmark_without_a_single_call_says_so() -> None:
    with pytest.raises(ValueError, match="--seconds"):
        rate_of("x", [Sample(0, 1.0, array("d"))], 1, 1, "so")


@pytest.mark.parametrize(("batch", "operations", "each"), [(1, 1, 1), (5, 5, 1), (32, 8, 4)])
def test_operations_of_an_append(batch: int, operations: int, each: float) -> None:
    load = Workload("mem://", "x", 100, batch, 2, 3, 8, 1.0, None)
    assert (load.in_flight, load.operations_per_append) == (6, operations)
    assert load.entries_per_operation == each


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--size", "1K", "--batch", "16"],
        ["--depth", "4"],
        ["--writers", "2"],
        ["--writers", "2", "--depth", "2"],
    ],
)
def test_the_embedded_store_beside_its_limits(cli: Cli, words: list[str], tmp_path: Path) -> None:
    found = json.loads(cli.ok(*QUICK, *words))
    assert found["result"]["entries_per_second"] > 0
    assert [limit["name"] for limit in found["limits"]] == ["class calls", "plain file"]
    for limit in found["limits"]:
        ratio = found["result"]["entries_per_second"] / limit["entries_per_second"]
        assert limit["ratio"] == pytest.approx(ratio, abs=0.001)
    assert cli.ok("ls") == b"orders\n"
    assert {path.name for path in (tmp_path / "store").iterdir()} <= {
        "data.mdb",
        "lock.mdb",
        "sequencer",
    }


def test_the_table(cli: Cli) -> None:
    lines = cli.ok("bench", "append", "--seconds", "0.1").decode().splitlines()
    assert lines[0].startswith("100 B × 1 entries per append")
    assert lines[1].split() == [
        "ENTRIES/S",
        "MB/S",
        "P50",
        "MS",
        "P99",
        "MS",
        "P99.9",
        "MS",
        "RATIO",
    ]
    assert [line.split("  ")[0] for line in lines[2:5]] == ["append", "class calls", "plain file"]


def test_a_store_in_memory_has_one_writer(inside: Inside) -> None:
    assert inside("--store", "mem://", *QUICK).code == 0
    assert inside("--store", "mem://", *QUICK, "--writers", "2").code == 2


def test_an_error_of_a_writer_ends_it(cli: Cli) -> None:
    result = cli(*QUICK, "--size", "2M", "--writers", "2")
    assert result.code == 1
    assert "2097152" in result.err
    assert cli.ok("ls") == b"orders\n"


def test_ctrl_c_leaves_no_log_behind(cli: Cli, orders: zlog.Log) -> None:
    with cli.start("bench", "append", "--seconds", "60") as process:
        while len(zlog.Log.list(orders.store)) < 2:
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 130
    assert zlog.Log.list(orders.store) == ["orders"]


@pytest.mark.parametrize("store_url", ["ceph-memstore"], indirect=True)
def test_a_cluster_beside_its_limits(store_url: str) -> None:
    pytest.importorskip("rados")
    cli = Cli(store_url)
    found = json.loads(cli.ok(*QUICK, "--batch", "16"))
    assert [limit["name"] for limit in found["limits"]] == ["class calls", "plain librados"]
    large = json.loads(cli.ok(*QUICK, "--size", "64K"))
    assert "data at the end of an object" in large["limits"][1]["how"]
    assert cli.ok("ls") == b""
