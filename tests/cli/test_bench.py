"""zlog bench: every benchmark runs, prints what it should, and leaves nothing behind.

How fast anything is, is no concern of a test.
"""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import statistics
import subprocess
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

import zlog
from zlog.cli.ceph import Target
from zlog.cli.verbs.bench.usage import _sockets

from ..support.ceph import CephCluster, ClusterSpec
from .conftest import Cli

QUICK = ("--seconds", "0.2", "--json")
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


def run(cli: Cli, *words: str) -> list[dict[str, Any]]:
    """Run a benchmark, and check what all of them have in common."""
    reports = [json.loads(line) for line in cli.ok("bench", *words, *QUICK).splitlines()]
    for report in reports:
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
    return reports


def limits_of(report: dict[str, Any]) -> list[str]:
    return [limit["name"] for limit in report["limits"]]


def untouched(cli: Cli, folder: Path) -> bool:
    """Whether the store is as it was before: with the log ``orders``, and no folder inside."""
    return cli.ok("ls") == b"orders\n" and not [each for each in folder.iterdir() if each.is_dir()]


@pytest.mark.parametrize(
    ("words", "together"),
    [
        ([], False),
        (["--size", "1K", "--batch", "16"], True),
        (["--depth", "64"], True),
        (["--depth", "4", "--alone"], False),
        (["--batch", "64", "--depth", "2"], True),
        (["--writers", "2"], False),
        (["--writers", "2", "--depth", "2", "--batch", "16"], True),
        (["--exclusive"], False),
        (["--exclusive", "--depth", "64"], True),
        (["--compression", "zstd", "--batch", "64"], True),
    ],
)
def test_append_on_the_embedded_store(
    cli: Cli, tmp_path: Path, words: list[str], together: bool
) -> None:
    (report,) = run(cli, "append", *words)
    expected = ["class writes", "class calls", "LMDB, entries", "plain file"]
    if together:
        expected = [*expected[:3], "LMDB, records", "plain file", "one by one"]
    if "--exclusive" in words:
        expected = ["shared", *expected]
    if "--compression" in words:
        expected = ["uncompressed", *expected]
    assert limits_of(report) == expected
    assert report["result"]["cpu_us_per_entry"]["client"] > 0
    assert report["result"]["memory_peak_bytes"] > 1 << 20
    assert untouched(cli, tmp_path / "store")


@pytest.mark.parametrize(
    "words",
    [[], ["--order", "random"], ["--order", "random", "--depth", "4"], ["--compression", "lz4"]],
)
def test_read_on_the_embedded_store(cli: Cli, tmp_path: Path, words: list[str]) -> None:
    (report,) = run(cli, "read", "--entries", "4096", *words)
    beside = ["uncompressed"] if "--compression" in words else []
    assert limits_of(report) == [*beside, "LMDB", "class reads"]
    assert untouched(cli, tmp_path / "store")


def test_read_of_a_tag_beside_the_whole_log(cli: Cli, tmp_path: Path) -> None:
    (report,) = run(cli, "read", "--entries", "4096", "--tags", "64")
    assert limits_of(report) == ["whole log"]
    assert report["result"]["name"] == "tagged read"
    assert untouched(cli, tmp_path / "store")


def test_tail_on_the_embedded_store(cli: Cli, tmp_path: Path) -> None:
    (report,) = run(cli, "tail")
    assert limits_of(report) == ["LMDB", "class reads"]
    assert {limit["compare"] for limit in report["limits"]} == {"latency"}
    assert untouched(cli, tmp_path / "store")


def test_sequencer_beside_echoes(cli: Cli, tmp_path: Path) -> None:
    (report,) = run(cli, "sequencer", "--connections", "2", "--depth", "4")
    assert limits_of(report) == ["echo", "parsed echo"]
    assert untouched(cli, tmp_path / "store")


def test_the_table(cli: Cli) -> None:
    lines = cli.ok("bench", "append", "--seconds", "0.2").decode().splitlines()
    assert lines[0].startswith("append of 100 B, batch 1, depth")
    head = "ENTRIES/S MB/S P50 MS P99 MS P99.9 MS CLIENT US MIB RATIO"
    assert " ".join(lines[1].split()) == head
    assert [line.split("  ")[0] for line in lines[2:4]] == ["append", "class writes"]
    assert lines[-1].startswith("plain file: ")


