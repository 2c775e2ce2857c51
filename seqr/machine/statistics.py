"""The counters of the sequencer, as STATUS reports them."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable

from zlog.seqr.machine._grants import Counters
from zlog.seqr.machine.admission import Reason
from zlog.seqr.machine.state import LogState

_WINDOW_S = 10.0
_STEP_S = 1.0


class Rate:
    """The rate at which a counter has grown over about the last ten seconds.

    If no requests arrive for longer than this, the measurement begins again at the next request.
    """

    def __init__(self, now: float) -> None:
        self._samples = deque([(now, 0)])

    def observe(self, now: float, total: int) -> None:
        """Take a sample of the counter."""
        self._samples.append((now, total))
        while self._samples[0][0] < now - _WINDOW_S:
            self._samples.popleft()

    def per_second(self, now: float, total: int) -> float:
        """Return the growth per second since the oldest sample of the window."""
        samples = self._samples
        while len(samples) > 1 and samples[0][0] < now - _WINDOW_S:
            samples.popleft()
        then, before = samples[0]
        return (total - before) / max(now - then, _STEP_S)


class Statistics(Counters):
    """The counters of one sequencer."""

    def __init__(self, address: str, version: str, now: float) -> None:
        self._address = address
        self._version = version
        self._started = now
        self.due = now
        self.positions = 0
        """Positions granted in logs that the machine has forgotten."""
        self.closed: Counter[Reason] = Counter()
        """Numbers of refused or closed connections, by reason."""
        self.take_overs = 0
        self.take_over_failures = 0
        self._rate = Rate(now)

    def observe(self, now: float) -> None:
        """Take a sample of the grants once a second, before requests are counted."""
        if now >= self.due:
            self.due = now + _STEP_S
            self._rate.observe(now, self.grants)

    def report(self, now: float, logs: Iterable[LogState], listed_max: int) -> dict[str, object]:
        """Return the fields of STATUS, with the first ``listed_max`` of the active logs."""
        logs = list(logs)
        return {
            "version": self._version,
            "address": self._address,
            "uptime_s": round(now - self._started, 3),
            "closed": {reason.value: self.closed[reason] for reason in Reason},
            "requests": self.requests,
            "grants": self.grants,
            "grants_per_second": round(self._rate.per_second(now, self.grants), 1),
            "positions": self.positions + sum(log.granted for log in logs),
            "take_overs": self.take_overs,
            "take_over_failures": self.take_over_failures,
            "logs": [_describe(log) for log in logs if log.epoch][:listed_max],
        }


def _describe(log: LogState) -> dict[str, object]:
    return {
        "log": log.address.name,
        "pool": log.address.pool,
        "namespace": log.address.namespace,
        "epoch": log.epoch,
        "tail": log.tail,
        "granted": log.granted,
    }
