"""Columns as tables of Arrow: the entries of a range read, in memory that outlives the log."""

from __future__ import annotations

import gc
import signal
import subprocess
import sys
import weakref
from collections.abc import Iterator

import pytest

import zlog
from zlog._native.arrow import stream_of

from .test_columns import mixed

duckdb, pa, pl = map(pytest.importorskip, ("duckdb", "pyarrow", "polars"))


@pytest.mark.parametrize("width", [1, 3])
@pytest.mark.parametrize("window_bytes", [None, 20_000])
def test_stream_has_the_entries(memory: zlog.Store, width: int, window_bytes: int | None) -> None:
    """With gaps, empty entries, none or several tags, and in one or several windows."""
    log = mixed(memory, width)
    log.append_many([b"", b"x" * 5000] * 15, tags_each=[[], ["eu"], ["größer", "x" * 128]] * 10)
    columns = log.read_columns(20, window_bytes=window_bytes, hole_timeout=None, with_tags=True)
    table = pa.table(columns)
    table.validate(full=True)
    assert table.schema == pa.schema(
        {
            "position": pa.int64(),
            "timestamp": pa.timestamp("us", "UTC"),
            "data": pa.binary(),
            "tags": pa.list_(pa.string()),
        }
    )
    expected = [
        {"position": e.position, "timestamp": e.timestamp, "data": e.data, "tags": [*e.tags]}
        for e in log.read_range(20, hole_timeout=None)
        if isinstance(e, zlog.Entry)
    ]
    assert table.to_pylist() == pl.DataFrame(columns).to_dicts() == expected
    found = duckdb.sql("select position, data from columns order by 1").fetchall()
    assert found == [(row["position"], row["data"]) for row in expected]
    assert pa.concat_tables(map(pa.table, columns)).equals(table)
    plain = pa.table(log.read_columns(20, hole_timeout=None))
    assert plain.equals(table.drop_columns(["tags"]))


def test_each_stream_reads_the_range_again(memory: zlog.Store) -> None:
    log = zlog.Log.create(memory, "orders")
    columns = log.read_columns()
    assert pa.table(columns).num_rows == len(pl.DataFrame(columns)) == 0
    log.append_many([b"x"] * 5)
    log.trim_to(1)
    next(columns)
    with duckdb.connect() as connection:
        connection.register("orders", columns)
        query = "select count(*) from orders a join orders b using (position)"
        assert connection.sql(query).fetchall() == [(4,)]
        log.append(b"y")
        assert connection.sql(query).fetchall() == [(5,)]


def test_data_is_not_copied_and_outlives_its_log(memory: zlog.Store) -> None:
    log = zlog.Log.create(memory, "orders", width=1)
    entries = [b"%d" % i * 5_000 for i in range(8)]
    log.append_many(entries, tags=["t"])
    columns = log.read_columns(with_tags=True)
    window = next(columns)
    table, frame = pa.table(window), pl.DataFrame(window)
    data = table["data"].chunk(0)
    assert data.buffers()[2].address == pa.py_buffer(window.data).address
    for each in (window.positions, window.timestamps, window.offsets, window.data):
        each.release()
    log.close()
    memory.close()
    del log, columns, window
    gc.collect()
    assert data.to_pylist() == frame["data"].to_list() == entries
    assert table["position"].to_pylist() == [*range(8)]
    assert table["tags"].to_pylist() == [["t"]] * 8


def test_error_ends_the_stream_with_its_message(memory: zlog.Store) -> None:
    log = zlog.Log.create(memory, "orders")
    log.append_many([b"x" * 5000] * 2000)
    columns = log.read_columns(window_bytes=1)
    reader = pa.RecordBatchReader.from_stream(columns)
    assert reader.read_next_batch().num_rows > 0
    log.close()
    for _ in range(2):  # an error is not followed by the end
        with pytest.raises(OSError, match="StoreUnavailable: the log 'orders' is closed"):
            reader.read_all()
    with pytest.raises(pl.exceptions.ComputeError, match="the log 'orders' is closed"):
        pl.DataFrame(columns)


def test_error_releases_an_unfinished_batch() -> None:
    number = memoryview(bytes(8)).cast("q")
    offsets = memoryview(bytes(8)).cast("i")
    window = zlog.Columns(number, number, offsets, memoryview(b""), [], [("\ud800",)])
    with pytest.raises(OSError, match="UnicodeEncodeError: 'utf-8' codec"):
        pa.table(window)


class Stream:
    """What hands a capsule to a library."""

    def __init__(self, windows: Iterator[zlog.Columns]) -> None:
        self.capsule = stream_of(windows, False)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.capsule


def test_release_drops_the_reader_and_keeps_batches(memory: zlog.Store) -> None:
    log = zlog.Log.create(memory, "orders")
    log.append_many([b"x" * 5000] * 2000)
    windows = (window for window in log.read_columns(window_bytes=1))
    alive = weakref.ref(windows)
    unused = Stream(windows)
    stream = Stream(windows)
    del windows, unused
    reader = pa.RecordBatchReader.from_stream(stream)
    batch = reader.read_next_batch()
    del stream
    assert alive() is not None
    del reader
    assert alive() is None
    assert {*batch["data"].to_pylist()} == {b"x" * 5000}


def test_interrupt_is_raised_after_the_stream_failed() -> None:
    def windows() -> Iterator[zlog.Columns]:
        signal.raise_signal(signal.SIGINT)
        yield from ()

    def read() -> None:
        with pytest.raises(OSError, match="KeyboardInterrupt"):
            pa.RecordBatchReader.from_stream(Stream(windows())).read_all()

    with pytest.raises(KeyboardInterrupt):  # when Python handles signals next
        read()


def test_polars_reads_without_pyarrow() -> None:
    code = """if True:
        import sys
        sys.modules["pyarrow"] = None  # importing it fails
        import polars, zlog
        log = zlog.Log.create(zlog.connect("mem://"), "orders")
        log.append_many([b"a", b"", b"b"], tags=["t"])
        print(polars.DataFrame(log.read_columns(with_tags=True)).drop("timestamp").rows())
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[(0, b'a', ['t']), (1, b'', ['t']), (2, b'b', ['t'])]\n"