@pytest.mark.parametrize(
    ("store", "words", "complaint"),
    [
        ("mem://", ["append", "--writers", "2"], "one writer"),
        ("mem://", ["append", "--exclusive", "--alone"], "--alone"),
        ("mem://", ["append", "--exclusive", "--writers", "2"], "--writers"),
        ("mem://", ["tail"], "no other can follow"),
        ("mem://", ["sequencer"], "no server"),
        ("mem://", ["append", "--class", "never"], "on Ceph"),
        (None, ["read", "--depth", "2"], "--order random"),
        (None, ["read", "--tags", "2", "--order", "random"], "--order random"),
        (None, ["append", "--sequencer", "none"], "on Ceph"),
        ("ceph://nowhere", ["append", "--sequencer", "?"], "--sequencer"),
    ],
)
def test_what_makes_no_sense_is_refused(
    cli: Cli, store: str | None, words: list[str], complaint: str
) -> None:
    result = Cli(store or cli.url)("bench", *words, *QUICK)
    assert (result.code, result.out) == (2, b"")
    assert complaint in result.err


def test_a_store_in_memory() -> None:
    memory = Cli("mem://")
    (report,) = run(memory, "append", "--batch", "16")
    assert limits_of(report) == ["class writes", "class calls", "one by one"]
    assert limits_of(run(memory, "read", "--entries", "1024")[0]) == ["class reads"]


def test_an_error_of_a_writer_ends_it(cli: Cli, tmp_path: Path) -> None:
    result = cli("bench", "append", *QUICK, "--size", "2M", "--writers", "2")
    assert result.code == 1
    assert "2097152" in result.err
    assert untouched(cli, tmp_path / "store")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_leaves_nothing_behind(
    cli: Cli, tmp_path: Path, number: signal.Signals, code: int
) -> None:
    store = tmp_path / "store"
    with cli.start("bench", "append", "--seconds", "60") as process:
        while not [*store.glob("bench-*/store/data.mdb")]:
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(number)
        assert process.wait(40) == code
    assert untouched(cli, store)


def test_a_store_that_was_not_there_is_not_there_afterwards(tmp_path: Path) -> None:
    Cli((tmp_path / "new").as_uri()).ok("bench", "append", *QUICK)
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize("store_url", ["ceph-memstore"], indirect=True)
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["append"], ["class writes", "position + write", "class calls", "plain librados"]),
        (
            ["append", "--batch", "16"],
            ["class writes", "class calls", "plain librados", "one by one"],
        ),
        (
            ["append", "--exclusive"],
            ["shared", "class writes", "class calls", "plain librados"],
        ),
        (["append", "--size", "64K"], None),
        (["append", "--sequencer", "none"], ["class writes", "class calls", "plain librados"]),
        (["read", "--entries", "2048"], ["plain librados", "class reads"]),
        (["read", "--entries", "64", "--order", "random"], ["plain librados", "class reads"]),
        (["tail"], ["plain librados", "class reads"]),
        (["sequencer", "--connections", "2", "--depth", "4"], ["echo", "parsed echo"]),
        (
            ["append", "--class", "never", "--sequencer", "none"],
            ["with the class", "class writes", "class calls", "plain librados"],
        ),
        (
            ["read", "--class", "never", "--entries", "2048"],
            ["with the class", "plain librados", "class reads"],
        ),
        (["tail", "--class", "never"], ["with the class", "plain librados", "class reads"]),
    ],
)
def test_on_a_cluster(store_url: str, words: list[str], expected: list[str] | None) -> None:
    cli = Cli(store_url)
    reports = run(cli, *words)
    if expected is not None:
        assert limits_of(reports[0]) == expected
    if "64K" in words:
        assert "data at the end of an object" in reports[0]["limits"][-1]["how"]
    if words[0] != "sequencer" and "CONTAINER" not in os.environ.get("ZLOG_TEST_CEPH", "").upper():
        assert reports[0]["result"]["cpu_us_per_entry"].keys() >= {"client", "osd"}
    assert cli.ok("ls") == b""


