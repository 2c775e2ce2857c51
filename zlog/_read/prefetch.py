"""Reading a log in order, window by window, with the next windows requested ahead.

A window is a range of positions that is read with one operation per stripe object. Two windows are
under way while the caller works on the one before them, so that the store works meanwhile.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Sequence
from typing import Generic, Protocol, TypeVar

from zlog._base.codes import Code
from zlog._base.deadline import Deadline
from zlog._base.io import Reply
from zlog._base.settings import Budget
from zlog._layout.layout import StripeUnknown
from zlog._read.holes import HoleTimeout
from zlog._read.items import fills_of
from zlog._read.read import READ_BYTES_MAX, Reader, Window
from zlog.entry import Entry, Gap, GapKind

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

_WINDOW_POSITIONS_FIRST = 512
_WINDOW_POSITIONS_MIN = 16
WINDOW_POSITIONS_MAX = 16384
WINDOW_BYTES = 8 << 20
"""Data that one window aims at. How many positions that takes is learnt from the entries so far."""

BYTES_SLACK = 2
"""By how much larger than expected entries may be, before a window is read in several steps."""

_WINDOWS_AHEAD = 2
"""Windows under way while the caller works: with the one in hand, three times WINDOW_BYTES."""


_WINDOWS_WITH_IDS = 8
"""Windows that report who filled positions, after one that holds fills: there may be more."""


class OrderedReader(Protocol[T_co]):
    """Reads a log in order, up to an end that the caller passes."""

    @property
    def position(self) -> int:
        """The next position."""
        ...

    async def next(self, tail: int) -> T_co:
        """Return what follows ``position``, which lies below ``tail``; may be nothing."""
        ...

    def go_to(self, position: int) -> None:
        """Continue at another position."""
        ...


class Prefetcher(ABC, Generic[T]):
    """Reads windows in order, some of them ahead of the one that is asked for.

    A gap that a window ends with is kept back until it is known whether the next window continues
    it. It is not kept back at the tail, where there is no next window, nor is a hole if the reader
    stops there.

    Args:
        reader: of the log.
        budget: of the handle.
        position: the first.
        hole_seconds: how long to wait for a hole; None: holes are left alone.
        window_bytes: data that one window aims at.
        bytes_max: data that it may return; twice as much, unless given.
        passes_holes: whether the reader reads on after a hole that stays open.

    Attributes:
        position: the next one.
        with_ids: how many windows that are requested from now on report who filled positions. That
            costs 25 bytes for each entry, so it is 0 until a window holds fills, whose positions
            are then read once more.

    Raises:
        KeyNeeded: the log's entries have MACs, and this client can't check them.
    """

    with_ids = 0

    def __init__(
        self,
        reader: Reader,
        budget: Budget,
        position: int,
        hole_seconds: float | None,
        window_bytes: int = WINDOW_BYTES,
        bytes_max: int | None = None,
        *,
        passes_holes: bool = False,
    ) -> None:
        reader.layout.macs.check_key()
        self.reader = reader
        self.holes = HoleTimeout(hole_seconds)
        self.position = position
        self._budget = budget
        self._asked = position
        self._bytes = window_bytes
        self._bytes_max = BYTES_SLACK * window_bytes if bytes_max is None else bytes_max
        self._count = _WINDOW_POSITIONS_FIRST
        self._under_way: deque[Window] = deque()
        self._kept: Gap | None = None
        self._passes_holes = passes_holes

    @abstractmethod
    async def finish(self, window: Window, tail: int, deadline: Deadline) -> tuple[T, int, int]:
        """Bring in a window: its content, the bytes of data in that, and where the content ends.

        That is the window's end, which may be lower than asked for, or a hole: then the rest is
        returned by another call. Positions below ``tail`` are read after the window.
        """

    @abstractmethod
    def trimmed(self, gap: Gap) -> T:
        """Return the content of positions that need not be read."""

    def start(self, start: int, end: int, bytes_max: int) -> Window:
        """Start reading a window, which may end earlier, of up to ``bytes_max`` of data."""
        return self.reader.start(start, end, bytes_max, with_ids=self.with_ids > 0)

    def positions_max(self, _: int) -> int:
        """Return how many positions from one on a window may take."""
        return WINDOW_POSITIONS_MAX

    def join(self, kept: Gap | None, content: T, *, ends: bool) -> tuple[T, Gap | None]:
        """Put a gap before the content, and take off the one at its end if that is to be kept.

        Args:
            kept: the gap that the window before ended with.
            content: of a window.
            ends: whether there is no next window, so that all is returned.
        """
        del kept, ends  # no gap is kept back unless a subclass does
        return content, None

    def keeps(self, gap: Gap) -> bool:
        """Whether the gap that a window ends with is kept back."""
        return self._passes_holes or gap.kind is not GapKind.UNWRITTEN

    async def next(self, tail: int) -> T:
        """Return what follows ``position``, which lies below ``tail``; may be nothing."""
        content = await self._window(tail)
        content, self._kept = self.join(self._kept, content, ends=self.position >= tail)
        return content

    def go_to(self, position: int) -> None:
        """Continue at another position; what is under way or kept back is given up."""
        self._kept = None
        self._jump(position)

    async def read_rest(
        self,
        window: Window,
        replies: Sequence[Reply],
        rest: list[int],
        data_bytes: int,
        deadline: Deadline,
    ) -> None:
        """Read what the replies to a window's calls leave open into its ``found``.

        The window ends where its data reaches the limit.

        Args:
            window: which.
            replies: to its calls.
            rest: positions that are open, ascending.
            data_bytes: data in the replies.
            deadline: budget.
        """
        found = window.found
        assert found is not None
        for asked, reply in zip(window.parts, replies, strict=True):
            if window.with_ids and rest and reply.code == Code.OK:
                found.update(fills_of(reply.payload, asked))
        while left := [p for p in rest if p not in found]:
            if left[0] > window.parts[0].start and data_bytes >= window.bytes_max:
                window.end = left[0]
                for position in [p for p in found if p >= window.end]:
                    del found[position]
                break
            share = max(1, (window.bytes_max - data_bytes) // len(window.parts))
            if not self.reader.with_data:
                share = READ_BYTES_MAX  # only an older class sends data, which is dropped here
            more = await self.reader.read_some(left, deadline, bytes_max=share)
            data_bytes += sum(len(slot.data) for slot in more.values() if isinstance(slot, Entry))
            found.update(more)
        slots = (found.get(p) for p in rest)
        self.note_fills(any(isinstance(s, Gap) and s.kind is GapKind.FILLED for s in slots))

    def note_fills(self, filled: bool) -> None:
        """Take note of whether the window that was brought in holds fills."""
        self.with_ids = _WINDOWS_WITH_IDS if filled else max(0, self.with_ids - 1)

    async def settle(self, window: Window, tail: int, deadline: Deadline) -> int:
        """Settle the holes of a window up to the next one to wait for; returns where that is."""
        found, start = window.found, window.start
        assert found is not None
        parts = window.parts
        hole = await self.reader.settle(found, self.holes, tail, parts, deadline, first=start)
        return window.end if hole is None else hole

    def _jump(self, position: int) -> None:
        self._under_way.clear()
        self.position = self._asked = position

    async def _window(self, tail: int) -> T:
        layout = self.reader.layout
        while True:
            trimmed = min(layout.view.trim_point, tail)
            if self.position < trimmed:
                gap = Gap(self.position, trimmed, GapKind.TRIMMED)
                self._jump(trimmed)
                return self.trimmed(gap)
            await self._read_ahead(tail)
            if self._under_way:
                break
        window = self._under_way.popleft()
        await self._read_ahead(tail)
        asked = window.end
        try:
            deadline = self._budget.longer(self.holes.seconds)
            content, data_bytes, end = await self.finish(window, tail, deadline)
        except BaseException:
            self._jump(self.position)
            raise
        self._learn(self.position, end, data_bytes)
        if window.end < asked:
            self._jump(window.end)
        if end < window.end:
            window.start = end
            self._under_way.appendleft(window)
        self.position = end
        return content

    async def _read_ahead(self, tail: int) -> None:
        while self._asked < tail and len(self._under_way) < _WINDOWS_AHEAD:
            end = min(tail, self._asked + self._count)
            try:
                window = self.start(self._asked, end, self._bytes_max)
            except StripeUnknown as unknown:
                deadline = self._budget.deadline()
                if await self.reader.layout.stripe_at(unknown.position, deadline) is None:
                    return  # trimmed meanwhile, with its stripe
                continue
            self._under_way.append(window)
            self._asked = window.end

    def _learn(self, start: int, end: int, data_bytes: int) -> None:
        average = max(1, data_bytes // max(1, end - start))
        most = self.positions_max(end)
        wanted = min(self._bytes // average, self._count * 4, most)
        self._count = max(_WINDOW_POSITIONS_MIN, wanted)
