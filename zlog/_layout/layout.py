"""The newest view that a client knows, and what it does when an object knows a newer epoch."""

from __future__ import annotations

import contextlib
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
from zlog._layout.stripe_index import StripeIndex
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
"""How long to wait for the view of the client that sealed the objects, before making one."""

_PATIENCE_LOOKS = 8
"""The same in looks at the head: a slow store is slow for that client too."""

_SPREAD_SECONDS = 0.25
"""Over which writers spread that have been refused at the same time: see ``Layout.renew``."""

_LOOK_DOUBLINGS_MAX = 2
"""A layout change takes some milliseconds, and no client looks for longer than the patience above:
so the time between two looks need not grow much."""

_OBJECT_LISTS_MAX = 64
"""Stripes whose objects' names are kept at hand."""


class StripeUnknown(LookupError):
    """A position lies in an archived stripe that was not looked up.

    Attributes:
        position: which.
    """

    def __init__(self, position: int) -> None:
        super().__init__(position)
        self.position = position


class Layout:
    """The newest view of one log. It only ever moves to higher epochs.

    Args:
        io: the world.
        address: which log.
        view: the newest one known.
        sequencer_timeout: seconds that a sequencer may be out of reach.
        key: of the log's MACs, if this client has it.

    Raises:
        WrongKey, MacsMissing: it is not the one that the view names, or that names none.
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
        self._refused = (0, 0.0)  # the epoch that was last refused, and when it was first
        self._index = StripeIndex(self.head, view.log_id)
        self._objects: dict[int, list[ObjectRef]] = {}
        self.reclaimed: frozenset[int] = frozenset()
        """Stripes of the view, by id, whose objects were removed since all of it is trimmed."""

    def __str__(self) -> str:
        return f"{self.view.log!r} in {self.io.store.url}"

    def objects(self, view: View, stripe: Stripe) -> list[ObjectRef]:
        """Return the objects of a stripe, by index; made once, since a stripe never changes."""
        objects = self._objects.get(stripe.id)
        if objects is None:
            if len(self._objects) >= _OBJECT_LISTS_MAX:
                self._objects.clear()
            objects = self._objects[stripe.id] = list(view.objects(stripe))
        return objects

    def stripe_of(self, view: View, position: int) -> Stripe:
        """Return the stripe that holds a position which is not trimmed, if it is known.

        Raises:
            StripeUnknown: it is archived and was not looked up; ``guarded`` does that.
        """
        if position >= view.stripes[0].start:
            return view.stripe_of(position)
        stripe = self._index.find(position)
        if stripe is None:
            raise StripeUnknown(position)
        return stripe

    def width_at(self, position: int) -> int:
        """Return the width of the stripe that holds a position; the live one's if it is unknown."""
        view = self.view
        try:
            return self.stripe_of(view, position).width
        except StripeUnknown:
            return view.live_stripe.width

    def known_stripes(self, view: View, start: int, end: int) -> Iterator[tuple[int, int, Stripe]]:
        """Cut ``[start, end)`` by stripes: ``(first, end, stripe)``, as far as these are known.

        Raises:
            StripeUnknown: not even the first one is.
        """
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
        """Return the stripe that holds a position, wherever it is. None: trimmed, stripe and all.

        Raises:
            CorruptEntry: the log has lost the stripe.
        """
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
        """Iterate over the stripes that hold positions of ``[start, end)``, ascending.

        Without those that are trimmed as a whole.
        """
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
        """Read the newest view from the head object.

        Raises:
            LogNotFound: the log was removed (also when a new one has its name).
        """
        return (await self._look(deadline))[1]

    async def _look(self, deadline: Deadline) -> tuple[int, View]:
        """Return the last epoch that was taken, and the newest view."""
        state = await self.head.read(deadline)
        if state.view is None or state.view.removed:
            raise self._removed()
        return state.counter, self.adopt(self._of_this_log(state.view))

    def adopt(self, view: View) -> View:
        """Take over a view that was read or proposed, unless it is older than the known one.

        The trim point and the tail floor grow without a new view, and answers may overtake each
        other: neither ever goes back for this client.
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
        """Whether there is more to know than ``view`` says, when an object of it is missing.

        It may lie below a trim point that this client has not seen yet, or in a stripe that was
        replaced while it was empty. Raises LogNotFound when the log as a whole was removed.
        """
        newest = await self.refresh(deadline)
        return newest.epoch > view.epoch or newest.trim_point > view.trim_point

    async def change(
        self, edit: Edit, deadline: Deadline, *, recount: Recount | None = None, above: int = 0
    ) -> View:
        """Change the layout (see :func:`zlog._layout.views.change_view`) and take it over.

        A sequencer that goes on in the new view hears of it.

        Raises:
            LogNotFound: the log was removed; another one that has its name is left alone.
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

        Usually the client that sealed the objects is about to propose its view. If nothing comes
        for a short random time, it died half-way, and this client finishes the job.

        Args:
            stale: which.
            deadline: budget.
            sealed: the epoch of the object, if known: a hostile client may have sealed one of a
                stripe that has ended, which no change of the layout asks, with any.
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
                    f"log {stale.log!r}: epoch {stale.epoch} is sealed and no newer view came"
                    " in time"
                )
            if io.monotonic() >= patience:
                with contextlib.suppress(SequencerBusy):  # until it has room, or the time is up
                    above = sealed if sealed > counter else 0
                    return await self._finish(stale, deadline, above=min(above, EPOCH_MAX))
            await backoff(io, min(attempt, _LOOK_DOUBLINGS_MAX))
            attempt += 1

    async def _finish(self, stale: View, deadline: Deadline, *, above: int = 0) -> View:
        """Bring in a view above ``stale``: by its sequencer if it has one, else by this client.

        By this client also where it has to be ``above`` an epoch that was never handed out. Where
        nothing can be written, reading goes on in the last epoch that was taken: no object has a
        higher one, and the stripes stay the same until a writer finishes the change.
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
                raise  # others may be welcome there: it is not for this client to send it away
            except SequencerUnavailable:
                # No client can append meanwhile, and no other finishes it: no time to lose.
                self.outage.failed(stale.epoch, began)
                if deadline.expired:
                    raise
        return await self.drop_sequencer(stale, deadline)

    async def raise_tail(self, view: View, tail: int, deadline: Deadline) -> bool:
        """Record that ``tail`` was shown to a client in ``view``.

        Returns False where that was in vain, and there is a newer view now.

        Raises:
            LogNotFound: the log was removed.
        """
        answer = await self.head.tail_raise(view.log_id, view.epoch, tail, deadline)
        if answer == Code.STALE_EPOCH:
            await self.advance(view, deadline)
        elif answer == Code.BEYOND_STRIPE:
            await self.renew(view, deadline)
        return answer == Code.OK

    async def renew(self, view: View, deadline: Deadline) -> View:
        """Return a view newer than ``view``, in which positions were handed out that are of no use.

        They lie beyond what the live stripe takes, or are taken. The tail of the new view lies
        above what is taken, and in a new stripe if that is far. All writers come to that at once:
        so each waits for a random time, and leaves it to one that has begun.
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
        """Have the log taken over from the sequencer of ``view``, which is out of reach.

        The one to do it is the one that the store's directory announces, if it is another. It does
        it unasked too, but for one log after the other. Returns whether there is a newer view.

        Raises:
            SequencerRefused: it and this client don't trust each other, or it has no room.
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
        """Have the sequencer of ``view``, if it is one over TCP, take the log up anew.

        It does so in a higher epoch. Returns the newest view.
        """
        if is_remote(view.sequencer):
            step = deadline.sooner(self.outage.limit)
            with contextlib.suppress(SequencerUnavailable):  # its clients will notice that too
                await self.io.sequencer(view.sequencer).open(self.address, view.epoch, step)
                return await self.refresh(deadline)
        return view

    async def roll(self, full: Stripe, deadline: Deadline) -> None:
        """Start a new stripe of the same width, unless ``full`` is not the live one any more.

        A sequencer over TCP does it when it takes the log up again: that is one epoch, not two.
        """

        def edit(view: View) -> View | None:
            if view.live_stripe.id != full.id:
                return None
            return with_new_stripe(view)

        counter, view = await self._look(deadline)
        if edit(view) is not None and counter > view.epoch:
            view = await self.advance(view, deadline)  # another client is at it already
        if edit(view) is None:
            return
        if (await self.reactivate(view, deadline)).live_stripe.id == full.id:
            await self.change(edit, deadline)

    async def drop_sequencer(self, view: View, deadline: Deadline) -> View:
        """Go on without the sequencer of ``view``, unless there is a newer view or another one."""
        if await self.find_leader(view, deadline):
            return self.view
        return await self.change(unless_newer(view, sequencer=""), deadline)

    async def guarded(
        self, calls_of: Callable[[View], Sequence[Call]], deadline: Deadline
    ) -> tuple[View, list[Reply]]:
        """Run calls that carry the view's epoch, again in a newer view if it was stale.

        Where ``calls_of`` needs an archived stripe that is not known, it is looked up first.

        Only for calls that do no harm when repeated. The store's own errors come back as negative
        codes, for the caller to judge.
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
                raise StoreTimeout(f"log {view.log!r}: the time was up while its layout changed")
            await self.advance(view, deadline, sealed=sealed)
