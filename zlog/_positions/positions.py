"""Where the next position comes from: a sequencer, or the slow way without one.

While a view names a sequencer, no client finds positions the slow way. A client that has lost the
sequencer for long enough first brings in a view without one, and only then goes the slow way. So
what sequencers grant, what ``tail()`` answers and what slow writers take never disagree.
"""

from __future__ import annotations

import errno
import logging
from collections.abc import Callable
from datetime import datetime, timezone
from typing import Literal

from zlog._base.deadline import Deadline
from zlog._base.io import Call
from zlog._base.names import check_position, wake_object
from zlog._base.refusals import from_errno
from zlog._layout.confirmed import confirmed_end
from zlog._layout.layout import Layout
from zlog._layout.prefix import prefix_end
from zlog._layout.views import backoff, check_room
from zlog._native import messages
from zlog._positions.announcements import Announcements
from zlog._positions.notifications import NOTIFIED_POLL_SECONDS, Notifications
from zlog.errors import (
    AppendRefused,
    BeyondTail,
    ClassNotLoaded,
    CorruptEntry,
    SequencerBusy,
    SequencerRefused,
    SequencerTimeout,
    SequencerUnavailable,
    StaleEpoch,
)
from zlog.view import ExclusiveWriter, View

_logger = logging.getLogger(__name__)

_POLL_SECONDS = 0.01
_POLL_SECONDS_MAX = 0.25
"""How often a follower without a sequencer asks for the tail, which nothing has told it yet."""


PositionSpec = int | Literal["earliest", "latest"]
"""Where a reader begins: a position, the first one that is not trimmed, or the tail."""


