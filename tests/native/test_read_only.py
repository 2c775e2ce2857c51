"""Reading an embedded store that can't be written, and what other processes do to it meanwhile."""

from __future__ import annotations

import errno
import fcntl
import os
import struct
import subprocess
import sys
import tempfile
import textwrap
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import zlog
from zlog import StoreUnavailable
from zlog._native.completions import CompletionQueue
from zlog._native.local import EmbeddedStore

from .support import OBJECT, SECONDS, finish, read, seal, start, write, write_request

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to mount and as another user")
NOBODY = 65534

READ = """
    import os, sys, zlog
    from zlog._native import messages
    from zlog._native.local import EmbeddedStore
    from zlog._native.replies import decode_read
    user = int(sys.argv[2])
    os.setgroups([])
    os.setgid(user)
    os.setuid(user)
    try:
        store = EmbeddedStore(sys.argv[1], read_only=True)
    except zlog.StoreUnavailable as error:
        sys.exit(f"{error} {error.hint}")
    code, reply = store.execute("object", "read", messages.read(1, False, 100, 1, [0]), 30.0)
    print(code, decode_read(reply, [0], None).data(0).decode() if code == 0 else "")
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    """A store that holds ``data`` at position 0, where every user may go."""
    with tempfile.TemporaryDirectory() as made:
        path = Path(made) / "store"
        Path(made).chmod(0o755)
        with EmbeddedStore(path) as store:
            seal(store)
            assert write(store, [0]) == 0
        yield path


@pytest.fixture
def mounted(folder: Path) -> Iterator[Path]:
    """The same on a read-only file system, as a container has it."""
    where = folder.with_name("mounted")
    where.mkdir()
    if os.system(f"mount --bind '{folder}' '{where}'") != 0:
        pytest.skip("may not mount a file system here")
    try:
        assert os.system(f"mount -o remount,bind,ro '{where}'") == 0
        yield where
    finally:
        os.system(f"umount -l '{where}'")


def read_as(user: int, folder: Path) -> subprocess.CompletedProcess[str]:
    """Read position 0 as another user, who may not write what coverage counts.

    The process becomes that user when it has read the code, which may lie in root's home.
    """
    environment = {k: v for k, v in os.environ.items() if not k.startswith("COVERAGE_")}
    return subprocess.run(
        [sys.executable, "-I", "-c", textwrap.dedent(READ), str(folder), str(user)],
        cwd="/",
        env=environment,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


def lock_byte(file: int, byte: int) -> None:
    """Lock a byte as a reader does for a glance, which then seems to last."""
    lock = struct.pack("hhqqi", fcntl.F_RDLCK, os.SEEK_SET, byte, 1, 0)
    fcntl.fcntl(file, fcntl.F_OFD_SETLK, lock)


def content(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Return what tells whether a folder was changed: each file's time and bytes."""
    return {
        path.name: (path.stat().st_mtime_ns, path.read_bytes())
        for path in (*folder.iterdir(), folder)
        if path.is_file()
    }


def test_read_only_open_leaves_files_unchanged(folder: Path) -> None:
    (folder / "lock.mdb").unlink()
    before = content(folder)
    with EmbeddedStore(folder, read_only=True) as store:
        assert read(store, [0]) == [b"data"]
        assert store.read_only
        assert store.url == f"{folder.as_uri()}?mode=ro"
        with zlog.connect(store.url) as again:
            assert again.read_only
            assert again.url == store.url
        assert store.sequencer() is None
    assert content(folder) == before


def test_writes_return_erofs(folder: Path) -> None:
    queue = CompletionQueue()
    with EmbeddedStore(folder, read_only=True) as store:
        assert write(store, [1]) == -errno.EROFS
        store.submit(queue, 7, [(OBJECT, "write", write_request([1]))])
        assert queue.wait(SECONDS)
        assert queue.drain() == [(7, -errno.EROFS, b"")]
        assert read(store, [1]) == [None]


def test_missing_store_is_not_created(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match="there is no store in"):
        EmbeddedStore(tmp_path / "typo", read_only=True)
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("damage", [bytes(8192), b"something else" * 1000])
def test_foreign_data_file_is_refused(tmp_path: Path, damage: bytes) -> None:
    (tmp_path / "data.mdb").write_bytes(damage)
    for read_only in (True, False):
        with pytest.raises(StoreUnavailable, match="does not contain a store") as caught:
            EmbeddedStore(tmp_path, read_only=read_only)
        assert not caught.value.retryable
        assert not read_only or [path.name for path in tmp_path.iterdir()] == ["data.mdb"]


def test_truncated_file_is_refused(folder: Path) -> None:
    with EmbeddedStore(folder) as store:
        assert write(store, [1], bytes(100_000)) == 0
    os.truncate(folder / "data.mdb", 60_000)
    with pytest.raises(StoreUnavailable, match="it was truncated"):
        EmbeddedStore(folder, read_only=True)


