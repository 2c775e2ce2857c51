"""The benchmark of Spark runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from ..bench.test_bench import limits_of, reports


@pytest.mark.long
def test_spark_benchmark_runs(tmp_path: Path) -> None:
    words = f"--store {(tmp_path / 'store').as_uri()} spark --entries 400 --per-batch 100"
    quick = "--logs 4 --width 2 --seconds 0.1 --rounds 1 --master local[2]"
    found = reports("bench", *words.split(), *quick.split(), seconds=400)
    batch, without_data, stream, many, write = found
    assert limits_of(batch) == ["Spark, Parquet", "read_columns", "read_range"]
    assert limits_of(without_data) == limits_of(write) == ["Spark, Parquet"]
    for each in (stream, many):
        assert [limit["compare"] for limit in each["limits"]] == ["latency"]
    assert not (tmp_path / "store").exists()
