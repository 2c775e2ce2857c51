"""A sequencer in plain Python, slow and short: what the machine must answer, frame by frame."""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

from zlog._base.sequencer import LogAddress
from zlog._sequencer.frames import FRAME, FRAME_BYTES, TAIL_MAX, Code, Kind, payload_frames

COUNT_MAX = 65536
WAIT_SECONDS_MAX = 60.0


class PlainWait(NamedTuple):
    connection: object
    handle: int
    number: int
    position: int
    due: float


class PlainLog:
    def __init__(self) -> None:
        self.epoch = 0
        self.epoch_last = 0
        self.tail = 0
        self.granted = 0
        self.waits: list[PlainWait] = []
        self.openers: list[tuple[object, int]] = []


class PlainSequencer:
    """Greeted connections that open logs, append, wait, close logs and leave.

    A request is dealt with when its last byte is there. Logs are taken over by ``take_over``.

    Args:
        outstanding_max: OPENs and WAITs of one connection that wait for their answer.
        positions_burst: that a connection may take at once, but for those taken one by one.
        positions_per_s: by which that grows again.
    """

    def __init__(self, outstanding_max: int, positions_burst: int, positions_per_s: int) -> None:
        self._positions_burst = positions_burst
        self._positions_per_s = positions_per_s
        self._taken: dict[object, tuple[float, float]] = {}
        self.logs: dict[LogAddress, PlainLog] = defaultdict(PlainLog)
        self.now = 0.0
        self.requests = 0
        self.grants = 0
        self._outstanding_max = outstanding_max
        self._handles: dict[object, dict[int, PlainLog]] = defaultdict(dict)
        self._free: dict[object, list[int]] = defaultdict(list)
        self._streams: dict[object, bytes] = defaultdict(bytes)
        self._replies: dict[object, list[tuple[int, ...]]] = defaultdict(list)

    def take(self, connection) -> list[tuple[int, ...]]:
        """The answers since the last look."""
        return self._replies.pop(connection, [])

    def receive(self, connection, data: bytes) -> None:
        stream = self._streams[connection] + data
        while len(stream) >= FRAME_BYTES:
            frame = FRAME.unpack_from(stream)
            length = FRAME_BYTES
            if frame[0] == Kind.OPEN:
                length += payload_frames(frame[4]) * FRAME_BYTES
                if len(stream) < length:
                    break
                self._open(connection, frame, stream[FRAME_BYTES:][: frame[4]])
            else:
                self._request(connection, *frame)
            stream = stream[length:]
            self.requests += 1
        self._streams[connection] = stream

    def tail(self, connection, handle: int) -> int:
        """The tail of a log that a connection has open; 0 of one that it has not."""
        return self._handles[connection].get(handle, PlainLog()).tail

    def leave(self, connection) -> None:
        """Forget a connection, and what it waits for."""
        self.requests += len(self._streams[connection]) >= FRAME_BYTES  # an OPEN without its end
        for kept in (self._handles, self._free, self._streams, self._replies, self._taken):
            kept.pop(connection, None)
        for log in self.logs.values():
            log.waits = [wait for wait in log.waits if wait.connection is not connection]
            log.openers = [opener for opener in log.openers if opener[0] is not connection]

    def pass_time(self, seconds: float) -> None:
        """End the waits whose time has passed."""
        self.now += seconds
        for log in self.logs.values():
            answer = (Code.TIMEOUT, log.tail, log.epoch)
            self._end_waits(log, lambda wait: wait.due <= self.now, answer)

    def take_over(self, address: LogAddress, skipped: int) -> tuple[int, int]:
        """Take a log over; returns its new epoch, and the tail."""
        log = self.logs[address]
        log.epoch = log.epoch_last = log.epoch_last + 2
        log.tail = min(log.tail + skipped, TAIL_MAX)
        self._open_all(log)
        return log.epoch, log.tail

    def die(self, address: LogAddress) -> None:
        """End a log's epoch: it turns out to be dead."""
        log = self.logs[address]
        self._end_waits(log, lambda _: True, (Code.STALE_EPOCH, log.epoch, 0))
        log.epoch = 0

    def live(self, address: LogAddress) -> None:
        """Tell those who hold a log's epoch for dead that it lives."""
        self._open_all(self.logs[address])

    def fail_to_take_over(self, address: LogAddress, code: Code) -> None:
        """Tell those who wait that it could not be done."""
        openers, self.logs[address].openers = self.logs[address].openers, []
        for connection, number in openers:
            self._refuse(connection, number, code)

    def _request(self, connection, kind, _, handle, number, a, b) -> None:
        opened = self._handles[connection]
        log = opened.get(handle, PlainLog())
        if kind == Kind.CLOSE:
            answer = (Code.OK if handle in opened else Code.NOT_OPEN, 0, 0)
            if opened.pop(handle, None) is not None:
                self._free[connection].append(handle)
        elif log.epoch == 0:
            answer = (Code.NOT_OPEN, 0, 0)
        elif kind == Kind.WAIT:
            if log.tail > a or b == 0:
                code = Code.OK if log.tail > a else Code.TIMEOUT
                answer = (code, log.tail, log.epoch)
            elif not self._may_wait(connection):
                answer = (Code.LIMIT, 0, 0)
            else:
                due = self.now + min(b / 1000, WAIT_SECONDS_MAX)
                log.waits.append(PlainWait(connection, handle, number, a, due))
                return
        elif b > log.epoch:
            answer = (Code.STALE_EPOCH, log.epoch, 0)
        elif kind == Kind.TAIL:
            answer = (Code.OK, log.tail, log.epoch)
        elif a == 0:
            answer = (Code.BAD_REQUEST, 0, 0)
        elif a > COUNT_MAX or log.tail + a > TAIL_MAX or not self._may_take(connection, a):
            answer = (Code.LIMIT, 0, 0)
        else:
            answer = (Code.OK, log.tail, log.epoch)
            log.tail += a
            log.granted += a
            self.grants += 1
        self._replies[connection].append((kind, answer[0], handle, number, *answer[1:]))
        self._wake(log)

    def _open(self, connection, frame, payload: bytes) -> None:
        log = self.logs[LogAddress.decode(payload)]
        if log.epoch > frame[5]:
            self._opened(connection, frame[3], log)
        elif not self._may_wait(connection):
            self._refuse(connection, frame[3], Code.LIMIT)
        else:
            log.openers.append((connection, frame[3]))

    def _may_take(self, connection, count: int) -> bool:
        left, then = self._taken.get(connection, (self._positions_burst, self.now))
        left = min(self._positions_burst, left + (self.now - then) * self._positions_per_s)
        if count > 1:
            if count > left:
                return False
            left -= count
        self._taken[connection] = left, self.now
        return True

    def _may_wait(self, connection) -> bool:
        waiting = [wait.connection for log in self.logs.values() for wait in log.waits]
        waiting += [opener[0] for log in self.logs.values() for opener in log.openers]
        return waiting.count(connection) < self._outstanding_max

    def _opened(self, connection, number: int, log: PlainLog) -> None:
        opened = self._handles[connection]
        handle = next((each for each, other in opened.items() if other is log), None)
        if handle is None:
            handle = self._free[connection].pop() if self._free[connection] else len(opened)
            opened[handle] = log
        answer = (Kind.OPEN, Code.OK, handle, number, log.epoch, log.tail)
        self._replies[connection].append(answer)

    def _open_all(self, log: PlainLog) -> None:
        openers, log.openers = log.openers, []
        for connection, number in openers:
            self._opened(connection, number, log)

    def _refuse(self, connection, number: int, code: Code) -> None:
        self._replies[connection].append((Kind.OPEN, code, 0, number, 0, 0))

    def _wake(self, log: PlainLog) -> None:
        answer = (Code.OK, log.tail, log.epoch)
        self._end_waits(log, lambda wait: log.tail > wait.position, answer)

    def _end_waits(self, log: PlainLog, due, answer: tuple[int, int, int]) -> None:
        waits, log.waits = log.waits, []
        for wait in waits:
            if due(wait):
                reply = (Kind.WAIT, answer[0], wait.handle, wait.number, *answer[1:])
                self._replies[wait.connection].append(reply)
            else:
                log.waits.append(wait)
