"""Removes stripe objects that no view needs.

These are the objects of pending stripes, which the head lists (docs/formats/stripe-index.md), and
of closed stripes of the newest view that are wholly below the trim point. Readers use the trim
point, which is recorded first, and never conclude anything from a missing object. Every step may be
done twice, by several clients at once, or be left unfinished.
"""

from __future__ import annotations

from zlog._base.deadline import Deadline
from zlog._layout.layout import Layout
from zlog._layout.stripe_objects import remove, remove_pending


async def reclaim(layout: Layout, deadline: Deadline) -> int:
    """Remove objects of trimmed and pending stripes while time is left; return how many stripes."""
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
    newest, pending = await layout.head.pending_stripes(view.log_id, deadline)
    for id_, width in pending:
        if id_ >= newest or deadline.expired:
            break  # this stripe and the next ones may still get a view
        await remove_pending(layout.io, view, id_, width, deadline)
        count += 1
    return count
