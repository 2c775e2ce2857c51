"""Appends of an exclusive writer: it hands out the positions, and confirms them in their order.

Entries keep the order in which they are handed in. Those that wait leave together in a *round*,
which has positions in a row; some rounds are under way at a time, and each is confirmed once all
before it are. No sequencer is asked, and an append that is alone is one operation of the store.

Where an object refuses a round, no further one leaves until those under way are back:

- STALE_EPOCH: another client has changed the layout, and ended the stripe before the first position
  that was not written. If the new view still names this writer, all from there on is sent
  again, each entry to the position that it had: none changes places. Else the writer is fenced.
- A full object: the writer starts a new stripe, in the same way.
- Anything else, such as a time-out, is indefinite. All that was handed in fails, and a call raises
  that before anything else is handed in: no entry comes behind one that is missing unless its
  sender knows. Before the next append the writer brings in a view: what it sent before is in the
  log by then, or never will be.

Source: docs/design.md, "Exclusive writers".
"""

from __future__ import annotations

import errno
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Sequence

from zlog._append.compression import Compression
from zlog._append.outcomes import again
from zlog._append.place import end_in, keep
from zlog._append.roll import fullness_of
from zlog._append.rounds import ROUND_BYTES_MAX, ROUND_ENTRIES_MAX, Handed, Round, RoundPolicy
from zlog._base.codes import TAG_NAMES_BYTES_MAX, Code
from zlog._base.deadline import Deadline
from zlog._base.io import Call, Reply, deadline_of
from zlog._base.pool_full import explain
from zlog._base.refusals import from_code
from zlog._layout.layout import Layout
from zlog._native.mutex import Mutex
from zlog._native.new_entries import entries_cut
from zlog._native.writes import encode_writes
from zlog._replica.repair import answers
from zlog.errors import CorruptEntry, Fenced, StoreTimeout, ZlogError
from zlog.view import ExclusiveWriter, View

_STALE = (Code.STALE_EPOCH, -errno.ENOENT)
"""What objects answer when there is a newer view: they were sealed, or replaced while empty."""

_ELSEWHERE = (*_STALE, Code.BEYOND_STRIPE)
"""What they answer where nothing of a round is stored, nor ever will be by it."""


