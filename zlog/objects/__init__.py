"""Maps, queues, locks and other objects that all clients of a log share, with transactions.

    from zlog.objects import Space

    space = Space.open(log, "config")
    space.map("limits").put("requests", 100)

Each client keeps the whole state in memory and applies the log's entries to it. When it reaches a
transaction's entry, it decides whether the transaction commits, and all clients come to the same
decision (as in Tango: Balakrishnan et al., SOSP 2013). :mod:`zlog.objects.aio` has the same API for
asyncio. Both need msgspec, which the extra ``objects`` installs.
"""

from zlog import distribution as _distribution

try:
    import msgspec as _msgspec  # noqa: F401  # its absence shows here
except ImportError as error:
    raise ImportError(
        f"zlog.objects needs {_distribution.requirements('objects')} ({error});"
        f" {_distribution.how_to_install('objects')}"
    ) from error

from zlog.objects import aio
from zlog.objects._locks import Holder
from zlog.objects._replica import Event
from zlog.objects._states import Change, Replicated
from zlog.objects._transaction import (
    Transaction,
    TransactionCounter,
    TransactionMap,
    TransactionObject,
    TransactionQueue,
    TransactionRegister,
    TransactionSet,
)
from zlog.objects._views import (
    CounterView,
    LockView,
    MapView,
    ObjectView,
    QueueView,
    RegisterView,
    SetView,
    Views,
)
from zlog.objects.errors import (
    AlreadyCommitted,
    ApplyFailed,
    Conflict,
    Diverged,
    LockLost,
    LockTimeout,
    NewerRecord,
    OutcomeUnknown,
    PastLost,
    Rejected,
    ResultLost,
    SpaceNotFound,
    Stopped,
    UnknownObjectType,
    UnknownRecord,
    UnsuitableLog,
    WrongType,
)
from zlog.objects.sync.handles import Counter, Map, Object, Queue, Register, Set
from zlog.objects.sync.locks import Election, Held, Lock
from zlog.objects.sync.space import Space, TransactionContext
from zlog.objects.sync.watch import Watch

__all__ = [
    "AlreadyCommitted",
    "ApplyFailed",
    "Change",
    "Conflict",
    "Counter",
    "CounterView",
    "Diverged",
    "Election",
    "Event",
    "Held",
    "Holder",
    "Lock",
    "LockLost",
    "LockTimeout",
    "LockView",
    "Map",
    "MapView",
    "NewerRecord",
    "Object",
    "ObjectView",
    "OutcomeUnknown",
    "PastLost",
    "Queue",
    "QueueView",
    "Register",
    "RegisterView",
    "Rejected",
    "Replicated",
    "ResultLost",
    "Set",
    "SetView",
    "Space",
    "SpaceNotFound",
    "Stopped",
    "Transaction",
    "TransactionContext",
    "TransactionCounter",
    "TransactionMap",
    "TransactionObject",
    "TransactionQueue",
    "TransactionRegister",
    "TransactionSet",
    "UnknownObjectType",
    "UnknownRecord",
    "UnsuitableLog",
    "Views",
    "Watch",
    "WrongType",
    "aio",
]
