"""Waiting for what nothing announces."""

from __future__ import annotations

import time
from collections.abc import Callable


def wait_until(reached: Callable[[], object], what: object = None, seconds: float = 60.0) -> None:
    """Wait until something is true.

    Raises:
        AssertionError: it takes longer than that; ``what`` tells more.
    """
    end = time.monotonic() + seconds
    while not reached():
        assert time.monotonic() < end, what
        time.sleep(0.02)
