"""Sends concurrent appends of one handle together, with one grant and one write per stripe object.

On an event loop, an append is sent at once if no round is in flight. Otherwise it waits, and all
waiting appends are sent together when a round returns. Rounds therefore grow with the load.

With threads, the first thread to append leads a round. It waits until the previous round is over,
then sends its own entry and those of the threads that have joined it in the meantime. A thread that
appends alone does not wait.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from functools import partial

from zlog._append.append import Appender
from zlog._append.rounds import (
    ROUND_BYTES_MAX,
    ROUND_ENTRIES_MAX,
    Failed,
    RoundPolicy,
    interrupted,
    not_confirmed,
    not_sent,
)
from zlog._base.io import Io, deadline_of
from zlog._io import drive
from zlog._native.gather import Append, Gathering
from zlog._native.mutex import Mutex
from zlog._native.share import SharedRound, SharedRounds
from zlog.environment import world_of

_WAITING_BYTES_MAX = 64 << 20
"""How many bytes of data may wait to be sent. Later appends are held back."""


class Coalescer:
    """Sends the appends of one event loop in rounds.

    Attributes:
        append: a function that returns a coroutine to append one entry. The coroutine raises
            StoreTimeout if the timeout passes before the entry is sent. Once the entry is sent, the
            coroutine waits for the end of the round, so it can take up to twice its timeout.
    """

    def __init__(self, appender: Appender, io: Io, timeout: float | None) -> None:
        self._appender = appender
        self._io = io
        self._timeout = timeout
        self._loop = loop = asyncio.get_running_loop()
        self._gathering = Gathering(
            loop, self._send, appender, _WAITING_BYTES_MAX, timeout, world_of(loop).clock
        )
        self._rounds: set[asyncio.Task[Sequence[int] | Failed]] = set()
        self._under_way = 0  # the number of entries in the rounds in flight
        self._policy = RoundPolicy(io.store)
        self.append = self._gathering.append

    @property
    def waiting_bytes(self) -> int:
        """The bytes of data that wait to be sent, not counting appends that are held back."""
        return self._gathering.waiting_bytes

    async def drain(self) -> None:
        """Wait until all submitted appends are acknowledged or have failed."""
        while self._rounds or len(self._gathering):
            if self._rounds:
                await asyncio.wait(self._rounds)
            else:
                await asyncio.sleep(0)

    def _send(self) -> None:
        gathering = self._gathering
        while len(gathering) and len(self._rounds) < self._rounds_max():
            share = self._policy.share(len(gathering) + self._under_way)
            entries, appends, late = gathering.take(share, ROUND_BYTES_MAX)
            gathering.complete(late, [not_sent() for _ in late])
            if entries:
                deadline = deadline_of(self._io, self._timeout)
                work = self._appender.append_round(entries, 0, len(entries), deadline)
                task = self._loop.create_task(work)
                self._rounds.add(task)
                self._under_way += len(appends)
                task.add_done_callback(partial(self._finished, appends))
        gathering.alert = len(self._rounds) < self._rounds_max()

    def _rounds_max(self) -> int:
        return self._policy.rounds_max(len(self._gathering) + self._under_way)

    def _finished(self, appends: list[Append], task: asyncio.Task[Sequence[int] | Failed]) -> None:
        self._rounds.discard(task)
        self._under_way -= len(appends)
        error = asyncio.CancelledError() if task.cancelled() else task.exception()
        appended = task.result() if error is None else Failed(error, (None,) * len(appends))
        outcomes = appended.outcomes() if isinstance(appended, Failed) else appended
        self._gathering.complete(appends, outcomes)
        # This runs after the tasks of this round, so that their next appends are sent together.
        self._loop.call_soon(self._send)


_GAP_SECONDS = 0.0001
"""How long a leader waits for each further thread of the previous round. Those threads are woken
one after another, and append again as soon as they run. Without this wait, the threads would split
into two groups that take turns."""

_WAIT_SECONDS_MAX = 0.005


class SharedAppends:
    """Sends the appends of all threads in rounds.

    Attributes:
        append: a function that appends one entry and returns its position. It raises StoreTimeout
            if the timeout passes before the entry is sent. Once the entry is sent, the call waits
            for the end of the round, so it can take up to twice its timeout.
    """

    def __init__(self, appender: Appender, io: Io, timeout: float | None) -> None:
        self._appender = appender
        self._io = io
        self._timeout = timeout
        self._turn = Mutex(brief=False)  # held while a round is in flight
        self._rounds = SharedRounds(
            self._turn,
            self._lead,
            appender,
            not_sent,
            not_confirmed,
            timeout,
            ROUND_ENTRIES_MAX,
            ROUND_BYTES_MAX,
        )
        self._expected = 1  # how many entries to expect: as many as threads have just appended
        self._patience = 0.0  # how many seconds a leader waits for these entries
        self.append = self._rounds.append

    def drain(self) -> None:
        """Do nothing, because each thread waits for its own append."""

    def _lead(self, gathering: SharedRound, deadline: float) -> None:
        """Send the gathered entries once the previous round is over."""
        left = max(0.0, deadline - self._io.monotonic())
        if not self._turn.acquire(timeout=min(left, threading.TIMEOUT_MAX)):
            raise not_sent()
        try:
            self._wait_for_others(gathering)
            self._send(gathering)
        finally:
            self._turn.release()

    def _wait_for_others(self, gathering: SharedRound) -> None:
        """Wait while other threads arrive, but no longer than the previous round took."""
        if len(gathering) >= self._expected:
            return
        enough = gathering.wait_for(self._expected)
        end = self._io.monotonic() + self._patience
        came = 0
        while came < len(gathering) and self._io.monotonic() < end:
            came = len(gathering)
            if enough.acquire(timeout=_GAP_SECONDS):
                return

    def _send(self, gathering: SharedRound) -> None:
        entries = gathering.close()
        joined, began = self._rounds.joined, self._io.monotonic()
        try:
            round_deadline = deadline_of(self._io, self._timeout)
            work = self._appender.append_round(entries, 0, len(entries), round_deadline)
            appended = drive(work)
            gathering.outcomes = appended.outcomes() if isinstance(appended, Failed) else appended
        except Exception as error:  # noqa: BLE001 - passed to all appends of the round
            gathering.outcomes = Failed(error, (None,) * len(entries)).outcomes()
        except BaseException:  # a signal handler ended only the leader's call
            gathering.outcomes = Failed(interrupted(), (None,) * len(entries)).outcomes()
            raise
        finally:
            self._patience = min(self._io.monotonic() - began, _WAIT_SECONDS_MAX)
            self._expected = len(entries) + self._rounds.joined - joined
