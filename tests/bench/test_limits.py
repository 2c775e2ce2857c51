"""The C++ program that measures limits: what it can be asked, and what it says."""

from __future__ import annotations

from pathlib import Path

import pytest

import zlog
from bench.echo import ask_echo, start_echo
from bench.limits import Limit
from bench.usage import Processes


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
def test_limits_in_a_directory(tmp_path: Path, kind: str, options: dict[str, object]) -> None:
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


@pytest.mark.parametrize(
    ("kind", "options", "complaint"),
    [
        ("nonsense", {}, "no such limit: nonsense"),
        ("class_calls", {"in_flight": 1}, "missing option: objects"),
        ("class_calls", {"objects": 0, "in_flight": 1}, "1 or more"),
        ("lmdb_gets", {"directory": "/missing/one", "size": 1, "entries": 1}, "/missing/one"),
        ("class_calls", {"directory": "/missing", "objects": 1, "in_flight": 1}, "/missing"),
    ],
)
def test_bad_limits_are_refused(kind: str, options: dict[str, object], complaint: str) -> None:
    with pytest.raises(zlog.StoreUnavailable, match=complaint):
        Limit(kind, options)


@pytest.mark.parametrize("kind", ["echo", "parsed echo"])
@pytest.mark.parametrize(("connections", "depth"), [(1, 1), (3, 300)])
def test_frames_are_echoed(kind: str, connections: int, depth: int) -> None:
    with start_echo(kind) as echo:
        load = {"connections": connections, "depth": depth, **ask_echo(echo.address)}
        with Limit("frames", load) as limit:
            assert limit.measure(0.1).calls >= connections * depth
        assert Processes([echo.pid]).cpu_seconds() > 0
