"""An audit of a log in use: nothing that is under way is taken for a fault."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

import zlog
from zlog import FindingKind

from ..support.logs import leave_hole, new_epoch

UNITS = (1, 4)
SECONDS = 3.0
WRITERS = 4


class Users:
    """Threads that use a log, each with a handle of its own, until they are stopped."""

    def __init__(self, store: zlog.Store) -> None:
        self._store = store
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []
        self.failures: list[BaseException] = []

    def start(self, use: Callable[[zlog.Log, int], object], pause: float = 0) -> None:
        """Let one more thread do something again and again."""
        number = len(self._threads)

        def run() -> None:
            try:
                with zlog.Log.open(self._store, "orders", hole_timeout=0.05) as log:
                    while not self._stop.wait(pause):
                        use(log, number)
            except BaseException as failure:
                self.failures.append(failure)
                raise

        self._threads.append(threading.Thread(target=run))
        self._threads[-1].start()

    def stop(self) -> None:
        """Stop all of them."""
        self._stop.set()
        for thread in self._threads:
            thread.join(30)


def change_layout(log: zlog.Log, _number: int) -> None:
    """Bring in a new epoch, or a new stripe."""
    new_epoch(log)
    log.reconfigure(width=2 + log.view.live_stripe.width % 4)


def read_on(log: zlog.Log, _number: int) -> None:
    """Read what is near the tail, and fill the holes there."""
    for _ in log.read_range(max(0, log.tail() - 500)):
        pass


@pytest.mark.usefixtures("sequenced")
def test_a_sound_log_is_sound_while_it_is_used(store: zlog.Store) -> None:
    auditor = zlog.Log.open(store, "orders")  # as patient as by default
    users = Users(store)
    for _ in range(WRITERS):
        users.start(lambda log, number: log.append_many([b"%d" % number * 50] * 37))
    users.start(read_on, 0.01)
    users.start(lambda log, _: leave_hole(log), 0.05)
    users.start(lambda log, _: log.trim_to(log.tail() * 2 // 3), 0.1)
    users.start(change_layout, 0.2)
    audits = 0
    until = time.monotonic() + SECONDS
    try:
        while time.monotonic() < until or not audits:
            audit = auditor.check()
            found = list(audit)
            assert [each for each in found if each.kind is not FindingKind.HOLE] == []
            assert audit.summary.lost == 0
            audits += 1
    finally:
        users.stop()
    assert users.failures == []
    list(auditor.read_range())  # fills what is left
    audit = auditor.check()
    assert list(audit) == []
    assert audit.summary.positions > 0
