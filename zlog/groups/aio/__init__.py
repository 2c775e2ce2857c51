"""Groups for asyncio: the same names as in :mod:`zlog.groups`, as coroutines."""

from zlog.groups.aio.admin import Groups
from zlog.groups.aio.group import Group, Member
from zlog.groups.aio.queue import Job, Queue

__all__ = ["Group", "Groups", "Job", "Member", "Queue"]
