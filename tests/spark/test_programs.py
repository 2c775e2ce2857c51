"""The programs that try Spark at length: they run, and what they judge they judge right."""

from __future__ import annotations

from pathlib import Path

import pytest

from ..bench.test_bench import limits_of, reports
from ..support.programs import run_module
from .torture import Found, faults


def test_checker_finds_duplicate_and_missing_rows() -> None:
    assert faults(Found(10, 10, 10, 9), tail=10, acknowledged=10) == []
    (twice,) = faults(Found(11, 10, 10, 9), tail=10, acknowledged=10)
    assert twice.startswith("1 positions too many")
    assert len(faults(Found(9, 9, 9, 9), tail=10, acknowledged=10)) == 2
    assert len(faults(Found(10, 10, 9, 9), tail=10, acknowledged=10)) == 1


@pytest.mark.long
def test_torture_program_survives_one_kill(tmp_path: Path) -> None:
    store = (tmp_path / "store").as_uri()
    words = f"--store {store} --kills 1 --spread 1 --rate 1000 --seed 7"
    done = run_module("tests.spark.torture", *words.split(), seconds=400)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].startswith("1 kills, ")


@pytest.mark.long
def test_spark_benchmark_runs(tmp_path: Path) -> None:
    words = f"--store {(tmp_path / 'store').as_uri()} --entries 400 --per-batch 100 --width 2"
    quick = "--seconds 0.1 --rounds 1 --master local[2]"
    found = reports("bench.spark", *words.split(), *quick.split(), seconds=400)
    batch, stream, write = found
    assert limits_of(batch) == ["Spark, Parquet", "read_columns", "read_range"]
    assert [limit["compare"] for limit in stream["limits"]] == ["latency"]
    assert limits_of(write) == ["Spark, Parquet"]
    assert not (tmp_path / "store").exists()
