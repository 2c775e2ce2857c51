"""Noticing that the live stripe is full, and having the next one started."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from zlog import _native
from zlog._deadline import Deadline
from zlog._io import Reply
from zlog._layout import Layout
from zlog._options import StripeLimits
from zlog.errors import ZlogError
from zlog.view import Stripe, View

_SPREAD_SECONDS = 0.25
"""Of many writers that notice at the same time, the first one to act spares the others."""

_OVERDUE = 9 / 8
_OVERDUE_SPREAD_SECONDS = 0.05
"""The same for a stripe that is by so much fuller than full."""

_RETRY_SECONDS = 1.0


class RollWatch:
    """Watches one writer's stripe.

    Every object answers a write with how full it is. The append that hears of a full one is
    acknowledged first; the stripe is ended before a later one, of this writer or of another.
    """

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._full: Stripe | None = None
        self._turn = 0.0
        self._act_at = 0.0

    @property
    def alert(self) -> bool:
        """Whether :meth:`act` may have something to do."""
        return self._full is not None

    def note(self, view: View, replies: Sequence[Reply]) -> None:
        """Take note of what objects answered to writes in ``view``, all of them OK."""
        records, size = _native.fullest(replies)
        limits = StripeLimits.of(view.options)
        fullness = max(records / limits.records, size / limits.bytes)
        if fullness < 1:
            return
        io, live = self._layout.io, view.live_stripe
        if self._full is None or self._full.id != live.id:
            self._turn = io.random()
            self._act_at = io.monotonic() + _SPREAD_SECONDS * self._turn
            self._full = live
        if fullness >= _OVERDUE:
            soon = io.monotonic() + _OVERDUE_SPREAD_SECONDS * self._turn
            self._act_at = min(self._act_at, soon)

    async def act(self, deadline: Deadline) -> None:
        """End the stripe that is full, if nobody has and it is this writer's turn."""
        layout, full = self._layout, self._full
        now = layout.io.monotonic()
        if full is None or (layout.view.live_stripe.id == full.id and now < self._act_at):
            return
        self._act_at = now + _RETRY_SECONDS  # other threads do not join in
        if layout.view.live_stripe.id == full.id:
            # What goes wrong here goes wrong for the append as well, which tells its caller.
            with contextlib.suppress(ZlogError):
                await layout.roll(full, deadline)
        if layout.view.live_stripe.id != full.id:
            self._full = None
