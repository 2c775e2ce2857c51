"""What a class of an earlier version must not touch says so in its stored bytes.

The stored formats themselves are in the examples of docs/formats (`test_documented`). What releases
have stored is in tests/versions.
"""

from __future__ import annotations

import pytest

from .objects import Head, Store, Stripe
from .replies import Code
from .requests import AppendPart, Entry, StripeView, View
from .stored import HEADER, STORES_WITH_DOORS, Door
from .wire import OPEN_END


@pytest.mark.parametrize(
    ("stripe_unit", "call", "header", "stripe"),
    [(1, None, 1, 1), (4, None, 4, 2), (4, "freeze", 7, 2), (1, "append", 8, 1)],
    ids=["plain", "stripe unit", "frozen", "appended"],
)
@pytest.mark.parametrize("store_url", STORES_WITH_DOORS, indirect=True)
def test_stored_values_need_newer_class(
    store: Store, prefix: str, door: Door, stripe_unit: int, call: str, header: int, stripe: int
) -> None:
    width = 1 if call == "append" else 2
    made = Stripe(store, f"{prefix}.stripe", width, width - 1, stripe_unit)
    head = Head(store, f"{prefix}.head")
    first = StripeView(1, 0, OPEN_END, 2, stripe_unit)
    answers = [
        made.seal(5, start=0),
        made.write(5, [Entry(stripe_unit, 0, b"first")]),
        *([made.freeze(5)] if call == "freeze" else []),
        *([made.append(5, [AppendPart((Entry(0, 1, b"second"),))])] if call == "append" else []),
        head.create("units", 8),
        head.epoch_next(2),
        head.view_propose(0, View(1, 8, stripes=(first,))),
        head.epoch_next(2),
        head.view_propose(1, View(2, 8, stripes=(StripeView(2, 100, OPEN_END, 2),))),
    ]
    assert {answer.code for answer in answers} == {Code.OK}
    assert door.load(made.name).attrs[HEADER][:2] == bytes([8, header])
    archived = door.load(head.name).omap[b"t.%016x" % 99]
    assert archived[:2] == bytes([2, stripe])
