"""docs/spark.md, docs/tables.md: their Python runs, and the table has the options that exist."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from zlog.spark._options import BATCH_OPTIONS, STREAM_OPTIONS

from ..docs.pages import DOCS, blocks

PAGE = DOCS / "spark.md"


@pytest.mark.long
def test_documented_pipeline_prints_documented_counts(
    spark: SparkSession,  # noqa: ARG001  # the page's getOrCreate finds it
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("ZLOG_STORE", (tmp_path / "store").as_uri())
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for block in blocks(PAGE):
        if block.language == "python":
            exec(compile("\n" * block.line + block.text, str(PAGE), "exec"), names)
    text = PAGE.read_text()
    shown = text[text.index("    +---") : text.rindex("---+\n") + 5]
    counts = "".join(line.removeprefix("    ") + "\n" for line in shown.splitlines())
    assert capsys.readouterr().out.count(counts) == 2
    names["log"].close()
    names["store"].close()


def test_tables_page_runs(
    spark: SparkSession,  # noqa: ARG001
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ZLOG_STORE", (tmp_path / "store").as_uri())
    page = DOCS / "tables.md"
    names: dict[str, Any] = {}
    for block in blocks(page):
        if block.language == "python":
            exec(compile("\n" * block.line + block.text, str(page), "exec"), names)
    names["log"].close()
    names["store"].close()


def test_option_table_is_complete() -> None:
    kinds = {}
    for line in PAGE.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 5 and cells[0].startswith("`"):
            kinds[cells[0].strip("`")] = cells[1]
    assert {name for name, kind in kinds.items() if kind in ("both", "batch")} == {*BATCH_OPTIONS}
    assert {name for name, kind in kinds.items() if kind in ("both", "stream")} == {*STREAM_OPTIONS}
