"""Work in several threads at the same time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Result = TypeVar("Result")


def at_once(work: Callable[[int], Result], count: int) -> list[Result]:
    """Call ``work`` with each number below ``count`` in a thread of its own, all together.

    Returns:
        what they return, in the order of their numbers; raises what the first of them raises.
    """
    together = threading.Barrier(count)

    def run(number: int) -> Result:
        together.wait(30)
        return work(number)

    with ThreadPoolExecutor(count) as threads:
        return [*threads.map(run, range(count))]
