"""Short runs of `python -m tests.groups`."""

from __future__ import annotations

from pathlib import Path

import pytest

from .run import run


@pytest.mark.long
@pytest.mark.parametrize(("mode", "entries"), [("queue", 2000), ("ordered", 0)])
def test_guarantees_hold_with_killed_processes(tmp_path: Path, mode: str, entries: int) -> None:
    url = (tmp_path / "store").as_uri()
    outcome = run(url, tmp_path, mode, seconds=8, entries=entries, seed=2)
    assert outcome.wrong == []
    assert outcome.actions["killed"] > 4
    assert outcome.entries > 300
