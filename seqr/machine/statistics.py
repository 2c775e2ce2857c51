"""What the sequencer counts, and how STATUS tells it."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable

from zlog.seqr.machine._grants import Counters
from zlog.seqr.machine.admission import Reason
from zlog.seqr.machine.state import LogState

_WINDOW_S = 10.0
_STEP_S = 1.0


class Rate:
    """How fast a counter has grown over about the last ten seconds.

    Samples are taken only when something happens; so a burst after a long silence is measured from
    its own beginning.
    """

    __slots__ = ("_samples",)

    def __init__(self, now: float) -> None:
        self._samples = deque([(now, 0)])

    def observe(self, now: float, total: int) -> None:
        """Note the counter as it was before what happens now."""
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
    """The counters of one sequencer.

    Args:
        address: what views and the directory say of this sequencer.
        version: of the program.
        now: the time of its start, in seconds.
    """

    __slots__ = (
        "_address",
        "_rate",
        "_started",
        "_version",
        "closed",
        "positions",
        "take_over_failures",
        "take_overs",
    )

    def __init__(self, address: str, version: str, now: float) -> None:
        self._address = address
        self._version = version
        self._started = now
        self.due = now
        self.positions = 0
        """Granted in logs that the machine has forgotten since."""
        self.closed: Counter[Reason] = Counter()
        """Connections that were refused or closed, by reason."""
        self.take_overs = 0
        self.take_over_failures = 0
        self._rate = Rate(now)

    def observe(self, now: float) -> None:
        """Note the time before requests are counted: once a second, for the rate."""
        if now >= self.due:
            self.due = now + _STEP_S
            self._rate.observe(now, self.grants)

    def report(
        self,
        now: float,
        connections: int,
        outstanding: int,
        logs: Iterable[LogState],
        listed_max: int,
    ) -> dict[str, object]:
        """Return what STATUS answers; of the active logs, the first ``listed_max`` are listed."""
        logs = list(logs)
        return {
            "version": self._version,
            "address": self._address,
            "uptime_s": round(now - self._started, 3),
            "connections": connections,
            "outstanding": outstanding,
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