@pytest.mark.parametrize("ceph_cluster", [ClusterSpec(with_class=False)], indirect=True)
@pytest.mark.parametrize("words", [["append"], ["read", "--entries", "64"], ["tail"]])
def test_on_a_cluster_without_the_class(ceph_cluster: CephCluster, words: list[str]) -> None:
    (report,) = run(Cli(ceph_cluster.url()), *words)
    assert limits_of(report) == ["plain librados"]


@pytest.mark.parametrize("store_url", ["ceph-memstore"], indirect=True)
def test_a_cluster_with_a_sequencer_of_its_own(store_url: str) -> None:
    from tests.support.sequencer import SequencerProcess

    running = SequencerProcess(store_url)
    try:
        run(Cli(store_url), "append", "--sequencer", running.address.removeprefix("tcp://"))
    finally:
        running.stop()


@pytest.mark.parametrize("store_url", ["ceph-memstore"], indirect=True)
def test_failover(store_url: str, tmp_path: Path) -> None:
    cli = Cli(store_url)
    faults = ("--fault", "kill", "--fault", "stop")
    words = ("bench", "failover", *faults, "--rounds", "2", "--writers", "2")
    reports = [json.loads(line) for line in cli.ok(*words, "--json").splitlines()]
    assert [report["fault"] for report in reports] == ["kill", "stop"]
    for report in reports:
        first, last = report["first_s"], report["last_s"]
        assert len(first["all"]) == len(last["all"]) == 2
        assert all(0 < one <= other for one, other in zip(first["all"], last["all"], strict=True))
    assert cli.ok("ls") == b""
    picture = tmp_path / "failover.svg"
    words = ("--fault", "stop", "--rounds", "1", "--plot", str(picture))
    table = cli.ok("bench", "failover", *words).decode()
    _, first, _, last = re.findall(r"[\d.]+", table.splitlines()[-1])[-4:]
    drawn = picture.read_text()
    assert f">median {first}, max {first}<" in drawn
    assert f">median {last}, max {last}<" in drawn
    assert "stop: first" in drawn


@pytest.mark.parametrize(
    ("store", "words", "complaint"),
    [
        ("file:///nowhere", [], "no fail-over"),
        ("ceph://nowhere", ["--sequencers", "1"], "one has to take over"),
    ],
)
def test_no_failover_without_anybody_to_follow(
    store: str, words: list[str], complaint: str
) -> None:
    result = Cli(store)("bench", "failover", *words)
    assert (result.code, result.out) == (2, b"")
    assert complaint in result.err


@pytest.mark.parametrize("store_url", ["ceph-memstore"], indirect=True)
def test_nothing_is_left_in_the_pool(store_url: str) -> None:
    rados = pytest.importorskip("rados")
    cli = Cli(store_url)
    run(cli, "append", "--batch", "16")
    cli.ok("bench", "failover", "--fault", "kill", "--rounds", "2")
    # Others have places in this pool too.
    own = urlsplit(store_url).path.strip("/") + ".bench-"
    target = Target.parse(store_url)
    with (
        rados.Rados(conffile=target.conf) as cluster,
        cluster.open_ioctx(target.pool) as ioctx,
    ):
        ioctx.set_namespace(rados.LIBRADOS_ALL_NSPACES)
        left = [
            (each.nspace, each.key) for each in ioctx.list_objects() if each.nspace.startswith(own)
        ]
    assert left == []


def test_processes_are_gone_afterwards(cli: Cli) -> None:
    run(cli, "sequencer", "--connections", "1", "--depth", "1")
    found = subprocess.run(["pgrep", "-f", cli.url], capture_output=True, check=False)
    assert found.stdout == b""
    with zlog.connect(cli.url) as store:
        assert zlog.Log.list(store) == ["orders"]


def test_all_sockets_of_a_process_are_seen() -> None:
    """Also those behind the descriptor with which they are listed, which is the lowest free one."""
    with socket.socket() as first, Path(os.devnull).open() as between, socket.socket() as last:
        wanted = {str(os.fstat(each.fileno()).st_ino) for each in (first, last)}
        assert first.fileno() < between.fileno() < last.fileno()
        between.close()
        assert _sockets(Path("/proc/self")) >= wanted
