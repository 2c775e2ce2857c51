"""Appends of an exclusive writer, which assigns positions itself and confirms them in order.

Entries keep the order in which they are submitted. Waiting entries are sent together in a *round*,
which takes consecutive positions. Several rounds may be in flight, and a round is confirmed once it
and all earlier rounds are written. No sequencer is needed, and a single append takes one operation.

If an object refuses a round, the writer waits for the rounds in flight before it sends another.
What it does next depends on the answer:

- STALE_EPOCH: another client has changed the layout, and ended the stripe at the first unwritten
  position. If the new view still names this writer, it sends the entries from that position on
  again, at the same positions. Otherwise the writer is fenced.
- The object is full: the writer starts a new stripe, and sends the entries again in the same way.
- Any other answer, such as a timeout, is indefinite. All unconfirmed entries fail, and the next
  call raises their error before it submits anything. Before the next append, the writer creates a
  new view, after which none of the failed entries can still appear in the log.

Source: docs/design/exclusive-writers.md.
"""

from __future__ import annotations

import errno
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Sequence

from zlog._append.append import Appender
from zlog._append.feedback import fullness_of
from zlog._append.ownership import Ownership, end_in, keep
from zlog._append.quota import Quota, WriterLimits
from zlog._append.rounds import (
    ROUND_BYTES_MAX,
    ROUND_ENTRIES_MAX,
    Pending,
    Round,
    RoundPolicy,
    again,
    interrupted,
)
from zlog._base.codes import TAG_NAMES_BYTES_MAX, Code
from zlog._base.io import Call, Reply, Started, deadline_of
from zlog._base.monitor import explain
from zlog._base.refusals import from_code
from zlog._layout.writes import writes_at
from zlog._native.mutex import Mutex
from zlog._native.new_entries import entries_cut
from zlog._replica.repair import answers
from zlog.errors import CorruptEntry, Fenced, StoreTimeout, ZlogError
from zlog.view import View

_STALE = (Code.STALE_EPOCH, -errno.ENOENT)
"""Answers that mean that there is a newer view: the object was sealed, or replaced while empty."""

_ELSEWHERE = (*_STALE, Code.BEYOND_STRIPE)
"""Answers after which no entry of a round is stored or ever will be."""


Begun = tuple[list[Call], Started, float]
"""The writes of a round, and when they were begun."""


