"""The sequencer as a pure state machine: bytes and events in, bytes and effects out.

The machine does no I/O and reads no clock, so tests can cover every transition. Its driver passes
the time in seconds (monotonic) and carries out the effects. For speed, C++ code
(``zlog.seqr.machine._grants``) answers NEXT and TAIL, by far the most frequent requests, and stores
the tails and epochs, which this module also uses.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable

from zlog._base.sequencer import Grant, LogAddress
from zlog._sequencer.frames import FRAME, TAIL_MAX, Code, Kind, Payload, RawFrame, pack_payload
from zlog.seqr.limits import Limits
from zlog.seqr.machine.admission import Admission, Reason
from zlog.seqr.machine.quotas import Quotas
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
    WaitHeap,
)
from zlog.seqr.machine.statistics import Statistics

_pack = FRAME.pack


class Machine:
    """Serves all connections and logs of one sequencer process. It does no I/O itself.

    Args:
        describe: a function that returns additional fields for the answer to STATUS.
        admission: the rules that decide which clients are served; None serves all.
        identity: the identity of the store that holds the logs; empty if unknown.
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
        self.limits = limits or Limits()
        self._admission = admission or Admission()
        self._describe = describe
        self._identity = identity
        self._quotas = Quotas(self.limits)
        self._logs: dict[LogAddress, LogState] = {}
        self._timeouts = WaitHeap()
        self._stopping = False
        self._statistics = Statistics(address, version, now)
        self._statistics.positions_burst = self.limits.positions_burst
        self._statistics.positions_per_s = self.limits.positions_per_s

    @property
    def next_timeout(self) -> float | None:
        """When ``expire`` has to be called next, if at all."""
        return self._timeouts.first()

    def connect(self, origin: str = "") -> tuple[Connection | None, bytes]:
        """Accept a connection from an IP address, or return None and the frames that refuse it."""
        connection = Connection(self._statistics)
        connection.origin = origin
        if not self._stopping and self._quotas.add(connection):
            return connection, b""
        code = Code.UNAVAILABLE if self._stopping else Code.LIMIT
        return None, _pack(Kind.HELLO, code, 0, 0, 0, 0)

    def count(self, reason: Reason) -> None:
        """Count a refused or closed connection, for STATUS."""
        self._statistics.closed[reason] += 1

    def disconnect(self, connection: Connection) -> None:
        """Forget a connection that has ended, with its requests."""
        self._drop(connection)
        self._quotas.remove(connection)

    def receive(self, connection: Connection, data: bytes, now: float) -> list[Effect]:
        """Answer a chunk of a connection's stream, and return what the driver must do.

        To save time, the driver can pass the chunk to ``connection.answer`` first. It then calls
        this method only if the connection is ``unfinished``, and without data.
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
        """Begin to grant positions of a log that the driver has taken over.

        Raises:
            ValueError: the epoch is not above all earlier ones, so positions could be granted
                twice. The driver must report that the activation has failed.
        """
        log = self._logs[address]
        if self._stopping:
            log.activating = False
            return [Release(address)]
        log.activate(grant)
        self._statistics.take_overs += 1
        # If a client has learned of this epoch's end already, its next OPEN says so.
        return self._activation_ended(log, Code.OK)

    def epoch_lives(self, address: LogAddress) -> list[Effect]:
        """Note that an epoch that a client reported as ended is still the newest, and continues."""
        log = self._logs[address]
        # It may have been given up since, for another reason.
        return self._activation_ended(log, Code.OK if log.epoch else Code.UNAVAILABLE)

    def epoch_died(self, address: LogAddress) -> list[Effect]:
        """Note that the epoch has ended, and stop granting in it. The take-over follows."""
        turn = Turn()
        self._deactivate(self._logs[address], Code.STALE_EPOCH, turn)
        return turn.finish()

    def activation_failed(self, address: LogAddress, code: Code) -> list[Effect]:
        """Note that a log could not be taken over. The next OPEN tries again."""
        self._statistics.take_over_failures += 1
        log = self._logs[address]
        effects = self._activation_ended(log, code)
        if log.unused and not log.epoch_last:
            del self._logs[address]
        return effects

    def _activation_ended(self, log: LogState, code: Code) -> list[Effect]:
        turn = Turn()
        log.activating = False
        self._end_openers(log, code, turn)
        return turn.finish()

    def adopt(self, address: LogAddress) -> list[Activate]:
        """Take a log over before a client asks for it, unless it is active or being taken over."""
        log = self._logs.get(address)
        if self._stopping or (log is not None and (log.epoch or log.activating)):
            return []
        log = log or self._new_log(address)
        if log is None:
            return []  # too many logs; clients request it when they need it
        log.activating = True
        return [Activate(address)]

    def used(self, namespace: tuple[str, str]) -> set[str]:
        """Return the logs of a pool and namespace that a connection has open or waits for."""
        used = (log.address for log in self._logs.values() if not log.unused)
        return {each.name for each in used if each[:2] == namespace}

    def step_down(self, namespace: tuple[str, str]) -> list[Effect]:
        """Stop granting in the logs of a pool and namespace: another sequencer leads there."""
        turn = Turn()
        for log in self._logs.values():
            if log.address[:2] == namespace:
                self._deactivate(log, Code.STALE_EPOCH, turn)
        return turn.finish()

    def doubt(self) -> list[Effect]:
        """Answer all WAITs, so that clients read their views and find a new leader."""
        return self._end_waits(math.inf, Code.NOT_LEADER)

    def expire(self, now: float) -> list[Effect]:
        """Answer the WAITs whose time has passed."""
        return self._end_waits(now, Code.TIMEOUT)

    def stop(self) -> list[Effect]:
        """Stop granting, and request the release of the active logs."""
        self._stopping = True
        turn = Turn()
        for log in self._logs.values():
            if log.epoch:
                turn.add(Release(log.address))
            self._deactivate(log, Code.UNAVAILABLE, turn)
            self._end_openers(log, Code.UNAVAILABLE, turn)
        return turn.finish()

    def status(self, now: float) -> dict[str, object]:
        """Return the answer to STATUS."""
        report = self._statistics.report(now, self._logs.values(), self.limits.status_logs_max)
        load = {"connections": len(self._quotas), "outstanding": self._quotas.outstanding}
        return self._describe() | report | load

    def _other(self, connection: Connection, frame: RawFrame, turn: Turn, now: float) -> None:
        """Handle a frame that is neither NEXT nor TAIL."""
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
            self._close(connection, Reason.MALFORMED, f"unexpected frame of type {kind}", turn)

    def _greet(self, connection: Connection, frame: RawFrame, turn: Turn) -> None:
        if frame[0] == Kind.HELLO and not self._quotas.say_hello(connection):
            turn.refuse(connection, Kind.HELLO, frame[3], Code.LIMIT)
            self._close(connection, Reason.LIMIT, "too many connections", turn)
            return
        answer, admitted, reason, detail = self._admission.check(connection.greeting, frame)
        if answer:
            turn.frames(connection).append(answer)
        if admitted:
            self._quotas.admit(connection)
        elif reason is not None:
            self._close(connection, reason, detail, turn)

    def _status(self, connection: Connection, request: int, turn: Turn, now: float) -> None:
        if turn.has_status:
            # An answer has up to a million bytes, and a chunk could have a request per 24 bytes.
            turn.refuse(connection, Kind.STATUS, request, Code.LIMIT)
            return
        turn.has_status = True
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
        elif not self._quotas.may_wait(connection):
            code, a, b = Code.LIMIT, 0, 0
        else:
            wait = Wait(connection, handle, request, log, position)
            self._quotas.begin_wait(connection)
            connection.waits.add(wait)
            log.waits.push(position, wait)
            log.wake_at = min(log.wake_at, position)
            self._timeouts.push(now + min(milliseconds, self.limits.wait_ms_max) / 1000, wait)
            return
        turn.frames(connection).append(_pack(Kind.WAIT, code, handle, request, a, b))

    def _open(self, connection: Connection, frame: RawFrame, turn: Turn) -> None:
        length = frame[4]
        if not 0 < length <= self.limits.open_bytes_max:
            turn.refuse(connection, Kind.OPEN, frame[3], Code.LIMIT)
            self._close(
                connection,
                Reason.MALFORMED,
                f"OPEN with an invalid payload size of {length} bytes",
                turn,
            )
            return
        connection.open = (frame, Payload(length))
        connection.expects_requests = False

    def _open_payload(
        self, connection: Connection, frame: RawFrame, turn: Turn, now: float
    ) -> None:
        assert connection.open is not None  # the caller has checked
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
        """Answer an OPEN now, or when the driver has taken over the log.

        If the client reports that an epoch has ended, the driver first checks the report. Other
        clients still get positions during the check.

        Returns:
            OK, or the code with which the caller must refuse the OPEN.
        """
        if self._stopping:
            return Code.UNAVAILABLE
        log = self._logs.get(address)
        if log is not None and log.epoch > opener.dead_epoch:
            self._opened(opener, log, turn)
            return Code.OK
        if not self._quotas.may_wait(opener.connection):
            return Code.LIMIT
        log = log or self._new_log(address)
        if log is None:
            return Code.LIMIT
        log.openers.append(opener)
        self._quotas.begin_wait(opener.connection)
        if not log.activating:
            log.activating = True
            delay = log.schedule_check(now, self.limits.look_s) if log.epoch else 0.0
            turn.add(Activate(address, log.epoch, delay))
        return Code.OK

    def _opened(self, opener: Opener, log: LogState, turn: Turn) -> None:
        connection, request, _ = opener
        handle = connection.handles.get(log.address)
        if handle is None:
            if len(connection.handles) >= self.limits.logs_per_connection_max:
                turn.refuse(connection, Kind.OPEN, request, Code.LIMIT)
                return
            handle = connection.handles[log.address] = connection.add(log)
            log.handles += 1
        turn.frames(connection).append(
            _pack(Kind.OPEN, Code.OK, handle, request, log.epoch, log.tail)
        )

    def _close_log(self, connection: Connection, frame: RawFrame, turn: Turn) -> None:
        """Close a handle. Requests that wait for the log are still answered."""
        _, _, handle, request, _, _ = frame
        log = connection.log(handle)
        if log is not None:
            connection.remove(handle)
            del connection.handles[log.address]
            log.handles -= 1
        code = Code.NOT_OPEN if log is None else Code.OK
        turn.frames(connection).append(_pack(Kind.CLOSE, code, handle, request, 0, 0))

    def _end_openers(self, log: LogState, code: Code, turn: Turn) -> None:
        """Answer the OPENs that wait. A code other than OK refuses them."""
        openers, log.openers = log.openers, []
        for opener in openers:
            self._quotas.end_wait(opener.connection)
            if opener.connection.closed:
                continue
            if code is Code.OK:
                self._opened(opener, log, turn)
            else:
                turn.refuse(opener.connection, Kind.OPEN, opener.request, code)

    def _new_log(self, address: LogAddress) -> LogState | None:
        """Add a log. Returns None if there are already too many logs, and all of them are in use.

        A log that is not in use is forgotten to make space. When a client opens it later, the
        sequencer takes it again.
        """
        if len(self._logs) >= self.limits.logs_max:
            unused = next((log for log in self._logs.values() if log.unused), None)
            if unused is None:
                return None
            self._statistics.positions += unused.granted
            del self._logs[unused.address]
        log = self._logs[address] = LogState(address)
        return log

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
            a_b = (wait.log.tail, wait.log.epoch) if code is Code.TIMEOUT else (0, 0)
            self._answer(turn, wait, code, *a_b)
        return turn.finish()

    def _answer(self, turn: Turn, wait: Wait, code: Code, a: int, b: int) -> None:
        self._quotas.end_wait(wait.connection)
        turn.answer(wait, code, a, b)

    def _deactivate(self, log: LogState, code: Code, turn: Turn) -> None:
        epoch = log.epoch
        for wait in log.deactivate():
            self._timeouts.note_answered()
            self._answer(turn, wait, code, epoch if code is Code.STALE_EPOCH else 0, 0)

    def _close(self, connection: Connection, reason: Reason, detail: str, turn: Turn) -> None:
        """Ask the driver to close a connection.

        The connection counts towards the limits until the driver reports that it has ended.
        """
        self._drop(connection)
        turn.add(Close(connection, reason, detail))

    def _drop(self, connection: Connection) -> None:
        """Stop reading from and answering on a connection."""
        if connection.closed:
            return
        for wait in connection.waits:
            wait.answered = True
            wait.log.waits.note_answered()
            self._timeouts.note_answered()
            self._quotas.end_wait(connection)
        connection.waits.clear()
        for log in connection.close():
            log.handles -= 1
        connection.handles.clear()
