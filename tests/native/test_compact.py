"""Compaction: space goes back to the disk, and no process that dies or comes then loses a thing."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import struct
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import zlog
from zlog import StoreReadOnly, StoreUnavailable, ZlogError
from zlog._native.local import EmbeddedStore

from .support import FILES, SECONDS, finish, read, run, seal, start, write
from .test_embedded import trim_to

ENTRY = bytes(10_000)
KEPT = range(290, 300)


def fill(store: EmbeddedStore) -> None:
    """Write some entries, and trim most of them."""
    seal(store)
    for first in range(0, KEPT.stop, 10):
        assert write(store, range(first, first + 10), ENTRY) == 0
    assert trim_to(store, KEPT.start) == 0


def check(folder: Path) -> None:
    """See that a store has what `fill` left, and takes more."""
    with EmbeddedStore(folder) as store:
        assert read(store, KEPT) == [ENTRY] * len(KEPT)
        assert write(store, [1000], b"more") == 0
        assert read(store, [1000]) == [b"more"]
    assert {path.name for path in folder.iterdir()} <= FILES


def size_of(folder: Path) -> int:
    return (folder / "data.mdb").stat().st_size


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A store whose file is mostly free pages."""
    with EmbeddedStore(tmp_path / "store") as store:
        fill(store)
    return tmp_path / "store"


def test_compaction_shrinks_file_and_keeps_entries(folder: Path) -> None:
    before = size_of(folder)
    with EmbeddedStore(folder) as store:
        assert store.compact() == before - size_of(folder)
    assert size_of(folder) < before / 5
    check(folder)


def test_compaction_keeps_owner_and_permissions(folder: Path) -> None:
    data = folder / "data.mdb"
    data.chmod(0o640)
    if os.geteuid() == 0:
        os.chown(data, 65534, 65533)
    # acl(5): its version; then a tag, permissions and an id each. User 65534 may read.
    no_id = 2**32 - 1
    entries = [(1, 6, no_id), (2, 4, 65534), (4, 4, no_id), (0x10, 4, no_id), (0x20, 0, no_id)]
    acl = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *each) for each in entries)
    try:
        os.setxattr(data, "system.posix_acl_access", acl)
    except OSError:
        pytest.skip("the file system keeps no access control lists")
    before = data.stat()
    with EmbeddedStore(folder) as store:
        store.compact()
    after = data.stat()
    assert after.st_ino != before.st_ino
    assert (after.st_uid, after.st_gid, after.st_mode) == (
        before.st_uid,
        before.st_gid,
        before.st_mode,
    )
    assert os.getxattr(data, "system.posix_acl_access") == acl


def test_compaction_does_not_disturb_other_handles(folder: Path) -> None:
    """Handles of the same store, and threads that are in the middle of appending."""
    with (
        EmbeddedStore(folder) as other,
        EmbeddedStore(folder) as store,
        zlog.Log.create(other, "orders") as log,
    ):
        stop = threading.Event()
        positions: list[int] = []

        def append() -> None:
            while not stop.is_set():
                positions.append(log.append(b"%d" % len(positions)))

        appender = threading.Thread(target=append)
        appender.start()
        for _ in range(5):
            store.compact()
        stop.set()
        appender.join()
        assert positions == [*range(len(positions))]
        assert [log.read(p).data for p in positions] == [b"%d" % p for p in positions]
        assert read(other, KEPT) == [ENTRY] * len(KEPT)
    check(folder)


HAVE_OPEN = """
    import sys
    from zlog._native.local import EmbeddedStore
    store = EmbeddedStore(sys.argv[1], read_only=sys.argv[2] == "ro")
    print("open", flush=True)
    sys.stdin.read()
"""

