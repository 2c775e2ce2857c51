"""The sequencer as a pure state machine: bytes and events in, bytes and effects out.

It has no socket, no clock and no store: its driver passes the time in seconds (monotonic) and
carries out the effects. So it can be tested and simulated to the last transition. The requests
that come by the million, NEXT and TAIL, are answered in C++ (``zlog.seqr.machine._grants``), which
keeps tails and epochs; what is here is all that is rare, and works on the same numbers.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable

from zlog._base.sequencer import Grant, LogAddress
from zlog._sequencer.frames import (
    FRAME,
    TAIL_MAX,
    Code,
    Kind,
    Payload,
    RawFrame,
    pack_payload,
)
from zlog.seqr.limits import Limits
from zlog.seqr.machine.admission import Admission, Reason
from zlog.seqr.machine.quotas import Occupancy
from zlog.seqr.machine.state import (
    Activate,
    Close,
    Connection,
    Effect,
    LogState,
    Opener,
    Release,
    Turn,
    Wait,
)
from zlog.seqr.machine.statistics import Statistics
from zlog.seqr.machine.waits import WaitHeap

_pack = FRAME.pack


class Machine:
    """All connections and all logs of one sequencer process.

    Args:
        address: what views and the directory say of this sequencer, for STATUS.
        version: of the program, for STATUS.
        now: the time of its start.
        limits: see there.
        describe: returns what STATUS tells beside what the machine knows.
        admission: who is served; None: all clients.
        identity: of the stores whose logs it serves; empty: that is not known.
    """

    def __init__(
        self,
        address: str,
        version: str,
        now: float,
        limits: Limits | None = None,
        describe: Callable[[], dict[str, object]] = dict,
        admission: Admission | None = None,
        identity: str = "",
    ) -> None:
        self._limits = limits or Limits()
        self._admission = admission or Admission()
        self._describe = describe
        self._identity = identity
        self._occupancy = Occupancy(self._limits)
        self._logs: dict[LogAddress, LogState] = {}
        self._timeouts: WaitHeap[Wait] = WaitHeap()
        self._stopping = False
        self._statistics = Statistics(address, version, now)
        self._statistics.positions_burst = self._limits.positions_burst
        self._statistics.positions_per_s = self._limits.positions_per_s

    @property
    def next_timeout(self) -> float | None:
        """When ``expire`` has something to do."""
        return self._timeouts.first()

    def connect(self, origin: str = "") -> tuple[Connection | None, bytes]:
        """Take a new connection; or None, with the frames to send before it is closed.

        Args:
            origin: the IP address that it comes from.
        """
        if self._stopping or not self._occupancy.has_room:
            code = Code.UNAVAILABLE if self._stopping else Code.LIMIT
            return None, _pack(Kind.HELLO, code, 0, 0, 0, 0)
        connection = Connection(self._statistics)
        self._occupancy.enter(connection, origin)
        return connection, b""

    def count(self, reason: Reason) -> None:
        """Count a connection that was refused or closed, for STATUS."""
        self._statistics.closed[reason] += 1

    def disconnect(self, connection: Connection) -> None:
        """Forget a connection that has ended, and what it waits for."""
        self._drop(connection)
        self._occupancy.leave(connection)

    def receive(self, connection: Connection, data: bytes, now: float) -> list[Effect]:
        """Take a chunk of a connection's stream, cut anywhere.

        A driver that has given a chunk to ``connection.answer`` itself, which is quicker, passes
        nothing here, and only if the connection is ``unfinished`` then.
        """
        if connection.closed:
            return []
        self._statistics.observe(now)
        turn = Turn()
        out = turn.frames(connection)
        while True:
            out.append(connection.answer(data, now))
            for log in connection.take_passed():
                self._wake(log, turn)
            frame = connection.take()
            if frame is None:
                return turn.finish()
            self._other(connection, frame, turn, now)
            data = b""

    def activated(self, address: LogAddress, grant: Grant) -> list[Effect]:
        """Hear that a log was taken over, in this epoch and with this tail.

        Raises:
            ValueError: the epoch is not above every earlier one, so that positions might be
                granted twice. Report it as a failed activation.
        """
        turn = Turn()
        log = self._logs[address]
        if self._stopping:
            log.activating = False
            turn.add(Release(address))
            return turn.finish()
        log.activate(grant)
        log.activating = False
        self._statistics.take_overs += 1
        # One may have learned of this epoch's end already; its next OPEN says so.
        self._end_openers(log, Code.OK, turn)
        return turn.finish()

    def epoch_lives(self, address: LogAddress) -> list[Effect]:
        """Hear that the epoch that a client held for dead is the newest: it goes on."""
        turn = Turn()
        log = self._logs[address]
        log.activating = False
        # Unless it was given up meanwhile, for another reason.
        self._end_openers(log, Code.OK if log.epoch else Code.UNAVAILABLE, turn)
        return turn.finish()

    def epoch_died(self, address: LogAddress) -> list[Effect]:
        """Hear that it is dead indeed: nothing more is granted in it. The take-over follows."""
        turn = Turn()
        self._deactivate(self._logs[address], Code.STALE_EPOCH, turn)
        return turn.finish()

    def activation_failed(self, address: LogAddress, code: Code) -> list[Effect]:
        """Hear that a log could not be taken over; the next OPEN tries again."""
        turn = Turn()
        self._statistics.take_over_failures += 1
        (log := self._logs[address]).activating = False
        self._end_openers(log, code, turn)
        if log.unused and not log.epoch_last:
            del self._logs[address]
        return turn.finish()

    def adopt(self, address: LogAddress) -> list[Effect]:
        """Take a log over before a client asks for it, unless it is active or about to be."""
        log = self._logs.get(address)
        if self._stopping or (log is not None and (log.epoch or log.activating)):
            return []
        log = log or self._new_log(address)
        if log is None:
            return []  # no room; a client that wants it will ask
        log.activating = True
        return [Activate(address)]

    def used(self, pool: str, namespace: str) -> set[str]:
        """Names of the logs of a namespace that some connection has open, or waits for."""
        used = (log.address for log in self._logs.values() if not log.unused)
        return {each.name for each in used if each[:2] == (pool, namespace)}

    def step_down(self, pool: str, namespace: str) -> list[Effect]:
        """Grant nothing more in the logs of a namespace: another sequencer leads there."""
        turn = Turn()
        for log in self._logs.values():
            if log.address[:2] == (pool, namespace):
                self._deactivate(log, Code.STALE_EPOCH, turn)
        return turn.finish()

    def doubt(self) -> list[Effect]:
        """Have all who wait look at their view: another sequencer may lead by now."""
        return self._end_waits(math.inf, Code.NOT_LEADER)

    def expire(self, now: float) -> list[Effect]:
        """Answer the WAITs whose time has passed."""
        return self._end_waits(now, Code.TIMEOUT)

    def stop(self) -> list[Effect]:
        """Grant nothing more, in any log, and ask to release the active ones."""
        self._stopping = True
        turn = Turn()
        for log in self._logs.values():
            if log.epoch:
                turn.add(Release(log.address))
            self._deactivate(log, Code.UNAVAILABLE, turn)
            self._end_openers(log, Code.UNAVAILABLE, turn)
        return turn.finish()

    def status(self, now: float) -> dict[str, object]:
        """Return what STATUS answers."""
        return self._describe() | self._statistics.report(
            now,
            len(self._occupancy),
            self._occupancy.outstanding,
            self._logs.values(),
            self._limits.status_logs_max,
        )

    # What a connection sends.

    def _other(self, connection: Connection, frame: RawFrame, turn: Turn, now: float) -> None:
        """Deal with a frame that the hot path leaves alone."""
        if connection.open is not None:
            self._open_payload(connection, frame, turn, now)
            return
        self._statistics.requests += 1
        kind, _, _, request, _, _ = frame
        if not connection.greeted:
            self._greet(connection, frame, turn)
        elif kind == Kind.WAIT:
            self._wait(connection, frame, turn, now)
        elif kind == Kind.OPEN:
            self._open(connection, frame, turn)
        elif kind == Kind.CLOSE:
            self._close_log(connection, frame, turn)
        elif kind == Kind.STATUS:
            self._status(connection, request, turn, now)
        else:
            turn.refuse(connection, kind, request, Code.BAD_REQUEST)
            self._close(connection, Reason.MALFORMED, f"a frame of type {kind}", turn)

    def _greet(self, connection: Connection, frame: RawFrame, turn: Turn) -> None:
        if frame[0] == Kind.HELLO and not self._occupancy.take_place(connection):
            turn.refuse(connection, Kind.HELLO, frame[3], Code.LIMIT)
            self._close(connection, Reason.LIMIT, "too many connections", turn)
            return
        answer, admitted, reason, detail = self._admission.hear(connection.greeting, frame)
        if answer:
            turn.frames(connection).append(answer)
        if admitted:
            self._occupancy.let_in(connection)
        elif reason is not None:
            self._close(connection, reason, detail, turn)

    def _status(self, connection: Connection, request: int, turn: Turn, now: float) -> None:
        if not turn.once():
            # Its answer is up to a million bytes: not once per 24 bytes of a chunk.
            turn.refuse(connection, Kind.STATUS, request, Code.LIMIT)
            return
        data = json.dumps(self.status(now), ensure_ascii=False, separators=(",", ":")).encode()
        turn.frames(connection).extend(
            (_pack(Kind.STATUS, Code.OK, 0, request, len(data), 0), pack_payload(data))
        )

    def _wait(self, connection: Connection, frame: RawFrame, turn: Turn, now: float) -> None:
        _, _, handle, request, position, milliseconds = frame
        log = connection.log(handle)
        if log is None or not log.epoch:
            code, a, b = Code.NOT_OPEN, 0, 0
        elif log.tail > position:
            code, a, b = Code.OK, log.tail, log.epoch
        elif not milliseconds:
            code, a, b = Code.TIMEOUT, log.tail, log.epoch
        elif not self._occupancy.may_wait(connection):
            code, a, b = Code.LIMIT, 0, 0
        else:
            wait = Wait(connection, handle, request, log, position)
            self._occupancy.begin_wait(connection)
            connection.waits.add(wait)
            log.waits.push(position, wait)
            log.wake_at = min(log.wake_at, position)
            self._timeouts.push(now + min(milliseconds, self._limits.wait_ms_max) / 1000, wait)
            return
        turn.frames(connection).append(_pack(Kind.WAIT, code, handle, request, a, b))

    # OPEN and what follows from it.

    def _open(self, connection: Connection, frame: RawFrame, turn: Turn) -> None:
        length = frame[4]
        if not 0 < length <= self._limits.open_bytes_max:
            turn.refuse(connection, Kind.OPEN, frame[3], Code.LIMIT)
            self._close(
                connection, Reason.MALFORMED, f"an OPEN with a payload of {length} bytes", turn
            )
            return
        connection.open = (frame, Payload(length))
        connection.expects_requests = False

    def _open_payload(
        self, connection: Connection, frame: RawFrame, turn: Turn, now: float
    ) -> None:
        assert connection.open is not None  # the caller has looked
        (_, _, _, request, _, dead_epoch), payload = connection.open
        payload.add(frame)
        if not payload.complete:
            return
        connection.open = None
        connection.expects_requests = True
        try:
            address = LogAddress.decode(payload.data())
        except ValueError:
            turn.refuse(connection, Kind.OPEN, request, Code.BAD_REQUEST)
            return
        if address.store not in ("", self._identity):
            turn.refuse(connection, Kind.OPEN, request, Code.OTHER_STORE)
            return
        address = address._replace(store="")
        code = self._open_log(Opener(connection, request, dead_epoch), address, turn, now)
        if code is not Code.OK:
            turn.refuse(connection, Kind.OPEN, request, code)

    def _open_log(self, opener: Opener, address: LogAddress, turn: Turn, now: float) -> Code:
        """Answer an OPEN, or see to it that it will be; a code other than OK refuses it.

        That an epoch is dead is only looked into: until it turns out to be true, grants go on.
        """
        if self._stopping:
            return Code.UNAVAILABLE
        log = self._logs.get(address)
        if log is not None and log.epoch > opener.dead_epoch:
            self._opened(opener, log, turn)
            return Code.OK
        if not self._occupancy.may_wait(opener.connection):
            return Code.LIMIT
        log = log or self._new_log(address)
        if log is None:
            return Code.LIMIT
        log.openers.append(opener)
        self._occupancy.begin_wait(opener.connection)
        if not log.activating:
            log.activating = True
            delay = log.look(now, self._limits.look_s) if log.epoch else 0.0
            turn.add(Activate(address, log.epoch, delay))
        return Code.OK

    def _opened(self, opener: Opener, log: LogState, turn: Turn) -> None:
        connection, request, _ = opener
        handle = connection.handles.get(log.address)
        if handle is None:
            if len(connection.handles) >= self._limits.logs_per_connection_max:
                turn.refuse(connection, Kind.OPEN, request, Code.LIMIT)
                return
            handle = connection.handles[log.address] = connection.add(log)
            log.handles += 1
        turn.frames(connection).append(
            _pack(Kind.OPEN, Code.OK, handle, request, log.epoch, log.tail)
        )

    def _close_log(self, connection: Connection, frame: RawFrame, turn: Turn) -> None:
        """Take a handle back; what waits for the log gets its answer all the same."""
        _, _, handle, request, _, _ = frame
        log = connection.log(handle)
        if log is not None:
            connection.remove(handle)
            del connection.handles[log.address]
            log.handles -= 1
        code = Code.NOT_OPEN if log is None else Code.OK
        turn.frames(connection).append(_pack(Kind.CLOSE, code, handle, request, 0, 0))

    def _end_openers(self, log: LogState, code: Code, turn: Turn) -> None:
        """Answer the OPENs that wait; a code other than OK refuses them."""
        openers, log.openers = log.openers, []
        for opener in openers:
            self._occupancy.end_wait(opener.connection)
            if opener.connection.closed:
                continue
            if code is Code.OK:
                self._opened(opener, log, turn)
            else:
                turn.refuse(opener.connection, Kind.OPEN, opener.request, code)

    def _new_log(self, address: LogAddress) -> LogState | None:
        """Make room for a log and enter it; None when every other one is in use.

        What is forgotten is taken over anew when it is opened.
        """
        if len(self._logs) >= self._limits.logs_max:
            unused = next((log for log in self._logs.values() if log.unused), None)
            if unused is None:
                return None
            self._statistics.positions += unused.granted
            del self._logs[unused.address]
        log = self._logs[address] = LogState(address)
        return log

    # Waits and endings.

    def _wake(self, log: LogState, turn: Turn) -> None:
        for wait in log.waits.pop_through(log.tail - 1):
            self._timeouts.note_answered()
            self._answer(turn, wait, Code.OK, log.tail, log.epoch)
        first = log.waits.first()
        log.wake_at = TAIL_MAX if first is None else int(first)

    def _end_waits(self, now: float, code: Code) -> list[Effect]:
        turn = Turn()
        for wait in self._timeouts.pop_through(now):
            wait.log.waits.note_answered()
            told = (wait.log.tail, wait.log.epoch) if code is Code.TIMEOUT else (0, 0)
            self._answer(turn, wait, code, *told)
        return turn.finish()

    def _answer(self, turn: Turn, wait: Wait, code: Code, a: int, b: int) -> None:
        self._occupancy.end_wait(wait.connection)
        turn.answer(wait, code, a, b)

    def _deactivate(self, log: LogState, code: Code, turn: Turn) -> None:
        epoch = log.epoch
        for wait in log.deactivate():
            self._timeouts.note_answered()
            self._answer(turn, wait, code, epoch if code is Code.STALE_EPOCH else 0, 0)

    def _close(self, connection: Connection, reason: Reason, detail: str, turn: Turn) -> None:
        """Ask for a connection to be closed.

        It takes a place until it has ended, since that may take long where the peer does not read.
        """
        self._drop(connection)
        turn.add(Close(connection, reason, detail))

    def _drop(self, connection: Connection) -> None:
        """Hear and tell nothing more on a connection."""
        if connection.closed:
            return
        for wait in connection.waits:
            wait.answered = True
            wait.log.waits.note_answered()
            self._timeouts.note_answered()
            self._occupancy.end_wait(connection)
        connection.waits.clear()
        for log in connection.close():
            log.handles -= 1
        connection.handles.clear()
