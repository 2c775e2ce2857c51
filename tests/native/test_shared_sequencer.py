"""The sequencer that processes share: unique grants, epochs, waiting, deaths at bad moments."""

from __future__ import annotations

import ctypes
import itertools
import mmap
import os
import signal
import threading
import time
from pathlib import Path

import pytest

from zlog import LogExhausted, SequencerUnavailable
from zlog._native.local import SharedSequencer

from .support import SECONDS, finish, interrupt_soon, run, start

LOG, EPOCH = 7, 3


def test_logs_have_separate_tails() -> None:
    shared = SharedSequencer()
    logs = [LOG, LOG + 1024, 2**64 - 1, 0]
    for number, log in enumerate(logs):
        assert shared.activate(log, EPOCH, 100 * number)
    assert [shared.next(log, EPOCH, 1) for log in logs] == [0, 100, 200, 300]


def test_activation_requires_higher_epoch() -> None:
    shared = SharedSequencer()
    assert shared.activate(LOG, EPOCH, 10)
    assert not shared.activate(LOG, EPOCH, 20)
    assert not shared.activate(LOG, EPOCH - 1, 20)
    assert shared.next(LOG, EPOCH, 1) == 10
    assert shared.activate(LOG, EPOCH + 1, 50)
    assert shared.next(LOG, EPOCH, 1) is None
    assert shared.next(LOG, EPOCH + 1, 1) == 50


def test_released_log_frees_space_for_another() -> None:
    shared = SharedSequencer()
    for log in range(1024):
        assert shared.activate(log, EPOCH, log)
    with pytest.raises(SequencerUnavailable, match="1024 logs"):
        shared.activate(5000, EPOCH, 0)
    shared.release(11)
    shared.release(11)
    assert shared.next(11, EPOCH, 1) is None
    assert shared.activate(5000, EPOCH, 42)
    assert shared.next(5000, EPOCH, 1) == 42
    assert shared.next(1023, EPOCH, 1) == 1023


def test_positions_do_not_overflow() -> None:
    shared = SharedSequencer()
    assert shared.activate(LOG, EPOCH, 2**63 - 2)
    with pytest.raises(LogExhausted):
        shared.next(LOG, EPOCH, 2)
    assert shared.next(LOG, EPOCH, 1) == 2**63 - 2


def test_wait_returns_once_tail_passed(tmp_path: Path) -> None:
    shared = SharedSequencer(tmp_path)
    assert shared.activate(LOG, EPOCH, 0)
    other = SharedSequencer(tmp_path)
    granter = threading.Timer(0.1, other.next, (LOG, EPOCH, 3))
    granter.start()
    assert shared.wait(LOG, EPOCH, 1, SECONDS) == 3
    granter.join()
    assert shared.wait(LOG, EPOCH, 3, 0.05) is None


def test_wait_ends_when_epoch_ends() -> None:
    shared = SharedSequencer()
    assert shared.activate(LOG, EPOCH, 0)
    successor = threading.Timer(0.1, shared.activate, (LOG, EPOCH + 1, 0))
    successor.start()
    begin = time.monotonic()
    assert shared.wait(LOG, EPOCH, 0, SECONDS) is None
    assert time.monotonic() - begin < SECONDS / 2
    successor.join()


def test_signal_interrupts_wait() -> None:
    shared = SharedSequencer()
    assert shared.activate(LOG, EPOCH, 0)
    interrupt_soon()
    with pytest.raises(KeyboardInterrupt):
        shared.wait(LOG, EPOCH, 0, SECONDS)


GRANT = f"""
    import sys
    from zlog._native.local import SharedSequencer
    shared = SharedSequencer(sys.argv[1])
    input()
    print(*(shared.next({LOG}, {EPOCH}, 1) for _ in range(int(sys.argv[2]))))
"""


