"""The embedded store: durable, shared by processes, killed at any moment, out of space."""

from __future__ import annotations

import contextlib
import errno
import signal
import struct
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from unittest.mock import ANY

import pytest

from zlog import StoreUnavailable
from zlog._native import messages
from zlog._native.completions import CompletionQueue
from zlog._native.local import EmbeddedStore

from ..support.threads import at_once
from .support import (
    FILES,
    OBJECT,
    SECONDS,
    answers,
    finish,
    interrupt_soon,
    read,
    run,
    seal,
    start,
    write,
    write_request,
)

# What a process that appends does: it writes the positions from first on, in steps, and prints each
# one that was acknowledged.
APPEND = """
    import itertools, sys
    from zlog._native import messages
    from zlog._native.local import EmbeddedStore
    from zlog._native.writes import encode_write
    store = EmbeddedStore(sys.argv[1])
    first, step, count = (int(word) for word in sys.argv[2:])
    for i in range(count) if count else itertools.count():
        position = first + i * step
        request = encode_write(
            1, 1, b"0123456789abcdef", 1, [position], [position], [b"%d" % position])
        code, _ = store.execute("object", "write", request, 30.0)
        assert code == 0, code
        print(position, flush=True)
"""


def last_transaction(directory: Path) -> int:
    """Return the number of the last committed transaction: the later of LMDB's two meta pages."""
    data = (directory / "data.mdb").read_bytes()[:8192]
    return max(struct.unpack_from("<Q", data, page + 144)[0] for page in (0, 4096))


def mode_of(path: Path) -> int:
    """Return a file's permissions."""
    return path.stat().st_mode & 0o777


def collect(queue: CompletionQueue, count: int) -> dict[int, int]:
    """Wait for that many results, and return their codes by token."""
    return {token: code for token, (code, _) in answers(queue, count).items()}


def trim_to(store: EmbeddedStore, position: int) -> int:
    """Trim everything below a position, and return the code."""
    request = messages.trim_to(1, position, 1000)
    return store.execute(OBJECT, "trim_to", request, SECONDS)[0]


OPEN_WITH_UMASK = """
    import os, sys
    from zlog._native.local import EmbeddedStore
    os.umask(int(sys.argv[2]))
    EmbeddedStore(sys.argv[1]).sequencer()
"""


@pytest.mark.parametrize("umask", [0o022, 0o002, 0o077], ids="{:03o}".format)
def test_new_files_honour_umask(tmp_path: Path, umask: int) -> None:
    folder = tmp_path / "store"
    run(OPEN_WITH_UMASK, folder, umask)
    assert mode_of(folder) == 0o777 & ~umask
    assert {path.name: mode_of(path) for path in folder.iterdir()} == dict.fromkeys(
        FILES, 0o666 & ~umask
    )


def test_recreated_sequencer_file_inherits_database_permissions(tmp_path: Path) -> None:
    EmbeddedStore(tmp_path).close()
    (tmp_path / "sequencer").unlink()
    (tmp_path / "data.mdb").chmod(0o660)
    run(OPEN_WITH_UMASK, tmp_path, 0o077)
    assert mode_of(tmp_path / "sequencer") == 0o660


def test_stores_in_one_process_share_environment(tmp_path: Path) -> None:
    first, second = EmbeddedStore(tmp_path), EmbeddedStore(tmp_path)
    seal(first)
    assert write(second, [0]) == 0
    first.close()
    assert write(second, [1]) == 0, "closing one must not take the other's locks away"
    assert run(APPEND, tmp_path, 2, 1, 1).split() == ["2"]
    assert read(second, range(3)) == [b"data", b"data", b"2"]
    second.close()


@pytest.mark.parametrize("acknowledged", [1, 5, 20])
def test_acknowledged_writes_survive_kill_9(tmp_path: Path, acknowledged: int) -> None:
    with EmbeddedStore(tmp_path) as store:
        seal(store)
        process = start(APPEND, tmp_path, 0, 1, 0)
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(acknowledged)]
        process.kill()
        rest = process.stdout.read()
        process.communicate(timeout=SECONDS)
        seen = [int(word) for word in "".join(lines).split() + rest.split()]
        assert seen == list(range(len(seen)))
        assert read(store, seen) == [b"%d" % position for position in seen]
        assert write(store, [10**6]) == 0, "the dead process holds no lock"


