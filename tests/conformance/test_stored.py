"""What a class of an earlier version must not touch says so in its stored bytes.

The stored formats themselves are in the examples of docs/formats (`test_documented`). What releases
have stored is in tests/versions.
"""

from __future__ import annotations

import pytest

from .objects import Head, Store, Stripe
from .replies import Code
from .requests import Entry, StripeView, View
from .stored import HEADER, STORES_WITH_DOORS, Door
from .wire import OPEN_END


@pytest.mark.parametrize(
    ("stripe_unit", "frozen", "header", "stripe"),
    [(1, False, 1, 1), (4, False, 4, 2), (4, True, 7, 2)],
    ids=["plain", "stripe unit", "frozen"],
)
@pytest.mark.parametrize("store_url", STORES_WITH_DOORS, indirect=True)
def test_stored_values_need_newer_class(
    store: Store, prefix: str, door: Door, stripe_unit: int, frozen: bool, header: int, stripe: int
) -> None:
    made, head = Stripe(store, f"{prefix}.stripe", 2, 1, stripe_unit), Head(store, f"{prefix}.head")
    first = StripeView(1, 0, OPEN_END, 2, stripe_unit)
    answers = [
        made.seal(5, start=0),
        made.write(5, [Entry(stripe_unit, 0, b"first")]),
        *([made.freeze(5)] if frozen else []),
        head.create("units", 8),
        head.epoch_next(2),
        head.view_propose(0, View(1, 8, stripes=(first,))),
        head.epoch_next(2),
        head.view_propose(1, View(2, 8, stripes=(StripeView(2, 100, OPEN_END, 2),))),
    ]
    assert {answer.code for answer in answers} == {Code.OK}
    assert door.load(made.name).attrs[HEADER][:2] == bytes([7, header])
    archived = door.load(head.name).omap[b"t.%016x" % 99]
    assert archived[:2] == bytes([2, stripe])
