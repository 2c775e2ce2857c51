"""zlog for asyncio: the same names as in :mod:`zlog`, as coroutines and async iterators.

Open a store with :func:`zlog.connect`, or with :func:`connect` here, which does not block the event
loop while it connects to a cluster. A log belongs to the event loop that opened it.
"""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

from zlog import store as _store
from zlog.aio.check import Check
from zlog.aio.cursor import Cursor
from zlog.aio.log import Log
from zlog.aio.many import Following, follow_many
from zlog.aio.opening import Opening
from zlog.aio.stream import Stream
from zlog.aio.writer import Writer
from zlog.store import ObjectClassUse, Store

if TYPE_CHECKING:
    import rados

__all__ = [
    "Check",
    "Cursor",
    "Following",
    "Log",
    "Opening",
    "Stream",
    "Writer",
    "connect",
    "follow_many",
]


def connect(
    target: str | os.PathLike[str] | rados.Ioctx | None = None,
    *,
    create: bool = True,
    object_class: ObjectClassUse = "auto",
) -> Opening[Store]:
    """Open a store without blocking the event loop; see :func:`zlog.connect`.

    Await the result and close the store at the end, or use ``async with``.
    """
    opening = asyncio.to_thread(_store.connect, target, create=create, object_class=object_class)
    return Opening(opening, lambda store: asyncio.to_thread(store.close))
