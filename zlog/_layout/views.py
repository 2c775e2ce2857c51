"""Changes a log's layout, in four steps whose order makes the change safe.

1. ``epoch_next`` takes an epoch that no other client has.
2. Every object of the live stripe is sealed with it. From then on no operation with an earlier
   epoch takes effect there. The seal returns the object's highest position.
3. The new tail is chosen above all these positions, and above every tail shown to a client.
4. The view is proposed. The head accepts it only if it builds on the view that is still the newest.

A new view may end the live stripe at that tail and start the next one there, if the change requests
it or the seals show that the live stripe is full. The objects of the new stripe are created before
the view is proposed, never afterwards. If its object will order the log, it is created at exactly
that tail, because it assigns the positions from there on.

In an exclusive log the tail is the end of the confirmed entries (:mod:`zlog._layout.confirmed`),
because nothing above an unwritten position was ever confirmed. The next stripe begins there. It is
empty, so the writer leaves no unwritten position below its entries.

If a client dies before step 4, the objects are sealed but there is no new view. Writers then find
that their epoch is stale, and wait for a random time. The first one whose wait ends repeats the
steps. Objects that were created for the missing view belong to a pending stripe, which the head
recorded in step 1 (docs/formats/stripe-index.md).

If several clients take the steps at once, some objects may be sealed above the accepted view's
epoch, which makes that view useless. So the other clients let the one with the highest epoch
finish, and a client that sealed above the accepted view proposes its change again.

Source: CORFU (NSDI 2012), sections 2.2 and 2.3; docs/design/layout.md.
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
from zlog._layout.stripe_objects import discard, make, remove, seal
from zlog._native import messages
from zlog.errors import CorruptEntry, InvalidEpoch, LogExhausted, LogNotFound, NotLeader, ZlogError
from zlog.view import OPEN_END, STRIPES_MAX, ObjectRef, Stripe, View, objects_of

_RETRY_SECONDS = 0.02
_RETRY_SECONDS_MAX = 0.5
_RETRY_DOUBLINGS_MAX = 5

Edit = Callable[[View], View | None]
"""A function that takes the newest view and returns the changed view, or None to change nothing. It
either keeps the stripes or starts a new one with :func:`with_new_stripe`."""


Recount = Callable[[View, int, Deadline], Awaitable[int]]
"""A function that returns the next view's tail. It takes the view that is about to end, with the
epoch of the seals, and the tail that follows from the seals and the head."""


class Change(NamedTuple):
    """A view that has taken effect, and the first position to grant in it."""

    view: View
    tail: int


_NO_STRIPE = Stripe(0, 0, OPEN_END, 0)


@dataclass(slots=True)
class _Attempt:
    """One attempt to change a view, with its epoch and the stripe that it may create.

    The stripe is first announced in the head. If the new view needs it, its objects are created. If
    no accepted view contains it, it is discarded.
    """

    base: View
    above: int = 0
    """The highest epoch with which objects turned out to be sealed."""
    tail: int = 0
    """The tail, if it turned out to be too far above the stripe's positions."""
    stripe: Stripe = _NO_STRIPE
    made: bool = False

    @property
    def epoch(self) -> int:
        return self.stripe.id

    @property
    def objects(self) -> list[ObjectRef]:
        return objects_of(self.base.log, self.base.log_id, self.stripe)

    async def make(self, io: Io, start: int, deadline: Deadline) -> bool:
        """Create the stripe's objects. Returns whether they can be used."""
        self.made = True
        taken = await make(io, self.objects, self.epoch, deadline, start=start)
        self.above = taken or self.above
        return not taken


