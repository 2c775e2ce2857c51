"""An embedded store whose file was cut short is refused, not touched: LMDB would die of SIGBUS."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import zlog
from zlog._native import messages
from zlog._native.local import EmbeddedStore

from .support import OBJECT, SECONDS, read, run, seal, write

ENTRY = bytes(20_000)
"""Large enough to lie in pages of its own."""

OPEN = """
    import sys, zlog
    try:
        zlog._native.local.EmbeddedStore(sys.argv[1])
    except zlog.StoreUnavailable as error:
        print(error, error.hint, error.retryable)
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The file of a store with a log of some size, closed."""
    with EmbeddedStore(tmp_path) as store, zlog.Log.create(store, "orders", width=2) as log:
        for number in range(20):
            log.append_many([ENTRY, b"%d" % number])
    return tmp_path / "data.mdb"


@pytest.mark.parametrize("left", [-1, 100_000, 3 * 4096, 2 * 4096])
def test_truncated_store_is_refused(file: Path, left: int) -> None:
    size = file.stat().st_size
    cut = left % size
    os.truncate(file, cut)
    said = run(OPEN, file.parent)
    assert f"shorter than its header says ({cut} bytes, {size} needed): it was tr" in said
    assert "Restore it from a backup. False" in said
    assert file.stat().st_size == cut


def test_one_page_store_reports_lmdb_error(file: Path) -> None:
    os.truncate(file, 4096)
    assert "MDB_INVALID" in run(OPEN, file.parent)


@pytest.mark.parametrize("left", ["empty", "missing"])
def test_emptied_store_is_not_recreated(file: Path, left: str) -> None:
    if left == "empty":
        os.truncate(file, 0)
    else:
        file.unlink()
    assert f"data.mdb is {left}, but the store was in use" in run(OPEN, file.parent)
    assert [path.name for path in file.parent.iterdir() if path.stat().st_size == 0] == (
        ["data.mdb"] if left == "empty" else []
    )


def test_missing_free_pages_are_harmless(tmp_path: Path) -> None:
    """LMDB does not write pages that a transaction gave back; the file may end before them."""
    with EmbeddedStore(tmp_path) as store:
        seal(store)
        assert write(store, [0], b"kept") == 0
        assert write(store, [1], bytes(1 << 20)) == 0
        trim = messages.trim(1, 1, [1])
        assert store.execute(OBJECT, "trim", trim, SECONDS)[0] == 0
        for position in range(2, 6):  # their pages move to the space that became free
            assert write(store, [position], b"kept") == 0
    file = tmp_path / "data.mdb"
    os.truncate(file, file.stat().st_size - 4096)
    with EmbeddedStore(tmp_path) as store:
        assert read(store, [0, 5]) == [b"kept", b"kept"]
        assert write(store, [6], bytes(2 << 20)) == 0
        assert read(store, [0, 6]) == [b"kept", bytes(2 << 20)]
