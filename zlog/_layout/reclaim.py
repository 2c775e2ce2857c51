"""Giving back the space of stripes in which nothing is needed any more.

These are loose stripes (see ``discard``), and closed stripes of the newest view that lie wholly
below the trim point. Readers go by the trim point, which is recorded first, and never by an object
that is missing. All of it may be done twice, by several at once, and be left half-done.
"""

from __future__ import annotations

from zlog._base.deadline import Deadline
from zlog._layout.discard import remove_loose
from zlog._layout.layout import Layout
from zlog._layout.stripe_objects import remove


async def reclaim(layout: Layout, deadline: Deadline) -> int:
    """Give back the space of stripes in which nothing is needed.

    Stops when the time is up; the next call goes on.

    Returns:
        How many stripes had their objects removed.
    """
    view = layout.view
    count = 0
    for stripe in view.stripes:
        if stripe.end > view.trim_point or deadline.expired:
            break
        if stripe.id not in layout.reclaimed:
            objects = layout.objects(view, stripe)
            await remove(layout.io, objects, view.epoch, deadline)
            layout.reclaimed = (layout.reclaimed | {stripe.id}) & {s.id for s in view.stripes}
            count += 1
    newest, loose = await layout.head.loose_stripes(view.log_id, deadline)
    for id_, width in loose:
        if id_ >= newest or deadline.expired:
            break  # from here on, the views that they were announced for may still come
        await remove_loose(layout.io, view, id_, width, deadline)
        count += 1
    return count