async def backoff(io: Io, attempt: int) -> None:
    """Sleep for a random time, whose limit doubles with each attempt, up to half a second."""
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
    """Replace a log's view with one that ``edit`` derives from it.

    If another client changes the view first, ``edit`` is called again with that client's view. If
    ``removing`` is set, the view may change even after the log's removal has begun. If ``above`` is
    not 0, the new epoch is above it, or as close to it as the head allows.

    Returns the change, or the newest view if ``edit`` returned None. Raises LogNotFound if the log
    does not exist or is being removed, InvalidEpoch if another client was first at every attempt,
    and LogExhausted if the log has no position left.
    """
    attempts: list[_Attempt] = []
    try:
        changed = await _change(
            io, log, edit, deadline, attempts, removing=removing, recount=recount, above=above
        )
    except LogNotFound:
        # The head would have listed these objects, but it was removed.
        with contextlib.suppress(ZlogError):
            for each in attempts:
                if each.made:
                    await remove(io, each.objects, each.epoch, deadline)
        raise
    # If the cleanup fails, a later call finds the objects again.
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
    """Repeat the steps until a view is accepted. Failed attempts are added to ``attempts``."""
    head = Head(io, log)
    sealed = 0  # the highest epoch with which this call sealed objects
    patience = io.monotonic()
    attempt = 0
    while True:
        state = await head.read(deadline)
        base = _live(io, log, state.view, removing=removing)
        wanted = edit(base)
        if wanted is None and base.epoch >= sealed:
            return base
        if state.counter > max(base.epoch, sealed) and io.monotonic() < patience:
            # Another client was first. Let the client with the highest epoch finish.
            await backoff(io, attempt)
            attempt += 1
        else:
            began = io.monotonic()
            last = attempts[-1] if attempts else _Attempt(base, above)
            attempts.append(_Attempt(base, last.above, last.tail))
            tried = await _try_change(io, head, attempts[-1], wanted or base, deadline, recount)
            if isinstance(tried, Change):
                attempts.pop()
                return tried
            sealed = tried
            # That client needs about as long as this attempt took. Spread out the other clients.
            took = io.monotonic() - began
            patience = began + took * (2 + 2 * io.random())
            attempt = 0
        if deadline.expired:
            raise InvalidEpoch(f"could not change the layout of log {log!r} in time")


def _live(io: Io, log: str, view: View | None, *, removing: bool = False) -> View:
    """Return the view of a log. Raises LogNotFound if the log does not exist."""
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
    """Take the steps once. Returns the change, or the epoch if the steps must be repeated."""
    base = attempt.base
    live = base.live_stripe
    asked = len(wanted.stripes) > len(base.stripes)
    early = asked and not wanted.ordered  # such an object must know where the stripe begins
    width, stripe_unit = wanted.live_stripe.striping
    epoch, tail_floor = await head.epoch_next(deadline, width=width, above=attempt.above)
    attempt.stripe = Stripe(epoch, 0, OPEN_END, width, stripe_unit)
    if early:  # before the writers are stopped
        least = live.start if recount is not None else max(live.start, tail_floor, attempt.tail)
        check_space(base.log, least)
        if not await attempt.make(io, least, deadline):
            return epoch
    try:
        objects, start = [*base.objects(live)], live.start
        sealed = await seal(io, objects, epoch, deadline, start=start, missing_ok=wanted.removed)
    except CorruptEntry:
        # The object is lost, or the log was removed, or it has another live stripe by now.
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
        tail = await confirmed_end(io, replace(base, epoch=epoch), live.start, deadline)
        tail = None if tail is None else max(tail, base.trim_point)
    elif recount is not None:
        tail = await recount(replace(base, epoch=epoch), reached, deadline)
    if tail is None:
        return epoch
    if not wanted.removed:
        check_space(base.log, tail)
    if early and recount is None and tail - least > width * STRIPE_OBJECT_POSITIONS:
        attempt.tail = tail  # the next attempt's objects begin there
        return epoch
    if not (early or wanted.removed):
        begins = wanted.writer is not None and base.writer is None and tail > live.start
        # The object would assign positions below the tail.
        begins |= wanted.ordered and tail > max(live.start, written + 1)
        needed = asked or begins or tail < reached or _full(base, sealed, tail)
        if needed and not await attempt.make(io, tail, deadline):
            return epoch
    if wanted.writer is not None and base.writer is None:
        made = attempt.objects if attempt.made else objects
        if await confirmed_end(io, replace(base, epoch=epoch), tail, deadline, made) is None:
            return epoch
    attempt.stripe = replace(attempt.stripe, start=tail)
    stripes = _stripes(base, tail, attempt.stripe if attempt.made else None)
    view = replace(wanted, epoch=epoch, stripes=stripes, tail_floor=tail_floor)
    if not await head.propose(base.epoch, view, deadline):
        return epoch
    if view.sequencer == SHARED_ADDRESS:
        activate_shared(io, view, tail)
    return Change(view, tail)


