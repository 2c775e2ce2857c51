"""The newest view that a client knows, and how the client reacts to an object's newer epoch."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import replace

from zlog._base.codes import EPOCH_MAX, Code
from zlog._base.deadline import Deadline
from zlog._base.io import Call, Io, OffloadedObject, Reply
from zlog._base.mac import Key
from zlog._base.sequencer import LogAddress, is_remote
from zlog._catalog.directory import Directory
from zlog._catalog.head import Head
from zlog._layout.macs import Macs
from zlog._layout.offloaded import OffloadedStripes
from zlog._layout.outage import LOOK_SECONDS, Outage
from zlog._layout.segments import Form, Part
from zlog._layout.stripe_index import StripeIndex, StripeUnknown
from zlog._layout.views import (
    Change,
    Edit,
    Recount,
    backoff,
    change_view,
    unless_newer,
    with_new_stripe,
)
from zlog._native.mutex import Mutex
from zlog._replica.repair import answers
from zlog.errors import (
    CorruptEntry,
    LogNotFound,
    SequencerBusy,
    SequencerRefused,
    SequencerUnavailable,
    StaleEpoch,
    StoreTimeout,
    StoreUnavailable,
)
from zlog.view import ObjectRef, Stripe, View

PATIENCE_SECONDS = 0.2
"""How long to wait until the client that sealed the objects has proposed its view."""

_PATIENCE_LOOKS = 8
"""How many times to read the head while waiting. A slow store slows down the other client too."""

_SPREAD_SECONDS = 0.25
"""How far writers that are refused at the same time are spread out; see ``Layout.renew``."""

_LOOK_DOUBLINGS_MAX = 2
"""How many times the pause between two reads doubles. The pause can stay short, because a layout
change takes milliseconds, and no client polls longer than PATIENCE_SECONDS."""

_OBJECT_LISTS_MAX = 64
"""The number of stripes whose object names are kept in memory."""


class Layout:
    """The newest view of a log that this client knows. Its epoch never decreases.

    A sequencer that was unreachable for ``sequencer_timeout`` seconds counts as lost. If a ``key``
    is given, raises MacsMissing for a log without MACs, and WrongKey for a log with another key.
    """

    def __init__(
        self,
        io: Io,
        address: LogAddress,
        view: View,
        sequencer_timeout: float,
        key: Key | None = None,
    ) -> None:
        self.io = io
        self.address = address
        self.head = Head(io, view.log)
        self.directory = Directory(io)
        self.view = view
        self.on_adopt: Callable[[View], None] = lambda _: None
        """A function that is called with each view that this client adopts. It must not wait."""
        self.macs = Macs(key, view, io.store.url)
        self.outage = Outage(io, sequencer_timeout)
        self._lock = Mutex()
        self._refused = (0, 0.0)  # the last refused epoch, and when it was first refused
        self._index = StripeIndex(self.head, view.log_id)
        self.offloaded = OffloadedStripes(io, self.head, view.log_id)
        self._objects: dict[int, list[ObjectRef]] = {}
        self.reclaimed: frozenset[int] = frozenset()
        """The ids of the view's wholly trimmed stripes whose objects were removed."""

    def __str__(self) -> str:
        return f"{self.view.log!r} in {self.io.store.url}"

    def objects(self, view: View, stripe: Stripe) -> list[ObjectRef]:
        """Return the objects of a stripe, by number. Cached, because stripes never change."""
        if isinstance(stripe, Part):
            return [*stripe.objects]
        objects = self._objects.get(stripe.id)
        if objects is None:
            if len(self._objects) >= _OBJECT_LISTS_MAX:
                self._objects.clear()
            objects = self._objects[stripe.id] = list(view.objects(stripe))
        return objects

    def stripe_of(self, view: View, position: int) -> Stripe:
        """Return an untrimmed position's stripe. Raises StripeUnknown if it must be looked up."""
        if position >= view.stripes[0].start:
            return view.stripe_of(position)
        stripe = self._index.find(position)
        if stripe is None:
            raise StripeUnknown(position)
        return stripe

    def part_of(self, view: View, position: int, form: Form = "objects") -> Stripe:
        """Return an untrimmed position's stripe or, if it is offloaded, a segment of its file.

        Raises StripeUnknown if the stripe must be looked up, or the segment read, first.
        """
        stripe = self.stripe_of(view, position)
        if not view.offloads or stripe.open or position < view.trim_point:
            return stripe
        part = self.offloaded.part(stripe, position, form)
        if part is None:
            raise StripeUnknown(position)
        return part

    async def part_at(
        self, position: int, deadline: Deadline, form: Form = "objects"
    ) -> Stripe | None:
        """Return what :meth:`part_of` returns, after all look-ups; None if it is trimmed."""
        stripe = await self.stripe_at(position, deadline)
        view = self.view
        if stripe is None or not view.offloads or stripe.open or position < view.trim_point:
            return stripe
        if self.offloaded.known is None:
            await self.list_offloaded(deadline)
        return await self.offloaded.load(stripe, position, deadline, form)

    async def list_offloaded(self, deadline: Deadline) -> None:
        """Read the records of stripes that were offloaded since the last call."""
        if self.view.offloads:
            count = await self.offloaded.refresh(self.view.trim_point, deadline)
            with self._lock:
                self.view = replace(self.view, offloaded=max(count, self.view.offloaded))

    def width_at(self, position: int) -> int:
        """Return the width of a position's stripe, or the live stripe's if it is unknown."""
        view = self.view
        try:
            return self.stripe_of(view, position).width
        except StripeUnknown:
            return view.live_stripe.width

    def by_stripe(self, view: View, start: int, end: int) -> Iterator[tuple[int, int, Stripe]]:
        """Split ``[start, end)`` by stripe. Raises StripeUnknown if one must be looked up."""
        while start < end:
            stripe = self.stripe_of(view, start)
            last = min(end, stripe.end)
            yield start, last, stripe
            start = last

    def by_part(self, view: View, start: int, end: int) -> Iterator[tuple[int, int, Stripe]]:
        """Split a range as :meth:`by_stripe`, but stop before or after an offloaded segment."""
        first = start
        while start < end:
            stripe = self.part_of(view, start)
            if isinstance(stripe, Part) and start > first:
                return
            last = min(end, stripe.end)
            yield start, last, stripe
            if isinstance(stripe, Part):
                return
            start = last

    async def stripe_at(self, position: int, deadline: Deadline) -> Stripe | None:
        """Return a position's stripe; None if it is wholly trimmed. Raises CorruptEntry if lost."""
        while True:
            view = self.view
            if position < view.trim_point:
                return self._index.find(position)
            if position >= view.stripes[0].start:
                return view.stripe_of(position)
            found = self._index.find(position) or await self._index.look_up(position, deadline)
            if found is not None:
                return found
            newest = await self.refresh(deadline)
            if newest.epoch == view.epoch and newest.trim_point == view.trim_point:
                raise CorruptEntry(f"log {view.log!r}: no stripe holds position {position}")

    async def stripes(self, start: int, end: int, deadline: Deadline) -> AsyncIterator[Stripe]:
        """Iterate in order over the stripes of ``[start, end)`` that are not wholly trimmed."""
        position = start
        await self.list_offloaded(deadline)
        while position < end:
            position = max(position, self.view.trim_point)
            stripe = await self.stripe_at(position, deadline)
            if stripe is not None and stripe.start < end:
                yield stripe
                position = stripe.end
            elif stripe is not None:
                return

    async def refresh(self, deadline: Deadline) -> View:
        """Read the newest view from the head object. Raises LogNotFound if the log was removed."""
        return (await self._look(deadline))[1]

    async def _look(self, deadline: Deadline) -> tuple[int, View]:
        """Return the epoch that was taken last, and the newest view."""
        state = await self.head.read(deadline)
        if state.view is None or state.view.removed:
            raise self._removed()
        return state.counter, self.adopt(self._of_this_log(state.view))

    def adopt(self, view: View) -> View:
        """Adopt ``view`` if it is newer than the known view. Returns the newest view.

        Replies can arrive out of order, so the trim point and the tail floor are never lowered.
        """
        with self._lock:
            known = self.view
            newest = view if view.epoch >= known.epoch else known
            self.view = replace(
                newest,
                trim_point=max(view.trim_point, known.trim_point),
                tail_floor=max(view.tail_floor, known.tail_floor),
                offloaded=max(view.offloaded, known.offloaded),
            )
            self.on_adopt(self.view)
            return self.view

    async def outdated(self, view: View, deadline: Deadline) -> bool:
        """Return whether the log has a newer view, trim point or offloaded stripe than ``view``.

        If so, an object of ``view`` may be missing because its positions were trimmed or offloaded,
        or its empty stripe was replaced. Raises LogNotFound if the log was removed.
        """
        await self.refresh(deadline)
        await self.list_offloaded(deadline)
        newest = self.view
        return (
            newest.epoch > view.epoch
            or newest.trim_point > view.trim_point
            or newest.offloaded > view.offloaded
        )

    async def change(
        self, edit: Edit, deadline: Deadline, *, recount: Recount | None = None, above: int = 0
    ) -> View:
        """Change the layout (see :func:`zlog._layout.views.change_view`) and adopt the new view.

        The new view's sequencer is notified. Raises LogNotFound if the log was removed, even if
        another log has its name now.
        """
        changed = await change_view(
            self.io,
            self.address.name,
            lambda view: edit(self._of_this_log(view)),
            deadline,
            recount=recount,
            above=above,
        )
        if not isinstance(changed, Change):
            return self.adopt(self._of_this_log(changed))
        return await self.reactivate(self.adopt(changed.view), deadline)

    def _of_this_log(self, view: View) -> View:
        if view.log_id != self.address.log_id:
            raise self._removed()
        self.macs.check(view)
        return view

    def _removed(self) -> LogNotFound:
        return LogNotFound(f"log {self.address.name!r} was removed from {self.io.store.url}")

    async def advance(self, stale: View, deadline: Deadline, *, sealed: int = 0) -> View:
        """Return a view newer than ``stale``, after an object has refused the epoch of ``stale``.

        Usually the client that sealed the object is about to propose a view, so this waits for a
        short, random time. If no view appears, that client has probably died, and this client
        changes the view. The new epoch is higher than ``sealed``, which is the object's epoch or 0.
        """
        io = self.io
        began = io.monotonic()
        if self._refused[0] != stale.epoch:
            self._refused = (stale.epoch, began)
        patience = 0.0
        attempt = 0
        while True:
            counter, view = await self._look(deadline)
            if view.epoch > stale.epoch:
                return view
            if not attempt:
                look = io.monotonic() - began
                wait = max(PATIENCE_SECONDS, _PATIENCE_LOOKS * look)
                patience = self._refused[1] + wait * (1 + io.random())
            if deadline.expired:
                raise StaleEpoch(
                    f"log {stale.log!r}: epoch {stale.epoch} has ended, and no newer view"
                    " appeared in time"
                )
            if io.monotonic() >= patience:
                with contextlib.suppress(SequencerBusy):  # repeat until the sequencer has capacity
                    above = sealed if sealed > counter else 0
                    return await self._finish(stale, deadline, above=min(above, EPOCH_MAX))
            await backoff(io, min(attempt, _LOOK_DOUBLINGS_MAX))
            attempt += 1

    async def _finish(self, stale: View, deadline: Deadline, *, above: int = 0) -> View:
        """Create a view newer than ``stale``, or ask the sequencer of ``stale`` to create it.

        If ``above`` is not 0, an object was sealed with that epoch, and this client creates a view
        with a higher one. In a read-only store, no view can be created. The result is then the old
        view with the highest epoch that was taken, which suffices for reading.
        """
        if self.io.store.read_only:
            counter, view = await self._look(deadline)
            return self.adopt(replace(view, epoch=max(view.epoch, counter)))
        if above or not is_remote(stale.sequencer):
            return await self.change(unless_newer(stale), deadline, above=above)
        if not self.outage.lost(stale.epoch):
            began = self.io.monotonic()
            try:
                sequencer = self.io.sequencer(stale.sequencer)
                step = deadline.sooner(self.outage.patience(stale.epoch))
                await sequencer.open(self.address, stale.epoch, step)
                return await self.refresh(deadline)
            except SequencerRefused:
                raise  # other clients may reach the sequencer, so do not depose it
            except SequencerUnavailable:
                # No client can append before that, so do not wait for the outage limit.
                self.outage.failed(stale.epoch, began)
                if deadline.expired:
                    raise
        return await self.drop_sequencer(stale, deadline)

    async def raise_tail(self, view: View, tail: int, deadline: Deadline) -> bool:
        """Record that a client is about to see ``tail`` as the tail in ``view``.

        Returns False if there is a newer view, and raises LogNotFound if the log was removed.
        """
        answer = await self.head.tail_raise(view.log_id, view.epoch, tail, deadline)
        if answer == Code.STALE_EPOCH:
            await self.advance(view, deadline)
        elif answer == Code.BEYOND_STRIPE:
            await self.renew(view, deadline)
        return answer == Code.OK

    async def renew(self, view: View, deadline: Deadline) -> View:
        """Replace a view whose granted positions are taken, or are too high for the live stripe.

        The new view's tail is above all taken positions. If it is too high for the live stripe, the
        view starts a new one. All writers need this view at the same time, so each first waits for
        a random time, and then makes the change only if no other client has begun it.
        """
        await self.io.sleep(_SPREAD_SECONDS * self.io.random())
        counter, newest = await self._look(deadline)
        if newest.epoch == view.epoch < counter:
            newest = await self.advance(view, deadline)
        if newest.epoch > view.epoch:
            return newest
        newest = await self._finish(view, deadline)
        if newest.epoch > view.epoch:
            return newest
        return await self.change(unless_newer(view), deadline)

    async def find_leader(self, view: View, deadline: Deadline) -> bool:
        """Ask the announced sequencer to take over the log, if it is not the view's sequencer.

        Returns whether there is a newer view now. Raises SequencerRefused if the sequencer and this
        client do not trust each other, or if the sequencer has no capacity.
        """
        step = deadline.sooner(LOOK_SECONDS)
        try:
            announced = await self.directory.sequencer(step)
            if announced in ("", view.sequencer):
                return False
            await self.io.sequencer(announced).open(self.address, view.epoch, step)
        except SequencerRefused:
            raise
        except (SequencerUnavailable, StoreUnavailable):
            return False
        return (await self.refresh(deadline)).epoch > view.epoch

    async def reactivate(self, view: View, deadline: Deadline) -> View:
        """Ask the TCP sequencer of ``view`` to reopen the log in a higher epoch."""
        if is_remote(view.sequencer):
            step = deadline.sooner(self.outage.limit)
            with contextlib.suppress(SequencerUnavailable):  # other clients will notice it as well
                await self.io.sequencer(view.sequencer).open(self.address, view.epoch, step)
                return await self.refresh(deadline)
        return view

    async def roll(self, full: Stripe, deadline: Deadline) -> None:
        """Start a new stripe of the same width if ``full`` is still the live stripe.

        If the log has a TCP sequencer, the sequencer starts the stripe while it reopens the log.
        """

        def edit(view: View) -> View | None:
            return with_new_stripe(view) if view.live_stripe.id == full.id else None

        counter, view = await self._look(deadline)
        if edit(view) is not None and counter > view.epoch:
            view = await self.advance(view, deadline)  # another client is changing the layout
        if edit(view) is None:
            return
        if (await self.reactivate(view, deadline)).live_stripe.id == full.id:
            await self.change(edit, deadline)

    async def drop_sequencer(self, view: View, deadline: Deadline) -> View:
        """Continue without the sequencer of ``view``, if no other sequencer takes over the log."""
        if await self.find_leader(view, deadline):
            return self.view
        return await self.change(unless_newer(view, sequencer=""), deadline)

    async def guarded(
        self, calls_of: Callable[[View], Sequence[Call]], deadline: Deadline
    ) -> tuple[View, list[Reply]]:
        """Run calls in the current view, and repeat them in a newer view if its epoch is refused.

        ``calls_of`` returns idempotent calls for a view. If it raises StripeUnknown, the stripe is
        looked up and the function called again. The store's errors become negative codes.
        """
        while True:
            view = self.view
            try:
                calls = calls_of(view)
            except StripeUnknown as unknown:
                await self.part_at(unknown.position, deadline)
                continue
            replies = await self.io.execute(calls, deadline) if calls else []
            if not any(reply.code for reply in replies):
                return view, replies
            if isinstance(calls[0].object, OffloadedObject):
                return view, replies
            replies = await answers(self.io, calls, replies, deadline)
            sealed = max((r.number for r in replies if r.code == Code.STALE_EPOCH), default=0)
            if not sealed:
                return view, replies
            if deadline.expired:
                raise StoreTimeout(f"log {view.log!r}: the layout did not settle in time")
            await self.advance(view, deadline, sealed=sealed)
