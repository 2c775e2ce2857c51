"""Handles what replies to writes report: how full the stripe is."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from zlog._base.deadline import Deadline
from zlog._base.io import Reply
from zlog._base.options import StripeLimits
from zlog._layout.layout import Layout
from zlog._native.replies import fullest
from zlog.errors import ZlogError
from zlog.view import Stripe, View

_SPREAD_SECONDS = 0.25
"""If many writers notice a full stripe at the same time, they spread their reactions over this many
seconds, so that the first one acts for all."""

_OVERDUE = 5 / 4
"""The fullness from which on no writer waits for another. Below it, a writer waits less the fuller
the stripe is. With default limits, an object's bytestream is full at this point."""

_RETRY_SECONDS = 1.0


def fullness_of(view: View, replies: Sequence[Reply], end: int) -> float:
    """Return the live stripe's fullness (1 is full), from OK replies to writes below ``end``."""
    records, size = fullest(replies)
    live = view.live_stripe
    positions = (end - live.start) / live.width
    return StripeLimits.of(view.options).fullness(records, size, positions)


class RollWatch:
    """Watches how full the objects of the live stripe are, and starts the next stripe in time.

    Each reply to a write says how full the object is. A write that fills the object still succeeds,
    but the writer starts another stripe before its next append.
    """

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._full: Stripe | None = None
        self._turn = 0.0
        self._noticed = 0.0
        self._act_at = 0.0
        self._retry_at = 0.0

    @property
    def alert(self) -> bool:
        """Whether :meth:`act` should be called."""
        return self._full is not None

    def note(self, view: View, replies: Sequence[Reply], end: int) -> None:
        """Record OK replies to writes in ``view`` below ``end``."""
        fullness = fullness_of(view, replies, end)
        if fullness < 1:
            return
        io, live = self._layout.io, view.live_stripe
        if self._full is None or self._full.id != live.id:
            self._full, self._turn, self._noticed = live, io.random(), io.monotonic()
        spread = _SPREAD_SECONDS * max(0.0, (_OVERDUE - fullness) / (_OVERDUE - 1))
        self._act_at = self._noticed + self._turn * spread

    async def act(self, deadline: Deadline) -> None:
        """End the full stripe if it is still live and it is this writer's turn."""
        layout, full = self._layout, self._full
        now = layout.io.monotonic()
        due = max(self._act_at, self._retry_at)
        if full is None or (layout.view.live_stripe.id == full.id and now < due):
            return
        self._retry_at = now + _RETRY_SECONDS  # so that other threads do not try as well
        if layout.view.live_stripe.id == full.id:
            with contextlib.suppress(ZlogError):  # the append will get the same error and report it
                await layout.roll(full, deadline)
        if layout.view.live_stripe.id != full.id:
            self._full, self._retry_at = None, 0.0
