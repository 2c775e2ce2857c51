"""The options of a handle on a log, and the time budgets of its calls."""

from __future__ import annotations

from dataclasses import dataclass
from types import EllipsisType

from zlog._base.deadline import Deadline, Timeout, check_seconds
from zlog._base.io import Io, deadline_of
from zlog._base.mac import Key
from zlog.limits import (
    ENTRY_BYTES_MAX,
    ENTRY_BYTES_MAX_DEFAULT,
    HOLE_TIMEOUT_SECONDS,
    SEQUENCER_TIMEOUT_SECONDS,
    TIMEOUT_SECONDS,
)


@dataclass(frozen=True, slots=True)
class HandleOptions:
    """The options of a handle on a log.

    Attributes:
        timeout: the default time limit of a call in seconds; None means no limit.
        hole_timeout: how many seconds to wait before filling a hole; None means never to fill it.
        sequencer_timeout: how many seconds a sequencer may be unreachable before writers bypass it.
        entry_bytes_max: the maximum size of an entry, 1 byte to 16 MiB.
        key: the key for the log's MACs, if one was given.
    """

    timeout: float | None = TIMEOUT_SECONDS
    hole_timeout: float | None = HOLE_TIMEOUT_SECONDS
    sequencer_timeout: float = SEQUENCER_TIMEOUT_SECONDS
    entry_bytes_max: int = ENTRY_BYTES_MAX_DEFAULT
    key: Key | None = None

    def __post_init__(self) -> None:
        check_seconds("timeout", self.timeout)
        check_seconds("hole_timeout", self.hole_timeout)
        check_seconds("sequencer_timeout", self.sequencer_timeout, optional=False)
        if not hasattr(self.entry_bytes_max, "__index__"):
            raise TypeError(f"entry_bytes_max must be an int, not {self.entry_bytes_max!r}")
        if not 0 < self.entry_bytes_max <= ENTRY_BYTES_MAX:
            raise ValueError(
                f"entry_bytes_max must be 1 to {ENTRY_BYTES_MAX} bytes, not {self.entry_bytes_max}"
            )


class Budget:
    """Starts the time budgets of a handle's calls, on the clock of its Io."""

    def __init__(self, io: Io, settings: HandleOptions) -> None:
        self._io = io
        self._settings = settings

    def deadline(self, timeout: Timeout = ...) -> Deadline:
        """Start the budget of a call."""
        return deadline_of(self._io, _own_or(timeout, self._settings.timeout))

    def longer(self, seconds: float | None) -> Deadline:
        """Start the budget of a call that first waits ``seconds`` for others, if not None."""
        own = self._settings.timeout
        return deadline_of(self._io, own if own is None or seconds is None else own + seconds)

    def hole_timeout(self, given: Timeout) -> float | None:
        """Return the hole timeout given to a call, or else the handle's."""
        wanted = _own_or(given, self._settings.hole_timeout)
        check_seconds("hole_timeout", wanted)
        return wanted


def _own_or(given: Timeout, own: float | None) -> float | None:
    return own if isinstance(given, EllipsisType) else given
