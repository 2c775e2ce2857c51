"""The state of the machine: connections, logs and waits, and the effects that it requests."""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass
from itertools import count
from typing import NamedTuple

from zlog._base.sequencer import Grant, LogAddress
from zlog._sequencer.frames import FRAME, TAIL_MAX, Code, Kind, Payload, RawFrame
from zlog.seqr.machine._grants import Counters, LogTail, Stream
from zlog.seqr.machine.admission import Greeting, Reason

_COMPACT_MIN = 64


class Connection(Stream["LogState"]):
    """The sequencer's state of one client's connection.

    Attributes:
        origin: the client's IP address.
        counted: whether the client has sent a HELLO and counts towards the limit of clients.
        greeting: what the client has shown before its first request.
        outstanding: the number of OPENs and WAITs that are not answered yet.
        open: an OPEN whose payload has not arrived completely, if any.
    """

    def __init__(self, counters: Counters) -> None:
        super().__init__(counters)
        self.origin = ""
        self.counted = False
        self.greeted = False
        self.greeting = Greeting()
        self.handles: dict[LogAddress, int] = {}
        self.open: tuple[RawFrame, Payload] | None = None
        self.outstanding = 0
        self.waits: set[Wait] = set()


@dataclass(eq=False, slots=True)
class Wait:
    """A WAIT. It is in two heaps: its log's, by position, and the machine's, by time."""

    connection: Connection
    handle: int
    request: int
    log: LogState
    position: int
    answered: bool = False


class WaitHeap:
    """A heap of waiting requests, ordered by the position or the time at which each wait ends.

    Each request is in one heap of each kind, because either event can end its wait. After one heap
    has ended the wait, the other heap keeps the request until it reaches the top, or until most of
    that heap's requests are answered.
    """

    __slots__ = ("_answered", "_heap", "_order")

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Wait]] = []
        self._order = count()
        self._answered = 0

    def __len__(self) -> int:
        return len(self._heap)

    def push(self, key: float, wait: Wait) -> None:
        """Add a wait."""
        heapq.heappush(self._heap, (key, next(self._order), wait))

    def first(self) -> float | None:
        """Return the lowest key of an unanswered wait, if there is one."""
        heap = self._heap
        while heap and heap[0][2].answered:
            heapq.heappop(heap)
            self._answered -= 1
        return heap[0][0] if heap else None

    def pop_through(self, key: float) -> list[Wait]:
        """Remove the waits up to and including ``key``. Returns the unanswered ones."""
        waits = []
        heap = self._heap
        while heap and heap[0][0] <= key:
            wait = heapq.heappop(heap)[2]
            if wait.answered:
                self._answered -= 1
            else:
                waits.append(wait)
        return waits

    def note_answered(self) -> None:
        """Note that one of the waits was answered through the other heap."""
        self._answered += 1
        if self._answered > _COMPACT_MIN and 2 * self._answered > len(self._heap):
            self._heap = [item for item in self._heap if not item[2].answered]
            heapq.heapify(self._heap)
            self._answered = 0


class Opener(NamedTuple):
    """An OPEN that waits until its log is taken over, or its epoch was checked."""

    connection: Connection
    request: int
    dead_epoch: int


class LogState(LogTail):
    """What the sequencer knows about a log that clients have opened.

    A log is idle, with epoch 0, until the sequencer has taken it over. It is idle again as soon as
    the sequencer learns of a higher epoch.

    Attributes:
        epoch_last: the highest epoch in which the log was active here. The next one must be higher.
        first: the first position of the newest epoch.
        granted_before: the number of positions granted in earlier epochs.
        handles: the number of connections that have the log open.
        checked: the time of the next check of the epoch or, if none is planned, of the last check.
    """

    __slots__ = (
        "activating",
        "address",
        "checked",
        "epoch_last",
        "first",
        "granted_before",
        "handles",
        "openers",
        "waits",
    )

    def __init__(self, address: LogAddress) -> None:
        self.address = address
        self.epoch_last = 0
        self.first = 0
        self.granted_before = 0
        self.waits = WaitHeap()
        self.activating = False
        self.openers: list[Opener] = []
        self.handles = 0
        self.checked = -math.inf

    @property
    def granted(self) -> int:
        """Positions granted since the start, in all epochs."""
        return self.granted_before + self.tail - self.first

    @property
    def unused(self) -> bool:
        """Whether no client uses the log, so that the machine may forget it."""
        return not (self.handles or self.activating)

    def schedule_check(self, now: float, pause: float) -> float:
        """Schedule the next check of the epoch. Returns the seconds until then."""
        self.checked = max(now, self.checked + pause)
        return self.checked - now

    def activate(self, grant: Grant) -> None:
        """Start granting in a new epoch, from its tail on."""
        if self.epoch or grant.epoch <= self.epoch_last:
            raise ValueError(f"epoch {grant.epoch} does not follow {self.epoch_last}")
        self.granted_before = self.granted
        self.epoch = self.epoch_last = grant.epoch
        self.first = self.tail = grant.position

    def deactivate(self) -> list[Wait]:
        """Stop granting. Returns the unanswered waits."""
        self.epoch = 0
        self.wake_at = TAIL_MAX
        return self.waits.pop_through(TAIL_MAX)


class Send(NamedTuple):
    """Write these frames to a connection."""

    connection: Connection
    data: bytes


class Close(NamedTuple):
    """Close a connection after everything was sent."""

    connection: Connection
    reason: Reason
    detail: str


class Activate(NamedTuple):
    """Asks the driver to take over a log in a new epoch, and to report the result.

    Attributes:
        epoch: 0, or the active epoch if a client reports that it has ended. In this case, the
            driver must check the report first, and take over the log only if the report is true.
        delay: how many seconds to wait before the check.
    """

    log: LogAddress
    epoch: int = 0
    delay: float = 0.0


class Release(NamedTuple):
    """Install a view without a sequencer: this one has stopped granting."""

    log: LogAddress


Effect = Send | Close | Activate | Release


class Turn:
    """Collects the effects of one call of the machine: a write per connection, then the others."""

    def __init__(self) -> None:
        self.has_status = False  # whether it answers a STATUS
        self._sends: dict[Connection, list[bytes]] = {}
        self._effects: list[Effect] = []

    def frames(self, connection: Connection) -> list[bytes]:
        """Return the list of frames for ``connection``, for the caller to append to."""
        return self._sends.setdefault(connection, [])

    def refuse(self, connection: Connection, kind: int, request: int, code: Code) -> None:
        """Answer a request with a code alone."""
        self.frames(connection).append(FRAME.pack(kind, code, 0, request, 0, 0))

    def answer(self, wait: Wait, code: Code, a: int, b: int) -> None:
        """Answer a WAIT."""
        wait.answered = True
        wait.connection.waits.discard(wait)
        reply = FRAME.pack(Kind.WAIT, code, wait.handle, wait.request, a, b)
        self.frames(wait.connection).append(reply)

    def add(self, effect: Effect) -> None:
        """Add an effect other than frames."""
        self._effects.append(effect)

    def finish(self) -> list[Effect]:
        """Return the effects, in the order to carry them out."""
        sends: list[Effect] = [
            Send(connection, b"".join(frames))
            for connection, frames in self._sends.items()
            if frames
        ]
        return sends + self._effects
