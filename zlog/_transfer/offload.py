"""The steps that move an ended stripe into a file (docs/design/offload.md).

The caller writes the file. The steps make sure that a stripe's objects are removed only after its
file was recorded, and that the file contains everything that was in the objects.
"""

from __future__ import annotations

import errno
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace

from zlog._base.codes import Code
from zlog._base.deadline import Deadline
from zlog._catalog.rights import check_offload
from zlog._client import LogClient
from zlog._layout.object_calls import call_each
from zlog._layout.reclaim import reclaim
from zlog._layout.stripe_objects import remove
from zlog._native import messages
from zlog._transfer.pieces import Piece
from zlog._transfer.source import Source
from zlog.errors import CorruptEntry
from zlog.view import ObjectRef, Stripe, StripeFile, View, objects_of


class StripeOffload:
    """The steps for the stripes of one log. Several clients may do them at the same time."""

    def __init__(self, client: LogClient) -> None:
        self._client = client
        self._layout = client.layout

    async def allow(self, deadline: Deadline) -> View:
        """Change the view so that clients that cannot read offloaded stripes refuse the log.

        Raises:
            ClassNotLoaded: this client may not take all steps. Nothing was changed.
        """

        def edit(view: View) -> View | None:
            return None if view.offloads else replace(view, offloads=True)

        view = await self._layout.refresh(deadline)
        await check_offload(self._layout.io, view, deadline)
        return view if view.offloads else await self._layout.change(edit, deadline)

    async def files(self, deadline: Deadline) -> list[StripeFile]:
        """Return the files of all stripes with untrimmed positions, in order and in any state."""
        view = await self._layout.refresh(deadline)
        return await self._layout.head.offload_list(view.log_id, view.trim_point, deadline)

    async def ended(self, deadline: Deadline) -> list[Stripe]:
        """Return the stripes below the tail that have ended and are not trimmed, in order."""
        tail = await self._client.positions.tail(deadline)
        stripes = self._layout.stripes(self._layout.view.trim_point, tail, deadline)
        return [each async for each in stripes if each.end <= tail]

    async def freeze(self, stripe: Stripe, deadline: Deadline) -> None:
        """Make the objects of a stripe refuse to trim single positions, forever."""

        def request(view: View, _: ObjectRef) -> bytes:
            return messages.freeze(view.epoch)

        refs = objects_of(self._layout.view.log, self._layout.view.log_id, stripe)
        gone = -errno.ENOENT  # reading the stripe reports the loss
        await call_each(self._layout, "freeze", refs, request, deadline, gone)

    async def pieces(
        self, stripe: Stripe, *, keep_lost: bool = False
    ) -> AsyncIterator[Sequence[Piece]]:
        """Yield everything that a frozen stripe holds, in order. Holes are filled.

        Data of entries in a log with MACs ends with the MAC, which was not checked.

        Raises:
            CorruptEntry: a position is lost.
            NotWritten: a hole was not filled.
        """
        source = Source(self._client.reader, stripe.start, raw=True, keep_lost=keep_lost)
        while source.position < stripe.end:
            pieces = await source.next(stripe.end)
            if not pieces:
                raise source.open_hole()
            yield pieces

    async def record(self, file: StripeFile, deadline: Deadline) -> bool:
        """Record a file, or that it has reached its state. False if the stripe has another file.

        Also returns False if the stripe is trimmed.
        """
        log_id = self._layout.view.log_id
        return await self._layout.head.offload_put(log_id, file, deadline) == Code.OK

    async def reclaim(self, deadline: Deadline) -> None:
        """Remove the objects and files of trimmed stripes that earlier trims could not remove."""
        await reclaim(self._layout, deadline)

    async def forget(self, file: StripeFile, deadline: Deadline) -> None:
        """Forget a file with the state WRITTEN that was lost. Its stripe can be offloaded again."""
        await self._layout.head.offload_forget(self._layout.view.log_id, file, deadline)

    async def remove_objects(self, file: StripeFile, deadline: Deadline) -> None:
        """Remove the objects of a stripe whose file readers can use.

        Raises:
            CorruptEntry: the head does not list this file as one that readers can use.
        """
        layout = self._layout
        await layout.list_offloaded(deadline)
        stripe = await layout.stripe_at(file.end - 1, deadline)
        if stripe is None or stripe.id != file.id:
            return  # it was trimmed
        if (known := layout.offloaded.file_of(stripe)) is None or known.url != file.url:
            raise CorruptEntry(f"{file.url} is not the recorded file of its stripe")
        view = layout.view
        await remove(layout.io, objects_of(view.log, view.log_id, stripe), view.epoch, deadline)
