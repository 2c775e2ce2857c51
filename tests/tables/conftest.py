"""Tables that logs are copied into, as other programs read them."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from deltalake import DeltaTable
from pyiceberg.catalog import load_catalog
from pyiceberg.table import Table as IcebergTable

import zlog
from zlog.tables.common import Progress
from zlog.tables.parse import parser_of
from zlog.tables.tail import TableTail

if sys.version_info < (3, 11):  # some packages do not exist for it
    collect_ignore_glob = ["test_*.py"]

FORMATS = ("parquet", "delta", "iceberg")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[zlog.Store]:
    with zlog.connect((tmp_path / "store").as_uri()) as opened:
        yield opened


@pytest.fixture
def log(store: zlog.Store) -> Iterator[zlog.Log]:
    with zlog.Log.create(store, "orders", width=2, stripe_unit=2, hole_timeout=0.01) as opened:
        yield opened


class Table:
    """A table in a format."""

    def __init__(self, folder: Path, format_: str) -> None:
        self.path = folder / format_
        self.format = format_

    def tail(self, log: zlog.Log, how: str | None = None, **settings: Any) -> TableTail:
        settings = {"interval": None, "entries_max": 4, "cursor": "copy", **settings}
        parser = parser_of(how, None)
        return TableTail(log, str(self.path), self.format, parser=parser, **settings)

    def copy(self, log: zlog.Log, how: str | None = None, **settings: Any) -> list[Progress]:
        return [*self.tail(log, how, **settings).run()]

    @contextlib.contextmanager
    def iceberg(self) -> Iterator[IcebergTable]:
        catalog = load_catalog("zlog", type="sql", uri=f"sqlite:///{self.path}.catalog.db")
        yield catalog.load_table(("zlog", "iceberg"))
        catalog.close()

    def rows(self) -> pa.Table:
        if self.format == "delta":
            found = DeltaTable(self.path).to_pyarrow_table()
        elif self.format == "iceberg":
            with self.iceberg() as iceberg:
                found = iceberg.scan().to_arrow()
        else:
            found = ds.dataset(self.path, partitioning="hive").to_table()
        return found.sort_by("position")

    def entries(self) -> list[tuple[int, bytes]]:
        rows = self.rows()
        return [*zip(rows["position"].to_pylist(), rows["data"].to_pylist(), strict=True)]


@pytest.fixture(params=FORMATS)
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Table:
    return Table(tmp_path, request.param)


def entries_of(log: zlog.Log) -> list[tuple[int, bytes]]:
    return [(each.position, each.data) for each in log.read_range() if isinstance(each, zlog.Entry)]
