"""How a range of positions becomes tasks: one for each stripe object, or for several of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from zlog.view import Stripe


@dataclass(frozen=True, slots=True)
class Share:
    """What a task reads of one stripe: the positions of some of its objects.

    Attributes:
        start: the first position of the range.
        end: one past its last.
        width: the stripe's.
        indexes: of which objects: positions p with ``p % width`` in here; ascending.
    """

    start: int
    end: int
    width: int
    indexes: tuple[int, ...]

    def positions(self, start: int, end: int) -> list[range]:
        """Return the share's positions in ``[start, end)``, one range for each object."""
        first, last = max(start, self.start), min(end, self.end)
        return [
            range(first + (index - first) % self.width, last, self.width) for index in self.indexes
        ]

    def count(self, start: int, end: int) -> int:
        """Return how many of the share's positions are in ``[start, end)``."""
        return sum(len(each) for each in self.positions(start, end))

    def __len__(self) -> int:
        """Return how many positions the share has."""
        return self.count(self.start, self.end)


def split(
    stripes: Iterable[Stripe], start: int, end: int, tasks_max: int | None = None
) -> list[tuple[Share, ...]]:
    """Return what each task reads, so that all together read ``[start, end)`` once.

    A stripe object without a position in the range gets no task. With more objects than
    ``tasks_max``, a task gets several objects that follow one another, and all tasks about the
    same number of positions.

    Args:
        stripes: of a view that has all of the range, in the order of their positions.
        start: the first position.
        end: one past the last.
        tasks_max: how many tasks at most; None: one for each object.
    """
    shares = [
        share
        for stripe in stripes
        for share in _objects(max(start, stripe.start), min(end, stripe.end), stripe.width)
    ]
    if tasks_max is None or len(shares) <= tasks_max:
        return [(share,) for share in shares]
    return [_joined(group) for group in _groups(shares, tasks_max)]


def _objects(start: int, end: int, width: int) -> list[Share]:
    shares = (Share(start, end, width, (index,)) for index in range(width))
    return [share for share in shares if len(share)] if start < end else []


def _groups(shares: Sequence[Share], count: int) -> list[list[Share]]:
    """Cut shares into ``count`` groups or fewer: each goes where its middle lies in the whole."""
    groups: list[list[Share]] = [[] for _ in range(count)]
    total = sum(len(share) for share in shares)
    before = 0
    for share in shares:
        groups[(2 * before + len(share)) * count // (2 * total)].append(share)
        before += len(share)
    return [group for group in groups if group]


def _joined(shares: Iterable[Share]) -> tuple[Share, ...]:
    """Objects of one stripe are read together."""
    joined: list[Share] = []
    for share in shares:
        if joined and joined[-1].start == share.start:
            joined[-1] = replace(joined[-1], indexes=joined[-1].indexes + share.indexes)
        else:
            joined.append(share)
    return tuple(joined)
