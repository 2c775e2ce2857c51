"""tools/spark-torture: a query that is killed at any moment fills an exact table."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
PROGRAM = REPOSITORY / "tools" / "spark-torture"
SEED = 7


@pytest.fixture
def verdict(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(REPOSITORY / "tools")
    from torture import verdict

    return verdict


def test_a_table_is_exact_or_not(verdict: Any) -> None:
    assert verdict.faults(verdict.Found(10, 10, 10, 9), tail=10, acknowledged=10) == []
    (twice,) = verdict.faults(verdict.Found(11, 10, 10, 9), tail=10, acknowledged=10)
    assert twice.startswith("1 positions too many")
    assert len(verdict.faults(verdict.Found(9, 9, 9, 9), tail=10, acknowledged=10)) == 2
    assert len(verdict.faults(verdict.Found(10, 10, 9, 9), tail=10, acknowledged=10)) == 1


def test_two_kills(tmp_path: Path) -> None:
    command = [sys.executable, str(PROGRAM), "--store", (tmp_path / "store").as_uri()]
    options = f"--kills 2 --spread 1 --rate 1000 --seed {SEED}"
    done = subprocess.run(
        [*command, *options.split()], capture_output=True, text=True, check=False, timeout=400
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].startswith("2 kills, ")
