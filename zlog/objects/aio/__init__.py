"""Spaces for asyncio: the same names as in :mod:`zlog.objects`, as coroutines."""

from zlog.objects.aio.handles import Counter, Map, Object, Queue, Register, Set
from zlog.objects.aio.locks import Election, Held, Lock
from zlog.objects.aio.space import Space, TransactionContext
from zlog.objects.aio.watch import Watch

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
