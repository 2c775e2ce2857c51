"""Deliveries to a log `orders`, for tests of them."""

from __future__ import annotations

import random
from collections.abc import Iterable

import zlog

from ..support.logs import data_of

ROWS = [b"%d" % i for i in range(20)]


def deliver(
    store: zlog.Store,
    entries: Iterable[bytes] = ROWS,
    sequence: int = 1,
    part: int = 0,
    *,
    in_order: bool = False,
) -> int:
    with zlog.Log.open(store, "orders") as log:
        return log.append_once(
            entries, producer="query", sequence=sequence, part=part, in_order=in_order
        )


def entries_in(store: zlog.Store) -> list[bytes]:
    with zlog.Log.open(store, "orders", hole_timeout=0.001) as log:
        return data_of(log.read_range())


def shuffled(seed: int) -> list[bytes]:
    rows = [*ROWS]
    random.Random(seed).shuffle(rows)
    return rows
