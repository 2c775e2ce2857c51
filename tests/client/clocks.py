"""Clocks of handles, set by hand."""

from __future__ import annotations

import zlog
from zlog.environment import SteadyTime

NOW = 1_800_000_000.0


def set_clocks(
    log: zlog.Log, second: float, *, wall: float | None = None, machine: str = "one"
) -> None:
    """Let a handle believe that it is that many seconds after NOW.

    Args:
        log: the handle.
        second: since NOW, on the machine's steady clock too.
        wall: what the machine's wall clock says instead.
        machine: whose steady clock it is.
    """
    io = log._client.io
    wall_us = round((NOW + (second if wall is None else wall)) * 1e6)
    time = SteadyTime(machine, round(second * 1e6))
    io.wall_clock_us = lambda: wall_us  # type: ignore[method-assign]
    io.steady_clock = lambda: time  # type: ignore[method-assign]


def append_at(log: zlog.Log, *seconds: float) -> None:
    """Append an entry at each of these times."""
    for second in seconds:
        set_clocks(log, second)
        log.append(b"at %r" % second)
