"""Divides ranges of positions into tasks: by stripe object, then joined or cut as requested."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain, zip_longest
from operator import itemgetter
from typing import TYPE_CHECKING

from zlog import ObjectPositions, Striping
from zlog.errors import ZlogError
from zlog.limits import STRIPE_BYTES_DEFAULT, STRIPE_RECORDS_DEFAULT

if TYPE_CHECKING:
    from zlog.spark._handles import LogRef
    from zlog.view import Stripe

JOINED_BYTES_MAX = STRIPE_BYTES_DEFAULT
JOINED_POSITIONS_MAX = STRIPE_RECORDS_DEFAULT
"""The size up to which small stripes are joined: the size of an object in a full stripe."""


class IncompletePlan(ZlogError):
    """The stripes do not cover the whole range, so a part of it would be left out."""


@dataclass(frozen=True, slots=True)
class Range:
    """The positions ``[start, end)`` of a log, which a batch reads.

    Attributes:
        log: the log.
        start: the first position.
        end: one past the last position.
        stripes: all stripes that hold positions of the range, in ascending order.
        trimmed: positions below this one are trimmed, and one task reports them.
        segments: the segments ``[start, end)`` of files with offloaded stripes, in ascending order.
    """

    log: LogRef
    start: int
    end: int
    stripes: Sequence[Stripe]
    trimmed: int = 0
    segments: Sequence[tuple[int, int]] = ()

    def shares(self) -> list[list[Share]]:
        """Return the range's shares by stripe, each of one object or of one segment of a file.

        Raises:
            IncompletePlan: the stripes do not hold the whole range.
        """
        first = min(max(self.start, self.trimmed), self.end)
        gone = Share(self.log, self.start, first, Striping(1), (0,), trimmed=True)
        found = [[gone], *(self._in_stripe(max(first, each.start), each) for each in self.stripes)]
        shares = [[share for share in some if len(share)] for some in found]
        planned = sum(len(share) for share in chain(*shares))
        if planned != max(0, self.end - self.start):
            raise IncompletePlan(
                f"log {self.log.name!r}: its stripes hold only {planned} of the"
                f" {self.end - self.start} positions of [{self.start}, {self.end})",
                hint="Nothing was read. The head may have lost a stripe, which `zlog check` shows.",
            )
        return [some for some in shares if some]

    def _in_stripe(self, start: int, stripe: Stripe) -> list[Share]:
        end, striping = min(self.end, stripe.end), stripe.striping
        if start >= end:
            return []
        first = bisect_right(self.segments, start, key=itemgetter(1))
        after = bisect_left(self.segments, end, key=itemgetter(0))
        if own := self.segments[first:after]:
            bounds = [(max(start, begin), min(end, stop)) for begin, stop in own]
            return [Share(self.log, *each, striping, (*range(striping.width),)) for each in bounds]
        return [Share(self.log, start, end, striping, (i,)) for i in range(striping.width)]


@dataclass(frozen=True, slots=True)
class Share:
    """A range of positions in some objects of one stripe, for one task to read.

    Attributes:
        log: the log.
        start: the first position of the range.
        end: one past the last position.
        striping: the striping of the stripe.
        indexes: the indexes of the objects, in ascending order.
        trimmed: whether the whole range is trimmed, so that the task only reports a gap. The stripe
            is then unknown.
    """

    log: LogRef
    start: int
    end: int
    striping: Striping
    indexes: tuple[int, ...]
    trimmed: bool = False

    def positions(self, start: int, end: int) -> list[ObjectPositions]:
        """Return the share's positions in ``[start, end)``, with one sequence per object."""
        first, last = max(start, self.start), min(end, self.end)
        return [self.striping.positions(first, last, index) for index in self.indexes]

    def count(self, start: int, end: int) -> int:
        """Return how many of the share's positions are in ``[start, end)``."""
        return sum(len(each) for each in self.positions(start, end))

    def __len__(self) -> int:
        """Return how many positions the share has."""
        return self.count(self.start, self.end)


