"""The logs of an invented shop: what tests look at, and what the pictures show."""

from __future__ import annotations

import json

import zlog

from ..support.logs import leave_hole

OTHERS = {
    "inventory": 420,
    "notifications": 1900,
    "payments": 2600,
    "search-index": 310,
    "sessions": 5200,
    "shipments": 870,
}
"""Entries of each of the other logs."""

_STATES = ("placed", "paid", "packed", "shipped")


def order(number: int) -> bytes:
    """Return an entry of the log `orders`."""
    fields = {
        "order": 70_000 + number // 4,
        "state": _STATES[number % 4],
        "customer": f"c-{number * 7919 % 9973:04}",
        "total": round(4.9 + number * 37 % 19_000 / 100, 2),
    }
    return json.dumps(fields).encode()


def make_shop(store: zlog.Store) -> None:
    """Make its logs: `orders` has positions in many states, cursors, and layouts that changed."""
    with zlog.Log.create(store, "orders", width=4, stripe_unit=64) as log:
        for batch in range(5):
            _append_orders(log, 1000 * batch, 1000)
            if batch == 2:
                log.reconfigure(width=6)
            else:
                leave_hole(log, 9)
        leave_hole(log, 3)
        _append_orders(log, 5000, 1000)
        for position in (*range(1000, 1009), *range(3500, 3560)):
            log.fill(position) if position < 1009 else log.trim(position)
        log.trim_to(700)
        for name, behind in (("billing", 40), ("fraud-model", 2100), ("warehouse", 600)):
            log.cursor(name, create=log.tail() - behind)
        log.set_retention(zlog.Retention(age=30 * 86400))
        assert log.tail() == 6039
    for name, count in OTHERS.items():
        with zlog.Log.create(store, name, width=2, stripe_unit=64) as log:
            log.append_many(
                [b'{"log": "%s", "number": %d}' % (name.encode(), n) for n in range(count)]
            )
            if name == "payments":
                log.cursor("ledger", create=count - 12)
                log.append_once([b"late"] * 3, producer="nightly-batch", sequence=4)


def _append_orders(log: zlog.Log, first: int, count: int) -> None:
    numbers = range(first, first + count)
    log.append_many([order(n) for n in numbers], tags_each=[(_STATES[n % 4],) for n in numbers])
