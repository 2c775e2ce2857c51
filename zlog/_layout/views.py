"""How a log's layout changes: epoch, seal, view. The order of these steps is the protocol.

1. ``epoch_next`` takes an epoch that no other client has.
2. Every object of the live stripe is sealed with it. From then on nothing tagged with an earlier
   epoch takes effect there, and each object's highest position is asked only after its own seal.
3. The new tail lies above all of these positions, and above every tail that was shown to a client.
4. The view is proposed; the head accepts it only if the newest view is still the one it builds on.

A view may end the live stripe at that tail and start the next one there: because the change asks
for it, or because the seals tell that the live stripe is full. The new stripe's objects are made
before the view is proposed, and never afterwards.

Of an exclusive log the tail is where the confirmed entries end (:mod:`zlog._layout.confirmed`):
what lies above an unwritten position was never confirmed, and the next stripe begins there. Its
stripes begin empty, so that nothing in them is unwritten below what its writer has written.

A client that dies in between leaves sealed objects and no new view. Writers then find their epoch
stale with nothing newer to read, and the first one that loses patience does the steps again.
Objects that were made for a view that never came belong to a loose stripe, which the head has noted
since step 1 (docs/formats/stripe-index.md).

When several take the steps at once, the view that comes in may have a lower epoch than some of the
objects, and be of no use to any client. So those that lose let the one with the highest epoch
finish, and a client that sealed above the view that won brings it in again.

Source: CORFU (NSDI 2012), sections 2.2 and 2.3; docs/design.md, "Views, epochs, and
changing the layout".
"""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

from zlog._base.codes import OBJECT_POSITIONS_MAX, POSITION_MAX, WIDTH_MAX
from zlog._base.deadline import Deadline
from zlog._base.io import Io
from zlog._base.options import STRIPE_OBJECT_POSITIONS, StripeLimits
from zlog._base.sequencer import SHARED_ADDRESS
from zlog._catalog.head import Head
from zlog._layout.confirmed import confirmed_end
from zlog._layout.discard import discard
from zlog._layout.stripe_objects import make, remove, seal
from zlog._native import messages
from zlog.errors import (
    CorruptEntry,
    InvalidEpoch,
    LogExhausted,
    LogNotFound,
    NotLeader,
    UnsupportedVersion,
    ZlogError,
)
from zlog.view import OPEN_END, STRIPES_MAX, Stripe, View, objects_of

_RETRY_SECONDS = 0.02
_RETRY_SECONDS_MAX = 0.5
_RETRY_DOUBLINGS_MAX = 5

Edit = Callable[[View], View | None]
"""Takes the newest view; returns it changed as wanted, or None when nothing is left to do.

It leaves the stripes as they are, or starts a new one: :func:`with_new_stripe`."""


Recount = Callable[[View, int, Deadline], Awaitable[int]]
"""Takes the view that is about to end, with the epoch that its objects are sealed with, and the
tail by what they and the head say; returns the tail of the next view."""


class Change(NamedTuple):
    """A view that took effect, and the first position to hand out in it."""

    view: View
    tail: int


_NO_STRIPE = Stripe(0, 0, OPEN_END, 0)


@dataclass(slots=True)
class _Attempt:
    """One epoch that a change took, and the stripe that may be made in it.

    Life: announced → made, if the view needs the stripe → in the view, or lost.
    """

    base: View
    above: int = 0
    """The highest epoch that objects were found sealed with."""
    tail: int = 0
    """Found when the stripe had been made for positions too far below it."""
    stripe: Stripe = _NO_STRIPE
    made: bool = False
    units: bool = True
    """Whether all OSDs may know of units: one has refused them, if not."""

    @property
    def epoch(self) -> int:
        return self.stripe.id

    async def make(self, io: Io, start: int, deadline: Deadline) -> bool:
        """Make the stripe's objects, as :func:`stripe_objects.make`; returns whether it did."""
        self.made = True
        objects = objects_of(self.base.log, self.base.log_id, self.stripe)
        try:
            taken = await make(io, objects, self.epoch, deadline, start=start)
        except UnsupportedVersion:
            if self.stripe.unit == 1:
                raise
            self.units = False
            return False
        self.above = taken or self.above
        return not taken

    async def unmake(self, io: Io, deadline: Deadline) -> None:
        """Remove the objects of a stripe that is in no view."""
        if self.made:
            objects = objects_of(self.base.log, self.base.log_id, self.stripe)
            await remove(io, objects, self.epoch, deadline)


