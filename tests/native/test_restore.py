"""A `data.mdb` that was put back from a backup: noticed by all who use the store, and restored."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import zlog
from zlog import StoreUnavailable
from zlog.store import restore

from .support import FILES, finish, run, start

BEFORE, AFTER = [b"0", b"1", b"2"], [b"lost"] * 50
GONE = "restored from a backup, or overwritten"

APPEND = """
    import sys, zlog
    with zlog.connect(sys.argv[1] + "/") as store, zlog.Log.open(store, "orders") as log:
        print(log.append(b"3"))
"""

APPEND_WHEN_TOLD = """
    import sys, zlog
    with zlog.connect(sys.argv[1] + "/") as store, zlog.Log.open(store, "orders") as log:
        print(log.append(b"lost"), flush=True)
        sys.stdin.readline()
        try:
            log.append(b"nowhere")
        except zlog.StoreUnavailable as error:
            print(error, error.hint)
"""


@pytest.fixture
def backup(tmp_path: Path) -> Path:
    """The backup of a store, whose log then got more entries, and nine more epochs."""
    with zlog.connect(tmp_path / "store") as store:
        with zlog.Log.create(store, "orders") as log:
            log.append_many(BEFORE)
        shutil.copy(tmp_path / "store" / "data.mdb", tmp_path / "backup")
        with zlog.Log.open(store, "orders") as log:
            for width in range(2, 11):
                log.reconfigure(width=width)
            log.append_many(AFTER)
    return tmp_path / "backup"


@pytest.fixture
def folder(backup: Path) -> Path:
    return backup.with_name("store")


def contents(folder: Path) -> list[object]:
    with zlog.connect(folder) as store, zlog.Log.open(store, "orders") as log:
        items = list(log.read_range(0))
        assert list(log.check()) == []
        return [item.data if isinstance(item, zlog.Entry) else item for item in items]


@pytest.mark.parametrize("how", ["in place", "as another file"])
def test_store_older_than_its_sequencer_is_refused(folder: Path, backup: Path, how: str) -> None:
    if how == "in place":
        shutil.copyfile(backup, folder / "data.mdb")
    else:
        backup.rename(folder / "data.mdb")
    with pytest.raises(StoreUnavailable, match=GONE) as caught:
        zlog.connect(folder)
    assert "`zlog store restore`" in caught.value.hint
    assert not caught.value.retryable
    restore(folder)
    assert contents(folder) == BEFORE


def test_database_of_another_store_is_refused(folder: Path, tmp_path: Path) -> None:
    with zlog.connect(tmp_path / "other") as store:
        zlog.Log.create(store, "orders").append_many(AFTER)
        for _ in range(100):
            zlog.Log.open(store, "orders").append(b"later than the first store's")
    shutil.copy(tmp_path / "other" / "data.mdb", folder / "data.mdb")
    with pytest.raises(StoreUnavailable, match=GONE):
        zlog.connect(folder)


def test_database_replaced_under_a_process_is_refused(folder: Path, backup: Path) -> None:
    """The file is overwritten in place; this process, another one, and one that comes then."""
    with zlog.connect(folder) as store, zlog.Log.open(store, "orders") as log:
        other = start(APPEND_WHEN_TOLD, folder)
        assert other.stdout is not None
        assert other.stdout.readline()
        with (folder / "data.mdb").open("rb+") as file:  # without truncating it: that kills
            file.write(backup.read_bytes())
        with pytest.raises(StoreUnavailable, match=GONE) as caught:
            log.append(b"nowhere")
        assert "`zlog store restore`" in caught.value.hint
        assert GONE in finish(other)
        with pytest.raises(StoreUnavailable, match="it is open, in this process"):
            restore(folder)
        assert GONE in run(APPEND_ANYWAY, folder)
    restore(folder)
    assert contents(folder) == BEFORE


APPEND_ANYWAY = """
    import sys, zlog
    try:
        zlog.connect(sys.argv[1] + "/")
    except zlog.StoreUnavailable as error:
        print(error)
"""


def test_restored_store_continues_from_backup(folder: Path, backup: Path) -> None:
    """In one step: the epochs since the backup are not gone through one by one."""
    kept = backup.read_bytes()
    restore(folder, backup)
    assert backup.read_bytes() == kept
    with zlog.connect(folder) as store, zlog.Log.open(store, "orders") as log:
        epoch = log.view.epoch
        assert log.append(b"3") == 3
        assert log.view.epoch == epoch + 1
    assert run(APPEND, folder) == "4\n"
    assert contents(folder) == [*BEFORE, b"3", b"3"]
    assert {path.name for path in folder.iterdir()} == FILES


def test_missing_store_is_restored(folder: Path, backup: Path) -> None:
    (folder / "data.mdb").unlink()
    restore(folder, backup)
    assert contents(folder) == BEFORE
    shutil.rmtree(folder)
    folder.mkdir()
    restore(folder.as_uri(), backup)
    assert contents(folder) == BEFORE


def test_restore_refuses_invalid_backup(folder: Path, tmp_path: Path, backup: Path) -> None:
    (tmp_path / "text").write_bytes(b"something else" * 1000)
    shutil.copy(backup, tmp_path / "short")
    with (tmp_path / "short").open("rb+") as file:
        file.truncate(3 * 4096)
    before = contents(folder)
    for name in ("text", "short"):
        with pytest.raises(StoreUnavailable, match="or is damaged"):
            restore(folder, tmp_path / name)
    with pytest.raises(StoreUnavailable, match="does not exist"):
        restore(tmp_path)
    with pytest.raises(ValueError, match="only an embedded store"):
        restore("ceph://logs", backup)
    assert contents(folder) == before


RESTORE_DAMAGED = """
    import sys
    from pathlib import Path
    import zlog
    from zlog.store import restore

    folder, page_bytes = Path(sys.argv[1]), 4096
    whole = (folder / "data.mdb").read_bytes()
    damaged = folder.with_name("damaged")
    for begin in range(2 * page_bytes, len(whole), page_bytes):
        damaged.write_bytes(whole[:begin] + b"\\xff" * page_bytes + whole[begin + page_bytes:])
        try:
            restore(folder, damaged)
        except zlog.StoreUnavailable as error:
            print(error)
        else:
            print("restored")
            with zlog.connect(folder) as store, zlog.Log.open(store, "orders") as log:
                list(log.read_range(hole_timeout=0))
        if (folder / "data.mdb.new").exists():
            sys.exit("the copy was left")
"""


def test_damaged_pages_do_not_crash_restore(folder: Path) -> None:
    """LMDB reads what is beyond a page, or beyond the file, where a damaged one sends it."""
    told = run(RESTORE_DAMAGED, folder)
    assert "or is damaged (its pages are damaged: " in told
    assert "restored" in told  # where nothing lies on the page


def test_compacted_store_is_not_considered_older(folder: Path) -> None:
    with zlog.connect(folder) as store:
        store.compact()
    before = contents(folder)
    assert run(APPEND, folder) == f"{len(before)}\n"
    assert contents(folder) == [*before, b"3"]
