"""For those who build on zlog: a log under faults, in virtual time, and a judge of what came of it.

docs/testing.md shows how the parts work together. They are: an event loop in virtual time with a
network of its own and processes that can be stopped and killed (:class:`VirtualLoop`,
:class:`Process`), a store that fails as a seed says (:class:`FaultyStore`), a recorder of what was
asked and answered (:class:`History`), and :func:`check`, which says what is wrong with it. For
transactions on lists these are :class:`TransactionHistory` and :func:`check_transactions`.
"""

from zlog._read.select import Wanted
from zlog.testing._checks import check
from zlog.testing._facts import Violation
from zlog.testing._history import History, RecordedLog
from zlog.testing._loop import Stuck, VirtualLoop, run_virtually
from zlog.testing._network import Listener, Listening, Network, NetworkFaults
from zlog.testing._operations import Action, Operation, Recording, Result
from zlog.testing._process import Process
from zlog.testing._recorded_writer import RecordedWriter
from zlog.testing._serializable import check_transactions
from zlog.testing._store import AT_ONCE, Fate, FaultyStore, Plan, SeededPlan, StoreCall, StoreFaults
from zlog.testing._transactions import ListStep, ListTransaction, TransactionHistory

__all__ = [
    "AT_ONCE",
    "Action",
    "Fate",
    "FaultyStore",
    "History",
    "ListStep",
    "ListTransaction",
    "Listener",
    "Listening",
    "Network",
    "NetworkFaults",
    "Operation",
    "Plan",
    "Process",
    "RecordedLog",
    "RecordedWriter",
    "Recording",
    "Result",
    "SeededPlan",
    "StoreCall",
    "StoreFaults",
    "Stuck",
    "TransactionHistory",
    "Violation",
    "VirtualLoop",
    "Wanted",
    "check",
    "check_transactions",
    "run_virtually",
]
