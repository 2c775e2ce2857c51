"""Blocking appends of several threads travel together: one grant, one write per stripe object.

The first thread to come leads a round: it waits until the round before is over, and sends what has
gathered until then. The others wait for it. No thread is needed but theirs, and a thread that is
alone sends its entry at once.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

from zlog._append.append import Appender
from zlog._append.outcomes import not_sent, outcomes_of
from zlog._append.rounds import ROUND_BYTES_MAX, ROUND_ENTRIES_MAX
from zlog._base.deadline import Deadline
from zlog._base.io import Io, deadline_of
from zlog._base.protocol import ENTRY_TAGS_MAX, TAG_BYTES_MAX, TAG_NAMES_BYTES_MAX
from zlog._io import drive
from zlog._native import core
from zlog._native.core import Latch, Tagged
from zlog.errors import StoreTimeout

if TYPE_CHECKING:
    from zlog._native.core import NewEntry

_TAGS_BYTES_MAX = TAG_NAMES_BYTES_MAX - ENTRY_TAGS_MAX * (1 + TAG_BYTES_MAX)
"""Bytes of tags after which a round takes no more: those of one more entry may fit no more."""

_PATIENCE = 0.25
"""How long a leader waits for the threads of the round before, which append again as soon as they
run: this part of the time that the round took. Without them, every other round would be theirs."""

_PATIENCE_SECONDS_MAX = 0.005


class SharedAppends:
    """Sends the appends of all threads in rounds."""

    def __init__(self, appender: Appender, io: Io, timeout: float | None) -> None:
        self._appender = appender
        self._io = io
        self._timeout = timeout
        self._mutex = threading.Lock()  # guards what follows, and what gathers
        self._gathering: _Gathering | None = None
        self._expected = 1  # entries: as many threads were here a moment ago
        self._turn = threading.Lock()  # of the leader whose round is under way
        self._patience = 0.0

    def append(self, data: NewEntry) -> int:
        """Append one entry and return its position.

        Raises:
            StoreTimeout: also when the time was up before the entry was sent. Once it is sent it
                has the time of its round, so that the call can take twice its budget at most.
        """
        if type(data) is not bytes or len(data) > self._appender.entry_bytes_max:
            self._appender.check((data,))
            (data,) = core.entries_owned((data,))  # a buffer may change meanwhile
        deadline = deadline_of(self._io, self._timeout)
        while True:
            gathering, index = self._join(data)
            if index == 0:
                self._lead(gathering, deadline)
            elif not gathering.over.wait(deadline.remaining()):
                self._leave(gathering, index)
                gathering.over.wait()
            if not gathering.dropped:
                return gathering.outcome(index)
            if deadline.expired:
                raise not_sent()

    def _join(self, data: NewEntry) -> tuple[_Gathering, int]:
        """Add an entry to what gathers; returns which one it is there. The first one leads."""
        with self._mutex:
            gathering = self._gathering
            if gathering is None or gathering.full:
                gathering = self._gathering = _Gathering()
            return gathering, gathering.add(data)

    def _leave(self, gathering: _Gathering, index: int) -> None:
        """Take an entry back whose time is up, unless it has been sent."""
        with self._mutex:
            if not gathering.closed:
                gathering.entries[index] = None
                raise not_sent()

    def _lead(self, gathering: _Gathering, deadline: Deadline) -> None:
        """Send what gathers, when it is its turn. Whatever happens, the others wait no longer."""
        left = deadline.remaining()
        try:
            if not self._turn.acquire(timeout=-1 if left is None else left):
                raise not_sent()
            try:
                self._wait_for_others(gathering)
                self._send(gathering)
            finally:
                self._turn.release()
        finally:
            self._close(gathering)
            gathering.over.open()

    def _wait_for_others(self, gathering: _Gathering) -> None:
        with self._mutex:
            if len(gathering.entries) >= self._expected:
                return
            enough = gathering.wait_for(self._expected)
        enough.acquire(timeout=self._patience)

    def _send(self, gathering: _Gathering) -> None:
        began = self._io.monotonic()
        entries = self._close(gathering)
        gathering.dropped = False
        try:
            round_deadline = deadline_of(self._io, self._timeout)
            gathering.outcomes = drive(self._appender.append_round(entries, round_deadline))
        except Exception as error:  # noqa: BLE001 - all whose entries were sent are told
            alone = len(entries) == 1
            gathering.outcomes = [error] if alone else outcomes_of(error, len(entries))
        except BaseException:  # a signal's handler ended the leader's call, and not those of others
            gathering.outcomes = outcomes_of(_interrupted(), len(entries))
            raise
        finally:
            took = self._io.monotonic() - began
            self._patience = min(_PATIENCE * took, _PATIENCE_SECONDS_MAX)
            with self._mutex:
                came = () if self._gathering is None else self._gathering.entries
                self._expected = len(entries) + len(came)

    def _close(self, gathering: _Gathering) -> list[NewEntry]:
        """Take in nothing more; returns what has gathered, without what was taken back."""
        with self._mutex:
            if self._gathering is gathering:
                self._gathering = None
            return gathering.close()


class _Gathering:
    """Entries that leave together.

    Attributes:
        entries: in the order in which they came; None where one was taken back.
        closed: whether no more are taken in.
        dropped: whether nothing was sent, as its leader had no more time: the others gather anew.
        outcomes: a position or an error for each that was sent.
        over: opened when there is nothing more to wait for.
    """

    __slots__ = (
        "_enough",
        "_size",
        "_tags",
        "_wanted",
        "closed",
        "dropped",
        "entries",
        "outcomes",
        "over",
    )

    def __init__(self) -> None:
        self.entries: list[NewEntry | None] = []
        self.closed = False
        self.dropped = True
        self.outcomes: Sequence[int | BaseException] = ()
        self.over = Latch()
        self._size = 0
        self._tags = 0
        self._wanted = 0
        self._enough: threading.Lock | None = None

    @property
    def full(self) -> bool:
        """Whether it takes no more."""
        return (
            len(self.entries) >= ROUND_ENTRIES_MAX
            or self._size >= ROUND_BYTES_MAX
            or self._tags > _TAGS_BYTES_MAX
        )

    def add(self, data: NewEntry) -> int:
        """Take an entry in; returns its index."""
        self.entries.append(data)
        self._size += len(data)
        if type(data) is Tagged:
            self._tags += core.tags_bytes((data,))
        if self._enough is not None and (len(self.entries) == self._wanted or self.full):
            self._enough.release()
            self._enough = None
        return len(self.entries) - 1

    def wait_for(self, count: int) -> threading.Lock:
        """Return a lock that is released when there are so many entries."""
        self._wanted, enough = count, threading.Lock()
        enough.acquire()
        self._enough = enough
        return enough

    def close(self) -> list[NewEntry]:
        """Take in no more; returns the entries that are to be sent."""
        self.closed = True
        self._enough = None
        return [each for each in self.entries if each is not None]

    def outcome(self, index: int) -> int:
        """Return the position of an entry that was sent, or raise what became of it."""
        sent = index - self.entries[:index].count(None)
        outcome = self.outcomes[sent]
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome


def _interrupted() -> StoreTimeout:
    return StoreTimeout(
        "the thread that was sending the entry was interrupted",
        hint="Whether the entry is in the log is unknown.",
    )
