"""Histories of what clients asked and were answered, and the checkers of them.

:class:`History` records the calls of logs and :func:`check` finds violations of P1 to P21 of
docs/correctness.md in it, in O(n log n) for n operations. Each append needs an entry of its own,
which identifies it. :class:`TransactionHistory` and :func:`check_transactions` do the same for
transactions on lists (P22, P23).
"""

from tests.history.checks import check
from tests.history.facts import Violation
from tests.history.operations import Action, Operation, Recording, Result
from tests.history.recorded_writer import RecordedWriter
from tests.history.recorder import History, RecordedLog
from tests.history.serializable import check_transactions
from tests.history.transactions import ListStep, ListTransaction, TransactionHistory
from zlog._base.wanted import Wanted

__all__ = [
    "Action",
    "History",
    "ListStep",
    "ListTransaction",
    "Operation",
    "RecordedLog",
    "RecordedWriter",
    "Recording",
    "Result",
    "TransactionHistory",
    "Violation",
    "Wanted",
    "check",
    "check_transactions",
]
