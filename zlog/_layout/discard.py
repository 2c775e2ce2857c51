"""Removing the objects of stripes that no view has: never had, or has no longer.

A loose stripe is one that the head keeps a list of (docs/formats/stripe-index.md): its objects may
exist and are of no use. All of it may be done twice, by several at once, and be left half-done.
"""

from __future__ import annotations

from zlog._base.deadline import Deadline
from zlog._base.io import Io
from zlog._catalog.head import Head
from zlog._layout.stripe_objects import remove
from zlog.view import OPEN_END, Stripe, View, objects_of


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
        await remove_loose(io, view, id_, width, deadline)


async def remove_loose(io: Io, view: View, id_: int, width: int, deadline: Deadline) -> None:
    """Remove the objects of a loose stripe, and have the head forget it."""
    stripe = Stripe(id_, 0, OPEN_END, width)
    await remove(io, objects_of(view.log, view.log_id, stripe), view.epoch, deadline)
    await Head(io, view.log).stripe_forget(view.log_id, id_, deadline)
