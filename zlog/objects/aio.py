"""Spaces for asyncio: the same names as in :mod:`zlog.objects`, as coroutines."""

from zlog.objects._handles import Counter, Election, Lock, Map, Object, Queue, Register, Set
from zlog.objects._lease import Held
from zlog.objects._space import Space, TransactionContext
from zlog.objects._watch import Watch

__all__ = [
    "Counter",
    "Election",
    "Held",
    "Lock",
    "Map",
    "Object",
    "Queue",
    "Register",
    "Set",
    "Space",
    "TransactionContext",
    "Watch",
]
