"""Reading input while signals come."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import pytest

from zlog.cli.input import Input
from zlog.cli.signals import Terminated, terminable

SECONDS_MAX = 30


def test_signal_in_other_thread_interrupts_read(tmp_path: Path) -> None:
    """The kernel gives a signal to any thread: the one that reads goes on reading."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = threading.get_native_id()
    heeded = threading.Event()

    def terminate() -> None:
        with path.open("wb"):  # which returns when the other end is opened, too
            while not asleep(reader):
                heeded.wait(0.001)
            signal.pthread_kill(threading.get_ident(), signal.SIGTERM)
            heeded.wait(SECONDS_MAX)  # and then the input ends

    thread = threading.Thread(target=terminate)
    thread.start()
    stream = Input(str(path))
    with terminable(), pytest.raises(Terminated):
        stream.read()
    stream.close()
    heeded.set()
    thread.join()


def asleep(thread: int) -> bool:
    """Whether a thread of this process waits in the kernel."""
    stat = Path(f"/proc/self/task/{thread}/stat").read_text()
    return stat.rpartition(")")[2].split()[0] == "S"


def test_sighup_is_handled_once_and_respects_nohup() -> None:
    """The kernel and the shell both send SIGHUP: the second does not end what the first began."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with terminable():
            signal.raise_signal(signal.SIGHUP)
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        with terminable():
            with pytest.raises(Terminated):
                signal.raise_signal(signal.SIGHUP)
            signal.raise_signal(signal.SIGHUP)
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_DFL
    finally:
        signal.signal(signal.SIGHUP, before)
