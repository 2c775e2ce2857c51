"""Noticing that the live stripe is full, and having the next one started."""

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
"""Of many writers that notice at the same time, the first one to act spares the others."""

_OVERDUE = 5 / 4
"""From here on no writer waits for another, and up to here less and less. It is where, by
default, no more fits into an object's bytestream."""

_RETRY_SECONDS = 1.0


def fullness_of(view: View, replies: Sequence[Reply], end: int) -> float:
    """Return how full the live stripe is, 1 or more if it is to be ended.

    Args:
        view: with the stripe.
        replies: of its objects, to writes; all OK.
        end: one past the last position that was written.
    """
    records, size = fullest(replies)
    live = view.live_stripe
    positions = (end - live.start) / live.width
    return StripeLimits.of(view.options).fullness(records, size, positions)


class RollWatch:
    """Watches one writer's stripe.

    Every object answers a write with how full it is. The append that hears of a full one is
    acknowledged first; the stripe is ended before a later one, of this writer or of another.
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
        """Whether :meth:`act` may have something to do."""
        return self._full is not None

    def note(self, view: View, replies: Sequence[Reply], end: int) -> None:
        """Take note of what objects answered to writes below ``end``, in ``view``; all were OK."""
        fullness = fullness_of(view, replies, end)
        if fullness < 1:
            return
        io, live = self._layout.io, view.live_stripe
        if self._full is None or self._full.id != live.id:
            self._full, self._turn, self._noticed = live, io.random(), io.monotonic()
        spread = _SPREAD_SECONDS * max(0.0, (_OVERDUE - fullness) / (_OVERDUE - 1))
        self._act_at = self._noticed + self._turn * spread

    async def act(self, deadline: Deadline) -> None:
        """End the stripe that is full, if it is still the live one and it is this writer's turn."""
        layout, full = self._layout, self._full
        now = layout.io.monotonic()
        due = max(self._act_at, self._retry_at)
        if full is None or (layout.view.live_stripe.id == full.id and now < due):
            return
        self._retry_at = now + _RETRY_SECONDS  # other threads do not join in
        if layout.view.live_stripe.id == full.id:
            # What goes wrong here goes wrong for the append as well, which tells its caller.
            with contextlib.suppress(ZlogError):
                await layout.roll(full, deadline)
        if layout.view.live_stripe.id != full.id:
            self._full, self._retry_at = None, 0.0
