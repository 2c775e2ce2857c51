"""The completion queue: what an event loop sees, waiting, signals, many threads."""

from __future__ import annotations

import select
import threading
import time

import pytest

import zlog
from zlog._native import messages
from zlog._native.completions import CompletionQueue, Payload
from zlog._native.local import MemoryStore
from zlog._native.replies import decode_read

from .support import OBJECT, SECONDS, interrupt_soon, read, run, seal, write_request


def readable(queue: CompletionQueue) -> bool:
    poll = select.poll()  # `select.select` fails where the descriptor is 1024 or more
    poll.register(queue, select.POLLIN)
    return bool(poll.poll(0))


def test_descriptor_is_readable_while_results_are_queued(memory: zlog.Store) -> None:
    queue = CompletionQueue()
    assert not readable(queue)
    for token in (7, 8):
        memory.submit(queue, token, [(OBJECT, "stat", messages.stat(1))])
        assert readable(queue)
    assert [token for token, _, _ in queue.drain()] == [7, 8]
    assert not readable(queue)
    assert queue.drain() == []


def test_python_store_can_put_results() -> None:
    queue = CompletionQueue()
    queue.put(2**63, -5, b"")
    queue.put(1, 0, b"reply")
    assert readable(queue)
    assert queue.drain() == [(2**63, -5, b""), (1, 0, b"reply")]


def test_large_reply_buffer_lives_while_referenced() -> None:
    queue = CompletionQueue()
    request = messages.read(1, False, 1 << 20, 1, [0])
    with MemoryStore() as store:
        seal(store)
        code, _ = store.execute(OBJECT, "write", write_request([0], data=b"x" * 5000))
        assert code == 0
        _, expected = store.execute(OBJECT, "read", request)
        store.submit(queue, 0, [(OBJECT, "read", request)])
        [(_, code, reply)] = queue.drain()
    del queue, store
    assert isinstance(reply, Payload)
    assert (code, len(reply)) == (0, len(expected))
    view = memoryview(reply)
    assert view.readonly
    del reply
    assert view == expected
    assert decode_read(view.obj, [0], None).data(0) == b"x" * 5000  # type: ignore[arg-type]
    with pytest.raises(zlog.CorruptEntry):
        messages.refusal(view.obj)  # type: ignore[arg-type]


def test_wait_ends_at_timeout() -> None:
    begin = time.monotonic()
    assert not CompletionQueue().wait(0.25)
    assert 0.24 < time.monotonic() - begin < SECONDS


@pytest.mark.parametrize("timeout", [0, -1.0])
def test_wait_without_timeout_returns_immediately(timeout: float) -> None:
    assert not CompletionQueue().wait(timeout)


def test_wait_refuses_invalid_timeout() -> None:
    with pytest.raises(ValueError, match="number of seconds"):
        CompletionQueue().wait(float("nan"))


def test_signal_interrupts_wait() -> None:
    interrupt_soon()
    with pytest.raises(KeyboardInterrupt):
        CompletionQueue().wait(SECONDS)


def test_results_of_many_threads_arrive(memory: zlog.Store) -> None:
    queue, threads, each = CompletionQueue(), 8, 200
    seal(memory)

    def submit(first: int) -> None:
        for token in range(first, first + each):
            memory.submit(queue, token, [(OBJECT, "write", write_request([token]))])

    workers = [threading.Thread(target=submit, args=(i * each,)) for i in range(threads)]
    for worker in workers:
        worker.start()
    tokens: set[int] = set()
    while len(tokens) < threads * each:
        assert queue.wait(SECONDS)
        tokens.update(token for token, code, _ in queue.drain() if code == 0)
    for worker in workers:
        worker.join()
    assert read(memory, range(threads * each)) == [b"data"] * (threads * each)


def test_queue_is_refused_in_forked_child() -> None:
    code = """
        import os
        from zlog import StoreUnavailable
        from zlog._native.completions import CompletionQueue
        queue = CompletionQueue()
        if os.fork() == 0:
            try:
                queue.drain()
            except StoreUnavailable:
                os._exit(3)
            os._exit(0)
        print(os.waitstatus_to_exitcode(os.wait()[1]))
    """
    assert run(code).strip() == "3"
