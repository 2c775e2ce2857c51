"""The archived stripes of a log, as far as a client has had to look them up."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from zlog._base.deadline import Deadline
from zlog._catalog.head import Head
from zlog.view import Stripe

_KNOWN_MAX = 8192
"""Stripes kept in memory, about 200 bytes each; above that the oldest look-ups are forgotten."""


class StripeIndex:
    """Looks up archived stripes, and remembers them: an archived stripe never changes.

    Usable from several threads: what is known is replaced as a whole.
    """

    def __init__(self, head: Head, log_id: int) -> None:
        self._head = head
        self._log_id = log_id
        self._known: tuple[Stripe, ...] = ()

    def find(self, position: int) -> Stripe | None:
        """Return the stripe that holds ``position``, if it has been looked up."""
        return _holder(self._known, position)

    async def look_up(self, position: int, deadline: Deadline) -> Stripe | None:
        """Return the archived stripe that holds ``position``; None: there is none."""
        page = await self._head.stripes(self._log_id, position, deadline)
        known = {stripe.start: stripe for stripe in (*self._known, *page)}
        if len(known) > _KNOWN_MAX:
            known = {stripe.start: stripe for stripe in page}
        self._known = found = tuple(sorted(known.values(), key=lambda stripe: stripe.start))
        return _holder(found, position)  # another thread may have put its own page in its place


def _holder(stripes: Sequence[Stripe], position: int) -> Stripe | None:
    """Return the one of these stripes, in order, that holds a position."""
    index = bisect_right(stripes, position, key=lambda stripe: stripe.start) - 1
    return stripes[index] if index >= 0 and position < stripes[index].end else None