def check_space(log: str, tail: int) -> None:
    """Raise LogExhausted if no whole stripe fits between ``tail`` and 2^63.

    Call this before a stripe starts at ``tail``, because later stripes cannot start below it.
    """
    if tail > POSITION_MAX - WIDTH_MAX * OBJECT_POSITIONS_MAX:
        raise LogExhausted(f"log {log!r}: no stripe fits between the tail, {tail}, and 2^63")


def _full(view: View, sealed: list[messages.SealReply], tail: int) -> bool:
    """Whether an object is full, or the tail is near the last position that the objects accept."""
    limits, live = StripeLimits.of(view.options), view.live_stripe
    start = min((each.start for each in sealed if each.start is not None), default=live.start)
    positions = (tail - start) / live.width
    return any(limits.fullness(each.records, each.bytes, positions) >= 1 for each in sealed)


def _stripes(base: View, tail: int, made: Stripe | None) -> tuple[Stripe, ...]:
    """Return the stripes of the view that follows ``base``.

    ``made`` is a new stripe that begins at ``tail``, or None. It replaces a live stripe without
    entries. Trimmed stripes are left out, as are the oldest stripes if there are too many.
    """
    stripes = list(base.stripes)
    if made is not None:
        live = stripes.pop()
        if live.start < tail:
            stripes.append(replace(live, end=tail))
        stripes.append(made)
    needed = [stripe for stripe in stripes if stripe.end > base.trim_point]
    return tuple(needed[-STRIPES_MAX:])


def with_new_stripe(view: View, width: int | None = None, stripe_unit: int | None = None) -> View:
    """Return a view for an edit in which a new stripe follows the live stripe.

    By default, both stripes have the same width and stripe unit. Start and id are set later.
    """
    live = view.live_stripe
    spread = (
        live.width if width is None else width,
        live.stripe_unit if stripe_unit is None else stripe_unit,
    )
    return replace(view, stripes=(*view.stripes, Stripe(0, 0, OPEN_END, *spread)))


def sequencer_of(io: Io, view: View) -> str:
    """Return the sequencer with which a view begins: the store's shared one, or none.

    A log needs none if its object or its exclusive writer orders it, or if it takes no appends.
    """
    needless = view.ordered or view.mirror or view.read_only or view.writer is not None
    return "" if needless or io.store.sequencer() is None else SHARED_ADDRESS


def activate_shared(io: Io, view: View, tail: int) -> None:
    """Let the store's shared sequencer grant positions in this view, starting at ``tail``."""
    shared = io.store.sequencer()
    if shared is not None:
        shared.activate(view.log_id, view.epoch, tail)


def unless_newer(stale: View, sequencer: str | None = None) -> Edit:
    """Return an edit for views not newer than ``stale``, which may set the sequencer."""

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
    """Make ``sequencer`` the sequencer of a log.

    ``depose`` returns whether this sequencer may replace another one, for example because it holds
    the lease. Raises NotLeader if the view names a sequencer that may not be replaced, or if the
    log's options rule out a sequencer.
    """

    def edit(view: View) -> View:
        if view.ordered or view.writer is not None or view.read_only:
            raise NotLeader(
                f"log {log!r} has no sequencer: it is exclusive, read-only or ordered by its object"
            )
        if view.sequencer not in ("", SHARED_ADDRESS, sequencer) and not depose():
            raise NotLeader(f"log {log!r} is served by another sequencer, {view.sequencer}")
        return replace(view, sequencer=sequencer)

    changed = await change_view(io, log, edit, deadline)
    assert isinstance(changed, Change)  # the edit always makes a change
    return changed


async def release(io: Io, log: str, sequencer: str, deadline: Deadline) -> None:
    """Remove ``sequencer`` from a log's newest view if the view names it."""

    def edit(view: View) -> View | None:
        return replace(view, sequencer="") if view.sequencer == sequencer else None

    await change_view(io, log, edit, deadline)
