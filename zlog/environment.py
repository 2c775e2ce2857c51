"""Chance and clocks, for code that runs on an event loop.

A loop that brings a time of its own brings these too (:class:`zlog.testing.VirtualLoop`), so that
a run on it depends on nothing but its seed.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import random
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple


class SteadyTime(NamedTuple):
    """A time on a clock that is not set: only times of the same clock can be compared.

    Attributes:
        clock: which one; all processes of a machine have the same, until it is started again.
        us: microseconds since some moment.
    """

    clock: str
    us: int


class World:
    """The real one: the machine's clocks, and its dice.

    Attributes:
        clock: seconds on a clock that never goes back; None: the machine's own, which native code
            reads by itself.
    """

    clock: Callable[[], float] | None = None

    def random(self) -> float:
        """Return a random number, 0 ≤ x < 1."""
        return random.random()

    def token(self, count: int) -> bytes:
        """Return ``count`` random bytes, to tell something apart from everything else."""
        return os.urandom(count)

    def wall_clock_us(self) -> int:
        """Microseconds since 1970, UTC."""
        return time.time_ns() // 1000

    def steady_clock(self) -> SteadyTime:
        """Return the time since the machine was started, but for the time that it slept."""
        return SteadyTime(_boot(), time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000)

    def local(self, loop: asyncio.AbstractEventLoop) -> dict[str, Any]:
        """Return what a process has once for an event loop; it goes when the loop does."""
        found: dict[str, Any] | None = getattr(loop, "zlog_local", None)
        if found is None:
            found = loop.zlog_local = {}  # type: ignore[attr-defined]
        return found


@cache
def _boot() -> str:
    """Return what tells this start of the machine from all others, as far as this process sees it.

    A container may have been given another beginning of time (time_namespaces(7)).
    """
    known = b""
    for path in ("/proc/sys/kernel/random/boot_id", "/proc/self/timens_offsets"):
        with contextlib.suppress(OSError):
            known += Path(path).read_bytes()
    return hashlib.sha256(known or os.urandom(16)).hexdigest()[:32]


REAL = World()


def world_of(loop: asyncio.AbstractEventLoop) -> World:
    """Return the world that an event loop lives in."""
    return getattr(loop, "zlog_world", REAL)
