"""The newest view that a client knows, and what it does if an object has a newer epoch."""

from __future__ import annotations

import contextlib
from bisect import bisect_right
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import replace

from zlog._base.codes import EPOCH_MAX, Code
from zlog._base.deadline import Deadline
from zlog._base.io import Call, Io, Reply
from zlog._base.mac import Key
from zlog._base.sequencer import LogAddress, is_remote
from zlog._catalog.directory import Directory
from zlog._catalog.head import Head
from zlog._layout.macs import Macs
from zlog._layout.outage import LOOK_SECONDS, Outage
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
"""How long to wait for the view of the client that sealed the objects."""

_PATIENCE_LOOKS = 8
"""The same in reads of the head: a slow store is also slow for that client."""

_SPREAD_SECONDS = 0.25
"""Writers that were refused at the same time spread over this time; see ``Layout.renew``."""

_LOOK_DOUBLINGS_MAX = 2
"""A layout change takes some milliseconds, and no client polls for longer than the patience above.
So the pause between two reads need not grow much."""

_OBJECT_LISTS_MAX = 64
"""Stripes whose objects' names are kept in memory."""

_KNOWN_MAX = 8192
"""Archived stripes kept in memory, about 200 bytes each. Beyond it, older look-ups are dropped."""


class StripeUnknown(LookupError):
    """The stripe of ``position`` is archived and was not looked up yet."""

    def __init__(self, position: int) -> None:
        super().__init__(position)
        self.position = position


class StripeIndex:
    """The archived stripes that were looked up. Archived stripes never change.

    Threads may share it, since ``_known`` is replaced as a whole.
    """

    def __init__(self, head: Head, log_id: int) -> None:
        self._head = head
        self._log_id = log_id
        self._known: tuple[Stripe, ...] = ()

    def find(self, position: int) -> Stripe | None:
        """Return the stripe that holds ``position``, if it has been looked up."""
        return _holder(self._known, position)

    async def look_up(self, position: int, deadline: Deadline) -> Stripe | None:
        """Return the archived stripe that holds ``position``, if there is one."""
        page = await self._head.stripes(self._log_id, position, deadline)
        known = {stripe.start: stripe for stripe in (*self._known, *page)}
        if len(known) > _KNOWN_MAX:
            known = {stripe.start: stripe for stripe in page}
        self._known = found = tuple(sorted(known.values(), key=lambda stripe: stripe.start))
        return _holder(found, position)  # another thread may have replaced it


def _holder(stripes: Sequence[Stripe], position: int) -> Stripe | None:
    """Return the stripe that holds a position; the stripes are in order."""
    index = bisect_right(stripes, position, key=lambda stripe: stripe.start) - 1
    return stripes[index] if index >= 0 and position < stripes[index].end else None


