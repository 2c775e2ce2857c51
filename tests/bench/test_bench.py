"""What `make bench` runs: its programs run, and the page says what was measured."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ..support.programs import run_module


def reports(program: str, *words: str, seconds: float = 120) -> list[dict[str, Any]]:
    """Run a program that prints JSON; returns its reports."""
    done = run_module(program, *words, "--json", seconds=seconds)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def limits_of(report: dict[str, Any]) -> list[str]:
    assert all(limit["ratio"] > 0 for limit in report["limits"])
    return [limit["name"] for limit in report["limits"]]


def test_table_run_writes_page_and_figures(tmp_path: Path) -> None:
    written, figures = tmp_path / "page.md", tmp_path / "figures.json"
    words = ["--folder", str(tmp_path / "stores"), "--page", str(written), "--json", str(figures)]
    only = ["--stores", "embedded", "--only", "append --size 1K --batch", "--seconds", "0.2"]
    done = run_module("bench.table", *words, *only)
    assert done.returncode == 0, done.stderr
    assert "bench append --size 1K --batch 1024" in done.stderr

    text = written.read_text()
    (row,) = [line for line in text.splitlines() if "LMDB, entries" in line and "embedded" in line]
    assert "| append, 1 KiB, batches of 1024 |" in row
    assert "| ≥ 0.6 |" in row

    found = json.loads(figures.read_text())
    assert found["machine"]["processor"]
    (outcome,) = found["outcomes"]
    assert outcome["reports"][0]["result"]["entries_per_second"] > 0


def test_growth_compares_two_sizes(tmp_path: Path) -> None:
    words = f"--store {(tmp_path / 'store').as_uri()} growth --small 10 --large 3000 --seconds 0.2"
    found = reports("bench", *words.split())
    assert [each["result"]["name"] for each in found] == [
        "open, 3000",
        "append, 3000",
        "take over, 3000",
    ]
    assert [limits_of(each) for each in found] == [["open, 10"], ["append, 10"], ["take over, 10"]]
    assert not (tmp_path / "store").exists()
