"""The options of a handle on a log, and the time budgets of its calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import EllipsisType

from zlog._base.deadline import Deadline, Timeout, check_seconds
from zlog._base.io import Io, deadline_of
from zlog._base.mac import Key
from zlog._base.options import check_entry_size, hole_timeout_of
from zlog.limits import SEQUENCER_TIMEOUT_SECONDS, TIMEOUT_SECONDS


@dataclass(frozen=True, slots=True)
class HandleOptions:
    """The options of a handle on a log.

    Attributes:
        timeout: the default time limit of a call in seconds; None means no limit.
        hole_timeout: how many seconds to wait before filling a hole; None means never to fill it,
            and ``...`` the log's own timeout.
        sequencer_timeout: how many seconds a sequencer may be unreachable before writers bypass it.
        entry_bytes_max: the maximum size of an entry, 1 byte to 16 MiB; None means the log's own.
        key: the key for the log's MACs, if one was given.
    """

    timeout: float | None = TIMEOUT_SECONDS
    hole_timeout: Timeout = ...
    sequencer_timeout: float = SEQUENCER_TIMEOUT_SECONDS
    entry_bytes_max: int | None = None
    key: Key | None = None

    def __post_init__(self) -> None:
        check_seconds("timeout", self.timeout)
        if not isinstance(self.hole_timeout, EllipsisType):
            check_seconds("hole_timeout", self.hole_timeout)
        check_seconds("sequencer_timeout", self.sequencer_timeout, optional=False)
        if self.entry_bytes_max is not None:
            check_entry_size(self.entry_bytes_max)


class Budget:
    """Starts the time budgets of a handle's calls, on the clock of its Io.

    ``log_options`` returns the options of the newest view that the handle knows.
    """

    def __init__(
        self, io: Io, settings: HandleOptions, log_options: Callable[[], Mapping[str, str]]
    ) -> None:
        self._io = io
        self._settings = settings
        self._log_options = log_options

    def deadline(self, timeout: Timeout = ...) -> Deadline:
        """Start the budget of a call."""
        return deadline_of(self._io, _own_or(timeout, self._settings.timeout))

    def longer(self, seconds: float | None) -> Deadline:
        """Start the budget of a call that first waits ``seconds`` for others, if not None."""
        own = self._settings.timeout
        return deadline_of(self._io, own if own is None or seconds is None else own + seconds)

    def hole_timeout(self, given: Timeout) -> float | None:
        """Return the hole timeout given to a call, or else the handle's, or else the log's."""
        own = self._settings.hole_timeout if isinstance(given, EllipsisType) else given
        wanted = _own_or(own, hole_timeout_of(self._log_options()))
        check_seconds("hole_timeout", wanted)
        return wanted


class HoleTimeout:
    """How long one reader waits for holes, and for which holes it has waited.

    One wait is enough for all positions that were granted before it began.

    Attributes:
        overdue: the reader has waited long enough for all holes below this position.
    """

    def __init__(self, budget: Budget, given: Timeout = ...) -> None:
        budget.hole_timeout(given)  # raises if it is invalid
        self._budget = budget
        self._given = given
        self.overdue = 0

    @property
    def seconds(self) -> float | None:
        """How many seconds to wait before a hole is filled; None means never to fill one.

        This changes with the log's options.
        """
        return self._budget.hole_timeout(self._given)


def _own_or(given: Timeout, own: float | None) -> float | None:
    return own if isinstance(given, EllipsisType) else given