class Layout:
    """The newest known view of one log. It only moves to higher epochs.

    A sequencer counts as lost after it was unreachable for ``sequencer_timeout`` seconds. Raises
    WrongKey or MacsMissing if ``key`` is given and the view does not name it.
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
        self.macs = Macs(key, view, io.store.url)
        self.outage = Outage(io, sequencer_timeout)
        self._lock = Mutex()
        self._refused = (0, 0.0)  # the last refused epoch, and the time of its first refusal
        self._index = StripeIndex(self.head, view.log_id)
        self._objects: dict[int, list[ObjectRef]] = {}
        self.reclaimed: frozenset[int] = frozenset()
        """Wholly trimmed stripes of the view, by id, whose objects were removed."""

    def __str__(self) -> str:
        return f"{self.view.log!r} in {self.io.store.url}"

    def objects(self, view: View, stripe: Stripe) -> list[ObjectRef]:
        """Return the objects of a stripe, by index; cached, since a stripe never changes."""
        objects = self._objects.get(stripe.id)
        if objects is None:
            if len(self._objects) >= _OBJECT_LISTS_MAX:
                self._objects.clear()
            objects = self._objects[stripe.id] = list(view.objects(stripe))
        return objects

    def stripe_of(self, view: View, position: int) -> Stripe:
        """Return the stripe of an untrimmed position. Raises StripeUnknown if it is not known."""
        if position >= view.stripes[0].start:
            return view.stripe_of(position)
        stripe = self._index.find(position)
        if stripe is None:
            raise StripeUnknown(position)
        return stripe

    def width_at(self, position: int) -> int:
        """Return the width of a position's stripe, or of the live stripe if that is not known."""
        view = self.view
        try:
            return self.stripe_of(view, position).width
        except StripeUnknown:
            return view.live_stripe.width

    def known_stripes(self, view: View, start: int, end: int) -> Iterator[tuple[int, int, Stripe]]:
        """Cut ``[start, end)`` by known stripes. Raises StripeUnknown if the first is not known."""
        at = start
        while at < end:
            try:
                stripe = self.stripe_of(view, at)
            except StripeUnknown:
                if at == start:
                    raise
                return
            last = min(end, stripe.end)
            yield at, last, stripe
            at = last

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
        """Iterate over the stripes of ``[start, end)``, ascending, without wholly trimmed ones."""
        position = start
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
        """Adopt a view that was read or proposed if it is newer; returns the newest view.

        The trim point and the tail floor may grow without a new view. Replies may overtake each
        other, so neither is ever decreased.
        """
        with self._lock:
            known = self.view
            newest = view if view.epoch >= known.epoch else known
            self.view = replace(
                newest,
                trim_point=max(view.trim_point, known.trim_point),
                tail_floor=max(view.tail_floor, known.tail_floor),
            )
            return self.view

    async def outdated(self, view: View, deadline: Deadline) -> bool:
        """Return whether a newer view or trim point may explain a missing object of ``view``.

        The object may be below a new trim point, or in an empty stripe that was replaced.
        Raises LogNotFound if the log was removed.
        """
        newest = await self.refresh(deadline)
        return newest.epoch > view.epoch or newest.trim_point > view.trim_point

    async def change(
        self, edit: Edit, deadline: Deadline, *, recount: Recount | None = None, above: int = 0
    ) -> View:
        """Change the layout (see :func:`zlog._layout.views.change_view`) and adopt it.

        The sequencer of the new view is notified. Raises LogNotFound if the log was removed, even
        if another log has its name.
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
        """Return a view newer than ``stale``, which an object refused as too old.

        Usually the client that sealed the objects is about to propose its view. If no view appears
        within a short random time, that client has probably died, and this client makes the change.
        ``sealed`` is the object's epoch, if known; the new epoch is above it. A hostile client may
        have sealed an object of an ended stripe with any epoch, which a change of the layout does
        not read.
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
                with contextlib.suppress(SequencerBusy):  # repeat until it has capacity
                    above = sealed if sealed > counter else 0
                    return await self._finish(stale, deadline, above=min(above, EPOCH_MAX))
            await backoff(io, min(attempt, _LOOK_DOUBLINGS_MAX))
            attempt += 1

    async def _finish(self, stale: View, deadline: Deadline, *, above: int = 0) -> View:
        """Create a view above ``stale``: ask its sequencer to, if it has one, or do it here.

        This client also does it if the new epoch must be ``above`` one that no client was given. In
        a read-only store, it returns a view to read with, of the epoch that was taken last: no
        object has a higher epoch, and the stripes stay the same until a writer finishes the change.
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
                raise  # the sequencer may accept other clients, so do not depose it
            except SequencerUnavailable:
                # No client can append before that, so do not wait for the outage limit.
                self.outage.failed(stale.epoch, began)
                if deadline.expired:
                    raise
        return await self.drop_sequencer(stale, deadline)

    async def raise_tail(self, view: View, tail: int, deadline: Deadline) -> bool:
        """Record that ``tail`` was shown to a client in ``view``.

        Returns False, and records nothing, if there is a newer view. Raises LogNotFound if the log
        was removed.
        """
        answer = await self.head.tail_raise(view.log_id, view.epoch, tail, deadline)
        if answer == Code.STALE_EPOCH:
            await self.advance(view, deadline)
        elif answer == Code.BEYOND_STRIPE:
            await self.renew(view, deadline)
        return answer == Code.OK

    async def renew(self, view: View, deadline: Deadline) -> View:
        """Return a newer view, because positions granted in ``view`` are taken or too high.

        The tail of the new view is above the taken positions; if it is far above, the view starts a
        new stripe. All writers need the view at the same time, so each waits for a random time, and
        leaves the change to a client that has begun it.
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
        """Ask the announced sequencer to take the log over, if it is not the view's sequencer.

        The sequencer takes over all logs anyway, but one after the other. Returns whether there is
        a newer view. Raises SequencerRefused if the sequencer and this client don't trust each
        other, or if the sequencer has no capacity.
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
        """Ask the TCP sequencer of ``view`` to reopen the log, in a higher epoch."""
        if is_remote(view.sequencer):
            step = deadline.sooner(self.outage.limit)
            with contextlib.suppress(SequencerUnavailable):  # its clients will also notice
                await self.io.sequencer(view.sequencer).open(self.address, view.epoch, step)
                return await self.refresh(deadline)
        return view

    async def roll(self, full: Stripe, deadline: Deadline) -> None:
        """Start a new stripe of the same width, unless ``full`` is no longer the live stripe.

        A TCP sequencer starts the stripe while it reopens the log, which takes one epoch, not two.
        """

        def edit(view: View) -> View | None:
            if view.live_stripe.id != full.id:
                return None
            return with_new_stripe(view)

        counter, view = await self._look(deadline)
        if edit(view) is not None and counter > view.epoch:
            view = await self.advance(view, deadline)  # another client is changing it
        if edit(view) is None:
            return
        if (await self.reactivate(view, deadline)).live_stripe.id == full.id:
            await self.change(edit, deadline)

    async def drop_sequencer(self, view: View, deadline: Deadline) -> View:
        """Continue without the sequencer of ``view``, unless another one takes the log over."""
        if await self.find_leader(view, deadline):
            return self.view
        return await self.change(unless_newer(view, sequencer=""), deadline)

    async def guarded(
        self, calls_of: Callable[[View], Sequence[Call]], deadline: Deadline
    ) -> tuple[View, list[Reply]]:
        """Run idempotent calls that carry the view's epoch, and repeat them if it is stale.

        If ``calls_of`` raises StripeUnknown, the stripe is looked up first. Errors of the store are
        returned as negative codes.
        """
        while True:
            view = self.view
            try:
                calls = calls_of(view)
            except StripeUnknown as unknown:
                await self.stripe_at(unknown.position, deadline)
                continue
            replies = await self.io.execute(calls, deadline) if calls else []
            if not any(reply.code for reply in replies):
                return view, replies
            replies = await answers(self.io, calls, replies, deadline)
            sealed = max((r.number for r in replies if r.code == Code.STALE_EPOCH), default=0)
            if not sealed:
                return view, replies
            if deadline.expired:
                raise StoreTimeout(f"log {view.log!r}: the layout did not settle in time")
            await self.advance(view, deadline, sealed=sealed)