def test_concurrent_operations_share_transactions(tmp_path: Path) -> None:
    queue, count = CompletionQueue(), 100
    data = bytes(70_000)  # too large for the caller's thread
    with EmbeddedStore(tmp_path) as store:
        seal(store)
        before = last_transaction(tmp_path)
        for position in range(count):
            store.submit(queue, position, [(OBJECT, "write", write_request([position], data))])
        assert collect(queue, count) == dict.fromkeys(range(count), 0)
        assert last_transaction(tmp_path) - before < count / 2
        assert read(store, range(count)) == [data] * count


def test_operations_submitted_together_share_one_transaction(tmp_path: Path) -> None:
    queue, count = CompletionQueue(), 100
    with EmbeddedStore(tmp_path) as store:
        seal(store)
        before = last_transaction(tmp_path)
        calls = [(OBJECT, "write", write_request([position])) for position in range(count)]
        store.submit(queue, 7, [*calls, (OBJECT, "no such method", b"")])
        assert collect(queue, count + 1) == {
            **dict.fromkeys(range(7, 7 + count), 0),
            7 + count: -errno.EOPNOTSUPP,
        }
        assert last_transaction(tmp_path) == before + 1
        assert read(store, range(count)) == [b"data"] * count


def test_full_map_returns_enospc_until_trimmed(tmp_path: Path) -> None:
    with EmbeddedStore(tmp_path, map_bytes=1 << 20) as store:
        seal(store)
        codes = [write(store, [position], bytes(50_000)) for position in range(40)]
        written = codes.index(-errno.ENOSPC)
        assert codes[:written] == [0] * written
        assert set(codes[written:]) == {-errno.ENOSPC}
        assert read(store, range(written)) == [bytes(50_000)] * written
        assert trim_to(store, written) == 0
        assert write(store, [100], bytes(50_000)) == 0, "trimming made space"
    with EmbeddedStore(tmp_path) as store:
        assert write(store, [101], bytes(1 << 20)) == 0, "a larger map has space"


def test_oversized_operation_does_not_fail_concurrent_operations(tmp_path: Path) -> None:
    queue = CompletionQueue()
    with EmbeddedStore(tmp_path, map_bytes=1 << 20) as store:
        seal(store)
        store.submit(queue, 0, [(OBJECT, "write", write_request([0], b"small"))])
        store.submit(queue, 1, [(OBJECT, "write", write_request([1], bytes(2 << 20)))])
        store.submit(queue, 2, [(OBJECT, "write", write_request([2], b"small"))])
        assert collect(queue, 3) == {0: 0, 1: -errno.ENOSPC, 2: 0}
        assert read(store, range(3)) == [b"small", None, b"small"]


def test_map_shrinks_to_address_space_limit(tmp_path: Path) -> None:
    code = """
        import resource, sys
        resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
        from zlog._native import messages
        from zlog._native.local import EmbeddedStore
        store = EmbeddedStore(sys.argv[1])
        print(store.execute("object", "seal", messages.seal(1, 1, 0, True), 30.0)[0])
    """
    assert run(code, tmp_path).strip() == "0"


def test_data_beyond_own_map_is_readable(tmp_path: Path) -> None:
    with EmbeddedStore(tmp_path, map_bytes=1 << 20) as small:
        seal(small)
        code = """
            import sys
            from zlog._native import messages
            from zlog._native.local import EmbeddedStore
            from zlog._native.writes import encode_write
            store = EmbeddedStore(sys.argv[1])
            request = encode_write(1, 1, b"0" * 16, 1, [0], [0], [bytes(8 << 20)])
            print(store.execute("object", "write", request, 30.0)[0])
        """
        assert run(code, tmp_path).strip() == "0"
        assert read(small, [0]) == [bytes(8 << 20)]
        assert write(small, [1], bytes(1 << 20)) in (0, -errno.ENOSPC)


def test_writers_continue_while_map_grows(tmp_path: Path) -> None:
    """Several stores of this process write while another process writes beyond their map."""
    with ExitStack() as stack:
        opened = [EmbeddedStore(tmp_path, map_bytes=64 << 20) for _ in range(3)]
        stores = [stack.enter_context(store) for store in opened]
        seal(stores[0])
        other = start(
            """
            import sys
            from zlog._native.local import EmbeddedStore
            from zlog._native.writes import encode_write
            store = EmbeddedStore(sys.argv[1])
            for i in range(12):
                request = encode_write(1, 1, b"0" * 16, 1, [i], [i], [bytes(8 << 20)])
                assert store.execute("object", "write", request, 30.0)[0] == 0
            """,
            tmp_path,
        )

        def work(number: int) -> set[int]:
            positions = count(100_000 * (number + 1))
            codes = set()
            while other.poll() is None:
                codes.add(write(stores[number], [next(positions)]))
            return codes

        with ThreadPoolExecutor(3) as pool:
            assert [*pool.map(work, range(3))] == [{0}] * 3
        finish(other)


