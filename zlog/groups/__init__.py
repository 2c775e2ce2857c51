"""Groups, whose members share the entries of a log, in order or as a queue.

    from zlog.groups import Group, Queue

    with Group(log, "billing").join() as member:
        for batch in member:
            bill(batch)
            member.commit(batch)

    with Queue(log, "mail", lease=30) as queue:
        for job in queue:
            send(job.data)
            job.ack()

A group's state is a space of :mod:`zlog.objects` in a log of its own. :mod:`zlog.groups.aio` has
the same API for asyncio. Both need msgspec, which the extra ``objects`` installs.
"""

from zlog.groups import aio
from zlog.groups._slots import Batch
from zlog.groups._stat import GroupStat, MemberStat
from zlog.groups.errors import GroupDiffers, GroupNotFound, SlotsLost
from zlog.groups.sync.admin import Groups
from zlog.groups.sync.group import Group, Member
from zlog.groups.sync.queue import Job, Queue

__all__ = [
    "Batch",
    "Group",
    "GroupDiffers",
    "GroupNotFound",
    "GroupStat",
    "Groups",
    "Job",
    "Member",
    "MemberStat",
    "Queue",
    "SlotsLost",
    "aio",
]
