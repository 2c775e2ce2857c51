"""tools/steady: a run that is bounded passes, one that grows does not, and it runs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
PROGRAM = REPOSITORY / "tools" / "steady"


@pytest.fixture
def verdict(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(REPOSITORY / "tools")
    from steadiness import verdict

    return verdict


def samples(verdict: Any, *megabytes: int) -> list[Any]:
    return [verdict.Taken(30, 2000, each << 20, 64 << 20) for each in megabytes]


def test_what_grows_only_at_first_is_bounded(verdict: Any) -> None:
    assert verdict.unbounded(samples(verdict, 0, 40, 80, 100, 90, 110, 120, 80, 100)) == []


def test_what_goes_on_growing_is_not(verdict: Any) -> None:
    (told,) = verdict.unbounded(samples(verdict, 0, 40, 80, 100, 120, 140, 160, 200, 240))
    assert told.startswith("bytes grew from 146,800,640 to 251,658,240")
    assert verdict.unbounded(samples(verdict, 1, 2)) == ["too few samples to tell"]


def test_a_short_run(tmp_path: Path) -> None:
    """Some seconds: what was appended goes through the log many times over, and stays small."""
    figures = tmp_path / "samples.json"
    command = [sys.executable, str(PROGRAM), "--store", (tmp_path / "store").as_uri()]
    options = "--minutes 0.25 --interval 1 --keep 4 --rate 4 --stripe-bytes 500000"
    command += [*options.split(), "--json", str(figures)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    last = json.loads(figures.read_text().splitlines()[-1])
    assert last["appended"] > 20 << 20
    assert last["held"] < 16 << 20
