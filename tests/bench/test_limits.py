"""The C++ program that measures limits: what it can be asked, and what it says."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import zlog
from zlog.cli.verbs.bench.echo import running_echo
from zlog.cli.verbs.bench.frames import to_echo
from zlog.cli.verbs.bench.limits import PROGRAM, Limits
from zlog.cli.verbs.bench.usage import Processes, connected_osds, own_cpu_seconds


@pytest.fixture
def limits(tmp_path: Path) -> Iterator[Limits]:
    with Limits(("directory", str(tmp_path))) as running:
        yield running


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("class_calls", {"objects": 2, "in_flight": 4}),
        ("class_writes", {"objects": 2, "size": 10, "batch": 5, "in_flight": 2}),
        (
            "class_reads",
            {"objects": 2, "size": 9, "batch": 8, "entries": 64, "window": 16, "in_flight": 2},
        ),
        ("lmdb_puts", {"keys": 3, "size": 100}),
        ("lmdb_gets", {"entries": 100, "size": 100}),
        ("lmdb_scans", {"entries": 100, "size": 100, "window": 7}),
        ("file_syncs", {"size": 100}),
    ],
)
def test_what_a_directory_can_be_asked(
    limits: Limits, kind: str, options: dict[str, object]
) -> None:
    done = limits.measure(kind, 7, seconds=0.05, **options)
    assert done.calls == len(done.latencies) > 0
    assert done.entries == 7 * done.calls
    assert 0.05 <= done.seconds < 20
    assert all(0 <= latency <= done.seconds for latency in done.latencies)
    assert done.cpu["client"] >= 0
    assert done.memory > 0


def test_what_was_written_is_gone_in_the_end(tmp_path: Path) -> None:
    with Limits(("directory", str(tmp_path))) as limits:
        limits.measure("lmdb_puts", seconds=0.01, keys=1, size=1)
        limits.measure("lmdb_gets", seconds=0.01, entries=1, size=1)
        limits.measure("file_syncs", seconds=0.01, size=1)
    assert {each.name for each in tmp_path.iterdir()} == {"data.mdb", "lock.mdb"}


@pytest.mark.parametrize(
    ("kind", "options", "complaint"),
    [
        ("nonsense", {}, "has no nonsense"),
        ("rados_keys", {"objects": 1, "size": 1, "in_flight": 1}, "has no rados_keys"),
        ("class_calls", {"in_flight": 1}, "needs objects"),
        ("class_calls", {"objects": 0, "in_flight": 1}, "from 1 on"),
        ("class_writes", {"objects": 1, "size": 1, "in_flight": 1, "batch": 1 << 20}, "argument"),
    ],
)
def test_what_can_not_be_done_is_an_error_and_no_end(
    limits: Limits, kind: str, options: dict[str, object], complaint: str
) -> None:
    with pytest.raises(zlog.ZlogError, match=complaint):
        limits.measure(kind, 1, seconds=0.01, **options)
    assert limits.measure("class_calls", seconds=0.01, objects=1, in_flight=1).calls > 0


def test_a_place_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(zlog.StoreUnavailable):
        Limits(("directory", str(tmp_path / "missing")))
    with pytest.raises(zlog.StoreUnavailable, match="no such store"):
        Limits(("nowhere",))


def test_a_program_that_died_is_noticed(limits: Limits) -> None:
    limits._process.kill()
    limits._process.wait()
    with pytest.raises(zlog.ZlogError, match="has died"):
        limits.measure("class_calls", seconds=0.01, objects=1, in_flight=1)


def test_its_own_words() -> None:
    done = subprocess.run(
        [PROGRAM, "memory"],
        input=b'class_calls objects=1 in_flight=1 seconds=0.01\nx"y\\z\n',
        capture_output=True,
        check=True,
    )
    assert done.stdout.startswith(b"{}\n")
    head, _, rest = done.stdout[3:].partition(b"\n")
    found = json.loads(head)
    assert {"calls", "seconds", "cpu_seconds", "memory_peak_bytes", "latencies"} == set(found)
    assert "error" in json.loads(rest[4 * found["latencies"] :])


@pytest.mark.parametrize("kind", ["echo", "frames"])
@pytest.mark.parametrize(("connections", "depth"), [(1, 1), (3, 300)])
def test_frames_are_echoed(limits: Limits, kind: str, connections: int, depth: int) -> None:
    with running_echo(kind) as echo:
        done = limits.measure(
            "frames",
            1,
            seconds=0.1,
            connections=connections,
            depth=depth,
            **to_echo(echo.address),
        )
        assert done.calls >= connections * depth
        assert Processes([echo.pid]).cpu_seconds() > 0


def test_cpu_of_processes() -> None:
    before = own_cpu_seconds()
    sum(range(1_000_000))
    assert own_cpu_seconds() > before
    assert not Processes(())
    assert Processes([2**22 + 1]).cpu_seconds() == 0.0


def test_only_the_osds_of_our_own_cluster_count() -> None:
    assert not connected_osds()
