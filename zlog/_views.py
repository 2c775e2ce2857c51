"""How a log's layout changes: epoch, seal, view. The order of these steps is the protocol.

1. ``epoch_next`` takes an epoch that nobody else has.
2. Every object of the live stripe is sealed with it. From then on nothing tagged with an earlier
   epoch takes effect there, and each object's highest position is asked only after its own seal.
3. The new tail lies above all of these positions, and above every tail that was shown to anybody.
4. The view is proposed; the head accepts it only if the newest view is still the one it builds on.

Whoever dies in between leaves sealed objects and no new view. Writers then find their epoch stale
with nothing newer to read, and the first one that loses patience does the steps again.

When several take the steps at once, the view that comes in may have a lower epoch than some of the
objects, and be of no use to anybody. So those who lose let the one with the highest epoch finish,
and whoever sealed above the view that won brings it in again.

Source: CORFU (NSDI 2012), sections 2.2 and 2.3; docs/design.md, "Views, epochs, and
changing the layout".
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import NamedTuple

from zlog import _native
from zlog._codes import Code
from zlog._deadline import Deadline
from zlog._head import Head
from zlog._io import Call, Io
from zlog._sequencer import SHARED_ADDRESS
from zlog.errors import CorruptEntry, InvalidEpoch, LogNotFound, NotLeader, from_errno
from zlog.view import ObjectRef, View

_RETRY_SECONDS = 0.02
_RETRY_SECONDS_MAX = 0.5
_RETRY_DOUBLINGS_MAX = 5

Edit = Callable[[View], View | None]
"""Takes the newest view; returns it changed as wanted, or None when nothing is left to do."""


class Change(NamedTuple):
    """A view that took effect, and the first position to hand out in it."""

    view: View
    tail: int


async def backoff(io: Io, attempt: int) -> None:
    """Wait a short random time that doubles with each attempt, up to half a second."""
    ceiling = min(_RETRY_SECONDS * 2.0 ** min(attempt, _RETRY_DOUBLINGS_MAX), _RETRY_SECONDS_MAX)
    await io.sleep(ceiling * (0.5 + io.random() / 2))


async def seal(
    io: Io,
    objects: Iterable[ObjectRef],
    epoch: int,
    deadline: Deadline,
    *,
    create: bool = False,
    missing_ok: bool = False,
) -> list[int | None] | None:
    """Seal stripe objects with ``epoch``, all at the same time.

    Args:
        create: make the objects, as for a new stripe. Otherwise a missing object is an error: it
            was lost, and must not be replaced by an empty one without anybody noticing.
        missing_ok: pass over missing objects, as when removing a log.

    Returns:
        The highest position of each object (None: empty), or None when some object has an equal
        or higher epoch already, which means that another client is ahead.
    """
    calls = [
        Call(ref.name, "seal", _native.encode_seal(epoch, ref.stride, ref.residue, create))
        for ref in objects
    ]
    highest: list[int | None] = []
    overtaken = False
    for call, reply in zip(calls, await io.execute(calls, deadline), strict=True):
        if reply.code == -errno.ENOENT:
            if not missing_ok:
                raise CorruptEntry(f"stripe object {call.object} is missing")
        elif reply.code < 0:
            raise from_errno(reply.code, f"seal on {call.object}")
        elif reply.code == Code.INVALID_EPOCH:
            overtaken = True
        else:
            highest.append(_native.decode_seal(reply.payload)[0])
    return None if overtaken else highest


async def change_view(
    io: Io, log: str, edit: Edit, deadline: Deadline, *, removing: bool = False
) -> Change | View:
    """Bring a new view into effect.

    Args:
        edit: see :data:`Edit`; asked again after each lost race, with the view that won.
        removing: whether a log that is being removed already counts as there.

    Returns:
        The change, or the newest view when ``edit`` wanted none.

    Raises:
        LogNotFound: no such log, or it is being removed.
        InvalidEpoch: other clients kept winning until the time was up.
    """
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
            # This call lost a race, and whoever has the highest epoch now is at work.
            await backoff(io, attempt)
            attempt += 1
        else:
            began = io.monotonic()
            tried = await _try_change(io, head, base, base if wanted is None else wanted, deadline)
            if isinstance(tried, Change):
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
    io: Io, head: Head, base: View, wanted: View, deadline: Deadline
) -> Change | int:
    """Take the steps once. Returns the epoch that was taken when another client is ahead."""
    epoch, tail_floor = await head.epoch_next(deadline)
    try:
        objects = base.objects(base.live_stripe)
        highest = await seal(io, objects, epoch, deadline, missing_ok=wanted.removed)
    except CorruptEntry:
        # Objects are missing for good, or because the log was removed meanwhile.
        if _live(io, base.log, (await head.read(deadline)).view).log_id != base.log_id:
            raise LogNotFound(f"log {base.log!r} was removed from {io.store.url}") from None
        raise
    if highest is None:
        return epoch
    written = max((each for each in highest if each is not None), default=-1)
    tail = max(base.live_stripe.start, written + 1, tail_floor)
    view = replace(wanted, epoch=epoch, tail_floor=tail_floor)
    if not await head.propose(base.epoch, view, deadline):
        return epoch
    if view.sequencer == SHARED_ADDRESS:
        activate_shared(io, view, tail)
    return Change(view, tail)


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
        depose: whether it may take the place of another sequencer, which whoever holds the lease
            may; asked each time that another is met.

    Raises:
        NotLeader: the newest view names another sequencer, which may not be deposed.
    """

    def edit(view: View) -> View:
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