@as_root
def test_read_only_file_system_is_readable(mounted: Path) -> None:
    with EmbeddedStore(mounted, read_only=True) as store:
        assert read(store, [0]) == [b"data"]
    with pytest.raises(StoreUnavailable, match="Read-only file system") as caught:
        EmbeddedStore(mounted)
    assert "?mode=ro" in caught.value.hint


@as_root
@pytest.mark.parametrize("listed", [True, False])
def test_other_user_reads_with_permission(folder: Path, listed: bool) -> None:
    folder.chmod(0o555)
    (folder / "data.mdb").chmod(0o444)
    (folder / "lock.mdb").chmod(0o666 if listed else 0o444)
    result = read_as(NOBODY, folder)
    assert (result.stdout, result.stderr) == ("0 data\n", "")


@as_root
def test_other_user_without_permission_is_refused(folder: Path) -> None:
    (folder / "data.mdb").chmod(0o600)
    result = read_as(NOBODY, folder)
    assert "Permission denied Ask its owner for permission to read data.mdb." in result.stderr


@as_root
def test_reader_must_register_next_to_writer(folder: Path) -> None:
    (folder / "lock.mdb").chmod(0o644)
    with EmbeddedStore(folder):
        result = read_as(NOBODY, folder)
        assert "another process has the store open for writing" in result.stderr
        assert "Give this user write access to lock.mdb" in result.stderr
        (folder / "lock.mdb").chmod(0o666)
        assert read_as(NOBODY, folder).stdout == "0 data\n"


@as_root
def test_read_only_mount_detects_writer_elsewhere(folder: Path, mounted: Path) -> None:
    with EmbeddedStore(folder):
        with pytest.raises(StoreUnavailable, match="has the store open for writing") as caught:
            EmbeddedStore(mounted, read_only=True)
        assert caught.value.retryable
    with EmbeddedStore(mounted, read_only=True) as store:
        assert read(store, [0]) == [b"data"]
        with EmbeddedStore(folder) as writer:
            assert store.execute(OBJECT, "stat", b"", SECONDS)[0] == -errno.ETXTBSY
            assert write(writer, [1], b"new") == 0
        assert read(store, [0, 1]) == [b"data", b"new"]


@as_root
def test_stopped_unlisted_reader_does_not_block_writer_forever(folder: Path) -> None:
    with (folder / "data.mdb").open("rb") as reader:
        lock_byte(reader.fileno(), 2)
        with pytest.raises(StoreUnavailable, match=r"reads it .* stopped in the middle"):
            EmbeddedStore(folder)
    EmbeddedStore(folder).close()


def test_writer_waits_for_short_read(folder: Path) -> None:
    reader = (folder / "data.mdb").open("rb")
    lock_byte(reader.fileno(), 2)
    threading.Timer(0.2, reader.close).start()
    with EmbeddedStore(folder) as store:
        assert reader.closed
        assert write(store, [1]) == 0


def test_reader_sees_whole_transactions(folder: Path) -> None:
    """Each transaction writes a pair: no reader sees half of one, however long it takes."""
    code = """
        import sys
        from zlog._native import messages
        from zlog._native.local import EmbeddedStore
        from zlog._native.writes import encode_write
        store = EmbeddedStore(sys.argv[1])
        for number in range(1, 400, 2):
            pair = [number, number + 1]
            request = encode_write(
                1, 1, b"0123456789abcdef", 1, pair, pair, [b"%d" % number * 1000] * 2)
            assert store.execute("object", "write", request, 30.0)[0] == 0
            if number > 20:
                trim = messages.trim(1, 1, [number - 20, number - 19])
                assert store.execute("object", "trim", trim, 30.0)[0] == 0
    """
    with EmbeddedStore(folder, read_only=True) as store:
        writer = start(code, folder)
        while writer.poll() is None:
            entries = read(store, range(1, 401))
            assert entries[::2] == entries[1::2]
        assert finish(writer) == ""
        assert read(store, [399]) == [b"399" * 1000]


def test_writer_and_reader_coexist_in_process(folder: Path) -> None:
    with EmbeddedStore(folder) as writer, EmbeddedStore(folder, read_only=True) as reader:
        assert write(writer, [1], b"new") == 0
        assert read(reader, [1]) == [b"new"]
        assert write(reader, [2]) == -errno.EROFS


def test_reading_process_must_close_before_writing(folder: Path) -> None:
    with (
        EmbeddedStore(folder, read_only=True),
        pytest.raises(StoreUnavailable, match="this process reads it with"),
    ):
        EmbeddedStore(folder)
    EmbeddedStore(folder).close()
