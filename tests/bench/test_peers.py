"""What `make bench-peers` runs: each load runs beside SQLite, and the page says what was found."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest

from ..support.programs import REPOSITORY, run_module
from .peers.__main__ import GROUPS, LOADS, marks
from .peers.known import Redis, Sqlite
from .peers.peer import STEP, Missing, program


def test_each_load_runs_beside_a_peer(tmp_path: Path) -> None:
    begin, end = marks("libraries")
    written = tmp_path / "page.md"
    written.write_text(f"before\n{begin}\nold\n{end}\nafter\n")
    words = ["--folder", str(tmp_path / "stores"), "--page", str(written), "--seconds", "0.05"]
    done = run_module("tests.bench.peers", *words, "--groups", "libraries")
    assert done.returncode == 0, done.stderr
    text = written.read_text()
    assert "old" not in text
    assert "`synchronous=FULL`" in text
    assert "|  | zlog | SQLite | LMDB |" in text
    for load in LOADS:
        assert text.count(f"| {load.name} | ") == 2  # rates, and CPU time
    assert not [*(tmp_path / "stores").iterdir()]


def test_a_reader_takes_every_entry_once(tmp_path: Path) -> None:
    with ExitStack() as stack:
        peer = Sqlite(tmp_path, tmp_path, stack)
        for _ in range(2):  # the second time in a new log
            peer.empty()
            peer.append([b"entry"] * (STEP + 1))
            take = peer.reader()
            assert [take(), take(), take()] == [STEP, 1, 0]


def test_a_server_that_is_not_installed_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Missing, match="redis-server is not installed"):
        program("redis-server", tmp_path)
    with ExitStack() as stack, pytest.raises(Missing):  # its client may be missing too
        Redis(tmp_path, tmp_path, stack)


def test_the_page_in_the_documentation_has_a_place_for_each_table() -> None:
    text = (REPOSITORY / "docs" / "performance.md").read_text()
    for group in GROUPS:
        begin, end = marks(group)
        assert text.index(begin) < text.index(end)
