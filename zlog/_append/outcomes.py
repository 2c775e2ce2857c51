"""What became of each append of a round."""

from __future__ import annotations

import copy
from typing import TypeVar

from zlog.errors import StoreTimeout, ZlogError

E = TypeVar("E", bound=BaseException)


def outcomes_of(error: BaseException, count: int) -> list[int | BaseException]:
    """Return what became of each append of a round that failed."""
    acknowledged = error.positions if isinstance(error, ZlogError) else ()
    known = acknowledged or (None,) * count
    return [again(error) if position is None else position for position in known]


def not_sent(
    why: str = "those before it were not acknowledged",
    remedy: str = "The store is slow or unreachable (`zlog doctor`).",
) -> StoreTimeout:
    """Return the error of an append whose time was up while it waited to be sent."""
    error = StoreTimeout(f"the entry was not sent in time: {why}")
    error.hint = f"It is not in the log. {remedy}"
    error.positions = (None,)
    return error


def not_confirmed() -> StoreTimeout:
    """Return the error of a call that did not wait until entries were confirmed."""
    return StoreTimeout(
        "the time was up before all that was handed in was confirmed",
        hint="It is on its way, and may be in the log. The store is slow or unreachable"
        " (`zlog doctor`).",
    )


def again(error: E) -> E:
    """Return an error that others get, too, as that of one append, which has no position."""
    own = copy.copy(error)
    own.__cause__ = error
    if isinstance(own, ZlogError):
        own.positions = (None,)
    return own