class Exclusive(ABC):
    """Appends the entries of one exclusive writer, in rounds.

    The subclasses for threads and for asyncio share this code. Each round may take ``timeout``
    seconds; None means no limit.

    Attributes:
        confirmed: all entries below this position are confirmed.
        fenced: the error to raise once another writer is known to have replaced this one.
        quota: the limits of the writer, and how much of them is used.
    """

    def __init__(
        self, appender: Appender, taken: Ownership, limits: WriterLimits, timeout: float | None
    ) -> None:
        self.layout = layout = appender.layout
        self.writer, self._view, self.confirmed = taken
        self.quota = Quota(layout, limits)
        self._appender = appender
        self._io = layout.io
        self._id = bytes.fromhex(self.writer.id)
        self._timeout = timeout
        self._policy = RoundPolicy(layout.io.store)
        self._mutex = Mutex()  # guards all attributes below
        self._next = self.confirmed
        self._waiting: deque[Pending] = deque()
        self._waiting_entries = 0
        self._rounds: deque[Round] = deque()  # the unconfirmed rounds, in order
        self._starting = 0  # agents that have not taken a round yet
        self._under_way = 0  # rounds in flight
        self._under_way_entries = 0
        self._stale = False
        self._full: int | None = None
        self._error: ZlogError | None = None  # why a round failed; no other is sent meanwhile
        self._broken = False  # if set, no round is sent before the view has changed
        self.fenced: Fenced | None = None
        self._unraised: ZlogError | None = None  # an error that no waiting call will raise
        self._ended: deque[tuple[Pending, ZlogError | None]] = deque()
        self._resolving = False

    @abstractmethod
    def spawn(self) -> None:
        """Start an agent that runs :meth:`run` concurrently. It is already counted as starting."""

    @abstractmethod
    def freed(self) -> None:
        """Wake the calls that wait for space, because fewer bytes are unconfirmed now."""

    @property
    def idle(self) -> bool:
        """Whether all submitted entries are confirmed or have failed."""
        return not (self._waiting or self._rounds)

    def enqueue(self, pending: Pending) -> bool:
        """Queue entries behind those that were submitted before.

        Returns True if no round is in flight, so that the caller must call :meth:`run`. Raises
        Fenced if another writer has taken the log. If earlier entries have failed and no call has
        reported this yet, raises their error.
        """
        with self._mutex:
            if self.fenced is not None:
                raise again(self.fenced)
            self._raise_failure()
            self._waiting.append(pending)
            self._waiting_entries += len(pending.entries)
            self.quota.unconfirmed_bytes += pending.size
            alone = not (self._starting or self._under_way)
            self._starting += alone
        if not alone:
            self.start()
        return alone

    def raise_failure(self) -> None:
        """Raise the error of failed entries if no call has raised it yet."""
        with self._mutex:
            self._raise_failure()

    def _raise_failure(self) -> None:
        error, self._unraised = self._unraised, None
        if error is not None:
            raise again(error)

    def start(self) -> None:
        """Start rounds if entries are waiting and more rounds may be in flight."""
        with self._mutex:
            spawn = self._startable()
            self._starting += spawn
        for _ in range(spawn):
            self.spawn()

    def _startable(self) -> int:
        if self._troubled or self.fenced is not None:
            return 0
        if self._broken:
            return int(bool(self._waiting) and not self._starting)
        unsent = sum(not (each.under_way or each.written) for each in self._rounds)
        wanted = unsent + bool(self._waiting)
        total = self._waiting_entries + self._under_way_entries
        free = self._policy.rounds_max(total) - self._under_way
        return max(0, min(wanted, free) - self._starting)

    @property
    def _troubled(self) -> bool:
        return self._stale or self._full is not None or self._error is not None

    async def run(self, sent: Round | None = None, begun: Begun | None = None) -> None:
        """Send a round, resolve the entries that have ended, and start further rounds.

        ``sent`` is the round, if it was taken before, and ``begun`` its writes.
        """
        confirmed = self.confirmed
        if sent is None:
            opened = False
            try:
                if self._broken:
                    await self._reopen()
                opened = True
            finally:
                with self._mutex:
                    self._starting -= 1
                    sent = self._take() if opened else None
        try:
            if sent is not None:
                await self._send(sent, begun)
        finally:
            self.proceed(confirmed)

    def proceed(self, confirmed: int) -> None:
        """Resolve the entries that have ended, and start further rounds.

        ``confirmed`` is the end of the confirmed entries before the last round.
        """
        if self.confirmed > confirmed:
            self.layout.head.announce()
        self._resolve()
        self.start()

    def _take(self) -> Round | None:
        if self._troubled or self._broken:
            return None
        taken = next((each for each in self._rounds if not (each.under_way or each.written)), None)
        if taken is None and self._waiting:
            taken = self._new_round()
            self._rounds.append(taken)
            self._next = taken.end
        if taken is not None:
            taken.under_way = True
            self._under_way += 1
            self._under_way_entries += len(taken.entries)
        return taken

    def _new_round(self) -> Round:
        share = self._policy.share(self._waiting_entries + self._under_way_entries)
        made = Round(self._next)
        size = tags = 0
        while self._waiting and len(made.entries) < share and size < ROUND_BYTES_MAX:
            pending = self._waiting[0]
            tags += pending.tags_bytes
            if made.entries and tags > TAG_NAMES_BYTES_MAX:
                break
            begin, whole = pending.taken, len(pending.entries)
            left = ROUND_ENTRIES_MAX - len(made.entries)
            end = entries_cut(pending.entries, begin, left, ROUND_BYTES_MAX - size)
            if end < whole and made.entries and whole <= ROUND_ENTRIES_MAX:
                break  # keep the list in one round
            if begin == 0:
                pending.first = made.end
            taken = pending.entries[begin:end]
            made.entries += taken
            made.parts.append((pending, end - begin))
            size += sum(map(len, taken))
            pending.taken = end
            if end == whole:
                self._waiting.popleft()
        self._waiting_entries -= len(made.entries)
        return made

    async def _send(self, sent: Round, begun: Begun | None) -> None:
        view = self._view  # does not change while a round is under way
        replies: Sequence[Reply] = ()
        error: ZlogError | None = interrupted()
        try:
            calls, started, began = begun or self._begin(view, sent)
            timeout = self._timeout
            if timeout is not None:
                timeout = max(0.0, timeout - (self._io.monotonic() - began))
            deadline = deadline_of(self._io, timeout)
            replies = await started.finish(deadline)
            if any(reply.code for reply in replies):
                replies = await answers(self._io, calls, replies, deadline)
            error = None
            bad = [reply.code for reply in replies if reply.code not in (Code.OK, *_ELSEWHERE)]
            if bad:
                where = f"positions {sent.first} to {sent.end - 1} of log {view.log!r}"
                error = from_code(bad[0], f"cannot append at {where}")
            if isinstance(error, StoreTimeout):
                await explain(self._io, error)
        except ZlogError as failure:
            error = failure
        finally:
            if self._end(view, sent, replies, error):  # also after Ctrl-C, which fails the entries
                await self._recover()

    def _begin(self, view: View, sent: Round) -> Begun:
        append_id = self._id, sent.first  # unique: each entry of this writer has its own position
        timestamp, stripe = self._io.wall_clock_us(), view.live_stripe
        calls = writes_at(self.layout, view, stripe, sent.first, sent.entries, append_id, timestamp)
        began = self._io.monotonic()
        return calls, self._io.start(calls), began

    def _end(
        self, view: View, sent: Round, replies: Sequence[Reply], error: ZlogError | None
    ) -> bool:
        """Note the outcome of a round. Returns whether to call :meth:`_recover`."""
        with self._mutex:
            sent.under_way = False
            self._under_way -= 1
            self._under_way_entries -= len(sent.entries)
            self._decide(view, sent, replies, error)
            return self._troubled and not self._under_way

    def _decide(
        self, view: View, sent: Round, replies: Sequence[Reply], error: ZlogError | None
    ) -> None:
        if error is not None:
            self._error = self._error or error
        elif any(reply.code in _STALE for reply in replies):
            self._stale = True
        elif any(reply.code for reply in replies):
            self._full = view.live_stripe.id
        else:
            sent.written = True
            if fullness_of(view, replies, sent.end) >= 1:
                self._full = view.live_stripe.id
            self._confirm()

    def _confirm(self) -> None:
        """Confirm all rounds before the first one that is not written."""
        while self._rounds and self._rounds[0].written:
            done = self._rounds.popleft()
            self.confirmed = done.end
            for pending, count in done.parts:
                pending.left -= count
                if not pending.left:
                    self._ended.append((pending, None))

    async def _recover(self) -> None:
        """With no round in flight, continue in another view or fail all entries."""
        error = self._error
        if error is None:
            try:
                deadline = deadline_of(self._io, self._timeout)
                if self._full is not None and not self._stale:
                    view = await keep(self.layout, self.writer, deadline, full=self._full)
                else:
                    view = await self.layout.advance(self._view, deadline)
                view, end = await end_in(self.layout, self.writer, view, self.confirmed, deadline)
            except ZlogError as failure:
                error = failure
        with self._mutex:
            if error is None and not self.confirmed <= end <= self._next:
                error = CorruptEntry(
                    f"log {view.log!r} ends at position {end}, but this writer has confirmed"
                    f" entries up to {self.confirmed} and granted positions up to {self._next}"
                )
            self._stale, self._full, self._error = False, None, None
            if error is not None:
                self._fail(error)
                return
            self._view = view
            for each in [*self._rounds]:
                if each.first < end < each.end:
                    self._rounds.insert(self._rounds.index(each), each.split(end))
            for each in self._rounds:
                each.written = each.end <= end
            self._confirm()

    async def _reopen(self) -> None:
        """Create a view whose seals make objects refuse all earlier writes of this writer."""
        deadline = deadline_of(self._io, self._timeout)
        try:
            view = await keep(self.layout, self.writer, deadline)
            view, end = await end_in(self.layout, self.writer, view, self.confirmed, deadline)
        except ZlogError as error:
            with self._mutex:
                self._fail(error)
            return
        with self._mutex:
            self._view, self._next, self.confirmed = view, end, end
            self._broken = False

    def _fail(self, error: ZlogError) -> None:
        """Fail all unconfirmed entries."""
        failed = [pending for each in self._rounds for pending, _ in each.parts]
        failed += self._waiting
        self._ended += ((pending, error) for pending in dict.fromkeys(failed))
        if not all(pending.awaited for pending in failed):
            self._unraised = error
        self._rounds.clear()
        self._waiting.clear()
        self._waiting_entries = 0
        self._broken = True
        if isinstance(error, Fenced):
            self.fenced = error

    def _resolve(self) -> None:
        """Resolve the futures of ended entries, in order. Only one thread does this at a time."""
        while True:
            with self._mutex:
                if self._resolving or not self._ended:
                    return
                self._resolving = True
                ended, self._ended = self._ended, deque()
                for pending, error in ended:
                    self.quota.unconfirmed_bytes -= pending.size
                    self.quota.appended_bytes += pending.size if error is None else 0
            try:
                for pending, error in ended:
                    if pending.outcome.done():  # the caller has cancelled it
                        continue
                    if error is None:
                        pending.outcome.set_result(pending.result)
                    else:
                        own = again(error)
                        own.positions = (None,) * len(pending.entries)
                        pending.outcome.set_exception(own)
            finally:
                self._resolving = False
            self.freed()
