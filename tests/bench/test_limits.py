"""The C++ program that measures limits: what it can be asked, and what it says."""

from __future__ import annotations

import struct
import subprocess
from pathlib import Path

import pytest

import zlog
from bench.echo import ask_echo, start_echo
from bench.limits import PROGRAM, Limit
from bench.usage import Processes, connected_osds, own_cpu_seconds


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
    tmp_path: Path, kind: str, options: dict[str, object]
) -> None:
    with Limit(kind, {"directory": tmp_path, **options}) as limit:
        for _ in range(2):
            done = limit.measure(0.05, 7)
            assert 0 < len(done.latencies) <= min(done.calls, 100_000)
            assert done.entries == 7 * done.calls
            assert 0.05 <= done.seconds < 20
            assert all(0 <= latency <= done.seconds for latency in done.latencies)
            assert done.cpu["client"] >= 0
            assert done.memory > 0
    assert {each.name for each in tmp_path.iterdir()} <= {
        "data.mdb",
        "lock.mdb",
        "reserve",
        "sequencer",
    }


def test_limits_of_one_directory_stand_beside_each_other(tmp_path: Path) -> None:
    options = {"directory": tmp_path, "objects": 2, "in_flight": 1}
    with (
        Limit("class_calls", options) as calls,
        Limit("class_writes", {**options, "batch": 1, "size": 1}) as writes,
    ):
        for limit in (calls, writes, calls):
            assert limit.measure(0.01).calls > 0


@pytest.mark.parametrize(
    ("kind", "options", "complaint"),
    [
        ("nonsense", {}, "no such limit: nonsense"),
        ("class_calls", {"in_flight": 1}, "missing option: objects"),
        ("class_calls", {"objects": 0, "in_flight": 1}, "from 1 on"),
        ("lmdb_gets", {"directory": "/missing/one", "size": 1, "entries": 1}, "/missing/one"),
        ("class_calls", {"directory": "/missing", "objects": 1, "in_flight": 1}, "/missing"),
    ],
)
def test_what_can_not_be_prepared_is_an_error(
    kind: str, options: dict[str, object], complaint: str
) -> None:
    with pytest.raises(zlog.StoreUnavailable, match=complaint):
        Limit(kind, options)


def test_what_fails_while_it_is_measured_is_an_error() -> None:
    options = {"objects": 1, "size": 1, "in_flight": 1, "batch": 1 << 20}
    with (
        Limit("class_writes", options) as limit,
        pytest.raises(zlog.StoreUnavailable, match="argument"),
    ):
        limit.measure(0.01)


def test_a_program_that_died_is_noticed() -> None:
    with Limit("class_calls", {"objects": 1, "in_flight": 1}) as limit:
        limit._process.kill()
        limit._process.wait()
        with pytest.raises(zlog.ZlogError, match="has died"):
            limit.measure(0.01)


def test_its_own_words() -> None:
    done = subprocess.run(
        [PROGRAM, "class_calls", "objects=1", "in_flight=1"],
        input=b"0.3\n",
        capture_output=True,
        check=True,
    )
    ready, line, rest = done.stdout.split(b"\n", 2)
    assert ready == b"ready"
    calls, seconds, cpu_seconds, memory, told = map(float, line.split())
    assert seconds >= 0.3
    assert cpu_seconds >= 0
    assert memory > 1 << 20
    assert 0 < told <= min(calls, 100_000)
    assert len(struct.unpack(f"{int(told)}f", rest)) == told


@pytest.mark.parametrize("kind", ["echo", "parsed echo"])
@pytest.mark.parametrize(("connections", "depth"), [(1, 1), (3, 300)])
def test_frames_are_echoed(kind: str, connections: int, depth: int) -> None:
    with start_echo(kind) as echo:
        load = {"connections": connections, "depth": depth, **ask_echo(echo.address)}
        with Limit("frames", load) as limit:
            assert limit.measure(0.1).calls >= connections * depth
        assert Processes([echo.pid]).cpu_seconds() > 0


def test_cpu_of_processes() -> None:
    before = own_cpu_seconds()
    sum(range(1_000_000))
    assert own_cpu_seconds() > before
    assert not Processes(())
    assert Processes([2**22 + 1]).cpu_seconds() == 0.0


def test_only_the_osds_of_our_own_cluster_count() -> None:
    assert not connected_osds()
