"""Maps of positions: exact where cells are short, samples where they are long, on every store."""

from __future__ import annotations

import pytest

import zlog
import zlog.aio

from ..support.logs import by_position, leave_hole, write_at
from .planted import remove

STATES = ("filled", "trimmed", "unwritten", "lost", "written")


def counted(log: zlog.Log, start: int, end: int) -> dict[str, int]:
    """What a reader sees of a range, who fills nothing."""
    found = by_position(log.read_range(start, end, hole_timeout=0)).values()
    states = ["written" if isinstance(each, bytes) else each.value for each in found]
    return {state: states.count(state) for state in STATES}


def of(cell: zlog.PositionCell) -> dict[str, int]:
    return {state: getattr(cell, state) for state in STATES}


def in_many_states(store: zlog.Store, *, width: int, stripe_unit: int) -> zlog.Log:
    """A log of 300 positions in two stripes, with positions of each state."""
    log = zlog.Log.create(store, "orders", width=width, stripe_unit=stripe_unit)
    log.append_many([b"entry"] * 100)
    leave_hole(log, 5)
    assert write_at(log, 105) == 0  # a log without a sequencer would use them else
    log.append_many([b"entry"] * 44)
    log.reconfigure(width=width + 1)
    log.append_many([b"x" * 40_000] * 2)
    log.append_many([b"entry"] * (299 - log.tail()))
    log.append(b"last")
    for position in (40, 41, 200):
        log.trim(position)
    log.fill(102)
    log.trim_to(30)
    return log


@pytest.mark.parametrize(("width", "stripe_unit"), [(1, 1), (3, 1), (2, 16)])
@pytest.mark.parametrize("cells", [1, 7, 64, 300, 4096])
def test_short_cells_match_reader(
    store: zlog.Store, width: int, stripe_unit: int, cells: int
) -> None:
    with in_many_states(store, width=width, stripe_unit=stripe_unit) as log:
        looked_at = zlog.Log.open(zlog.ReadOnlyStore(store), "orders")
        start = 0 if cells > 1 else 60  # one cell with all of them would be a sample
        found = log.position_map(start, cells=cells)
        assert (found.start, found.end, found.tail, found.trim_point) == (start, 300, 300, 30)
        assert [cell.start for cell in found.cells[1:]] == [cell.end for cell in found.cells[:-1]]
        assert (found.cells[0].start, found.cells[-1].end) == (start, 300)
        assert len(found.cells) <= cells
        assert [stripe.width for stripe in found.stripes] == [width, width + 1]
        for cell in found.cells:
            assert cell.looked == cell.end - cell.start
            assert of(cell) == counted(looked_at, cell.start, cell.end)


def test_long_cells_are_sampled_in_middle(store: zlog.Store) -> None:
    with zlog.Log.create(store, "orders", width=2, stripe_unit=64) as log:
        log.append_many([b"entry"] * 3000)
        for position in (*range(700, 800), 1500):
            log.trim(position)
        first, second = log.position_map(0, 2048, cells=2).cells
        assert (first.end, second.end) == (1024, 2048)
        assert (first.looked, first.written, first.trimmed) == (256, 256 - 68, 68)  # 512 to 767
        assert (second.looked, second.written, second.trimmed) == (256, 256, 0)  # 1536 to 1791


def test_map_ends_at_tail(store: zlog.Store) -> None:
    with zlog.Log.create(store, "orders", width=2) as log:
        assert log.position_map().cells == ()
        log.append_many([b"entry"] * 10)
        assert [(cell.start, cell.end) for cell in log.position_map(6, 20, cells=2).cells] == [
            (6, 8),
            (8, 10),
        ]
        assert log.position_map(50, 60).cells == ()
        with pytest.raises(ValueError, match="1 to 4096 cells, not 0"):
            log.position_map(cells=0)


def test_positions_of_removed_object_are_unknown(store: zlog.Store) -> None:
    with zlog.Log.create(store, "orders", width=2, stripe_unit=4) as log:
        log.append_many([b"entry"] * 16)
        remove(log, log.view.object_of(0))  # the last position tells the tail
        assert [(cell.written, cell.unknown) for cell in log.position_map(cells=4).cells] == [
            (0, 4),
            (4, 0),
            (0, 4),
            (4, 0),
        ]