class Positions:
    """Hands out positions of one log, and tells its tail.

    Attributes:
        layout: of the log.
    """

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self._handed_out = 0  # positions below it have been, as far as this handle knows
        self._io = layout.io
        self._outage = layout.outage
        self._announcements = Announcements(layout)
        self._told = False
        self._notifications = Notifications(layout.io, wake_object(layout.address.name))
        self._known = (0, 0)  # a stripe, by id, and a position: all below it is confirmed

    async def grant(self, count: int, deadline: Deadline) -> tuple[View, int]:
        """Return a view and the first of ``count`` positions to use in that view only.

        With a sequencer the positions are this caller's; without, they are free as far as known.

        Raises:
            StoreReadOnly, AppendRefused: see :meth:`check_appendable`.
            SequencerRefused: the sequencer and this client don't trust each other. Going the slow
                way all the same would need a view without it, for all clients.
            SequencerBusy: it had no room for this client until the time was up.
        """
        attempt = tried = 0
        began = 0.0
        busy: SequencerBusy | None = None
        while True:
            await self.check_appendable(deadline)
            if deadline.expired:
                raise busy or SequencerTimeout(
                    f"log {self.layout.view.log!r}: the time was up before a position was granted",
                    hint="Nothing was written; give the call more time: `timeout=`, `--timeout`.",
                )
            view = self.layout.view
            if not view.sequencer:
                await self._announcements.poll(view, deadline)
                view, position = await self._scan(deadline, whole=True)
                if refusal(view) is not None:  # since it was looked at
                    continue
                if not view.sequencer:
                    check_room(view.log, position)
                    return view, position
            if self._outage.lost(view.epoch):
                self._announcements.postpone()
                await self.layout.drop_sequencer(view, deadline)
                continue
            if tried != view.epoch:  # this call's attempts in one epoch add up, however far apart
                tried, began = view.epoch, self._io.monotonic()
            try:
                granted = await self._ask(view, count, deadline)
            except StaleEpoch:
                await self.layout.advance(view, deadline)
            except SequencerBusy as error:
                self._outage.answered()
                busy = error
                self._tell(error, "waits until its sequencer has room")
                if (await self.layout.refresh(deadline)).epoch == view.epoch:
                    await backoff(self._io, attempt)
                    attempt += 1
            except SequencerRefused:
                if (await self.layout.refresh(deadline)).epoch == view.epoch:
                    raise
            except SequencerUnavailable:
                self._outage.failed(view.epoch, began)
                if deadline.expired:
                    raise
                newest = await self.layout.refresh(deadline)
                if newest.epoch == view.epoch and not await self.layout.find_leader(view, deadline):
                    await backoff(self._io, attempt)
                    attempt += 1
            else:
                if granted is not None:
                    return granted

    async def check_appendable(self, deadline: Deadline) -> None:
        """Raise unless the log takes appends.

        Raises:
            StoreReadOnly: nothing can be written in this store.
            AppendRefused: the log is a mirror, exclusive, or read-only.
            KeyNeeded: its entries have MACs, and this client can make none.
        """
        self.layout.macs.check_key()
        if self._io.store.read_only:
            raise from_errno(-errno.EROFS, f"append to log {self.layout.view.log!r}")
        if refusal(self.layout.view) is None:
            return
        if (refused := refusal(await self.layout.refresh(deadline))) is not None:
            raise refused

    async def tail_up_to(self, end: int | None, deadline: Deadline) -> int:
        """Return the tail, or ``end`` if it lies below; not asked for where the head said so.

        Of an exclusive log the head does not: its tail needs no floor, and is never below it but
        for what a hostile client has recorded.
        """
        view = self.layout.view
        if end is not None and end <= view.tail_floor and view.writer is None:
            return end
        tail = await self.tail(deadline)
        return tail if end is None else min(end, tail)

    async def tail(self, deadline: Deadline, *, checked: bool = True) -> int:
        """Return the next position that will be handed out.

        Checked, the answer is linearizable: above everything acknowledged before the call began,
        and never below what any earlier call answered, over every change of the sequencer. This
        costs one operation on the head object.
        """
        while True:
            view = self.layout.view
            tail = await self._quick_tail(view, deadline)
            if tail is None:
                if view.sequencer and (await self.layout.refresh(deadline)).epoch > view.epoch:
                    continue
                tail = (await self._scan(deadline))[1]
            elif not checked:
                return tail
            else:
                try:
                    if not await self.layout.raise_tail(view, tail, deadline):
                        continue
                except ClassNotLoaded:  # a client that only reads: this needs no record
                    tail = (await self._scan(deadline))[1]
            self._handed_out = max(self._handed_out, tail)
            return tail

    async def reserve(self, count: int, deadline: Deadline) -> range:
        """Return ``count`` positions, which no epoch hands out again.

        Raises:
            SequencerUnavailable: there is no sequencer. Without one, writers take what is free.
        """
        while True:
            view, first = await self.grant(count, deadline)
            if not view.sequencer:
                raise SequencerUnavailable(
                    f"log {view.log!r} has no sequencer, and only a sequencer reserves positions",
                    hint="Start one: `zlog seqr`.",
                )
            end = first + count
            if await self.layout.raise_tail(view, end, deadline):
                self._handed_out = max(self._handed_out, end)
                return range(first, end)

    async def check_handed_out(self, action: str, position: int, deadline: Deadline) -> None:
        """Raise BeyondTail if a position has not been handed out, as far as the tail tells."""
        check_position(position)
        await self.check_reached(action, position, position + 1, deadline)

    async def check_reached(self, action: str, position: int, end: int, deadline: Deadline) -> None:
        """Raise BeyondTail if the tail has not reached ``end``. Asks for it when it must."""
        if end > self._handed_out and end > (tail := await self.tail(deadline)):
            raise BeyondTail(
                f"can't {action} {position}: the tail of log {self.layout.view.log!r} is {tail}"
            )

    async def resolve(self, spec: PositionSpec, deadline: Deadline) -> int:
        """Return where a reader begins that says so.

        Raises:
            BeyondTail: a position that has not been handed out yet.
        """
        if spec == "earliest":
            return (await self.layout.refresh(deadline)).trim_point
        if spec == "latest":
            return await self.tail(deadline)
        check_position(spec)
        await self.check_reached("set a cursor to", spec, spec, deadline)
        return spec

    async def is_confirmed(self, position: int, deadline: Deadline) -> bool:
        """Whether a reader of an exclusive log may see a position; of others it may see all."""
        if self.layout.view.writer is None:
            return True

        def known(view: View) -> int | None:
            end = self._known_end(view)
            return None if end is None or position < end else end

        _, end = await self._confirmed(self.layout.view, known, deadline)
        return end is None or position < end

    async def wait(self, position: int, timeout: float, deadline: Deadline) -> int | None:
        """Wait until the tail has passed ``position``. Returns the tail; None at the timeout."""
        io, notifications = self._io, self._notifications
        end = io.monotonic() + timeout
        poll = _POLL_SECONDS
        woken: bool | None = None
        while True:
            number = notifications.number  # first: what comes during the poll counts
            tail = await self._wait_once(position, end - io.monotonic(), deadline)
            if tail is not None and tail > position:
                notifications.prompt = notifications.prompt if woken is None else woken
                return tail
            left = end - io.monotonic()
            if left <= 0:
                # Has the sequencer been replaced without knowing? Then it would wait for ever.
                await self.layout.refresh(deadline)
                return None
            if tail is not None:  # no sequencer to wait at: this was one look at the objects
                if woken:  # in vain: do not poll at the sender's pace
                    await io.sleep(min(_POLL_SECONDS, left))
                pause = NOTIFIED_POLL_SECONDS if notifications.prompt else poll
                woken = await notifications.wait(number, min(pause, left))
                poll = min(poll * 2, _POLL_SECONDS_MAX)

    async def _ask(self, view: View, count: int, deadline: Deadline) -> tuple[View, int] | None:
        """Ask the view's sequencer. None: it serves another epoch than the newest view's."""
        step = deadline.sooner(self._outage.patience(view.epoch))
        sequencer = self._io.sequencer(view.sequencer)
        grant = await sequencer.next(self.layout.address, count, view.epoch, step)
        self._outage.answered()
        if grant.epoch != view.epoch:
            view = await self.layout.refresh(deadline)
        # The positions are only good in the epoch in which they were granted.
        return (view, grant.position) if grant.epoch == view.epoch else None

    async def _quick_tail(self, view: View, deadline: Deadline) -> int | None:
        """Ask the sequencer for the tail. None: there is none, or none that serves this view.

        Then, unless there is a newer view, a look at the objects serves just as well for a tail,
        though not for a grant: it is above everything acknowledged, and the tail floor above
        everything that tails have shown. A reader never needs to change the view for it.
        """
        if not view.sequencer:
            return None
        step = deadline.sooner(self._outage.patience(view.epoch))
        try:
            sequencer = self._io.sequencer(view.sequencer)
            grant = await sequencer.tail(self.layout.address, view.epoch, step)
        except SequencerRefused as error:
            self._tell(error)
            return None
        except (SequencerUnavailable, StaleEpoch):
            return None
        return grant.position if grant.epoch == view.epoch else None

    async def _wait_once(self, position: int, timeout: float, deadline: Deadline) -> int | None:
        """Wait at the sequencer (None: in vain), or without one look at the objects once.

        Of an exclusive log at the object that has the position: it says when there is more.
        """
        view = self.layout.view
        if view.writer is not None and position >= view.live_stripe.start:
            objects = [view.object_of(position)]
            end = await confirmed_end(self._io, view, position, deadline, objects)
            if end == position:
                return position
        if view.sequencer:
            try:
                sequencer = self._io.sequencer(view.sequencer)
                grant = await sequencer.wait(
                    self.layout.address, view.epoch, position, max(timeout, 0.0), deadline
                )
                return None if grant is None else grant.position
            except SequencerRefused as error:
                self._tell(error)
            except (StaleEpoch, SequencerUnavailable):
                await self.layout.refresh(deadline)
        return (await self._scan(deadline))[1]

    def _tell(self, refused: SequencerRefused, what: str = "is read without its sequencer") -> None:
        """Say once that it is slower than it could be."""
        if not self._told:
            self._told = True
            log = self.layout.view.log
            _logger.warning("log %r %s: %s. %s", log, what, refused, refused.hint)

    async def written_end(
        self, deadline: Deadline, check: Callable[[View], None]
    ) -> tuple[View, int]:
        """Return one past the highest position of the live stripe that is taken, or its start.

        And the view whose epoch the objects still accepted; ``check`` raises where it is not one
        in which the answer is wanted.
        """
        view, tail, _ = await self._taken(deadline, check)
        return view, tail

    async def _scan(self, deadline: Deadline, *, whole: bool = False) -> tuple[View, int]:
        """Find the tail by asking every object of the live stripe for its highest position.

        A mirror's is its floor: what lies above was not copied whole yet. That of an exclusive log
        is where its confirmed entries end.

        Returns the view whose epoch the objects still accepted, and the tail. Objects that are
        lost are passed over, so that the rest can be read; ``whole`` is for handing out positions,
        which must not go on below what a lost object held.
        """
        while True:
            # The floor is read before the objects: tails shown later lie above what they hold.
            view = await self.layout.refresh(deadline)
            if view.mirror:
                return view, view.tail_floor
            if view.writer is not None:
                view, end = await self._confirmed(view, self._known_end, deadline)
                if end is not None:
                    return view, end
                continue
            view, tail, missing = await self._taken(deadline)
            if view.mirror or view.writer is not None:
                continue  # a newer view answered, whose tail is not above all that is written
            if missing and whole:
                raise CorruptEntry(f"a stripe object of log {view.log!r} is missing")
            return view, tail

    async def _confirmed(
        self, view: View, known: Callable[[View], int | None], deadline: Deadline
    ) -> tuple[View, int | None]:
        """As :func:`prefix_end`, and remember it."""
        view, end = await prefix_end(self.layout, view, known, deadline)
        if end is not None:
            self._known = (view.live_stripe.id, end)
        return view, end

    def _known_end(self, view: View) -> int | None:
        """Return up to where entries are known to be confirmed; None: the log is not exclusive."""
        if view.writer is None:
            return None
        stripe, end = self._known
        return end if stripe == view.live_stripe.id else view.live_stripe.start

    async def _taken(
        self, deadline: Deadline, check: Callable[[View], None] = lambda _: None
    ) -> tuple[View, int, bool]:
        """Ask every object of the live stripe for its highest position.

        Returns the view, one past the highest of all, and whether an object is missing: not since
        another stripe is live by now, and this one was trimmed as a whole and removed.
        """

        def calls(view: View) -> list[Call]:
            check(view)
            request = messages.max_position(view.epoch)
            return [
                Call(ref.name, "max_position", request) for ref in view.objects(view.live_stripe)
            ]

        while True:
            view, replies = await self.layout.guarded(calls, deadline)
            tail = max(view.live_stripe.start, view.tail_floor)
            missing = False
            for reply in replies:
                if reply.code == -errno.ENOENT:
                    missing = True
                    continue
                reply.check(f"max_position of log {view.log!r}")
                highest = messages.max_position_reply(reply.payload).highest
                if highest is not None:
                    tail = max(tail, highest + 1)
            if not missing or (await self.layout.refresh(deadline)).epoch == view.epoch:
                return view, tail, missing


def refusal(view: View) -> AppendRefused | None:
    """Return why a log takes no appends of any client; None: it does."""
    if view.mirror:
        return AppendRefused(
            f"log {view.log!r} is a mirror, which takes entries from its source only"
        )
    if view.read_only:
        return AppendRefused(
            f"log {view.log!r} is read-only",
            hint="Make it writable again (`zlog access read-only LOG --off`, `log.writable()`),"
            " or append to another log.",
        )
    if view.writer is not None:
        return AppendRefused(
            f"log {view.log!r} is exclusive: {describe(view.writer)} writes it",
            hint="Leave it to that writer; take the log over if it is gone (`log.writer()`,"
            " `zlog append LOG --exclusive`), or open it to all again (`zlog access fence LOG`).",
        )
    return None


def describe(writer: ExclusiveWriter) -> str:
    """Return who a writer is, and since when."""
    since = datetime.fromtimestamp(writer.since, timezone.utc)
    return f"{writer.name or writer.id} (since {since:%Y-%m-%d %H:%M:%S} UTC)"
