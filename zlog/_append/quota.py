"""The limits of an exclusive writer: for its unconfirmed data, and for the data of its log."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass

from zlog._append.rounds import not_sent
from zlog._base.deadline import Deadline
from zlog._layout.layout import Layout
from zlog._positions.stat import data_bytes, object_stats
from zlog.errors import LimitReached, StoreTimeout
from zlog.view import OPEN_END


@dataclass(frozen=True, slots=True)
class WriterLimits:
    """The limits of a writer; see :meth:`zlog.Log.writer`. Raises ValueError if one is invalid."""

    window_bytes: int
    capacity: int | None
    when_full: str

    def __post_init__(self) -> None:
        for what, limit in (("window_bytes", self.window_bytes), ("capacity", self.capacity)):
            if limit is not None and (not isinstance(limit, int) or limit < 1):
                raise ValueError(f"{what} must be at least 1 byte, not {limit!r}")
        if self.when_full not in ("wait", "raise"):
            raise ValueError(f"when_full must be 'wait' or 'raise', not {self.when_full!r}")


RECOUNT_SECONDS = 1.0
"""How often a writer at its capacity counts the log's data again, in seconds."""

_TRIM = "Trim entries that are no longer needed (`writer.trim(position)`)."


class Quota:
    """Limits how much data an exclusive writer submits, and how much data its log holds.

    Attributes:
        unconfirmed_bytes: the size of the data that was submitted and is not confirmed yet.
        appended_bytes: the size of the data that this writer has confirmed.
        window_bytes: the maximum size of the unconfirmed data.
        capacity: the maximum size of the log's data, confirmed or not; None means no limit.
    """

    def __init__(self, layout: Layout, limits: WriterLimits) -> None:
        self._layout = layout
        self.unconfirmed_bytes = 0
        self.appended_bytes = 0
        self.window_bytes = limits.window_bytes
        self.capacity = limits.capacity
        self._raises = limits.when_full == "raise"
        self._held = 0  # the bytes in the log at the last count
        self._counted_at = 0  # how much this writer had appended by then
        self._recount_at = 0.0

    async def count(self, deadline: Deadline) -> None:
        """If there is a capacity, count the log's data, as its objects report it."""
        if self.capacity is None:
            return
        # Read this before the objects are asked: a concurrent append may count twice, but never
        # zero times.
        counted_at = self.appended_bytes
        self._held = await held_bytes(self._layout, deadline)
        self._counted_at = counted_at

    def has(self, size: int) -> bool:
        """Whether this many bytes may be submitted now. Raises LimitReached if they never fit."""
        if self.capacity is not None and size > self.capacity:
            raise LimitReached(
                f"{size} bytes do not fit into the log, because its writer's capacity is"
                f" {self.capacity}",
                hint="Append less at once, or give the writer a larger `capacity`.",
            )
        unconfirmed = self.unconfirmed_bytes
        if unconfirmed and unconfirmed + size > self.window_bytes:
            return False
        return not self.at_capacity(size)

    def at_capacity(self, size: int) -> bool:
        """Whether the log has no space for this many bytes before the next trim."""
        if self.capacity is None:
            return False
        return self.held + self.unconfirmed_bytes + size > self.capacity

    @property
    def held(self) -> int:
        """Return the bytes of data in the log, as far as this writer knows."""
        return self._held + self.appended_bytes - self._counted_at

    async def recount(self, size: int, deadline: Deadline) -> None:
        """Count the data of a full log again, because other clients may have trimmed it.

        Raises LimitReached if the log is still full and the writer does not wait for trims.
        """
        if self.at_capacity(size):
            now = self._layout.io.monotonic()
            if self._raises or now >= self._recount_at:  # one count serves all waiting calls
                self._recount_at = now + RECOUNT_SECONDS
                with contextlib.suppress(StoreTimeout):  # use the last count instead
                    await self.count(deadline)
            if self._raises and self.at_capacity(size):
                raise LimitReached(self._shortage(size), hint=_TRIM)

    def not_sent(self, size: int) -> StoreTimeout:
        """Return the error of an append whose time was up before there was space."""
        if self.at_capacity(size):
            return not_sent(self._shortage(size), _TRIM)
        return not_sent(
            f"{self.unconfirmed_bytes} bytes of earlier entries are still unconfirmed, and the"
            f" writer's `window_bytes` is {self.window_bytes}"
        )

    def _shortage(self, size: int) -> str:
        held = self.held + self.unconfirmed_bytes
        return (
            f"log {self._layout.view.log!r} holds {held} bytes, including unconfirmed ones, and"
            f" its writer's capacity is {self.capacity}, so {size} more bytes do not fit"
        )


async def held_bytes(layout: Layout, deadline: Deadline) -> int:
    """Return the number of bytes of data in all entries that are not trimmed."""
    await layout.refresh(deadline)
    size = 0
    async for stripe in layout.stripes(layout.view.trim_point, OPEN_END, deadline):
        stats = await object_stats(layout, stripe, deadline)
        size += sum(data_bytes(layout, each) for each in stats)
    return size
