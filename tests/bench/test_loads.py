"""``python -m bench``: each benchmark runs next to its limits, and leaves nothing in the store."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from zlog.cli.ceph import Target

from ..support.programs import run_module
from .test_bench import reports

QUICK = ("--seconds", "0.2")
LOAD = (
    "name",
    "how",
    "entries_per_second",
    "bytes_per_second",
    "calls_per_second",
    "latency_ms",
    "cpu_us_per_entry",
    "memory_peak_bytes",
)
LIMIT = (*LOAD, "compare", "ratio", "ratios")


def started(url: str, *words: str) -> subprocess.CompletedProcess[str]:
    return run_module("bench", "--store", url, *words)


def run(url: str, *words: str) -> list[dict[str, Any]]:
    """Run a benchmark, and check what all of them have in common."""
    found = reports("bench", "--store", url, *words, *QUICK)
    for report in found:
        assert set(report) == {"benchmark", "title", "workload", "result", "limits"}
        assert set(report["result"]) == set(LOAD)
        for each in (report["result"], *report["limits"]):
            assert each["entries_per_second"] > 0
            assert 0 <= each["latency_ms"]["p50"] <= each["latency_ms"]["max"]
        for limit in report["limits"]:
            assert set(limit) == set(LIMIT)
            if ratios := limit["ratios"]:  # a follower may be faster than any measure
                assert limit["ratio"] == pytest.approx(statistics.median(ratios), abs=1e-4)
            else:
                assert limit["ratio"] is None
    return found


def limits_of(report: dict[str, Any]) -> list[str]:
    return [limit["name"] for limit in report["limits"]]


@pytest.mark.parametrize(
    ("words", "together"),
    [
        (["--depth", "1"], False),
        (["--writers", "2", "--depth", "2", "--batch", "16"], True),
        (["--exclusive", "--depth", "64"], True),
        (["--through", "threads", "--depth", "8"], True),
        (["--through", "submit", "--depth", "64"], True),
        (["--compression", "zstd", "--batch", "64"], True),
    ],
)
def test_append_benchmark_runs_on_embedded_store(
    tmp_path: Path, words: list[str], together: bool
) -> None:
    (report,) = run((tmp_path / "store").as_uri(), "append", *words)
    expected = ["class writes", "class calls", "LMDB, entries", *["one by one"][:together]]
    if "--exclusive" in words:
        expected = ["shared", *expected]
    if "--through" in words:
        expected = ["tasks", *expected]
    if "--compression" in words:
        expected = ["uncompressed", *expected]
    assert limits_of(report) == expected
    assert report["result"]["cpu_us_per_entry"]["client"] > 0
    assert report["result"]["memory_peak_bytes"] > 1 << 20
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("read --entries 4096 --compression lz4", ["uncompressed", "LMDB"]),
        ("read --entries 4096 --tags 64", ["whole log"]),
        ("tail", ["LMDB"]),
        ("sequencer --connections 2 --depth 4", ["echo"]),
    ],
)
def test_benchmarks_run_on_embedded_store(tmp_path: Path, words: str, expected: list[str]) -> None:
    url = (tmp_path / "store").as_uri()
    (report,) = run(url, *words.split())
    assert limits_of(report) == expected
    assert {limit["compare"] for limit in report["limits"]} == {
        "latency" if words == "tail" else "rate"
    }
    assert [*tmp_path.iterdir()] == []
    found = subprocess.run(["pgrep", "-f", url], capture_output=True, check=False)
    assert found.stdout == b"", "a process is left"


def test_report_is_printed_as_table() -> None:
    lines = started("mem://", "append", "--seconds", "0.2").stdout.splitlines()
    assert lines[0].startswith("append of 100 B, batch 1, depth")
    head = "ENTRIES/S MB/S P50 MS P99 MS P99.9 MS CLIENT US MIB RATIO"
    assert " ".join(lines[1].split()) == head
    assert [line.split("  ")[0] for line in lines[2:4]] == ["append", "class writes"]
    assert lines[-1].startswith("class calls: ")


@pytest.mark.parametrize("store_url", ["ceph-memstore"], indirect=True)
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["append"], ["class writes", "position + write", "class calls", "plain librados"]),
        (["read", "--entries", "64"], ["plain librados"]),
        (["sequencer", "--connections", "2", "--depth", "4"], ["echo"]),
        (
            ["append", "--class", "never", "--size", "64K"],
            ["with the class", "class writes", "position + write", "class calls", "plain librados"],
        ),
        (["tail", "--class", "never"], ["with the class", "plain librados"]),
    ],
)
def test_benchmarks_run_on_cluster(store_url: str, words: list[str], expected: list[str]) -> None:
    (report,) = run(store_url, *words)
    assert limits_of(report) == expected
    if words[0] != "sequencer" and "CONTAINER" not in os.environ.get("ZLOG_TEST_CEPH", "").upper():
        assert report["result"]["cpu_us_per_entry"].keys() >= {"client", "osd"}


@pytest.mark.long
@pytest.mark.parametrize("store_url", ["ceph-memstore"], indirect=True)
def test_failover_benchmark_cleans_up_pool(store_url: str) -> None:
    rados = pytest.importorskip("rados")
    faults = ("--fault", "kill", "--fault", "stop")
    done = started(store_url, "failover", *faults, "--rounds", "2", "--writers", "2", "--json")
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [report["fault"] for report in found] == ["kill", "stop"], done.stderr
    for report in found:
        first, last = report["first_s"], report["last_s"]
        assert len(first["all"]) == len(last["all"]) == 2
        assert all(0 < one <= other for one, other in zip(first["all"], last["all"], strict=True))
    # Other tests have namespaces in this pool.
    own = urlsplit(store_url).path.strip("/") + ".bench-"
    target = Target.parse(store_url)
    with (
        rados.Rados(conffile=target.conf) as cluster,
        cluster.open_ioctx(target.pool) as ioctx,
    ):
        ioctx.set_namespace(rados.LIBRADOS_ALL_NSPACES)
        left = [each for each in ioctx.list_objects() if each.nspace.startswith(own)]
    assert left == []
