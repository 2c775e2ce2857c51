"""All stripes of a range of positions: those that the newest view names, and the archived ones."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from itertools import count, pairwise

import pytest

import zlog
from zlog._base.deadline import Deadline
from zlog._catalog import head
from zlog._catalog.head import Head
from zlog._io import BlockingIo, drive
from zlog._layout.layout import StripeIndex
from zlog.extension import ThreadPort
from zlog.view import STRIPES_MAX, Stripe

UNITS = (1, 4)
STRIPES = STRIPES_MAX + 10
LENGTH = 4


@pytest.fixture
def rolled(memory: zlog.Store) -> Iterator[zlog.Log]:
    """A log of more stripes than a view names, each of them but the last with LENGTH entries."""
    with zlog.Log.create(memory, "orders", width=1) as log:
        for number in range(STRIPES):
            log.reconfigure(width=1 + number % 2)
            log.append_many([b"%d" % number] * LENGTH)
        assert len(log.view.stripes) == STRIPES_MAX
        yield log


def spans(stripes: list[Stripe]) -> list[tuple[int, int]]:
    return [(stripe.start, stripe.end) for stripe in stripes]


def test_stripes_lists_all_stripes(rolled: zlog.Log) -> None:
    stripes = rolled.stripes()
    assert len(stripes) == rolled.stat().stripes == STRIPES
    assert stripes[0].start == 0
    assert all(before.end == after.start for before, after in pairwise(stripes))
    assert stripes[-1].open
    assert tuple(stripes[-STRIPES_MAX:]) == rolled.view.stripes
    assert [stripe.width for stripe in stripes] == [1, 2] * (STRIPES // 2)


def test_stripes_lists_stripes_of_range(rolled: zlog.Log) -> None:
    assert spans(rolled.stripes(0, 1)) == [(0, 4)]
    assert spans(rolled.stripes(3, 9)) == [(0, 4), (4, 8), (8, 12)]
    assert spans(rolled.stripes(4, 8)) == [(4, 8)]
    first = rolled.view.stripes[0].start
    assert spans(rolled.stripes(first - 1, first + 1)) == [(first - 4, first), (first, first + 4)]
    assert rolled.stripes(7, 7) == []
    assert rolled.stripes(rolled.tail() + 99) == [rolled.view.live_stripe]


def test_stripes_includes_stripes_of_other_clients(memory: zlog.Store, rolled: zlog.Log) -> None:
    with zlog.Log.open(memory, rolled.name) as other:
        other.reconfigure(width=7)
        position = other.append(b"x")
    assert [stripe.width for stripe in rolled.stripes(position, position + 1)] == [7]


def test_trimmed_stripes_are_omitted(memory: zlog.Store, rolled: zlog.Log) -> None:
    with zlog.Log.open(memory, rolled.name) as other:
        other.trim_to(2 * LENGTH + 1)
    assert spans(rolled.stripes(0, 13)) == [(8, 12), (12, 16)]
    assert rolled.stripes(0, 8) == []


def test_stat_reports_range(rolled: zlog.Log) -> None:
    stat = rolled.stat(LENGTH, 2 * LENGTH + 1)
    assert (stat.stripes, stat.objects, stat.entries, stat.bytes) == (2, 3, 8, 8)
    assert stat.tail == STRIPES * LENGTH


@pytest.mark.parametrize(("start", "end"), [(-1, None), (0.5, None), (0, "9")])
def test_invalid_ranges_are_refused(rolled: zlog.Log, start: int, end: int | None) -> None:
    for call in (rolled.stripes, rolled.stat):
        with pytest.raises((TypeError, ValueError)):
            call(start, end)


class Overtaken(StripeIndex):
    """One whose pages are gone at once: another thread, which knew of none, has stored its own."""

    @property  # type: ignore[override]
    def _known(self) -> tuple[()]:
        return ()

    @_known.setter
    def _known(self, _: object) -> None:
        pass


def test_concurrent_index_update_keeps_found_stripe(memory: zlog.Store) -> None:
    log = zlog.Log.create(memory, "orders", width=1)
    for number in range(34):
        log.append(b"%d" % number)
        log.reconfigure(width=2 - number % 2)
    index = Overtaken(Head(BlockingIo(memory), "orders"), log.view.log_id)
    found = drive(index.look_up(0, Deadline(10)))
    assert found is not None
    assert (found.start, found.end) == (0, 1)
    assert drive(index.look_up(40, Deadline(10))) is None


def test_reader_continues_after_failed_look_up(
    rolled: zlog.Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    look_up, calls = StripeIndex.look_up, count()

    async def failing(self: StripeIndex, position: int, deadline: Deadline) -> Stripe | None:
        if next(calls) % 2:
            raise zlog.StoreTimeout("a test")
        return await look_up(self, position, deadline)

    monkeypatch.setattr(head, "_STRIPES_PER_READ", 1)
    monkeypatch.setattr(StripeIndex, "look_up", failing)
    reader, tail, found = ThreadPort(rolled).columns(0), rolled.tail(), list[int]()
    while reader.position < tail:
        with suppress(zlog.StoreTimeout):
            for columns in drive(reader.next(tail)):
                found += columns.positions
    assert found == [*range(tail)]
    assert next(calls) > 2
