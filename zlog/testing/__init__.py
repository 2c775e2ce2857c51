"""Faults in virtual time, for tests of programs that use :mod:`zlog.aio`.

The package has an event loop in virtual time with a simulated network and with processes that can
be paused and killed (:class:`VirtualLoop`, :class:`Process`), and a store that fails as a seed
determines (:class:`FaultyStore`). docs/testing.md shows how to use them together.
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
