"""The standard table: its program runs, and writes a page that says what was measured."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.ceph import REPOSITORY

PROGRAM = REPOSITORY / "tools" / "bench"
ZLOG = str(Path(sys.executable).with_name("zlog"))
PAGE = """# Page

before
<!-- measured: begin (written by `make bench`) -->
old
<!-- measured: end -->
after
"""


def standard(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, PROGRAM, "--zlog", ZLOG, *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_one_run_of_the_table(tmp_path: Path) -> None:
    page, figures = tmp_path / "page.md", tmp_path / "figures.json"
    page.write_text(PAGE)
    words = ["--folder", str(tmp_path / "stores"), "--page", str(page), "--json", str(figures)]
    only = ["--stores", "embedded", "--only", "append --size 1K --batch", "--seconds", "0.2"]
    done = standard(*words, *only)
    assert done.returncode == 0, done.stderr
    assert "zlog bench append --size 1K --batch 1024" in done.stderr

    text = page.read_text()
    assert text.startswith("# Page\n\nbefore\n")
    assert text.endswith("<!-- measured: end -->\nafter\n")
    assert "old" not in text
    (row,) = [line for line in text.splitlines() if "LMDB, entries" in line and "embedded" in line]
    assert "| append, 1 KiB, batches of 1024 |" in row
    assert "| ≥ 0.6 |" in row

    assert str(tmp_path) not in figures.read_text()
    found = json.loads(figures.read_text())
    assert found["machine"]["processor"]
    (outcome,) = found["outcomes"]
    assert outcome["reports"][0]["result"]["entries_per_second"] > 0


def test_a_failure_is_told_and_leaves_the_page_alone(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    words = ["--folder", str(tmp_path / "stores"), "--page", str(page), "--stores", "embedded"]
    done = standard(*words, "--only", "tail", "--seconds", "-1")
    assert done.returncode == 1
    assert "exit code 2" in done.stderr
    assert page.read_text() == PAGE


def test_every_goal_names_something_that_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(REPOSITORY / "tools")
    from standard.goals import RUNS  # type: ignore[import-not-found]

    known = (
        "class reads,class writes,echo,LMDB,LMDB; entries,LMDB; records,one by one,parsed echo,"
        "plain librados,position + write,append; 10000,read; 10000,open; 10000,take over; 10000"
    )
    names = {name.replace(";", ",") for name in known.split(",")}
    assert {goal.limit for run in RUNS for goal in run.goals} <= names
    assert {store for run in RUNS for store in run.stores} == {"memstore", "bluestore", "embedded"}


def test_the_page_in_the_documentation_has_a_place_for_the_tables() -> None:
    text = (REPOSITORY / "docs" / "performance.md").read_text()
    begin, end = "<!-- measured: begin (written by `make bench`) -->", "<!-- measured: end -->"
    assert text.index(begin) < text.index(end)
