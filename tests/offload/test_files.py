"""Files that are missing, damaged or out of reach, and trims of the positions in them."""

from __future__ import annotations

import multiprocessing
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import zlog
from zlog import GapKind
from zlog._layout import offloaded
from zlog.errors import ReentrantCall
from zlog.offload import files
from zlog.offload._location import Location

from ..client.transfers import varied
from .conftest import forget
from .offloading import files_of, offload, seen


def make(store: zlog.Store, root: Path, name: str = "orders") -> tuple[zlog.Log, Path]:
    """Make a log with 10 positions in a file, one of them filled, and an entry above them."""
    log = zlog.Log.create(store, name, width=2, stripe_unit=1, hole_timeout=0.0)
    log.append_many([b"%d" % number for number in range(5)])
    log.fill(log.reserve()[0])
    log.append_many([b"%d" % number for number in range(6, 10)], tags=["a"])
    log.roll()
    log.append(b"10")
    return log, offload(log, root)[0]


@pytest.fixture
def log(memory: zlog.Store, tmp_path: Path) -> Iterator[zlog.Log]:
    with make(memory, tmp_path)[0] as opened:
        yield opened


@pytest.fixture
def file(log: zlog.Log, tmp_path: Path) -> Path:
    return files_of(log, tmp_path)[0]


@pytest.mark.parametrize("store_url", ["embedded", "ceph-bluestore"], indirect=True)
def test_life_of_a_log(store: zlog.Store, tmp_path: Path) -> None:
    with varied(store) as log, zlog.Log.open(store, "orders") as other:
        log.roll()
        before = seen(log)
        assert len(offload(log, tmp_path)) == len(log.stripes()) - 1
        assert seen(log) == seen(other) == before
        log.trim_to(log.tail(), past_cursors=True)
        assert files_of(log, tmp_path) == []
        other.append(b"more")
        other.roll()
        assert len(offload(other, tmp_path)) == 1
        zlog.Log.remove(store, "orders")
        assert files_of(log, tmp_path) == []


def flip(file: Path, at: int, bits: int = 255) -> None:
    content = bytearray(file.read_bytes())
    content[at] ^= bits
    file.write_bytes(content)


def end_of_page(file: Path) -> int:
    """Return where the first page of data ends."""
    column = pq.read_metadata(file).row_group(0).column(2)
    return int(column.data_page_offset + column.total_compressed_size)


DAMAGES: dict[str, Callable[[zlog.Log, Path], object]] = {
    "deleted": lambda _, file: file.unlink(),
    "truncated": lambda _, file: file.write_bytes(file.read_bytes()[:500]),
    "swapped": lambda log, file: make(log.store, file.parent.parent, "b")[1].replace(file),
    "page": lambda _, file: flip(file, end_of_page(file) - 1),
    "footer": lambda _, file: flip(file, -20),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_damage_is_a_loss(
    log: zlog.Log, file: Path, damage: Callable[[zlog.Log, Path], object]
) -> None:
    before, sound = list(log.read_range()), file.read_bytes()
    damage(log, file)
    forget()
    lost = next(iter(log.read_range()))
    assert isinstance(lost, zlog.Gap)
    assert lost.kind is GapKind.LOST
    assert file.name in str(lost.detail)
    gaps = [gap for columns in log.read_columns(0) for gap in columns.gaps]
    assert gaps[0].kind is GapKind.LOST
    assert log.read(10).data == b"10"
    assert log.append(b"11") == 11
    assert any(each.kind is zlog.FindingKind.LOST for each in log.check())
    file.write_bytes(sound)
    forget()
    assert list(log.read_range(0, 11)) == before


def test_no_flipped_bit_changes_an_entry(log: zlog.Log, file: Path) -> None:
    before = {p: item for item in log.read_range() for p in range(item.position, item.end)}
    footer, choose = int.from_bytes(file.read_bytes()[-8:-4], "little"), random.Random(1)
    for _ in range(300):
        at, bit = -1 - choose.randrange(footer + 8), 1 << choose.randrange(8)
        flip(file, at, bit)
        forget()
        for item in log.read_range():
            lost = isinstance(item, zlog.Gap) and item.kind is GapKind.LOST
            assert lost or item == before[item.position], (at, bit)
        flip(file, at, bit)


def test_a_missing_folder_is_not_a_loss(log: zlog.Log, file: Path, tmp_path: Path) -> None:
    file.parent.rename(tmp_path / "unmounted")
    forget()
    with pytest.raises(zlog.StoreTimeout, match="is its disk mounted"):
        log.read(3, timeout=0.2)
    with pytest.raises(zlog.StoreUnavailable, match="is its disk mounted"):
        offload(log, tmp_path)
    assert not file.parent.exists()
    threading.Timer(0.2, (tmp_path / "unmounted").rename, [file.parent]).start()
    assert log.read(3).data == b"3"


def test_reads_are_repeated_after_errors(log: zlog.Log, monkeypatch: pytest.MonkeyPatch) -> None:
    errors: list[OSError] = [PermissionError("not now"), ConnectionError(), OSError()]
    read = files.read
    monkeypatch.setattr(files, "read", lambda *args: fail() if errors else read(*args))

    def fail() -> None:
        raise errors.pop()

    forget()
    assert log.read(3).data == b"3"
    errors += [OSError("not now")] * 100
    with pytest.raises(zlog.StoreTimeout, match="not now"):
        log.read(9, timeout=0.2)


def test_ctrl_c_interrupts_a_read(log: zlog.Log, monkeypatch: pytest.MonkeyPatch) -> None:
    read, go_on = files.read, threading.Event()
    monkeypatch.setattr(files, "read", lambda *args: go_on.wait(60) and read(*args))
    forget()
    threading.Timer(0.2, signal.raise_signal, [signal.SIGINT]).start()
    with pytest.raises(KeyboardInterrupt):
        log.read(3)
    go_on.set()
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):  # noqa: PT012
        patch.setattr(threading.Thread, "start", lambda _: signal.raise_signal(signal.SIGINT))
        log.read(9)
    assert [log.read(position, timeout=20).data for position in (3, 9)] == [b"3", b"9"]