class Exclusive(ABC):
    """The appends of one exclusive writer, without what differs between threads and asyncio.

    Args:
        layout: of the log.
        writer: who.
        view: that names it.
        end: where the confirmed entries end in it.
        timeout: budget of a round in seconds; None: no limit.

    Attributes:
        confirmed: positions below it are confirmed.
        unconfirmed_bytes: data that was handed in and is not.
        appended_bytes: data that this writer has confirmed.
        fenced: why it is not the writer any more, once it has noticed.
    """

    def __init__(
        self,
        layout: Layout,
        writer: ExclusiveWriter,
        view: View,
        end: int,
        timeout: float | None,
    ) -> None:
        self.layout = layout
        self.writer = writer
        self.confirmed = end
        self.unconfirmed_bytes = 0
        self.appended_bytes = 0
        self._io = layout.io
        self._id = bytes.fromhex(writer.id)
        self._timeout = timeout
        self._compression = Compression()
        self._policy = RoundPolicy(layout.io.store)
        self._mutex = Mutex()  # guards all of what follows
        self._view = view
        self._next = end
        self._waiting: deque[Handed] = deque()
        self._waiting_entries = 0
        self._rounds: deque[Round] = deque()  # in order, not confirmed
        self._starting = 0  # agents that have not taken a round yet
        self._under_way = 0  # rounds
        self._under_way_entries = 0
        self._stale = False
        self._full: int | None = None
        self._error: ZlogError | None = None  # of a round: nothing leaves until all are back
        self._broken = False  # nothing leaves until there is another view
        self.fenced: Fenced | None = None
        self._untold: ZlogError | None = None
        self._told: deque[tuple[Handed, ZlogError | None]] = deque()
        self._telling = False

    @abstractmethod
    def spawn(self) -> None:
        """Have :meth:`run` run, beside the caller, for an agent that is counted as starting."""

    @abstractmethod
    def freed(self) -> None:
        """Have those that wait for room look again: fewer bytes are unconfirmed."""

    @property
    def idle(self) -> bool:
        """Whether all that was handed in is confirmed, or has failed."""
        return not (self._waiting or self._rounds)

    def hand_in(self, handed: Handed) -> bool:
        """Put entries behind those that were handed in before.

        Returns whether the caller is to :meth:`run` them: none is under way.

        Raises:
            Fenced: the writer is not the log's any more.
            ZlogError: entries before have failed, and no call has raised that yet.
        """
        with self._mutex:
            if self.fenced is not None:
                raise again(self.fenced)
            self._raise_untold()
            self._waiting.append(handed)
            self._waiting_entries += len(handed.entries)
            self.unconfirmed_bytes += handed.size
            if self._starting or self._under_way:
                alone = False
            else:
                alone = True
                self._starting += 1
        if not alone:
            self.start()
        return alone

    def raise_untold(self) -> None:
        """Raise what entries have failed with, unless a call has raised it already."""
        with self._mutex:
            self._raise_untold()

    def _raise_untold(self) -> None:
        error, self._untold = self._untold, None
        if error is not None:
            raise again(error)

    def start(self) -> None:
        """Have rounds leave, if there is something to send and too few are under way."""
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

    async def run(self) -> None:
        """Send a round, and see to what follows from it."""
        confirmed = self.confirmed
        taken: Round | None = None
        opened = False
        try:
            if self._broken:
                await self._reopen()
            opened = True
        finally:
            with self._mutex:
                self._starting -= 1
                if opened:
                    taken = self._take()
        try:
            if taken is not None:
                await self._send(taken)
            if self.confirmed > confirmed:
                self.layout.head.announce()
        finally:
            self._tell()
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
            handed = self._waiting[0]
            tags += handed.tags_bytes
            if made.entries and tags > TAG_NAMES_BYTES_MAX:
                break
            begin, whole = handed.taken, len(handed.entries)
            left = ROUND_ENTRIES_MAX - len(made.entries)
            end = entries_cut(handed.entries, begin, left, ROUND_BYTES_MAX - size)
            if end < whole and made.entries and whole <= ROUND_ENTRIES_MAX:
                break  # rather leave together
            if begin == 0:
                handed.first = made.end
            taken = handed.entries[begin:end]
            made.entries += taken
            made.parts.append((handed, end - begin))
            size += sum(map(len, taken))
            handed.taken = end
            if end == whole:
                self._waiting.popleft()
        self._waiting_entries -= len(made.entries)
        return made

    async def _send(self, sent: Round) -> None:
        view = self._view  # which does not change while a round is under way
        replies: Sequence[Reply] = ()
        error: ZlogError | None = _interrupted()
        try:
            deadline = deadline_of(self._io, self._timeout)
            replies = await self._write(view, sent, deadline)
            error = await self._error_of(view, sent, replies)
        except ZlogError as failure:
            error = failure
        finally:
            with self._mutex:
                sent.under_way = False
                self._under_way -= 1
                self._under_way_entries -= len(sent.entries)
                self._judge(view, sent, replies, error)
                recover = self._troubled and not self._under_way
            if recover:  # also after Ctrl-C: what was handed in has failed then
                await self._recover()

    async def _write(self, view: View, sent: Round, deadline: Deadline) -> Sequence[Reply]:
        stripe = view.live_stripe
        now = self._io.wall_clock_us()
        refs = self.layout.objects(view, stripe)
        taken: dict[int, Reply] = {}
        while True:
            compression = self._compression.of(view)
            requests = encode_writes(
                view.epoch,
                now,
                self._id,
                stripe.spacing.packed,
                sent.first,
                sent.first,  # no other entry of this writer ever comes to a position
                sent.entries,
                0,
                len(sent.entries),
                compression,
                self.layout.macs.key,
            )
            left = [(index, request) for index, request in requests if index not in taken]
            calls = [Call(refs[index].name, "write", request) for index, request in left]
            replies = await self._io.execute(calls, deadline)
            if any(reply.code for reply in replies):
                replies = await answers(self._io, calls, replies, deadline)
            for (index, _), reply in zip(left, replies, strict=True):
                if not self._compression.refused(view, refs[index].name, reply.code, compression):
                    taken[index] = reply
            if len(taken) == len(requests):
                return [*taken.values()]

    async def _error_of(
        self, view: View, sent: Round, replies: Sequence[Reply]
    ) -> ZlogError | None:
        """Return what a round fails with, if it is not just refused by its epoch."""
        for reply in replies:
            if reply.code not in (Code.OK, *_ELSEWHERE):
                what = f"append to log {view.log!r}, positions {sent.first} to {sent.end - 1}"
                error = from_code(reply.code, what)
                if isinstance(error, StoreTimeout):
                    await explain(self._io, error)
                return error
        return None

    def _judge(
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
        """Confirm the first rounds, as far as they are written."""
        while self._rounds and self._rounds[0].written:
            done = self._rounds.popleft()
            self.confirmed = done.end
            for handed, count in done.parts:
                handed.left -= count
                if not handed.left:
                    self._told.append((handed, None))

    async def _recover(self) -> None:
        """Go on in another view, now that no round is under way; or have all fail."""
        error = self._error
        if error is None:
            try:
                view, end = await self._next_view(deadline_of(self._io, self._timeout))
            except ZlogError as failure:
                error = failure
        with self._mutex:
            if error is None and not self.confirmed <= end <= self._next:
                error = CorruptEntry(
                    f"the entries of log {view.log!r} end at {end}, and this writer has confirmed"
                    f" them up to {self.confirmed}, and handed out positions up to {self._next}"
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

    async def _next_view(self, deadline: Deadline) -> tuple[View, int]:
        if self._full is not None and not self._stale:
            view = await keep(self.layout, self.writer, deadline, full=self._full)
        else:
            view = await self.layout.advance(self._view, deadline)
        return await end_in(self.layout, self.writer, view, self.confirmed, deadline)

    async def _reopen(self) -> None:
        """Bring in a view, after which nothing that this writer sent before is stored."""
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
        """Have all fail that was handed in and is not confirmed."""
        failed = [handed for each in self._rounds for handed, _ in each.parts]
        failed += self._waiting
        self._told += ((handed, error) for handed in dict.fromkeys(failed))
        if not all(handed.awaited for handed in failed):
            self._untold = error
        self._rounds.clear()
        self._waiting.clear()
        self._waiting_entries = 0
        self._broken = True
        if isinstance(error, Fenced):
            self.fenced = error

    def _tell(self) -> None:
        """Tell what became of entries, in their order: one thread at a time does."""
        while True:
            with self._mutex:
                if self._telling or not self._told:
                    return
                self._telling = True
                told, self._told = self._told, deque()
                for handed, error in told:
                    self.unconfirmed_bytes -= handed.size
                    self.appended_bytes += handed.size if error is None else 0
            try:
                for handed, error in told:
                    if handed.outcome.done():  # its caller has given it up
                        continue
                    if error is None:
                        handed.outcome.set_result(handed.result)
                    else:
                        own = again(error)
                        own.positions = (None,) * len(handed.entries)
                        handed.outcome.set_exception(own)
            finally:
                self._telling = False
            self.freed()


def _interrupted() -> StoreTimeout:
    return StoreTimeout(
        "the append was interrupted", hint="Whether the entries are in the log is unknown."
    )
