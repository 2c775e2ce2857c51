"""Handles what replies to writes report: a class that is too old, or a full stripe."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Sequence

from zlog._base.codes import Code
from zlog._base.deadline import Deadline
from zlog._base.io import Reply
from zlog._base.options import StripeLimits, compression_of
from zlog._layout.layout import Layout
from zlog._native.replies import fullest
from zlog.errors import ZlogError
from zlog.view import Stripe, View

_logger = logging.getLogger(__name__)

_SPREAD_SECONDS = 0.25
"""If many writers notice a full stripe at the same time, the first one acts for all."""

_OVERDUE = 5 / 4
"""At this fullness no writer waits for another; below it, each waits the less the fuller the stripe
is. By default, an object's bytestream is full here."""

_RETRY_SECONDS = 1.0


class Compression:
    """Compresses by the log's options, but not in an epoch in which an older class refused it."""

    def __init__(self) -> None:
        self._refused = 0  # the epoch of the view in which compression was refused

    def of(self, view: View) -> str:
        """Return the name of the compression of writes in a view."""
        return "none" if view.epoch == self._refused else compression_of(view.options)

    def refused(self, view: View, object: str, code: int, sent: str) -> bool:
        """Return whether a class was too old for a write that was compressed with ``sent``.

        The write must then be repeated, and nothing is compressed until the next epoch.
        """
        if code != Code.REQUEST_TOO_NEW or sent == "none":
            return False
        if view.epoch != self._refused:
            self._refused = view.epoch
            _logger.warning(
                "entries of log %s are not compressed, because the object class that serves"
                " object=%s is older than this zlog",
                view.log,
                object,
            )
        return True


def fullness_of(view: View, replies: Sequence[Reply], end: int) -> float:
    """Return how full the live stripe is, from OK replies to writes below ``end``; 1 is full."""
    records, size = fullest(replies)
    live = view.live_stripe
    positions = (end - live.start) / live.width
    return StripeLimits.of(view.options).fullness(records, size, positions)


class RollWatch:
    """Watches how full one writer's stripe is, and starts the next stripe.

    Every reply to a write says how full the object is. The append that finds it full is still
    acknowledged. A later append, of this writer or another one, ends the stripe before it writes.
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
        """Record the replies to writes in ``view`` below ``end``, all of which are OK."""
        fullness = fullness_of(view, replies, end)
        if fullness < 1:
            return
        io, live = self._layout.io, view.live_stripe
        if self._full is None or self._full.id != live.id:
            self._full, self._turn, self._noticed = live, io.random(), io.monotonic()
        spread = _SPREAD_SECONDS * max(0.0, (_OVERDUE - fullness) / (_OVERDUE - 1))
        self._act_at = self._noticed + self._turn * spread

    async def act(self, deadline: Deadline) -> None:
        """End the full stripe, if it is still live and it is this writer's turn."""
        layout, full = self._layout, self._full
        now = layout.io.monotonic()
        due = max(self._act_at, self._retry_at)
        if full is None or (layout.view.live_stripe.id == full.id and now < due):
            return
        self._retry_at = now + _RETRY_SECONDS  # so that other threads do not try too
        if layout.view.live_stripe.id == full.id:
            with contextlib.suppress(ZlogError):  # the append meets the same error and reports it
                await layout.roll(full, deadline)
        if layout.view.live_stripe.id != full.id:
            self._full, self._retry_at = None, 0.0
