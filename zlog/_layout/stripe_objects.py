"""Seals, creates and removes the objects of a stripe."""

from __future__ import annotations

import errno
import logging
from collections.abc import Iterable
from itertools import islice

from zlog._base.codes import EPOCHS_AHEAD_MAX, Code
from zlog._base.deadline import Deadline
from zlog._base.io import Call, Io
from zlog._catalog.head import Head
from zlog._layout.offloaded import remove_file
from zlog._native import messages
from zlog._replica.repair import answers
from zlog.errors import CorruptEntry
from zlog.view import OPEN_END, ObjectRef, Stripe, View, objects_of

_logger = logging.getLogger(__name__)

_REMOVED_AT_ONCE_MAX = 64
"""How many objects are removed at the same time. OSDs must also get other work done."""


async def seal(
    io: Io,
    objects: Iterable[ObjectRef],
    epoch: int,
    deadline: Deadline,
    *,
    start: int,
    missing_ok: bool = False,
) -> list[messages.SealReply] | int:
    """Seal stripe objects with ``epoch``, all at the same time.

    An object whose last epoch is far lower is sealed in steps. A missing object is an error,
    because its entries are lost. For the removal of a log, ``missing_ok`` skips missing objects,
    and objects that a hostile client made for other positions.

    Returns:
        The objects' replies. If an object already has ``epoch`` or a higher one, another client is
        ahead, and the highest such epoch is returned instead.
    """
    sealed: list[messages.SealReply] = []
    ahead = 0
    steps = dict.fromkeys(objects, epoch)
    while steps:
        calls = [
            Call(ref.name, "seal", _seal(ref, step, start, create=False))
            for ref, step in steps.items()
        ]
        replies = await answers(io, calls, await io.execute(calls, deadline), deadline)
        for (ref, step), reply in zip([*steps.items()], replies, strict=True):
            if missing_ok and reply.code in (-errno.ENOENT, -errno.EINVAL):
                del steps[ref]
                continue
            if reply.code == -errno.ENOENT:
                raise CorruptEntry(f"stripe object {ref.name} is missing")
            reply.check_call("seal", ref.name, Code.INVALID_EPOCH)
            reached = reply.number if reply.code == Code.INVALID_EPOCH else step
            if reached < epoch:
                steps[ref] = min(epoch, reached + EPOCHS_AHEAD_MAX)
                continue
            del steps[ref]
            if reply.code == Code.INVALID_EPOCH:
                ahead = max(ahead, reached)
            else:
                sealed.append(messages.seal_reply(reply.payload))
    return ahead or sealed


async def make(
    io: Io, objects: Iterable[ObjectRef], epoch: int, deadline: Deadline, *, start: int
) -> int:
    """Create the objects of a new stripe that begins at ``start``, and seal them with ``epoch``.

    Returns 0 on success. If an object already exists, a hostile client has guessed its name, so its
    content cannot be trusted. The result is then a random epoch, and the caller must try again with
    a higher epoch, which cannot be guessed.
    """
    calls = [Call(ref.name, "seal", _seal(ref, epoch, start, create=True)) for ref in objects]
    made = True
    for call, reply in zip(calls, await io.execute(calls, deadline), strict=True):
        reply.check_call("seal", call.object, -errno.EINVAL, Code.INVALID_EPOCH)
        made &= reply.code == Code.OK and messages.seal_reply(reply.payload).made
    return 0 if made else epoch + int(io.random() * EPOCHS_AHEAD_MAX)


def _seal(ref: ObjectRef, epoch: int, start: int, *, create: bool) -> bytes:
    width, stripe_unit = ref.striping
    return messages.seal(epoch, width, ref.number, create, start, stripe_unit)


async def remove(io: Io, objects: Iterable[ObjectRef], epoch: int, deadline: Deadline) -> None:
    """Remove stripe objects. Skip missing objects, and damaged objects that cannot be removed.

    An object is removed even if a slow client has sealed it with a higher epoch than ``epoch``.
    """
    rest = iter(objects)
    while names := [ref.name for ref in islice(rest, _REMOVED_AT_ONCE_MAX)]:
        left = dict.fromkeys(names, epoch)
        while left:
            calls = [Call(name, "remove", messages.remove(known)) for name, known in left.items()]
            for call, reply in zip(calls, await io.execute(calls, deadline), strict=True):
                missing, damaged = -errno.ENOENT, -errno.EIO
                reply.check_call("remove", call.object, missing, damaged, Code.STALE_EPOCH)
                if reply.code == Code.STALE_EPOCH:
                    left[call.object] = reply.number
                    continue
                del left[call.object]
                if reply.code == damaged:
                    _logger.warning("object %s was not removed: its header is damaged", call.object)


async def discard(io: Io, view: View, stripe: Stripe, deadline: Deadline, *, made: bool) -> None:
    """Remove a stripe that this client announced for a view that was not accepted.

    Another client may already have removed it. ``stripe.start`` must be 0 or the start that this
    client proposed.
    """
    head = Head(io, view.log)
    if made and not await _in_use(head, view.log_id, stripe, deadline):
        await remove(io, objects_of(view.log, view.log_id, stripe), stripe.id, deadline)
    await head.stripe_forget(view.log_id, stripe.id, deadline)


async def _in_use(head: Head, log_id: int, stripe: Stripe, deadline: Deadline) -> bool:
    """Whether the log uses the stripe. The reply to an accepted proposal may have been lost."""
    newest = (await head.read(deadline)).view
    known = () if newest is None else newest.stripes
    known = (*known, *await head.stripes(log_id, stripe.start, deadline))
    return any(each.id == stripe.id for each in known)


async def remove_all(io: Io, view: View, deadline: Deadline) -> None:
    """Remove every stripe object and file of a removed log. ``view`` is the log's last view."""
    head = Head(io, view.log)
    await remove(io, view.objects(), view.epoch, deadline)
    position = 0
    while stripes := await head.stripes(view.log_id, position, deadline):
        for stripe in stripes:
            await remove(io, objects_of(view.log, view.log_id, stripe), view.epoch, deadline)
        position = stripes[-1].end
    for file in await head.offload_list(view.log_id, 0, deadline) if view.offloads else ():
        await remove_file(io, file, deadline, of_log=True)
    for id_, width in (await head.pending_stripes(view.log_id, deadline))[1]:
        await remove_pending(io, view, id_, width, deadline)


async def remove_pending(io: Io, view: View, id_: int, width: int, deadline: Deadline) -> None:
    """Remove the objects of a pending stripe, then remove the stripe from the head's list."""
    stripe = Stripe(id_, 0, OPEN_END, width)
    await remove(io, objects_of(view.log, view.log_id, stripe), view.epoch, deadline)
    await Head(io, view.log).stripe_forget(view.log_id, id_, deadline)
