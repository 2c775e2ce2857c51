"""A process without file descriptors or threads left: errors that say so, and nothing is lost."""

from __future__ import annotations

from pathlib import Path

from .support import run

EXHAUSTED = """
    import contextlib, os, resource, sys, threading, time
    import zlog
    from zlog._native.completions import CompletionQueue

    @contextlib.contextmanager
    def no_descriptors():
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
        taken = []
        for _ in range(2):  # again, in case a thread has closed some
            with contextlib.suppress(OSError):
                while True:
                    taken.append(os.open("/dev/null", os.O_RDONLY))
            time.sleep(0.1)
        yield
        for each in taken:
            os.close(each)

    @contextlib.contextmanager
    def no_threads():
        pages = int(open("/proc/self/statm").read().split()[0])
        most = pages * resource.getpagesize() + (4 << 20)  # less than a stack takes
        unlimited = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (most, unlimited[1]))
        yield
        resource.setrlimit(resource.RLIMIT_AS, unlimited)

    def refused(call):
        try:
            call()
        except (zlog.StoreUnavailable, zlog.SequencerUnavailable) as error:
            assert error.retryable
            return f"{error} | {error.hint}"
        raise AssertionError("it was not refused")

    store = zlog.connect(sys.argv[1] + "/")
"""


def test_calls_fail_clearly_without_file_descriptors(tmp_path: Path) -> None:
    run(
        EXHAUSTED
        + """
    log = zlog.Log.create(store, "orders", width=2)
    with no_descriptors():
        for call in (
            lambda: log.append_many([b"x"] * 1000),
            log.stat,
            lambda: zlog.Log.create(store, "others"),
            store.compact,
            lambda: zlog.connect(sys.argv[1] + "/another/"),
        ):
            words = refused(call)
            assert "Too many open files" in words, words
        assert "`ulimit -n`" in refused(log.stat)
    assert len(log.append_many([b"x"] * 1000)) == 1000
    """,
        tmp_path,
    )


def test_exclusive_writer_survives_lack_of_descriptors(tmp_path: Path) -> None:
    run(
        EXHAUSTED
        + """
    log = zlog.Log.create(store, "orders", width=2, timeout=5)
    store.close()
    store = zlog.connect(sys.argv[1] + "/")  # it has not opened the sequencer yet
    log = zlog.Log.open(store, "orders", timeout=5)
    writer = log.writer()
    writer.append(b"first")
    with no_descriptors():
        assert "Too many open files" in refused(lambda: writer.append_many([b"x"] * 1000))
        assert "Too many open files" in refused(writer.submit_many([b"x"] * 1000).result)
        assert "Too many open files" in refused(writer.flush)
        assert "Too many open files" in refused(writer.release)
    end = writer.append(b"last")
    writer.release()
    assert log.append(b"shared") == end + 1
    """,
        tmp_path,
    )


def test_calls_fail_clearly_without_threads(tmp_path: Path) -> None:
    run(
        EXHAUSTED
        + """
    with no_threads():
        words = refused(lambda: zlog.Log.create(store, "orders"))
        assert "can't start a thread: Resource temporarily unavailable" in words, words
        assert "`ulimit -u`" in words
    log = zlog.Log.create(store, "orders")
    with log.writer() as writer, no_threads():
        assert [writer.submit(b"%d" % i).result(30) for i in range(3)] == [0, 1, 2]
    """,
        tmp_path,
    )
