"""Simulates faults in virtual time, for tests of programs that use :mod:`zlog.aio`.

:class:`VirtualLoop` is an event loop in virtual time with a simulated network. A test can pause and
kill a :class:`Process` on it. The calls of a :class:`FaultyStore` fail as a seed determines.
docs/testing.md shows how to use them together.
"""

from zlog.testing._loop import Stuck, VirtualLoop, run_virtually
from zlog.testing._network import Listener, Listening, Network, NetworkFaults
from zlog.testing._process import Process
from zlog.testing._store import AT_ONCE, Fate, FaultyStore, Plan, SeededPlan, StoreCall, StoreFaults

__all__ = [
    "AT_ONCE",
    "Fate",
    "FaultyStore",
    "Listener",
    "Listening",
    "Network",
    "NetworkFaults",
    "Plan",
    "Process",
    "SeededPlan",
    "StoreCall",
    "StoreFaults",
    "Stuck",
    "VirtualLoop",
    "run_virtually",
]