HAVE_OPEN_BY_LMDB = """
    import ctypes, sys
    lmdb = ctypes.CDLL("liblmdb.so.0")
    env = ctypes.c_void_p()
    lmdb.mdb_env_create(ctypes.byref(env))
    assert lmdb.mdb_env_open(env, sys.argv[1].encode(), 0x20000, 0o660) == 0
    print("open", flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize(
    ("code", "how", "listed"),
    [
        (HAVE_OPEN, "rw", True),
        (HAVE_OPEN, "ro", True),
        (HAVE_OPEN, "ro", False),
        (HAVE_OPEN_BY_LMDB, "ro", True),
    ],
    ids=["writer", "reader", "unlisted reader", "LMDB's tools"],
)
def test_compact_refused_while_store_is_open(
    folder: Path, code: str, how: str, listed: bool
) -> None:
    if not listed:
        (folder / "lock.mdb").unlink()
    user = start(code, folder, how)
    assert user.stdout is not None
    assert user.stdin is not None
    assert user.stdout.readline() == "open\n"
    before = (folder / "data.mdb").read_bytes()
    with EmbeddedStore(folder) as store:
        with pytest.raises(StoreUnavailable, match=r"ha(s|ve) it open") as caught:
            store.compact()
        assert f"fuser -v {folder}/data.mdb" in caught.value.hint
        assert (folder / "data.mdb").read_bytes() == before
        assert read(store, KEPT) == [ENTRY] * len(KEPT)
        assert finish(user) == ""
        assert store.compact() > 0
    check(folder)


def test_opening_during_compaction_is_refused(folder: Path) -> None:
    with (folder / "data.mdb").open("r+b") as file:
        lock = struct.pack("hhqqi", fcntl.F_WRLCK, os.SEEK_SET, 0, 1, 0)
        fcntl.fcntl(file, fcntl.F_OFD_SETLK, lock)
        with pytest.raises(StoreUnavailable, match="it is being compacted") as caught:
            EmbeddedStore(folder)
        assert caught.value.retryable
    check(folder)


def test_waiting_process_opens_compacted_file(folder: Path) -> None:
    """The old one, which is open in the waiting process already, is of no use any more."""
    old = (folder / "data.mdb").open("r+b")
    lock = struct.pack("hhqqi", fcntl.F_WRLCK, os.SEEK_SET, 0, 1, 0)
    fcntl.fcntl(old, fcntl.F_OFD_SETLK, lock)
    waiting = threading.Thread(target=check, args=(folder,))
    waiting.start()
    waiting.join(0.2)
    assert waiting.is_alive()
    shutil.copy(folder / "data.mdb", folder / "data.mdb.copy")
    (folder / "data.mdb.copy").rename(folder / "data.mdb")
    before = old.seek(0) or old.read()
    old.close()
    waiting.join(SECONDS)
    check(folder)
    assert before != (folder / "data.mdb").read_bytes()


def test_read_only_store_refuses_compaction(folder: Path) -> None:
    with EmbeddedStore(folder, read_only=True) as store, pytest.raises(StoreReadOnly):
        store.compact()


def test_memory_store_refuses_compaction(memory: zlog.Store) -> None:
    with pytest.raises(ZlogError, match="has no file"):
        memory.compact()


def test_leftover_of_killed_compaction_is_removed(folder: Path) -> None:
    (folder / "data.mdb.new").write_bytes(bytes(1000))
    EmbeddedStore(folder, read_only=True).close()
    assert (folder / "data.mdb.new").exists()
    check(folder)


# The library kills the process before a call of this number of those that compaction changes files
# by, or has the file system refuse to sync directories.
DIE = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>
static int armed, left, failing;
void fail_directory_syncs(int fail) { failing = fail; }
static int fails(int fd) {
  struct stat found;
  return failing && fstat(fd, &found) == 0 && S_ISDIR(found.st_mode) && (errno = EIO);
}
void die_before(int calls) { armed = 1; left = calls; }
static void step(void) { if (armed && left-- == 0) kill(getpid(), SIGKILL); }
#define CALL(type, name, formals, ...) \\
  type name formals { step(); return ((type(*) formals)dlsym(RTLD_NEXT, #name))(__VA_ARGS__); }
CALL(ssize_t, write, (int fd, const void* data, size_t count), fd, data, count)
int fsync(int fd) {
  step();
  return fails(fd) ? -1 : ((int (*)(int))dlsym(RTLD_NEXT, "fsync"))(fd);
}
CALL(int, fchown, (int fd, uid_t user, gid_t group), fd, user, group)
CALL(int, fchmod, (int fd, mode_t mode), fd, mode)
CALL(int, rename, (const char* from, const char* to), from, to)
CALL(int, close, (int fd), fd)
"""

COMPACT_AND_DIE = """
    import ctypes, sys
    from zlog._native.local import EmbeddedStore
    store = EmbeddedStore(sys.argv[1])
    ctypes.CDLL(None).die_before(int(sys.argv[2]))
    store.compact()
    ctypes.CDLL(None).die_before(1 << 30)
    print("done")
"""


@pytest.fixture(scope="module")
def die(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The words that run a command with the library that kills."""
    folder = tmp_path_factory.mktemp("die")
    (folder / "die.c").write_text(DIE)
    library = folder / "die.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, folder / "die.c", "-ldl"], check=True)
    return ["env", f"LD_PRELOAD={library}"]


def deaths(folder: Path, die: list[str]) -> Iterator[Path]:
    """Compact a copy of the store, killed before each step in turn."""
    for number in range(1000):
        copy = folder.with_name(f"copy-{number}")
        shutil.copytree(folder, copy)
        process = start(COMPACT_AND_DIE, copy, number, launcher=die)
        output, _ = process.communicate(timeout=SECONDS)
        yield copy
        if output == "done\n":
            return
        assert process.returncode == -signal.SIGKILL
        shutil.rmtree(copy)


@pytest.mark.long
def test_compaction_survives_kill_at_any_step(folder: Path, die: list[str]) -> None:
    whole = size_of(folder)
    sizes = set()
    for copy in deaths(folder, die):
        sizes.add(size_of(copy) < whole)
        check(copy)
        with EmbeddedStore(copy) as store:
            store.compact()
        check(copy)
    assert sizes == {False, True}, "it was killed before and after the copy was in place"


COMPACT_UNSYNCED = """
    import ctypes, sys, zlog
    calls = ctypes.CDLL(None)
    with zlog.connect(sys.argv[1]) as store, zlog.Log.create(store, "orders") as log:
        calls.fail_directory_syncs(1)
        for call in (store.compact, lambda: log.append(b"no")):
            try:
                call()
            except zlog.ZlogError:
                print("refused")
    try:
        zlog.connect(sys.argv[1])
    except zlog.ZlogError:
        print("refused")
    calls.fail_directory_syncs(0)
    with zlog.connect(sys.argv[1]) as store, zlog.Log.open(store, "orders") as log:
        print(log.read(log.append(b"taken")).data.decode())
"""


def test_unsynced_rename_blocks_writes(folder: Path, die: list[str]) -> None:
    said = run(COMPACT_UNSYNCED, folder, launcher=die)
    assert said.split() == ["refused", "refused", "refused", "taken"]