async def backoff(io: Io, attempt: int) -> None:
    """Wait a short random time that doubles with each attempt, up to half a second."""
    ceiling = min(_RETRY_SECONDS * 2.0 ** min(attempt, _RETRY_DOUBLINGS_MAX), _RETRY_SECONDS_MAX)
    await io.sleep(ceiling * (0.5 + io.random() / 2))


async def change_view(
    io: Io,
    log: str,
    edit: Edit,
    deadline: Deadline,
    *,
    removing: bool = False,
    recount: Recount | None = None,
    above: int = 0,
) -> Change | View:
    """Bring a new view into effect.

    Args:
        io: the world.
        log: its name.
        edit: see :data:`Edit`; asked again after each lost race, with the view that won.
        deadline: budget of the call.
        removing: whether a log that is being removed already counts as there.
        recount: see :data:`Recount`; None: the tail is what objects and head say.
        above: an epoch that an object is sealed with; the view's is above it, or nearer to it.

    Returns:
        The change, or the newest view when ``edit`` wanted none.

    Raises:
        LogNotFound: no such log, or it is being removed.
        InvalidEpoch: other clients kept winning until the time was up.
        LogExhausted: the log has no position left.
    """
    attempts: list[_Attempt] = []
    try:
        changed = await _change(
            io, log, edit, deadline, attempts, removing=removing, recount=recount, above=above
        )
    except LogNotFound:
        # With its head the log has lost what would name these objects.
        with contextlib.suppress(ZlogError):
            for attempt in attempts:
                await attempt.unmake(io, deadline)
        raise
    # The change is what counts; what is left behind is found again.
    with contextlib.suppress(ZlogError):
        for each in attempts:
            await discard(io, each.base, each.stripe, deadline, made=each.made)
    return changed


async def _change(
    io: Io,
    log: str,
    edit: Edit,
    deadline: Deadline,
    attempts: list[_Attempt],
    *,
    removing: bool,
    recount: Recount | None,
    above: int,
) -> Change | View:
    """Take the steps until a view is in; ``attempts`` gets those that led to none."""
    head = Head(io, log)
    sealed = 0  # the highest epoch with which this call sealed objects, in vain so far
    patience = io.monotonic()
    attempt = 0
    while True:
        state = await head.read(deadline)
        base = _live(io, log, state.view, removing=removing)
        wanted = edit(base)
        if wanted is None and base.epoch >= sealed:
            return base
        if state.counter > max(base.epoch, sealed) and io.monotonic() < patience:
            # This call lost a race, and the client with the highest epoch now is at work.
            await backoff(io, attempt)
            attempt += 1
        else:
            began = io.monotonic()
            last = attempts[-1] if attempts else _Attempt(base, above)
            attempts.append(_Attempt(base, last.above, last.tail, units=last.units))
            tried = await _try_change(io, head, attempts[-1], wanted or base, deadline, recount)
            if isinstance(tried, Change):
                attempts.pop()
                return tried
            sealed = tried
            # The winner needs about as long as this took, and not all losers may come at once.
            took = io.monotonic() - began
            patience = began + took * (2 + 2 * io.random())
            attempt = 0
        if deadline.expired:
            raise InvalidEpoch(f"could not change the layout of log {log!r} in time")


