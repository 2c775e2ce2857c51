"""Finds a log's next position, from its sequencer or, in the slow way, from its objects.

While a view names a sequencer, no client takes positions in the slow way. A client that cannot
reach the sequencer for long enough first installs a view without it. Positions granted by a
sequencer and positions taken in the slow way therefore never conflict.
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
from zlog._base.refusals import from_code
from zlog._layout.confirmed import confirmed_end
from zlog._layout.layout import Layout
from zlog._layout.object_calls import prefix_end
from zlog._layout.views import backoff, check_space
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
"""How often a follower polls if there is no sequencer and it receives no notifications."""


PositionSpec = int | Literal["earliest", "latest"]
"""Where a reader begins: a position, the oldest position that is not trimmed, or the tail."""


class Positions:
    """Grants positions of one log and finds its tail."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self._handed_out = 0  # positions below it were granted, as far as this handle knows
        self._io = layout.io
        self._outage = layout.outage
        self._announcements = Announcements(layout)
        self._warned = False
        self._notifications = Notifications(layout.io, wake_object(layout.address.name))
        self._known = (0, 0)  # a stripe's id, and the position below which all is confirmed

    async def grant(self, count: int, deadline: Deadline) -> tuple[View, int]:
        """Return a view, and the first of ``count`` positions that are granted in it.

        Use the positions in that view only. A sequencer grants them only to this caller. Without a
        sequencer, another client may take them first.

        Raises:
            StoreReadOnly, AppendRefused: see :meth:`check_appendable`.
            SequencerRefused: the sequencer and this client do not trust each other.
            SequencerBusy: the sequencer had no capacity for this client before the time was up.
        """
        attempt = tried = 0
        began = 0.0
        busy: SequencerBusy | None = None
        while True:
            await self.check_appendable(deadline)
            if deadline.expired:
                raise busy or SequencerTimeout(
                    f"log {self.layout.view.log!r}: no position was granted in time",
                    hint="Nothing was written. Give the call more time with `timeout=` or"
                    " `--timeout`.",
                )
            view = self.layout.view
            if not view.sequencer:
                await self._announcements.poll(view, deadline)
                view, position = await self._scan(deadline, whole=True)
                if not takes_appends(view):  # the view has changed
                    continue
                if not view.sequencer:
                    check_space(view.log, position)
                    return view, position
            if self._outage.lost(view.epoch):
                self._announcements.postpone()
                await self.layout.drop_sequencer(view, deadline)
                continue
            if tried != view.epoch:  # measure all attempts of one call in the same epoch
                tried, began = view.epoch, self._io.monotonic()
            try:
                granted = await self._ask(view, count, deadline)
            except StaleEpoch:
                await self.layout.advance(view, deadline)
            except SequencerBusy as error:
                self._outage.answered()
                busy = error
                self._warn(error, "waits until its sequencer has space")
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
        """Raise KeyNeeded, StoreReadOnly or AppendRefused if this client cannot append."""
        self.layout.macs.check_key()
        if self._io.store.read_only:
            raise from_code(-errno.EROFS, f"cannot append to log {self.layout.view.log!r}")
        if not takes_appends(self.layout.view):
            check_takes_appends(await self.layout.refresh(deadline))

    async def tail_up_to(self, end: int | None, deadline: Deadline) -> int:
        """Return the lower of the tail and ``end``.

        If the tail is known to have reached ``end``, this needs no request. In an exclusive log, it
        is not known: positions may be granted but not confirmed, and only a hostile client can have
        recorded a tail floor.
        """
        view = self.layout.view
        known = self._handed_out if view.ordered else view.tail_floor
        if end is not None and end <= known and view.writer is None:
            return end
        tail = await self.tail(deadline)
        return tail if end is None else min(end, tail)

    async def tail(self, deadline: Deadline, *, checked: bool = True) -> int:
        """Return the next position that will be granted.

        A checked tail is linearizable, even if the sequencer changes: it is above all entries that
        were acknowledged before the call, and never below an earlier checked tail. It costs one
        operation on the head object.
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
                except ClassNotLoaded:  # a client that may only read does not record the tail
                    tail = (await self._scan(deadline))[1]
            self._handed_out = max(self._handed_out, tail)
            return tail

    async def reserve(self, count: int, deadline: Deadline) -> range:
        """Return ``count`` positions that are never granted again. Raises SequencerUnavailable."""
        while True:
            view, first = await self.grant(count, deadline)
            if not view.sequencer:
                raise SequencerUnavailable(
                    f"log {view.log!r} has no sequencer, and only a sequencer can reserve"
                    " positions",
                    hint="Its object orders it. Let a sequencer order it: `zlog reconfigure LOG"
                    " --ordering sequencer`."
                    if view.ordered
                    else "Start one: `zlog seqr`.",
                )
            end = first + count
            if await self.layout.raise_tail(view, end, deadline):
                self._handed_out = max(self._handed_out, end)
                return range(first, end)

    async def check_handed_out(self, action: str, position: int, deadline: Deadline) -> None:
        """Raise BeyondTail if a position is not below the tail. ``action`` is for the message."""
        check_position(position)
        await self.check_reached(action, position, position + 1, deadline)

    async def check_reached(self, action: str, position: int, end: int, deadline: Deadline) -> None:
        """Raise BeyondTail if the tail is below ``end``. Requests the tail only if necessary."""
        if end > self._handed_out and end > (tail := await self.tail(deadline)):
            raise BeyondTail(
                f"can't {action} {position}, which has not been granted yet: the tail of log"
                f" {self.layout.view.log!r} is {tail}"
            )

    async def resolve(self, spec: PositionSpec, deadline: Deadline) -> int:
        """Return the position that ``spec`` means. Raises BeyondTail if it was not granted."""
        if spec == "earliest":
            return (await self.layout.refresh(deadline)).trim_point
        if spec == "latest":
            return await self.tail(deadline)
        check_position(spec)
        await self.check_reached("set a cursor to", spec, spec, deadline)
        return spec

    async def is_confirmed(self, position: int, deadline: Deadline) -> bool:
        """Whether readers may see a position. In an exclusive log, it must be confirmed first."""
        if self.layout.view.writer is None:
            return True

        def known(view: View) -> int | None:
            end = self._known_end(view)
            return None if end is None or position < end else end

        _, end = await self._confirmed(self.layout.view, known, deadline)
        return end is None or position < end

    async def wait(self, position: int, timeout: float, deadline: Deadline) -> int | None:
        """Wait until the tail is above ``position``. Returns the tail, or None at the timeout."""
        io, notifications = self._io, self._notifications
        end = io.monotonic() + timeout
        poll = _POLL_SECONDS
        woken: bool | None = None
        while True:
            number = notifications.number  # read before the poll, so that no later one is missed
            tail = await self._wait_once(position, end - io.monotonic(), deadline)
            if tail is not None and tail > position:
                notifications.prompt = notifications.prompt if woken is None else woken
                return tail
            left = end - io.monotonic()
            if left <= 0:
                # A sequencer may not know that it was replaced, and would let clients wait forever.
                await self.layout.refresh(deadline)
                return None
            if tail is not None:  # there is no sequencer, so this polled the objects
                if woken:  # there is no new entry: do not poll at the sender's pace
                    await io.sleep(min(_POLL_SECONDS, left))
                pause = NOTIFIED_POLL_SECONDS if notifications.prompt else poll
                woken = await notifications.wait(number, min(pause, left))
                poll = min(poll * 2, _POLL_SECONDS_MAX)

    async def _ask(self, view: View, count: int, deadline: Deadline) -> tuple[View, int] | None:
        """Ask the view's sequencer. Returns None if its epoch is not the newest view's."""
        step = deadline.sooner(self._outage.patience(view.epoch))
        sequencer = self._io.sequencer(view.sequencer)
        grant = await sequencer.next(self.layout.address, count, view.epoch, step)
        self._outage.answered()
        if grant.epoch != view.epoch:
            view = await self.layout.refresh(deadline)
        # The positions are valid only in the epoch in which they were granted.
        return (view, grant.position) if grant.epoch == view.epoch else None

    async def _quick_tail(self, view: View, deadline: Deadline) -> int | None:
        """Ask the sequencer for the tail. Returns None if no sequencer serves this view.

        In that case, if there is no newer view, the tail can be read from the objects. That tail is
        above all acknowledged entries, so a reader never has to change the view.
        """
        if not view.sequencer:
            return None
        step = deadline.sooner(self._outage.patience(view.epoch))
        try:
            sequencer = self._io.sequencer(view.sequencer)
            grant = await sequencer.tail(self.layout.address, view.epoch, step)
        except SequencerRefused as error:
            self._warn(error)
            return None
        except (SequencerUnavailable, StaleEpoch):
            return None
        return grant.position if grant.epoch == view.epoch else None

    async def _wait_once(self, position: int, timeout: float, deadline: Deadline) -> int | None:
        """Ask the sequencer to wait, or poll the objects. Returns None if the tail did not change.

        In an exclusive log, only the object that holds ``position`` is polled.
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
                self._warn(error)
            except (StaleEpoch, SequencerUnavailable):
                await self.layout.refresh(deadline)
        return (await self._scan(deadline))[1]

    def _warn(self, refused: SequencerRefused, what: str = "is read without its sequencer") -> None:
        """Warn once that the log works without its sequencer, but more slowly."""
        if not self._warned:
            self._warned = True
            log = self.layout.view.log
            _logger.warning("log %r %s: %s. %s", log, what, refused, refused.hint)

    async def _scan(self, deadline: Deadline, *, whole: bool = False) -> tuple[View, int]:
        """Compute the tail from the objects of the live stripe, and return it with its view.

        The tail is one past the highest position in the objects. A mirror's tail is its tail floor,
        and an exclusive log's tail is the end of its confirmed entries. Lost objects are skipped,
        or raise CorruptEntry if ``whole`` is set, because a grant must be above all entries.
        """
        while True:
            # Read the floor before the objects, so that their entries are below later tails.
            view = await self.layout.refresh(deadline)
            if view.mirror:
                return view, view.tail_floor
            if view.writer is not None:
                view, end = await self._confirmed(view, self._known_end, deadline)
                if end is not None:
                    return view, end
                continue
            view, tail, missing = await self.taken_end(deadline)
            if view.mirror or view.writer is not None:
                continue  # the tail is different in the newer view
            if missing and whole:
                raise CorruptEntry(f"a stripe object of log {view.log!r} is missing")
            return view, tail

    async def _confirmed(
        self, view: View, known: Callable[[View], int | None], deadline: Deadline
    ) -> tuple[View, int | None]:
        """Call :func:`prefix_end` and remember the end."""
        view, end = await prefix_end(self.layout, view, known, deadline)
        if end is not None:
            self._known = (view.live_stripe.id, end)
        return view, end

    def _known_end(self, view: View) -> int | None:
        """Return the known end of the confirmed entries, or None if the log is not exclusive."""
        if view.writer is None:
            return None
        stripe, end = self._known
        return end if stripe == view.live_stripe.id else view.live_stripe.start

    async def taken_end(
        self, deadline: Deadline, check: Callable[[View], None] = lambda _: None
    ) -> tuple[View, int, bool]:
        """Find the highest position that an object of the live stripe holds.

        Returns the view, the position after the highest one, and whether the live stripe lacks an
        object. ``check`` is called with each view, and may raise an error to end the search.
        """

        def calls(view: View) -> list[Call]:
            check(view)
            request = messages.max_position(view.epoch)
            return [
                Call(ref.name, "max_position", request) for ref in view.objects(view.live_stripe)
            ]

        while True:
            view, replies = await self.layout.guarded(calls, deadline)
            # An ordered log's object assigns positions below the floor of an exactly-once append.
            tail = (
                view.live_stripe.start
                if view.ordered
                else max(view.live_stripe.start, view.tail_floor)
            )
            missing = False
            for reply in replies:
                if reply.code == -errno.ENOENT:
                    missing = True
                    continue
                reply.check(f"cannot find the tail of log {view.log!r}")
                highest = messages.max_position_reply(reply.payload).highest
                if highest is not None:
                    tail = max(tail, highest + 1)
            if not missing or (await self.layout.refresh(deadline)).epoch == view.epoch:
                return view, tail, missing


def takes_appends(view: View) -> bool:
    """Whether a log takes appends from all clients."""
    return not (view.mirror or view.read_only) and view.writer is None


def check_takes_appends(view: View) -> None:
    """Raise AppendRefused if a log does not take appends from all clients."""
    if view.mirror:
        raise AppendRefused(f"log {view.log!r} is a mirror and takes entries only from its source")
    if view.read_only:
        raise AppendRefused(
            f"log {view.log!r} is read-only",
            hint="Make it writable again (`zlog access read-only LOG --off`, `log.writable()`),"
            " or append to another log.",
        )
    if view.writer is not None:
        raise AppendRefused(
            f"log {view.log!r} is exclusive to its writer, {describe(view.writer)}",
            hint="Let that writer append. If it no longer runs, take the log over (`log.writer()`,"
            " `zlog append LOG --exclusive`) or open it to all clients (`zlog access fence LOG`).",
        )


def describe(writer: ExclusiveWriter) -> str:
    """Return a writer's name and start time."""
    since = datetime.fromtimestamp(writer.since, timezone.utc)
    return f"{writer.name or writer.id} (since {since:%Y-%m-%d %H:%M:%S} UTC)"
