"""Rounds of appends that need no task, because everything goes well.

A round gets a grant, writes its entries, and has an OK reply to each write. The event loop enters
this module to start it, when the grant arrives, and when the replies do. If anything else happens,
the round is handed over, with what it has done so far, to a task (`zlog._append.append`).
"""

from libc.stdint cimport uint64_t

from zlog._native.calls cimport Calls, Completions
from zlog._native.clock cimport monotonic_seconds

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from zlog.errors import ZlogError

if TYPE_CHECKING:
    from zlog._append.append import Appender
    from zlog._base.io import Call
    from zlog._io.aio import AsyncioIo
    from zlog._native.gather import Append
    from zlog._native.new_entries import NewEntry
    from zlog.view import View


cdef enum RoundState:
    GRANTING
    WRITING
    ENDED


# What rounds need to know of a view.
cdef class Target:
    cdef object view
    cdef object sequencer  # None if rounds in this view need tasks
    cdef uint64_t epoch


cdef class QuickRound(Calls):
    """A round in flight. A sequencer's link answers it like a future.

    Attributes:
        entries, appends: what is appended, and who waits for it.
        view: the view in which it was started.
        number, timestamp: of the first entry; the time in all entries.
        first: the granted position of the first entry.
        calls: the writes. None before the grant.
        began: when it was started.
        error: why it failed, if it could not be handed over.
    """

    cdef QuickRounds rounds
    cdef Target target
    cdef RoundState state
    cdef readonly object entries  # list[NewEntry]
    cdef readonly object appends  # list[Append]
    cdef readonly uint64_t number
    cdef readonly uint64_t timestamp
    cdef readonly uint64_t first
    cdef readonly object calls  # list[Call]
    cdef readonly double began
    cdef readonly object error  # BaseException | None
    cdef double due

    @property
    def view(self) -> View:
        return self.target.view

    def done(self) -> bool:
        """Whether it no longer waits for a grant."""
        return self.state != GRANTING

    def set_result(self, reply: Any) -> None:
        """Take the answer of a sequencer."""
        if reply.code == 0 and reply.b == self.target.epoch:
            self.granted(reply.a)
        else:
            self.rounds.over(self, hand_over=True)

    def set_exception(self, error: BaseException) -> None:
        """Ask for another grant, because the connection was lost."""
        self.rounds.over(self, hand_over=True)

    def granted(self, uint64_t first) -> None:
        """Write the entries at consecutive positions."""
        self.first, self.state = first, WRITING
        try:
            self.write()
        except BaseException as error:
            # Some writes may have been started, so no task may write the entries elsewhere.
            self.error = error
            self.rounds.over(self, hand_over=False)
            if not isinstance(error, Exception):
                raise

    cdef int write(self) except -1:
        cdef Target target = self.target
        cdef Completions completions
        io = self.rounds.io
        io.check_open()
        completions, store = io.completions, io.store
        self.calls = calls = self.rounds.appender.writes(
            target.view, self.first, self.entries, self.number, self.timestamp
        )
        self.expect(len(calls))
        completions.start(self, lambda queue, token: store.submit(queue, token, calls))
        completions.drain()  # the store may have executed the writes at once
        return 0

    cdef int end(self) except -1:
        if self.state != WRITING:
            return Calls.end(self)
        if not self.all_ok:
            return self.rounds.over(self, hand_over=True)
        end = self.first + len(self.entries)
        self.rounds.appender.rolls.note(self.target.view, self.replies, end)
        return self.rounds.over(self, hand_over=False)


cdef class QuickRounds:
    """Starts the rounds of a handle on an event loop."""

    cdef object appender
    cdef object layout
    cdef object io
    cdef object loop
    cdef object clock
    cdef double quick_seconds  # after which a task waits for the replies
    cdef object on_end
    cdef set rounds
    cdef Target target  # of the newest view

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        io: AsyncioIo,
        appender: Appender,
        clock: Callable[[], float] | None,
        double quick_seconds,
        on_end: Callable[[QuickRound, bool], object],
    ):
        """Start rounds for ``appender``. ``on_end(round, handed_over)`` is called once for each."""
        self.loop, self.io, self.clock, self.on_end = loop, io, clock, on_end
        self.quick_seconds = quick_seconds
        self.appender, self.layout = appender, appender.layout
        self.rounds, self.target = set(), Target.__new__(Target)

    def __len__(self) -> int:
        """Return the number of rounds in flight."""
        return len(self.rounds)

    def begin(
        self, list entries not None: list[NewEntry], list appends not None: list[Append]
    ) -> bool:
        """Start a round. Returns False, and does nothing, if it needs a task."""
        cdef QuickRound round
        cdef Target target = self.target
        if self.layout.view is not target.view:
            target = self.target = self.target_of(self.layout.view)
        if (
            target.sequencer is None or self.appender.rolls.alert
            or self.layout.outage.lost(target.epoch)
        ):
            return False
        round = QuickRound.__new__(QuickRound)
        round.loop, round.handle, round.rounds = self.loop, self.io, self
        round.entries, round.appends, round.target = entries, appends, target
        round.number = self.appender.take_numbers(len(entries))
        round.timestamp = self.io.wall_clock_us()
        round.began = self.now()
        round.due = round.began + self.layout.outage.patience(target.epoch)
        self.rounds.add(round)
        try:
            begun = target.sequencer.ask(self.layout.address, len(entries), target.epoch, round)
        except ZlogError:
            begun = False  # the task gets the error again, and reports it
        if not begun:
            round.state = ENDED
            self.rounds.discard(round)
        return begun

    def check(self) -> bool:
        """Hand over the rounds that take too long. Returns whether others are in flight."""
        cdef QuickRound round
        cdef double now = self.now()
        for round in [*self.rounds]:
            if now >= (round.due if round.state == GRANTING else round.began + self.quick_seconds):
                if round.state == GRANTING:
                    self.layout.outage.failed(round.target.epoch, round.began)
                self.over(round, hand_over=True)
        return bool(self.rounds)

    cdef double now(self) except? -1:
        return monotonic_seconds() if self.clock is None else self.clock()

    cdef Target target_of(self, view):
        cdef Target target = Target.__new__(Target)
        target.view, target.epoch = view, view.epoch
        if not self.appender.quick(view):
            return target
        try:
            target.sequencer = self.io.sequencer(view.sequencer)
        except ZlogError:
            pass  # the task gets the error again, and reports it
        return target

    cdef int over(self, QuickRound round, bint hand_over) except -1:
        round.state = ENDED
        self.rounds.discard(round)
        self.on_end(round, hand_over)
        return 0