def test_signal_handler_does_not_wait_for_its_own_thread(log: zlog.Log) -> None:
    with offloaded._cache._lock, pytest.raises(ReentrantCall):
        log.read(3)


def test_forked_child_reads_files(tmp_path: Path) -> None:
    """Another thread of its parent is using the cache."""
    held, forked = threading.Event(), threading.Event()

    def hold() -> None:
        with offloaded._cache._lock:
            held.set()
            forked.wait(60)

    def read() -> None:
        with zlog.connect(tmp_path / "store") as own, zlog.Log.open(own, "orders") as opened:
            assert [opened.read(position).data for position in (3, 9)] == [b"3", b"9"]

    with zlog.connect(tmp_path / "store") as store:
        assert make(store, tmp_path)[0].read(3).data == b"3"
        threading.Thread(target=hold).start()
        held.wait()
        child = multiprocessing.get_context("fork").Process(target=read)
        child.start()
        forked.set()
        child.join(60)
        assert child.exitcode == 0


_WITHOUT_PYARROW = """
import sys
sys.modules["pyarrow"] = None
import zlog
with zlog.connect(sys.argv[1]) as store, zlog.Log.open(store, "orders") as log:
    for call in lambda: log.read(3), lambda: zlog.Log.remove(store, "orders"):
        try:
            call()
        except zlog.StoreUnavailable as error:
            assert "the extra `offload`" in str(error) and not error.retryable, error
    log.trim_to(10)
    assert log.read(log.append(b"11")).data == b"11"
"""


def test_client_without_pyarrow(tmp_path: Path) -> None:
    """It leaves the file to another client."""
    with zlog.connect(tmp_path / "store") as store:
        log, file = make(store, tmp_path)
        command = [sys.executable, "-c", _WITHOUT_PYARROW, str(tmp_path / "store")]
        subprocess.run(command, check=True, timeout=60)
        assert file.exists()
        log.trim_to(10)
        assert not file.exists()


def test_trims(log: zlog.Log, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = list(log.read_range())
    with pytest.raises(zlog.ZlogError, match="cannot trim an offloaded stripe"):
        log.trim(3)
    assert list(log.read_range()) == before
    log.trim_to(3)
    assert [item.position for item in log.read_range(2, 5)] == [2, 3, 4]

    def refuse(_: Location) -> None:
        raise PermissionError("not allowed")

    with monkeypatch.context() as patch:
        patch.setattr(Location, "remove", refuse)
        log.trim_to(10)
    assert file.exists()
    log.trim_to(10)
    assert not file.exists()


def test_removed_log_leaves_no_folder(log: zlog.Log, file: Path, tmp_path: Path) -> None:
    (file.parent / "_incoming" / "of-a-killed-process.parquet").touch()
    zlog.Log.remove(log.store, log.name)
    assert [*tmp_path.iterdir()] == []


def test_long_trimmed_range_is_read(memory: zlog.Store, tmp_path: Path) -> None:
    """One request to an object names at most 65,536 positions."""
    with zlog.Log.create(memory, "trimmed", width=1) as log:
        log.append_many([b""] * 70_000)
        log.trim_to(69_998)
        log.roll()
        offload(log, tmp_path)
        assert [each.position for each in log.read_range(69_998)] == [69_998, 69_999]