def _live(io: Io, log: str, view: View | None, *, removing: bool = False) -> View:
    """Return the view of a log that is there. Raises LogNotFound."""
    if view is None or (view.removed and not removing):
        raise LogNotFound(f"there is no log {log!r} in {io.store.url}")
    return view


async def _try_change(
    io: Io,
    head: Head,
    attempt: _Attempt,
    wanted: View,
    deadline: Deadline,
    recount: Recount | None,
) -> Change | int:
    """Take the steps once. Returns the epoch that was taken when another client is ahead."""
    base = attempt.base
    live = base.live_stripe
    asked = len(wanted.stripes) > len(base.stripes)
    width, unit = wanted.live_stripe.spacing
    epoch, tail_floor = await head.epoch_next(deadline, width=width, above=attempt.above)
    attempt.stripe = Stripe(epoch, 0, OPEN_END, width, unit if attempt.units else 1)
    if asked:  # before the writers are stopped
        least = live.start if recount is not None else max(live.start, tail_floor, attempt.tail)
        check_room(base.log, least)
        if not await attempt.make(io, least, deadline):
            return epoch
    try:
        objects, start = [*base.objects(live)], live.start
        sealed = await seal(io, objects, epoch, deadline, start=start, missing_ok=wanted.removed)
    except CorruptEntry:
        # Missing for good; or the log was removed, or its live stripe is another one by now.
        view = _live(io, base.log, (await head.read(deadline)).view)
        if view.log_id != base.log_id:
            raise LogNotFound(f"log {base.log!r} was removed from {io.store.url}") from None
        if view.epoch > base.epoch:
            return epoch
        raise
    if isinstance(sealed, int):
        attempt.above = sealed
        return epoch
    written = max((each.highest for each in sealed if each.highest is not None), default=-1)
    reached = max(live.start, written + 1, tail_floor, base.trim_point)
    tail: int | None = reached
    if base.writer is not None and not wanted.removed:
        tail = await _confirmed(io, replace(base, epoch=epoch), deadline)
    elif recount is not None:
        tail = await recount(replace(base, epoch=epoch), reached, deadline)
    if tail is None:
        return epoch
    if not wanted.removed:
        check_room(base.log, tail)
    if asked and recount is None and tail - least > width * STRIPE_OBJECT_POSITIONS:
        attempt.tail = tail  # the next one's objects begin there, and do not end too soon
        return epoch
    if not (asked or wanted.removed):
        begins = wanted.writer is not None and base.writer is None and tail > live.start
        needed = begins or tail < reached or _full(base, sealed, tail)
        if needed and not await attempt.make(io, tail, deadline):
            return epoch
    if wanted.writer is not None and base.writer is None:
        # Where an object's class does not tell what is confirmed there, no log becomes exclusive.
        made = objects_of(base.log, base.log_id, attempt.stripe) if attempt.made else objects
        if await confirmed_end(io, replace(base, epoch=epoch), tail, deadline, made) is None:
            return epoch
    attempt.stripe = replace(attempt.stripe, start=tail)
    stripes = _stripes(base, tail, attempt.stripe if attempt.made else None)
    view = replace(wanted, epoch=epoch, stripes=stripes, tail_floor=tail_floor)
    try:
        if not await head.propose(base.epoch, view, deadline):
            return epoch
    except UnsupportedVersion:  # by a class that knows no units
        if not attempt.made or attempt.stripe.unit == 1:
            raise
        attempt.units = False
        return epoch
    if view.sequencer == SHARED_ADDRESS:
        activate_shared(io, view, tail)
    return Change(view, tail)


async def _confirmed(io: Io, sealed: View, deadline: Deadline) -> int | None:
    """Return where the confirmed entries end; None: another client has sealed the objects since."""
    end = await confirmed_end(io, sealed, sealed.live_stripe.start, deadline)
    return None if end is None else max(end, sealed.trim_point)


