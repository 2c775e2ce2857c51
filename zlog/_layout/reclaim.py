"""Removes stripe objects that no view needs.

Two kinds of stripes are removed: pending stripes, which the head lists
(docs/formats/stripe-index.md), and ended stripes that are wholly below the trim point, with their
files if they are offloaded. The trim point is recorded first, so a reader that misses an object
consults it. Several clients may remove objects at the same time, and any step may be repeated or
left unfinished.
"""

from __future__ import annotations

import logging

from zlog._base.deadline import Deadline
from zlog._layout.layout import Layout
from zlog._layout.offloaded import remove_file
from zlog._layout.stripe_objects import remove, remove_pending
from zlog.errors import StoreUnavailable

_logger = logging.getLogger(__name__)


async def reclaim(layout: Layout, deadline: Deadline) -> int:
    """Remove objects of trimmed and pending stripes until time is up. Returns how many stripes."""
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
            break  # a view may still be proposed for this stripe and the next ones
        await remove_pending(layout.io, view, id_, width, deadline)
        count += 1
    if view.offloads:
        await _remove_files(layout, view.trim_point, deadline)
    return count


async def _remove_files(layout: Layout, point: int, deadline: Deadline) -> None:
    """Remove the files of trimmed stripes. If this fails, the next call tries again."""
    log_id = layout.view.log_id
    for file in await layout.head.offload_list(log_id, 0, deadline, below=point):
        if file.end > point or deadline.expired:
            break
        try:
            await remove_file(layout.io, file, deadline)
        except StoreUnavailable as error:
            _logger.warning("a file of trimmed entries remains: %s", error)
            continue
        await layout.head.offload_forget(log_id, file, deadline)
