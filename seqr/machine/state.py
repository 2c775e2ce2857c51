"""What the machine remembers: connections, logs, and the effects that it asks for."""

from __future__ import annotations

import math
from typing import NamedTuple

from zlog._base.sequencer import Grant, LogAddress
from zlog._sequencer.frames import FRAME, TAIL_MAX, Code, Kind, Payload, RawFrame
from zlog.seqr.machine._grants import Counters, LogTail, Stream
from zlog.seqr.machine.admission import Greeting, Reason
from zlog.seqr.machine.waits import WaitHeap


class Connection(Stream["LogState"]):
    """One client's side of the machine.

    Life: connected → greeted (it was let in) → closed.

    Attributes:
        origin: the IP address that it comes from.
        placed: whether it has one of the places for clients.
        greeting: how far it has come until it is greeted.
        outstanding: its OPENs and WAITs that wait for an answer.
    """

    __slots__ = (
        "greeted",
        "greeting",
        "handles",
        "open",
        "origin",
        "outstanding",
        "placed",
        "waits",
    )

    def __init__(self, counters: Counters) -> None:
        super().__init__(counters)
        self.origin = ""
        self.placed = False
        self.greeted = False
        self.greeting = Greeting()
        self.handles: dict[LogAddress, int] = {}
        self.open: tuple[RawFrame, Payload] | None = None
        """An OPEN whose payload is still arriving."""
        self.outstanding = 0
        self.waits: set[Wait] = set()


class Wait:
    """One unanswered WAIT. It stands in its log's heap, by position, and in the one by time."""

    __slots__ = ("answered", "connection", "handle", "log", "position", "request")

    def __init__(
        self, connection: Connection, handle: int, request: int, log: LogState, position: int
    ) -> None:
        self.connection = connection
        self.handle = handle
        self.request = request
        self.log = log
        self.position = position
        self.answered = False


class Opener(NamedTuple):
    """An OPEN that waits, for its log's activation or to hear whether the epoch lives."""

    connection: Connection
    request: int
    dead_epoch: int


class LogState(LogTail):
    """One log. Its epoch and tail are where ``zlog.seqr.machine._grants`` works on them.

    Life: idle → activating → active → idle again, when a higher epoch becomes known. ``epoch`` is
    0 unless active.

    Attributes:
        epoch_last: the highest epoch that was ever active here; the next must be above it.
        first: the first position of the newest epoch.
        granted_before: positions handed out in earlier epochs; with ``tail - first``, all of them.
        handles: connections that have the log open.
        looked: when it was last looked whether the epoch lives, or will be.
    """

    __slots__ = (
        "activating",
        "address",
        "epoch_last",
        "first",
        "granted_before",
        "handles",
        "looked",
        "openers",
        "waits",
    )

    def __init__(self, address: LogAddress) -> None:
        self.address = address
        self.epoch_last = 0
        self.first = 0
        self.granted_before = 0
        self.waits: WaitHeap[Wait] = WaitHeap()
        self.activating = False
        self.openers: list[Opener] = []
        self.handles = 0
        self.looked = -math.inf

    @property
    def granted(self) -> int:
        """Positions handed out since the start, in all epochs."""
        return self.granted_before + self.tail - self.first

    @property
    def unused(self) -> bool:
        """Whether the machine may forget this log: no client uses it."""
        return not (self.handles or self.activating)

    def look(self, now: float, pause: float) -> float:
        """Note that it is looked whether the epoch lives; returns the seconds until it may be."""
        self.looked = max(now, self.looked + pause)
        return self.looked - now

    def activate(self, grant: Grant) -> None:
        """Begin to grant in a new epoch, from its tail on."""
        if self.epoch or grant.epoch <= self.epoch_last:
            raise ValueError(f"epoch {grant.epoch} does not follow {self.epoch_last}")
        self.granted_before = self.granted
        self.epoch = self.epoch_last = grant.epoch
        self.first = self.tail = grant.position

    def deactivate(self) -> list[Wait]:
        """Stop granting; return the waits that need an answer."""
        self.epoch = 0
        self.wake_at = TAIL_MAX
        return self.waits.pop_through(TAIL_MAX)


class Send(NamedTuple):
    """Write these frames to a connection."""

    connection: Connection
    data: bytes


class Close(NamedTuple):
    """Close a connection after what was sent to it is out."""

    connection: Connection
    reason: Reason
    detail: str


class Activate(NamedTuple):
    """Take the log over in a new epoch, and tell the machine how it went.

    Attributes:
        log: which.
        epoch: in which it is active, if it is: 0, or one that a client holds for dead. Then nothing
            is to be done unless it is.
        delay: seconds after which it may be looked whether it is.
    """

    log: LogAddress
    epoch: int = 0
    delay: float = 0.0


class Release(NamedTuple):
    """Propose a view without a sequencer: this one has stopped granting for good."""

    log: LogAddress


Effect = Send | Close | Activate | Release


class Turn:
    """Collects what one call of the machine leads to: one write per connection, then the rest."""

    __slots__ = ("_effects", "_once", "_sends")

    def __init__(self) -> None:
        self._once = False
        self._sends: dict[Connection, list[bytes]] = {}
        self._effects: list[Effect] = []

    def frames(self, connection: Connection) -> list[bytes]:
        """Return the list of frames that go to ``connection``, to be appended to."""
        return self._sends.setdefault(connection, [])

    def refuse(self, connection: Connection, kind: int, request: int, code: Code) -> None:
        """Answer a request with nothing but a code."""
        self.frames(connection).append(FRAME.pack(kind, code, 0, request, 0, 0))

    def answer(self, wait: Wait, code: Code, a: int, b: int) -> None:
        """Answer a WAIT, which ends it."""
        wait.answered = True
        wait.connection.waits.discard(wait)
        reply = FRAME.pack(Kind.WAIT, code, wait.handle, wait.request, a, b)
        self.frames(wait.connection).append(reply)

    def add(self, effect: Effect) -> None:
        """Ask for something other than frames."""
        self._effects.append(effect)

    def once(self) -> bool:
        """Return True the first time: for what a turn does at most once."""
        before, self._once = self._once, True
        return not before

    def finish(self) -> list[Effect]:
        """Return the effects in the order in which they must happen."""
        sends: list[Effect] = [
            Send(connection, b"".join(frames))
            for connection, frames in self._sends.items()
            if frames
        ]
        return sends + self._effects
