"""zlog table tail: each position is in the table once, whatever happens to the process."""

from __future__ import annotations

import inspect
import json
import signal
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from pyiceberg.catalog import load_catalog
from pyiceberg.catalog.sql import SqlCatalog

import zlog
from zlog.tables import delta, parquet, tail
from zlog.tables.sink import TableConflict, TableError, WrongTable
from zlog.tables.tail import TableTail

from ..cli.conftest import Cli, Inside
from ..client import planted
from ..docs.pages import DOCS, blocks
from ..support.logs import leave_hole
from .conftest import FORMATS, Table, entries_of

COMMITTED = ("delta", "iceberg")


def test_table_has_entries_of_all_stripes(log: zlog.Log, table: Table) -> None:
    log.append_many([b"%d" % number for number in range(10)])
    leave_hole(log, 3)
    log.append(b"after the hole")
    log.reconfigure(width=3)
    log.append_many([b"x" * 100] * 9)
    batches = table.copy(log, entries_max=7)
    assert [each.logs["orders"] for each in batches] == [
        *((0, 7, 23), (7, 14, 23), (14, 21, 23), (21, 23, 23)),
    ]
    assert sum(each.rows for each in batches) == 20
    assert table.entries() == entries_of(log)
    found = table.rows().select(["stripe", "timestamp", "date"]).slice(19).to_pylist()
    when = log.read(22).timestamp
    date = str(when.date()) if table.format == "parquet" else when.date()
    assert found == [{"stripe": 22 // 2 % 3, "timestamp": when, "date": date}]
    assert [each.position for each in log.cursors()] == [23]
    assert table.copy(log) == []


def test_batch_ends_at_limit_of_bytes_or_stop(
    log: zlog.Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tail, "_WINDOW_BYTES", 4096)
    table = Table(tmp_path, "parquet")
    log.append_many([b"x" * 1000] * 40)
    leave_hole(log, 2)
    log.append_many([b"x" * 1000] * 40)
    copying = table.tail(log, entries_max=100, bytes_max=20_000)
    ends = []
    for progress in copying.run():
        ends.append(progress.logs["orders"].position)
        if len(ends) == 2:
            copying.stop()
    assert len(ends) == 2
    assert table.entries() == [each for each in entries_of(log) if each[0] < ends[-1]]
    table.copy(log, entries_max=100)
    assert table.entries() == entries_of(log)


class Died(BaseException):
    """The process would be gone."""


class Faults:
    """Lets a process die before or after the call of a step, at one of all such points."""

    def __init__(self) -> None:
        self.left = -1

    def at(self, patch: pytest.MonkeyPatch, owner: Any, name: str) -> None:
        step = getattr(owner, name)

        def with_faults(*args: Any, **others: Any) -> Any:
            self.point()
            result = step(*args, **others)
            self.point()
            return result

        static = isinstance(inspect.getattr_static(owner, name), (classmethod, staticmethod))
        patch.setattr(owner, name, staticmethod(with_faults) if static else with_faults)

    def point(self) -> None:
        self.left -= 1
        if self.left == 0:
            raise Died


STEPS = {
    "parquet": [
        *((parquet, "_sync"), (pq, "write_table"), (Path, "rename"), (Path, "replace")),
        *((Path, "mkdir"), (Path, "write_text")),
    ],
    "delta": [(delta, "write_deltalake"), (DeltaTable, "create")],
    "iceberg": [
        *((SqlCatalog, "commit_table"), (SqlCatalog, "create_namespace")),
        (SqlCatalog, "_write_metadata"),
    ],
}


def test_copy_resumes_after_death_at_each_step(
    log: zlog.Log, tmp_path: Path, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.append_many([b"%d" % number for number in range(6)])
    expected = entries_of(log)
    place = log.read(0).timestamp.date().isoformat()
    number, died = 0, True
    while died:
        number += 1
        here = Table(tmp_path / str(number), table.format)
        faults = Faults()
        with monkeypatch.context() as patch:
            for owner, name in (*STEPS[table.format], (zlog.Cursor, "commit")):
                faults.at(patch, owner, name)
            faults.left = number
            try:
                here.copy(log, partition_by=["stripe", "date"])
                died = False
            except Died:
                if table.format == "parquet":  # readers see no position twice, and no part of files
                    files = [*here.path.rglob(f"date={place}/*.parquet")]
                    seen = [row for file in files for row in pq.read_table(file)["position"]]
                    assert len(seen) == len({*seen})
        here.copy(log, partition_by=["stripe", "date"], entries_max=1)  # batches end elsewhere
        assert here.entries() == expected
        assert not [*here.path.glob("_zlog/*.tmp")]
        assert [each.position for each in log.cursors()] == [6]
    assert number > 8


def test_second_process_adds_nothing_twice(log: zlog.Log, table: Table) -> None:
    log.append_many([b"x"] * 40)
    first, second = table.tail(log).run(), table.tail(log).run()
    if table.format == "iceberg":  # repeats a commit if the table says so
        next(created := table.tail(log, entries_max=1).run())
        created.close()
        again = {"commit.retry.num-retries": "4"}
        with table.iceberg() as found:
            found.transaction().set_properties(again).commit_transaction()
    next(first)
    if table.format == "parquet":
        with pytest.raises(TableConflict, match="another process copies into"):
            next(second)
        next(first)
        first.close()
    else:
        next(second)
        with pytest.raises(TableConflict, match=r"is at position \d, not \d"):
            next(first)
        assert len([*second]) == 8
    table.copy(log)
    assert table.entries() == entries_of(log)


@pytest.mark.parametrize("format_", COMMITTED)
def test_maintenance_does_not_disturb_copy(log: zlog.Log, tmp_path: Path, format_: str) -> None:
    table = Table(tmp_path, format_)
    log.append_many([b"%d" % number for number in range(20)])
    copying = table.tail(log).run()
    next(copying)
    next(copying)
    if format_ == "delta":
        DeltaTable(table.path).optimize.compact()
    else:
        with table.iceberg() as found:
            found.delete("position = 0")
    assert [each.logs["orders"].position for each in copying] == [12, 16, 20]
    assert table.entries() == entries_of(log)[format_ == "iceberg" :]


@pytest.mark.parametrize("format_", COMMITTED)
def test_many_commits(log: zlog.Log, tmp_path: Path, format_: str) -> None:
    """Delta writes a checkpoint, and Iceberg merges manifests and forgets snapshots."""
    table = Table(tmp_path, format_)
    count = 120 if format_ == "delta" else 20
    log.append_many([b"%d" % number for number in range(count)])
    copying = table.tail(log, entries_max=1).run()
    next(copying)
    if format_ == "iceberg":
        limits = {"commit.manifest.min-count-to-merge": "5"}
        limits |= {"history.expire.max-snapshot-age-ms": "1"}
        with table.iceberg() as found:
            found.transaction().set_properties(limits).commit_transaction()
    assert len([*copying]) == count - 1
    if format_ == "iceberg":
        with table.iceberg() as found:
            assert len(found.snapshots()) < count / 2
            assert len(found.inspect.manifests()) < 5
    log.append(b"last")
    assert len(table.copy(log)) == 1
    assert table.entries() == entries_of(log)


def test_table_of_other_origin_is_refused(store: zlog.Store, log: zlog.Log, table: Table) -> None:
    log.append_many([b"x"] * 5)
    table.copy(log, tags=["a"])
    table.copy(log, tags=["a"])
    for how, settings, complaint in (
        (None, {}, r"with the tags \[\"any\", \"a\"\], not null"),
        ("(?P<word>x)", {"tags": ["a"]}, "with the columns .*word string"),
        (None, {"tags": ["a"], "partition_by": ["date", "stripe"]}, "with the partitions"),
    ):
        with pytest.raises(WrongTable, match=complaint):
            table.copy(log, how, **settings)
    before = log.view.log_id
    log.close()
    zlog.Log.remove(store, "orders")
    with zlog.Log.create(store, "orders") as again:
        with pytest.raises(WrongTable, match=rf"of log 'orders' with the id {before:016x}, but"):
            table.copy(again, tags=["a"])
        assert again.cursors() == []


def test_table_of_other_program_is_refused(log: zlog.Log, table: Table) -> None:
    rows = pa.table({"position": [1]})
    if table.format == "parquet":
        table.path.mkdir()
        pq.write_table(rows, table.path / "part.parquet")
    elif table.format == "delta":
        write_deltalake(table.path, rows)
    else:
        catalog = load_catalog("zlog", type="sql", uri=f"sqlite:///{table.path}.catalog.db")
        catalog.create_namespace("zlog")
        catalog.create_table(("zlog", "iceberg"), rows.schema, str(table.path)).append(rows)
        catalog.close()
    with pytest.raises(WrongTable, match="was not made by"):
        table.copy(log)
    assert table.rows()["position"].to_pylist() == [1]
    assert log.cursors() == []


def test_failed_commit_is_table_error(
    log: zlog.Log, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.append(b"x")
    table.copy(log)
    log.append(b"y")

    def fail(*_: object, **__: object) -> None:
        raise OSError("no space")

    with monkeypatch.context() as patch:
        patch.setattr(*STEPS[table.format][0], fail)
        with pytest.raises(TableError, match="OSError: no space"):
            table.copy(log)
    table.copy(log)
    assert table.entries() == entries_of(log)


def test_no_cursor_remains_without_a_table(
    log: zlog.Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("zlog.tables.parquet.ParquetSink.create", None)
    with pytest.raises(TableError):
        Table(tmp_path, "parquet").copy(log)
    assert log.cursors() == []


def test_lost_entries_end_copy_unless_allowed(memory: zlog.Store, tmp_path: Path) -> None:
    table = Table(tmp_path, "parquet")
    with zlog.Log.create(memory, "orders", stripe_unit=1) as log:
        for number in range(4):
            log.append(b"%d" % number)
        planted.make_lost(log, 2)
        with pytest.raises(zlog.CorruptEntry, match="lost") as caught:
            table.copy(log)
        assert "--allow-data-loss" in caught.value.hint
        table.copy(log, allow_data_loss=True)
        assert [position for position, _ in table.entries()] == [0, 1, 3]


def test_trimmed_entries_end_copy_unless_allowed(
    log: zlog.Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = Table(tmp_path, "parquet")
    log.append_many([b"x"] * 30)
    table.copy(log, start=lambda: 2, entries_max=40)
    log.append_many([b"x"] * 30)
    with pytest.raises(zlog.HeldByCursor):
        log.trim_to(40)
    log.trim_to(40, past_cursors=True)
    with pytest.raises(zlog.Invalidated, match=r"positions \[30, 40\) were trimmed"):
        table.copy(log)
    earliest = [30, 40]  # the trim comes after the first look
    monkeypatch.setattr(zlog.Log, "earliest", lambda _: earliest.pop(0) if earliest else 40)
    with pytest.raises(zlog.Invalidated, match=r"positions \[30, 40\) were trimmed"):
        table.copy(log, cursor=None)
    assert len(table.entries()) == 28
    table.copy(log, allow_data_loss=True)
    assert [position for position, _ in table.entries()] == [*range(2, 30), *range(40, 60)]


def test_copy_outlasts_outage(
    log: zlog.Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, stripes = Table(tmp_path, "parquet"), zlog.Log.stripes
    failures = iter([zlog.StoreTimeout("slow"), zlog.StoreUnavailable("down", retryable=True)])

    def fail_twice(self: zlog.Log, *args: Any) -> Any:
        for failure in failures:
            raise failure
        return stripes(self, *args)

    monkeypatch.setattr(tail, "_RETRY_SECONDS", 0.0)
    monkeypatch.setattr(zlog.Log, "stripes", fail_twice)
    log.append_many([b"x"] * 4)
    table.copy(log)
    assert table.entries() == entries_of(log)


def test_position_beyond_tail_is_refused(log: zlog.Log, tmp_path: Path) -> None:
    with pytest.raises(WrongTable, match="begins at position 5, but the tail of log 'orders' is 0"):
        Table(tmp_path, "parquet").copy(log, start=lambda: 5)


def test_only_entries_with_tags_are_copied(log: zlog.Log, table: Table) -> None:
    for number in range(12):
        log.append(b"%d" % number, tags=["a"] if number == 7 else [])
    assert [each.rows for each in table.copy(log, tags=["a"])] == [0, 1, 0]
    assert table.entries() == [(7, b"7")]


def test_function_of_file_makes_columns(log: zlog.Log, table: Table, tmp_path: Path) -> None:
    file = tmp_path / "own.py"
    file.write_text(
        "import pyarrow.compute as pc\n"
        "SUFFIX = b'!'\n"
        "def parse(entries):\n"
        "    kept = entries.filter(pc.not_equal(entries['data'], b'b'))\n"
        "    said = pc.binary_join_element_wise(kept['data'], SUFFIX, b'')\n"
        "    return kept.append_column('said', said)\n"
    )
    log.append_many([b"a", b"b", b"c"])
    (progress,) = table.copy(log, str(file), drop_raw=True)
    assert (progress.rows, progress.logs["orders"].position) == (2, 3)
    rows = table.rows().drop_columns(["timestamp", "date"]).to_pylist()
    assert rows == [
        {"position": 0, "stripe": 0, "said": b"a!"},
        {"position": 2, "stripe": 1, "said": b"c!"},
    ]


@pytest.mark.parametrize(
    ("code", "complaint"),
    [
        ("def parse(entries): return 1 / len(entries)", "ZeroDivisionError"),
        ("def parse(entries): return len(entries)", "must return a pyarrow.Table, not 0"),
        ("parse = 1", "has no function"),
        ("import nosuch", "ModuleNotFoundError"),
    ],
)
def test_wrong_function_is_reported(
    log: zlog.Log, tmp_path: Path, code: str, complaint: str
) -> None:
    (tmp_path / "own.py").write_text(code)
    with pytest.raises((ValueError, zlog.ZlogError), match=complaint):
        Table(tmp_path, "delta").copy(log, str(tmp_path / "own.py"))
    assert not (tmp_path / "delta").exists()


@pytest.mark.parametrize(
    ("words", "code", "complaint"),
    [
        (["nosuchlog", "--to", "x"], 3, "nosuchlog"),
        (["orders", "--to", "x", "--parse", "(a)"], 2, "has no named group"),
        (["orders", "--to", "x", "--parse", "(?P<Data>a)"], 2, "two columns 'Data'"),
        (["orders", "--to", "x", "--parse", "(?P<a>x)", "--schema", "b int"], 2, "no group b"),
        (["orders", "--to", "x", "--parse", "json", "--schema", "a foo"], 2, "'a foo' is not"),
        (["orders", "--to", "x", "--parse", "json", "--schema", "a array"], 2, "'a array' is not"),
        (["orders", "--to", "x", "--parse", "json", "--schema", "a int,"], 2, "'' is not"),
        (["orders", "--to", "x", "--parse", "json"], 2, "--schema"),
        (["orders", "--to", "x", "--partition-by", "level"], 2, "cannot partition by level"),
        (["orders", "--to", "x", "--hole-timeout", "never"], 2, "--hole-timeout"),
        (["orders", "--to", "x", "--catalog", "c"], 2, "--catalog needs"),
        (["orders", "--to", "x", "--match", "all"], 2, "--match needs --tag"),
        (["orders", "--to", "x", "--max-entries", "0"], 2, "at least 1 entry"),
        (["orders", "--to", "s3://bucket/x", "--format", "iceberg"], 1, "--catalog"),
        (["orders", "--to", "a.b", "--format", "iceberg", "--catalog", "nosuch"], 1, "NOSUCH"),
        (["orders", "--to", "s3://bucket/x"], 1, "a local folder"),
    ],
)
def test_bad_input_is_refused(log: zlog.Log, words: list[str], code: int, complaint: str) -> None:
    result = Inside(log.store.url)("table", "tail", *words)
    assert (result.code, result.out) == (code, b"")
    assert complaint in result.err
    assert not Path("x").exists()


def test_missing_package_is_reported(log: zlog.Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "zlog.tables.delta")
    monkeypatch.setitem(sys.modules, "deltalake", None)
    result = Inside(log.store.url)("table", "tail", "orders", "--to", "x", "--format", "delta")
    assert result.code == 1
    assert "pip install 'deltalake>=" in result.err


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_ends_command_after_commit(
    log: zlog.Log, tmp_path: Path, number: signal.Signals
) -> None:
    table = Table(tmp_path, "parquet")
    log.append_many([b"x"] * 50)
    words = ("table", "tail", "orders", "--to", str(table.path), "--json", "--trigger", "10m")
    with Cli(log.store.url).start(*words) as process:
        first = json.loads(process.stdout.readline())
        process.send_signal(number)
        assert (process.wait(60), process.stdout.read(), process.stderr.read()) == (0, b"", b"")
    assert first | {"seconds": 0} == {
        "batch": 0,
        "rows": 50,
        "start": 0,
        "position": 50,
        "tail": 50,
        "seconds": 0,
        "lag": 0,
    }
    assert table.entries() == entries_of(log)
    ((name, position, *_),) = log.cursors()
    assert (name[:14], position) == ("table-parquet-", 50)


def test_documented_reads_return_tables(
    log: zlog.Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.append_many([b"x"] * 3)
    monkeypatch.chdir(tmp_path)
    for path, format_ in zip(("nova", "nova-delta", "nova-iceberg"), FORMATS, strict=True):
        job = TableTail(log, str(tmp_path / path), format_, interval=None)
        assert sum(each.rows for each in job.run()) == 3
    (block,) = (each for each in blocks(DOCS / "table-tail.md") if each.language == "python")
    names: dict[str, Any] = {}
    for line in block.text.splitlines():
        exec(line, names)
        assert len(names.pop("rows", "abc")) == 3
    names["catalog"].close()