def test_impossible_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match="can't create"):
        EmbeddedStore(tmp_path / ("too long" * 100))


def test_forked_child_must_open_its_own_store(tmp_path: Path) -> None:
    code = """
        import gc, os, sys
        from zlog import StoreUnavailable
        from zlog._native import messages
        from zlog._native.local import EmbeddedStore
        from zlog._native.writes import encode_write
        store = EmbeddedStore(sys.argv[1])
        request = lambda n: encode_write(1, 1, b"0" * 16, 1, [n], [n], [b"x"])
        store.execute("object", "seal", messages.seal(1, 1, 0, True))
        store.execute("object", "write", request(0))
        if os.fork() == 0:
            try:
                store.execute("object", "write", request(1))
            except StoreUnavailable as error:
                print(error, flush=True)
            store.close()
            del store
            gc.collect()
            with EmbeddedStore(sys.argv[1]) as own:
                print(own.execute("object", "write", request(2))[0], flush=True)
            sys.exit()
        assert os.waitstatus_to_exitcode(os.wait()[1]) == 0
        print(store.execute("object", "write", request(3))[0])
    """
    before_fork, child, parent = run(code, tmp_path).splitlines()
    assert "before a fork" in before_fork
    assert (child, parent) == ("0", "0")
    with EmbeddedStore(tmp_path) as store:
        assert read(store, range(4)) == [b"x", None, b"x", b"x"]


def test_close_cancels_queued_operations(tmp_path: Path) -> None:
    queue, count = CompletionQueue(), 2000
    store = EmbeddedStore(tmp_path)
    seal(store)
    for position in range(count):
        store.submit(queue, position, [(OBJECT, "write", write_request([position]))])
    store.close()
    codes = collect(queue, count)
    assert set(codes.values()) <= {0, -errno.ECANCELED}
    with EmbeddedStore(tmp_path) as again:
        for position, code in codes.items():
            if code == 0:
                assert read(again, [position]) == [b"data"]


def test_close_ends_waiting_callers(tmp_path: Path) -> None:
    store = EmbeddedStore(tmp_path)
    seal(store)

    def append_or_close(number: int) -> None:
        with contextlib.suppress(StoreUnavailable):
            if number == 0:
                store.close()
            while write(store, [0]) == 0:
                pass

    at_once(append_or_close, 5)
    store.close()
    with pytest.raises(StoreUnavailable, match="closed"):
        store.execute(OBJECT, "stat", messages.stat(1))


# A process that writes all the time. If it is stopped in a write, no other process can write.
WRITE_ON = """
    import itertools, sys
    from zlog._native import messages
    from zlog._native.local import EmbeddedStore
    store = EmbeddedStore(sys.argv[1])
    print("writing", flush=True)
    for epoch in itertools.count(1):
        assert store.execute("other", "seal", messages.seal(epoch, 1, 0, True))[0] == 0
"""


def test_process_stopped_in_write_does_not_block_forever(tmp_path: Path) -> None:
    store, queue = EmbeddedStore(tmp_path), CompletionQueue()
    seal(store)
    holder = start(WRITE_ON, tmp_path)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "writing\n"
    try:
        for position in range(100):
            holder.send_signal(signal.SIGSTOP)
            begin = time.monotonic()
            store.submit(queue, position, [(OBJECT, "write", write_request([position]))])
            assert time.monotonic() - begin < 0.2, "the caller's thread must not wait"
            if not queue.wait(2):  # much longer than a write takes on a busy machine
                break
            assert queue.drain() == [(position, 0, ANY)]
            holder.send_signal(signal.SIGCONT)
            time.sleep(0.0001 * position)  # to stop it elsewhere
        request = write_request([position + 1])
        assert store.execute(OBJECT, "write", request, 0.3)[0] == -errno.ETIMEDOUT
        assert time.monotonic() - begin < 7
        assert read(store, [position, position + 1]) == [None, None], "readers are not concerned"
        interrupt_soon()
        with pytest.raises(KeyboardInterrupt):
            store.execute(OBJECT, "write", write_request([position + 2]))
        store.close()
        assert time.monotonic() - begin < SECONDS
    finally:
        holder.kill()
        holder.communicate()