def check_room(log: str, tail: int) -> None:
    """Raise LogExhausted where there is no room for a stripe between ``tail`` and 2^63.

    That is before a stripe starts there, since none can start below it then.
    """
    if tail > POSITION_MAX - WIDTH_MAX * OBJECT_POSITIONS_MAX:
        raise LogExhausted(f"log {log!r}: the tail is {tail}, and positions end at 2^63")


def _full(view: View, sealed: list[messages.SealReply], tail: int) -> bool:
    """Whether an object is full, or the tail is on its way to where the objects take nothing."""
    limits, live = StripeLimits.of(view.options), view.live_stripe
    start = min((each.start for each in sealed if each.start is not None), default=live.start)
    positions = (tail - start) / live.width
    return any(limits.fullness(each.records, each.bytes, positions) >= 1 for each in sealed)


def _stripes(base: View, tail: int, made: Stripe | None) -> tuple[Stripe, ...]:
    """Return the stripes of the next view; ``made``, if there is one, begins at ``tail``.

    Without those that are wholly trimmed, and without the oldest when there are too many. A live
    stripe in which nothing was ever written is replaced: it would end where it starts.
    """
    stripes = list(base.stripes)
    if made is not None:
        live = stripes.pop()
        if live.start < tail:
            stripes.append(replace(live, end=tail))
        stripes.append(made)
    needed = [stripe for stripe in stripes if stripe.end > base.trim_point]
    return tuple(needed[-STRIPES_MAX:])


def with_new_stripe(view: View, width: int | None = None, unit: int | None = None) -> View:
    """Return what an edit wants that ends the live stripe and starts another one.

    That has the same width and unit where these are None. The change sets where it starts, its id,
    and a unit of 1 where an OSD knows no other.
    """
    live = view.live_stripe
    spread = live.width if width is None else width, live.unit if unit is None else unit
    return replace(view, stripes=(*view.stripes, Stripe(0, 0, OPEN_END, *spread)))


def activate_shared(io: Io, view: View, tail: int) -> None:
    """Let the store's shared sequencer hand out positions in this view, from ``tail``."""
    shared = io.store.sequencer()
    if shared is not None:
        shared.activate(view.log_id, view.epoch, tail)


def unless_newer(stale: View, sequencer: str | None = None) -> Edit:
    """Edit that repeats the layout in a new epoch, unless there is a view newer than ``stale``.

    Args:
        sequencer: who hands out positions from then on; None leaves it as it is.
    """

    def edit(view: View) -> View | None:
        if view.epoch > stale.epoch:
            return None
        return view if sequencer is None else replace(view, sequencer=sequencer)

    return edit


async def take_over(
    io: Io,
    log: str,
    sequencer: str,
    deadline: Deadline,
    *,
    depose: Callable[[], bool] = lambda: False,
) -> Change:
    """Make ``sequencer`` the one that hands out the positions of a log.

    Args:
        depose: whether it may take the place of another sequencer, which the holder of the lease
            may; asked each time that another is met.

    Raises:
        NotLeader: the newest view names another sequencer, which may not be deposed.
    """

    def edit(view: View) -> View:
        if view.writer is not None or view.read_only:
            raise NotLeader(f"log {log!r} has no sequencer: it is exclusive, or read-only")
        if view.sequencer not in ("", SHARED_ADDRESS, sequencer) and not depose():
            raise NotLeader(f"log {log!r} is served by {view.sequencer}")
        return replace(view, sequencer=sequencer)

    changed = await change_view(io, log, edit, deadline)
    assert isinstance(changed, Change)  # the edit always wants a change
    return changed


async def release(io: Io, log: str, sequencer: str, deadline: Deadline) -> None:
    """Let a log go on without ``sequencer``, if that is the one its newest view names."""

    def edit(view: View) -> View | None:
        return replace(view, sequencer="") if view.sequencer == sequencer else None

    await change_view(io, log, edit, deadline)
