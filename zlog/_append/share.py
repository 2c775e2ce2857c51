"""Blocking appends of several threads travel together: one grant, one write per stripe object.

The first thread to come leads a round: it waits until the round before is over, and sends what has
gathered until then. The others wait for it. No thread is needed but theirs, and a thread that is
alone sends its entry at once.
"""

from __future__ import annotations

import threading

from zlog._append.append import Appender
from zlog._append.outcomes import Failed, not_confirmed, not_sent
from zlog._append.rounds import ROUND_BYTES_MAX, ROUND_ENTRIES_MAX
from zlog._base.io import Io, deadline_of
from zlog._io import drive
from zlog._native.mutex import Mutex
from zlog._native.share import SharedRound, SharedRounds
from zlog.errors import StoreTimeout

_GAP_SECONDS = 0.0001
"""How long a leader waits for the next thread of the round before, which appends again as soon as
it runs: they are woken one after the other. Without them, every other round would be theirs."""

_WAIT_SECONDS_MAX = 0.005


class SharedAppends:
    """Sends the appends of all threads in rounds.

    Attributes:
        append: appends one entry and returns its position. It raises StoreTimeout also when the
            time was up before the entry was sent. Once it is sent it has the time of its round, so
            that the call can take twice its budget at most.
    """

    def __init__(self, appender: Appender, io: Io, timeout: float | None) -> None:
        self._appender = appender
        self._io = io
        self._timeout = timeout
        self._turn = Mutex(brief=False)  # of the leader whose round is under way
        self._rounds = SharedRounds(
            self._turn,
            self._lead,
            appender.check,
            not_sent,
            not_confirmed,
            timeout,
            appender.entry_bytes_max,
            ROUND_ENTRIES_MAX,
            ROUND_BYTES_MAX,
        )
        self._expected = 1  # entries: as many threads were here a moment ago
        self._patience = 0.0  # seconds that a leader waits for all of them
        self.append = self._rounds.append

    def drain(self) -> None:
        """Do nothing: each append is waited for by the thread that called it."""

    def _lead(self, gathering: SharedRound, deadline: float) -> None:
        """Send what gathers, when it is its turn."""
        left = max(0.0, deadline - self._io.monotonic())
        if not self._turn.acquire(timeout=min(left, threading.TIMEOUT_MAX)):
            raise not_sent()
        try:
            self._wait_for_others(gathering)
            self._send(gathering)
        finally:
            self._turn.release()

    def _wait_for_others(self, gathering: SharedRound) -> None:
        """Wait as long as others come, but no longer than the round before took."""
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
        except Exception as error:  # noqa: BLE001 - all whose entries were sent are told
            gathering.outcomes = Failed(error, (None,) * len(entries)).outcomes()
        except BaseException:  # a signal's handler ended the leader's call, and not those of others
            gathering.outcomes = Failed(_interrupted(), (None,) * len(entries)).outcomes()
            raise
        finally:
            self._patience = min(self._io.monotonic() - began, _WAIT_SECONDS_MAX)
            self._expected = len(entries) + self._rounds.joined - joined


def _interrupted() -> StoreTimeout:
    return StoreTimeout(
        "the thread that was sending the entry was interrupted",
        hint="Whether the entry is in the log is unknown.",
    )