Shares = tuple[Share, ...]
"""What one task reads."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """Limits on the number and the size of a batch's tasks.

    Attributes:
        joined: the maximum number of positions of a task that reads from several small stripes.
        at_least: the minimum number of tasks, if there are that many positions; None means no
            minimum.
        at_most: the maximum number of tasks; None means no limit.
    """

    joined: int = JOINED_POSITIONS_MAX
    at_least: int | None = None
    at_most: int | None = None


def split(ranges: Iterable[Range], sizes: Sizes = Sizes()) -> list[Shares]:
    """Divide the positions of ranges among tasks, and return each task's part.

    Normally, each task reads one stripe object, or one segment of an offloaded stripe's file. If
    neighbouring stripes are small, a task reads one object of each of them; these may be stripes of
    several logs. If ``sizes`` demands more tasks, objects are divided; if it demands fewer, a task
    reads several objects. The tasks then have about the same number of positions.

    Raises:
        IncompletePlan: the stripes of a log do not hold its whole range.
    """
    stripes = [shares for each in ranges for shares in each.shares()]
    shares = [*chain(*stripes)]
    tasks = _join(stripes, sizes.joined)
    if sizes.at_most is not None and len(tasks) > sizes.at_most:
        tasks = _group(shares, sizes.at_most)
    if sizes.at_least is not None and len(tasks) < sizes.at_least:
        tasks = _cut(shares, sizes.at_least)
    return tasks


def _join(stripes: Iterable[list[Share]], positions_max: int) -> list[Shares]:
    """Make a task of each object, or of one object in each of several neighbouring stripes."""
    runs: list[list[list[Share]]] = []
    space = 0
    for shares in stripes:
        size = max(len(share) for share in shares)
        if size > space:
            runs.append([])
            space = positions_max
        runs[-1].append(shares)
        space -= size
    return [
        tuple(share for share in column if share is not None)
        for run in runs
        for column in zip_longest(*run)
    ]


def _cut(shares: Sequence[Share], count: int) -> list[Shares]:
    """Cut consecutive shares into ``count`` tasks of the same size."""
    total = sum(len(share) for share in shares)
    count = min(count, total)
    tasks: list[list[Share]] = [[] for _ in range(count)]
    before = 0
    for share in shares:
        first = 0
        while first < len(share):
            task = (before + first) * count // total
            end_of_task = -(-(task + 1) * total // count)
            last = min(len(share), end_of_task - before)
            tasks[task].append(_part(share, first, last))
            first = last
        before += len(share)
    return [tuple(task) for task in tasks]


def _part(share: Share, first: int, last: int) -> Share:
    """Return a part of a share: the positions with indexes ``[first, last)``.

    The share is of one object, or of all objects of a stripe.
    """
    if len(share.indexes) > 1:
        return replace(share, start=share.start + first, end=share.start + last)
    (positions,) = share.positions(share.start, share.end)
    part = positions[first:last]
    return replace(share, start=part[0], end=part[-1] + 1)


def _group(shares: Sequence[Share], count: int) -> list[Shares]:
    """Divide shares among up to ``count`` tasks of similar size. No share is cut.

    All positions are divided equally, and each share goes to the task that gets the share's middle.
    So neighbouring shares stay together.
    """
    groups: list[list[Share]] = [[] for _ in range(count)]
    total = sum(len(share) for share in shares)
    before = 0
    for share in shares:
        group = groups[(2 * before + len(share)) * count // (2 * total)]
        before += len(share)
        if group and _range_of(group[-1]) == _range_of(share):
            group[-1] = replace(group[-1], indexes=group[-1].indexes + share.indexes)
        else:
            group.append(share)
    return [tuple(group) for group in groups if group]


def _range_of(share: Share) -> tuple[LogRef, int, int]:
    return share.log, share.start, share.end
