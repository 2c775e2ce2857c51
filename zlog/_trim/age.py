"""Finds a lower bound of the age of entries, with monotonic clocks.

Wall clocks may be wrong, both on writers and on the machine that enforces a limit. So a log's
*watch* counts how long the log has been watched, by monotonic clocks. From time to time it adds a
*mark*: the watched time, and a position below which all positions are settled (written, filled or
trimmed). A settled position never gets a new entry, so the entries below a mark are at least as old
as the time watched since the mark.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta, timezone
from itertools import chain
from typing import NamedTuple

from zlog._base.deadline import Deadline
from zlog._base.settings import HoleTimeout
from zlog._layout.layout import Layout
from zlog._native import messages
from zlog._read.read import Reader
from zlog._trim.count import ask, taken_end
from zlog.environment import SteadyTime
from zlog.view import Stripe

_MARKS_PER_AGE = 128
_MARKS_MAX = 160
_MARK_US_MIN = 1_000_000

_FILL_POSITIONS = 16384
"""How many positions are read at a hole that stops the search, once per round."""


class Mark(NamedTuple):
    """All positions below ``end`` were settled when the log had been watched for ``watched`` µs."""

    end: int
    watched: int


class Progress(NamedTuple):
    """How far a log is compacted.

    Attributes:
        done: a position below which no entry is superseded by another entry below it.
        end: where the unfinished pass will end. If there is none, it is not above ``done``.
        at: the position that the unfinished pass has reached.
    """

    done: int = 0
    end: int = 0
    at: int = 0

    @property
    def unfinished(self) -> bool:
        """Whether a pass was interrupted and must be continued."""
        return self.end > self.done


class _Base(NamedTuple):
    """The times when the whole log was last settled, on three clocks, in µs."""

    clock: str
    watched: int
    wall: int


@dataclass
class Watch:
    """The state of retention that a log's head keeps between rounds (docs/formats/head.md).

    Attributes:
        settled: the position below which all positions are settled.
        marks: how far the log was settled at which times, in ascending order.
        clock: the id of the clock of the machine that did the newest round.
        us: the time of that clock at that round, in µs.
        watched: how long the log had been watched by then, in µs.
        base: the clocks' times in an earlier round, to compare with; None before the first round.
        doubt: a description of the clocks that disagreed in the newest round; empty if they agree.
        compacted: how far the log is compacted.
    """

    settled: int = 0
    marks: list[Mark] = field(default_factory=list)
    clock: str = ""
    us: int = 0
    watched: int = 0
    base: _Base | None = None
    doubt: str = ""
    compacted: Progress = field(default_factory=Progress)

    @classmethod
    def decode(cls, state: bytes) -> Watch:
        """Return the stored watch, or a new one if it is missing or invalid."""
        try:
            stored = json.loads(state)
            stored["marks"] = [Mark(*each) for each in stored["marks"]]
            stored["base"] = None if stored["base"] is None else _Base(*stored["base"])
            stored["compacted"] = Progress(*stored.get("compacted", ()))
            found = cls(**stored)
        except (ValueError, TypeError, KeyError):
            return cls()
        return found if found._sound() else cls()

    def _sound(self) -> bool:
        clock, *times = self.base or ("",)
        numbers = [self.settled, self.us, self.watched, *times, *chain(*self.marks)]
        numbers += self.compacted
        names = [self.clock, self.doubt, clock]
        return all(type(n) is int for n in numbers) and all(type(n) is str for n in names)

    def encode(self) -> bytes:
        """Return the bytes in which the watch is stored."""
        state = asdict(self)
        if self.compacted == Progress():  # older versions discard a watch that has progress
            del state["compacted"]
        return json.dumps(state, separators=(",", ":")).encode()

    def now(self, time: SteadyTime) -> int:
        """Return a lower bound of the time for which the log was watched, in µs.

        The time since the last round counts only if the same machine did that round, because the
        clocks of different machines cannot be compared.
        """
        return self.watched + (max(0, time.us - self.us) if time.clock == self.clock else 0)

    def old_end(self, now: int, age: float) -> int:
        """Return the highest position below which everything is known to be ``age`` seconds old."""
        if age == 0:
            return self.settled
        return max((mark.end for mark in self.marks if now - mark.watched >= age * 1e6), default=0)

    def known_age(self, now: int) -> float:
        """Return how old the oldest entries are known to be, in seconds."""
        return (now - self.marks[0].watched) / 1e6 if self.marks else 0.0

    def compare(
        self,
        now: int,
        time: SteadyTime,
        wall: int,
        seen: Sequence[messages.CountReply],
        skew: float,
    ) -> bool:
        """Check the clocks, and record which of them disagree by more than ``skew`` seconds.

        Returns whether this machine's two clocks agree. If not, it is unknown for how long the log
        was watched. A writer's clock has no influence on the age of entries.
        """
        skew_us = skew * 1e6
        base, self.doubt = self.base, ""
        if base is not None:
            passed, watched = wall - base.wall, now - base.watched
            jumped = base.clock == self.clock == time.clock and passed > watched + skew_us
            if jumped or passed < watched - skew_us:
                self.doubt = (
                    "the clock of the machine that enforces retention jumped from"
                    f" {_words(base.wall)} to {_words(wall)} in {watched // 1_000_000} seconds, so"
                    " nothing was trimmed by age"
                )
                return False
        low, since = (-math.inf, "") if base is None else (base.wall, f"{_words(base.wall)} to ")
        for each in seen:
            for at, position in ((each.oldest, each.oldest_at), (each.newest, each.newest_at)):
                if at is None:
                    continue
                if not low - skew_us <= at <= wall + skew_us:
                    self.doubt = (
                        f"the writer's clock at position {position} showed {_words(at)}, but the"
                        " clock of the machine that enforces retention showed"
                        f" {since}{_words(wall)}"
                    )
        return True

    def note(self, now: int, time: SteadyTime, age: float) -> None:
        """Add the mark of this round, and drop marks that are no longer needed."""
        # A machine that was copied or restored repeats times, which must not count twice.
        self.us = max(time.us, self.us) if time.clock == self.clock else time.us
        self.clock, self.watched = time.clock, now
        last = self.marks[-1] if self.marks else None
        if last is None or (last.end < self.settled and self._due(last, now, age)):
            self.marks.append(Mark(self.settled, now))
        while len(self.marks) > 1 and now - self.marks[1].watched >= age * 1e6:
            del self.marks[0]
        del self.marks[:-_MARKS_MAX]

    def stuck(self, now: int, age: float) -> bool:
        """Whether there has been a hole at ``settled`` for a long time, since the last mark."""
        last = self.marks[-1] if self.marks else None
        return last is not None and last.end >= self.settled and self._due(last, now, age)

    @staticmethod
    def _due(last: Mark, now: int, age: float) -> bool:
        return now - last.watched >= max(age * 1e6 / _MARKS_PER_AGE, _MARK_US_MIN)


async def watch(
    reader: Reader, age: float, skew: float, deadline: Deadline
) -> tuple[Watch, int | None]:
    """Do one round of watching: find out how far the log is settled, and store this in its head.

    An entry's age counts from the round that first found its position settled. Like any reader, the
    round fills a hole that has been open longer than the hole timeout. The search takes at most
    half the time, and the next round continues it. If two rounds run at once, only one is stored.

    Returns:
        The watch, and how long it has watched the log, in µs. The latter is None if the clocks of
        this machine disagree.
    """
    layout, io = reader.layout, reader.layout.io
    log_id = layout.view.log_id
    version, state = await layout.head.retention_read(log_id, deadline)
    found = Watch.decode(state)
    began, wall = io.steady_clock(), io.wall_clock_us()
    base = _Base(began.clock, found.now(began), wall)
    start = max(found.settled, layout.view.trim_point)
    found.settled = start
    seen: list[messages.CountReply] = []
    patient = not found.stuck(base.watched, age)
    found.settled, done = await _settle(reader, start, seen, deadline, patient=patient)
    if layout.view.mirror:
        seen = []  # a mirror's entries have the times of its source
    # Measure this after the search, because the entries that it saw age from here on.
    time, wall = io.steady_clock(), io.wall_clock_us()
    now = found.now(time)
    sure = found.compare(now, time, wall, seen, skew)
    if done or not sure:
        found.base = base
    found.note(now, time, age)
    await layout.head.retention_write(log_id, version, found.encode(), deadline)
    return found, now if sure else None


async def _settle(
    reader: Reader,
    start: int,
    seen: list[messages.CountReply],
    deadline: Deadline,
    *,
    patient: bool,
) -> tuple[int, bool]:
    """Return where the settled positions from ``start`` on end, and if this is the log's end."""
    layout = reader.layout
    left = deadline.remaining()
    budget = deadline if left is None else deadline.sooner(left / 2)
    end = await taken_end(layout, layout.view.live_stripe, deadline)
    async for stripe in layout.stripes(start, end, deadline):
        last = min(stripe.end, end)
        while start < last and not budget.expired:
            reached = await _settled_end(layout, stripe, start, last, seen, deadline)
            if reached == start:
                if patient:
                    break
                patient = True  # fill only one hole per round, because there may be very many
                most = min(start + _FILL_POSITIONS, last)
                found = await reader.read_some(range(start, most), deadline)
                # If this round cannot wait for that long, it leaves the hole to the log's readers.
                wait = reader.budget.hole_timeout(...)
                fills = wait is not None and wait < (math.inf if left is None else left / 2)
                holes = HoleTimeout(reader.budget, wait if fills else None)
                await reader.settle(found, holes, most, (), deadline)
            start = reached
        if start < last:
            return start, False
    return start, True


async def _settled_end(
    layout: Layout,
    stripe: Stripe,
    start: int,
    end: int,
    seen: list[messages.CountReply],
    deadline: Deadline,
) -> int:
    """Return the first unwritten position of a stripe's range, or where the search ended."""
    if layout.offloaded.file_of(stripe) is not None:
        return end
    refs = layout.objects(layout.view, stripe)
    counted = await ask(layout, dict.fromkeys(refs, start), end, deadline)
    seen += counted.values()
    reached = (each.end if each.hole is None else each.hole for each in counted.values())
    return min(reached, default=end)


def _words(us: int) -> str:
    """Return a wall clock's time as text, even if it is out of range."""
    try:
        moment = datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(microseconds=us)
    except OverflowError:
        return f"{us} µs after 1970"
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"
