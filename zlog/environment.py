"""Random numbers and clocks, for code that runs on an event loop.

An event loop with virtual time (:class:`zlog.testing.VirtualLoop`) replaces them, so that a test
depends only on its seed.
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
    """A time on a monotonic clock, which can be compared only with times of the same clock.

    Attributes:
        clock: the id of the clock. All processes of a machine share it until the machine restarts.
        us: the microseconds since an arbitrary moment.
    """

    clock: str
    us: int


class World:
    """The real environment: the machine's clocks and random numbers.

    Attributes:
        clock: a function that returns a monotonic clock's time in seconds. None means the machine's
            clock, which native code reads directly.
    """

    clock: Callable[[], float] | None = None

    def random(self) -> float:
        """Return a random number x with 0 ≤ x < 1."""
        return random.random()

    def token(self, count: int) -> bytes:
        """Return ``count`` random bytes for use as an id."""
        return os.urandom(count)

    def wall_clock_us(self) -> int:
        """Return the microseconds since 1970, UTC."""
        return time.time_ns() // 1000

    def steady_clock(self) -> SteadyTime:
        """Return the time since the machine started, not counting the time it spent suspended."""
        return SteadyTime(_boot(), time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000)

    def local(self, loop: asyncio.AbstractEventLoop) -> dict[str, Any]:
        """Return a dictionary for data that a process keeps per event loop."""
        found: dict[str, Any] | None = getattr(loop, "zlog_local", None)
        if found is None:
            found = loop.zlog_local = {}  # type: ignore[attr-defined]
        return found


@cache
def _boot() -> str:
    """Return an id that changes each time the machine starts.

    It includes the time namespace, because a container can have its own (time_namespaces(7)).
    """
    known = b""
    for path in ("/proc/sys/kernel/random/boot_id", "/proc/self/timens_offsets"):
        with contextlib.suppress(OSError):
            known += Path(path).read_bytes()
    return hashlib.sha256(known or os.urandom(16)).hexdigest()[:32]


REAL = World()


def world_of(loop: asyncio.AbstractEventLoop) -> World:
    """Return the world of an event loop."""
    return getattr(loop, "zlog_world", REAL)
