"""How much an exclusive writer may have on its way, and how much its log may hold."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass

from zlog._append.exclusive import Exclusive
from zlog._append.outcomes import not_sent
from zlog._base.deadline import Deadline
from zlog._layout.layout import Layout
from zlog._positions.stat import data_bytes, object_stats
from zlog.errors import LimitReached, StoreTimeout
from zlog.view import OPEN_END


@dataclass(frozen=True, slots=True)
class Limits:
    """How much a writer may have under way and its log may hold; :meth:`zlog.Log.writer` says it.

    Raises:
        ValueError: one of them is invalid.
    """

    window_bytes: int
    capacity: int | None
    when_full: str

    def __post_init__(self) -> None:
        for what, limit in (("window_bytes", self.window_bytes), ("capacity", self.capacity)):
            if limit is not None and (not isinstance(limit, int) or limit < 1):
                raise ValueError(f"{what} is a number of bytes from 1 on, not {limit!r}")
        if self.when_full not in ("wait", "raise"):
            raise ValueError(f"when_full is 'wait' or 'raise', not {self.when_full!r}")


RECOUNT_SECONDS = 1.0
"""How often a writer that waits at its capacity counts what the log holds."""

_TRIM = "Trim what is not needed any more (`writer.trim(position)`)."


class Room:
    """What one writer has left of its limits.

    Attributes:
        window_bytes: data that may be submitted and not confirmed.
        capacity: data that the log may hold, what is not confirmed included; None: any.
    """

    def __init__(self, appends: Exclusive, limits: Limits) -> None:
        self._appends = appends
        self.window_bytes = limits.window_bytes
        self.capacity = limits.capacity
        self._raises = limits.when_full == "raise"
        self._held = 0  # by the log, when it was last counted
        self._counted_at = 0  # what the writer had appended then
        self._recount_at = 0.0

    async def count(self, deadline: Deadline) -> None:
        """Count what the log holds, if that matters: its objects tell."""
        if self.capacity is None:
            return
        layout = self._appends.layout
        # Counted before the objects are asked: what comes meanwhile counts twice, and not never.
        counted_at = self._appends.appended_bytes
        self._held = await held_bytes(layout, deadline)
        self._counted_at = counted_at

    def has(self, size: int) -> bool:
        """Whether so many bytes may be handed in now.

        Raises:
            LimitReached: the log will never hold as many.
        """
        if self.capacity is not None and size > self.capacity:
            raise LimitReached(
                f"{size} bytes are more than the capacity of the log, {self.capacity}",
                hint="Append less at once, or give the writer a larger `capacity`.",
            )
        unconfirmed = self._appends.unconfirmed_bytes
        if unconfirmed and unconfirmed + size > self.window_bytes:
            return False
        return not self.at_capacity(size)

    def at_capacity(self, size: int) -> bool:
        """Whether the log has no room for so many bytes until something is trimmed."""
        if self.capacity is None:
            return False
        return self.held + self._appends.unconfirmed_bytes + size > self.capacity

    @property
    def held(self) -> int:
        """Bytes of data that the log holds, as far as this writer knows."""
        return self._held + self._appends.appended_bytes - self._counted_at

    async def recount(self, size: int, deadline: Deadline) -> None:
        """Count what the log holds if there is no room, since other clients may have trimmed it.

        Raises:
            LimitReached: there is no room, and the writer is not to wait for a trim.
        """
        if self.at_capacity(size):
            now = self._appends.layout.io.monotonic()
            if self._raises or now >= self._recount_at:  # one count serves all that wait
                self._recount_at = now + RECOUNT_SECONDS
                with contextlib.suppress(StoreTimeout):  # the last count has to do
                    await self.count(deadline)
            if self._raises and self.at_capacity(size):
                raise LimitReached(self._shortage(size), hint=_TRIM)

    def not_sent(self, size: int) -> StoreTimeout:
        """Return the error of an append that waited for room until its time was up."""
        if self.at_capacity(size):
            return not_sent(self._shortage(size), _TRIM)
        return not_sent(
            f"{self._appends.unconfirmed_bytes} bytes of the entries before it are not confirmed,"
            f" and the writer's `window_bytes` is {self.window_bytes}"
        )

    def _shortage(self, size: int) -> str:
        held = self.held + self._appends.unconfirmed_bytes
        return (
            f"log {self._appends.layout.view.log!r} holds {held} bytes, those not confirmed"
            f" included, and its writer's capacity is {self.capacity}: {size} more do not fit"
        )


async def held_bytes(layout: Layout, deadline: Deadline) -> int:
    """Return the bytes of data of all entries that are not trimmed."""
    await layout.refresh(deadline)
    size = 0
    async for stripe in layout.stripes(layout.view.trim_point, OPEN_END, deadline):
        stats = await object_stats(layout, stripe, deadline)
        size += sum(data_bytes(layout, each) for each in stats)
    return size
