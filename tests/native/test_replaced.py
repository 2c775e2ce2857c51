"""An embedded store whose files are removed or replaced while a process has them open."""

from __future__ import annotations

import errno
import shutil
from pathlib import Path

import pytest

import zlog
from zlog import StoreUnavailable
from zlog._native.local import EmbeddedStore

from .support import run, seal, write

APPEND = """
    import sys, zlog
    with zlog.connect(sys.argv[1] + "/") as store, zlog.Log.open(store, "orders") as log:
        print(log.append(sys.argv[2].encode()))
"""


def entries(folder: Path) -> list[bytes]:
    """What another process finds in the log."""
    code = """
        import sys, zlog
        with zlog.connect(sys.argv[1] + "/") as store, zlog.Log.open(store, "orders") as log:
            print(*(entry.data.decode() for entry in log.read_range(0)))
    """
    return [word.encode() for word in run(code, folder).split()]


@pytest.mark.parametrize("how", ["removed", "moved"])
def test_recreated_store_is_reopened(tmp_path: Path, how: str) -> None:
    folder = tmp_path / "store"
    store = zlog.connect(folder)
    log = zlog.Log.create(store, "orders")
    log.append(b"old")
    if how == "removed":
        shutil.rmtree(folder)
    else:
        folder.rename(tmp_path / "elsewhere")
    with zlog.connect(folder) as other, zlog.Log.create(other, "orders") as fresh:
        assert fresh.append(b"new") == 0
        assert entries(folder) == [b"new"]
        with pytest.raises(StoreUnavailable, match="removed or replaced") as caught:
            log.append(b"nowhere")
        assert not caught.value.retryable
        store.close()
        assert fresh.append(b"still open") == 1
        assert run(APPEND, folder, "another").split() == ["2"]
    assert entries(folder) == [b"new", b"still", b"open", b"another"]


@pytest.mark.parametrize("gone", ["data.mdb", "lock.mdb"])
def test_store_with_missing_file_refuses_writes(tmp_path: Path, gone: str) -> None:
    with EmbeddedStore(tmp_path) as store:
        seal(store)
        (tmp_path / gone).unlink()
        assert write(store, [0]) == -errno.ESTALE
