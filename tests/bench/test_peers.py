"""What `make bench-peers` runs: each load runs next to SQLite."""

from __future__ import annotations

import re
from contextlib import ExitStack
from pathlib import Path

import pytest

from bench.peers.__main__ import LOADS, Load
from bench.peers.known import Redis, Sqlite
from bench.peers.peer import STEP, Missing, program

from ..support.programs import run_module


def test_each_load_is_compared_with_peers(tmp_path: Path) -> None:
    words = ["--folder", str(tmp_path / "stores"), "--seconds", "0.05"]
    done = run_module("bench.peers", *words, "--groups", "libraries")
    assert done.returncode == 0, done.stderr
    text = done.stdout
    assert "`synchronous=FULL`" in text
    assert "|  | zlog | SQLite | LMDB |" in text
    for load in LOADS:
        rows = 2 if isinstance(load, Load) else 0  # rates, and CPU time; libraries have no queues
        assert text.count(f"| {load.name} | ") == rows
    assert not [*(tmp_path / "stores").iterdir()]


def test_recorders_are_compared(tmp_path: Path) -> None:
    recorders = pytest.importorskip("bench.peers.recorders", exc_type=ImportError)
    words = ["--folder", str(tmp_path / "stores"), "--seconds", "0.05"]
    done = run_module("bench.peers.recorders", *words)
    assert done.returncode == 0, done.stderr
    for load in recorders.LOADS:
        assert re.search(rf"\| {load} \| [\d,]+ \| [\d,]+ \|", done.stdout)
    assert not [*(tmp_path / "stores").iterdir()]


def test_peer_reader_takes_every_entry_once(tmp_path: Path) -> None:
    with ExitStack() as stack:
        peer = Sqlite(tmp_path, tmp_path, stack)
        for _ in range(2):  # the second time in a new log
            peer.empty()
            peer.append([b"entry"] * (STEP + 1))
            take = peer.reader()
            assert [take(), take(), take()] == [STEP, 1, 0]


def test_missing_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Missing, match="redis-server is not installed"):
        program("redis-server", tmp_path)
    with ExitStack() as stack, pytest.raises(Missing):  # its client may be missing too
        Redis(tmp_path, tmp_path, stack)
