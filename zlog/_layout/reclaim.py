"""Removing the objects of stripes in which nothing is needed any more.

These are loose stripes, which the head keeps a list of (docs/formats/stripe-index.md), and closed
stripes of the newest view that lie wholly below the trim point. Readers go by the trim point, which
is recorded first, and never by an object that is missing. All of it may be done twice, by several
at once, and be left half-done.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from zlog._base.deadline import Deadline
from zlog._base.io import Io
from zlog._layout.head import Head
from zlog._layout.stripe_objects import remove
from zlog.view import OPEN_END, Stripe, View, objects_of

if TYPE_CHECKING:
    from zlog._layout.layout import Layout


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
        await _remove_loose(layout.io, view, id_, width, deadline)
        count += 1
    return count


async def discard(io: Io, view: View, stripe: Stripe, deadline: Deadline, *, made: bool) -> None:
    """Clean up a stripe that this client announced for a view that was not accepted.

    Its objects may have been made after another client has reclaimed them, so that the head does
    not know of them any more.

    Args:
        io: the world.
        view: any view of the log.
        stripe: with the start that it would have had, if its view was proposed; else 0.
        deadline: budget of the call.
        made: whether objects of it were made.
    """
    head = Head(io, view.log)
    if made and not await _in_use(head, view.log_id, stripe, deadline):
        await remove(io, objects_of(view.log, view.log_id, stripe), stripe.id, deadline)
    await head.stripe_forget(view.log_id, stripe.id, deadline)


async def _in_use(head: Head, log_id: int, stripe: Stripe, deadline: Deadline) -> bool:
    """Whether the stripe is one of the log's after all.

    A refusal may be the answer to a proposal that was accepted before, its reply lost.
    """
    newest = (await head.read(deadline)).view
    known = () if newest is None else newest.stripes
    known = (*known, *await head.stripes(log_id, stripe.start, deadline))
    return any(each.id == stripe.id for each in known)


async def remove_all(io: Io, view: View, deadline: Deadline) -> None:
    """Remove every stripe object of a removed log, whose last view this is."""
    head = Head(io, view.log)
    await remove(io, view.objects(), view.epoch, deadline)
    position = 0
    while stripes := await head.stripes(view.log_id, position, deadline):
        for stripe in stripes:
            await remove(io, objects_of(view.log, view.log_id, stripe), view.epoch, deadline)
        position = stripes[-1].end
    for id_, width in (await head.loose_stripes(view.log_id, deadline))[1]:
        await _remove_loose(io, view, id_, width, deadline)


async def _remove_loose(io: Io, view: View, id_: int, width: int, deadline: Deadline) -> None:
    stripe = Stripe(id_, 0, OPEN_END, width)
    await remove(io, objects_of(view.log, view.log_id, stripe), view.epoch, deadline)
    await Head(io, view.log).stripe_forget(view.log_id, id_, deadline)
