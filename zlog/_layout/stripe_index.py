"""Finds archived stripes (docs/formats/stripe-index.md)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from zlog._base.deadline import Deadline
from zlog._catalog.head import Head
from zlog.view import Stripe

_KNOWN_MAX = 8192
"""How many archived stripes are kept in memory, 200 bytes each. Older look-ups are dropped."""


class StripeUnknown(LookupError):
    """The stripe or the segment of ``position`` must be looked up or read first."""

    def __init__(self, position: int) -> None:
        super().__init__(position)
        self.position = position


class StripeIndex:
    """A cache of the archived stripes that were looked up. Archived stripes never change.

    Threads can share this object, because ``_known`` is always replaced as a whole.
    """

    def __init__(self, head: Head, log_id: int) -> None:
        self._head = head
        self._log_id = log_id
        self._known: tuple[Stripe, ...] = ()

    def find(self, position: int) -> Stripe | None:
        """Return the stripe that holds ``position`` if it was looked up before."""
        return _holder(self._known, position)

    async def look_up(self, position: int, deadline: Deadline) -> Stripe | None:
        """Return the archived stripe that holds ``position``, if there is one."""
        page = await self._head.stripes(self._log_id, position, deadline)
        known = {stripe.start: stripe for stripe in (*self._known, *page)}
        if len(known) > _KNOWN_MAX:
            known = {stripe.start: stripe for stripe in page}
        self._known = found = tuple(sorted(known.values(), key=lambda stripe: stripe.start))
        return _holder(found, position)  # another thread may have replaced it


def _holder(stripes: Sequence[Stripe], position: int) -> Stripe | None:
    """Return the stripe that holds a position. ``stripes`` must be in order."""
    index = bisect_right(stripes, position, key=lambda stripe: stripe.start) - 1
    return stripes[index] if index >= 0 and position < stripes[index].end else None
