"""zlog bench spark: it runs and leaves nothing behind. How fast it is, is no test's concern."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from ..cli.conftest import Cli


def test_reads_batches_and_writes_beside_those_of_spark(tmp_path: Path) -> None:
    cli = Cli((tmp_path / "store").as_uri())
    cli.environment["SPARK_LOCAL_IP"] = "127.0.0.1"
    words = "bench spark --entries 2K --per-batch 100 --width 2 --seconds 0.1 --json"
    quick = "--master local[2] --spark-conf spark.ui.enabled=false"
    with cli.start(*words.split(), *quick.split(), stderr=subprocess.PIPE) as process:
        out, said = process.communicate(timeout=400)
    assert process.returncode == 0, said.decode()
    assert b"Traceback" not in said  # of a worker whose query was stopped amid a batch
    batch, stream, write = map(json.loads, out.splitlines())
    names = [limit["name"] for limit in batch["limits"]]
    assert names == ["Spark, Parquet", "read_columns", "read_range"]
    assert [limit["compare"] for limit in stream["limits"]] == ["latency"]
    assert [limit["name"] for limit in write["limits"]] == ["Spark, Parquet"]
    for report in (batch, stream, write):
        assert all(limit["ratio"] > 0 for limit in report["limits"])
    assert not (tmp_path / "store").exists()
