"""Opens the log that holds a group's state."""

from __future__ import annotations

from zlog.aio.log import Log
from zlog.errors import LogNotFound
from zlog.extension import AsyncioPort
from zlog.extension import drive_aio as drive
from zlog.groups._member import call_seconds, check_group, log_name, open_state
from zlog.groups.errors import GroupNotFound
from zlog.limits import TIMEOUT_SECONDS
from zlog.objects.extension import Replica


async def open_own(log: Log, group: str, lease: float | None) -> tuple[Log, Replica]:
    """Open a group's own log and its state. Create them for a member, which has a lease.

    Raises:
        GroupNotFound: the group does not exist, and ``lease`` is None.
    """
    check_group(log.name, group)
    name = log_name(log.name, group)
    create, timeout = lease is not None, TIMEOUT_SECONDS if lease is None else call_seconds(lease)
    ordering = "object" if create else None
    try:
        own = await Log.open(log.store, name, create=create, ordering=ordering, timeout=timeout)
    except LogNotFound:
        raise GroupNotFound(f"log {log.name!r} has no group {group!r}") from None
    try:
        return own, await drive(open_state(AsyncioPort(own), create=create))
    except BaseException:
        await own.close()
        raise