def test_processes_get_different_positions(tmp_path: Path) -> None:
    assert SharedSequencer(tmp_path).activate(LOG, EPOCH, 0)
    processes = [start(GRANT, tmp_path, 20000) for _ in range(3)]
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    grants = [[int(word) for word in finish(process).split()] for process in processes]
    assert sorted(itertools.chain(*grants)) == list(range(60000))
    assert all(sorted(each) == each for each in grants)


def test_concurrent_processes_share_sequencer(tmp_path: Path) -> None:
    code = f"""
        import sys
        from zlog._native.local import SharedSequencer
        shared = SharedSequencer(sys.argv[1])
        shared.activate({LOG}, {EPOCH}, 0)
        print(shared.next({LOG}, {EPOCH}, 1))
    """
    processes = [start(code, tmp_path) for _ in range(4)]
    assert sorted(int(finish(process)) for process in processes) == [0, 1, 2, 3]


# Where the slots lie in the file, and the mutex of the slot that LOG gets: its first member.
FIRST_SLOT, SLOT_BYTES = 256, 128


def hold_lock_and_die(directory: Path) -> None:
    """Lock the log's slot in a child process, by the C library itself, and kill the child."""
    child = os.fork()
    if child == 0:
        with (directory / "sequencer").open("r+b") as file:
            memory = mmap.mmap(file.fileno(), 0)
            at = ctypes.addressof(ctypes.c_char.from_buffer(memory, FIRST_SLOT + LOG * SLOT_BYTES))
            if ctypes.CDLL(None).pthread_mutex_lock(ctypes.c_void_p(at)) == 0:
                os.kill(os.getpid(), signal.SIGKILL)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


def test_killed_process_costs_one_activation(tmp_path: Path) -> None:
    shared = SharedSequencer(tmp_path)
    assert shared.activate(LOG, EPOCH, 10)
    hold_lock_and_die(tmp_path)
    assert shared.next(LOG, EPOCH, 1) is None, "what it left behind can't be trusted"
    assert shared.tail(LOG, EPOCH) is None
    assert not shared.activate(LOG, EPOCH, 10)
    assert shared.activate(LOG, EPOCH + 1, 20)
    assert shared.next(LOG, EPOCH + 1, 1) == 20


@pytest.mark.parametrize("damage", ["reboot", "version", "cut", "garbage"])
def test_unusable_file_is_replaced(tmp_path: Path, damage: str) -> None:
    shared = SharedSequencer(tmp_path)
    assert shared.activate(LOG, EPOCH, 10)
    path = tmp_path / "sequencer"
    content = bytearray(path.read_bytes())
    if damage == "reboot":
        content[16:52] = b"00000000-0000-0000-0000-000000000000"
    elif damage == "version":
        content[8] += 1
    elif damage == "cut":
        del content[-1]
    else:
        content[:] = b"no sequencer"
    path.unlink()
    path.write_bytes(content)
    fresh = SharedSequencer(tmp_path)
    assert fresh.next(LOG, EPOCH, 1) is None
    assert fresh.activate(LOG, EPOCH + 1, 50)
    assert fresh.next(LOG, EPOCH + 1, 1) == 50
    assert shared.next(LOG, EPOCH, 1) == 10, "who had the old file keeps it, and its stale epoch"


def test_sequencer_works_across_fork(tmp_path: Path) -> None:
    code = f"""
        import os, sys
        from zlog._native.local import SharedSequencer
        shared = SharedSequencer(sys.argv[1])
        shared.activate({LOG}, {EPOCH}, 0)
        if os.fork() == 0:
            os._exit(shared.next({LOG}, {EPOCH}, 5))
        assert os.waitstatus_to_exitcode(os.wait()[1]) == 0
        print(shared.next({LOG}, {EPOCH}, 1))
    """
    assert run(code, tmp_path).strip() == "5"


def test_missing_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SequencerUnavailable, match="No such file"):
        SharedSequencer(tmp_path / "missing")
