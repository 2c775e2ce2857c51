"""Stripe units of several positions."""

from __future__ import annotations

import pytest

import zlog
from zlog._native.local import MemoryStore
from zlog.limits import STRIPE_UNIT_DEFAULT, STRIPE_UNIT_MAX

from ..support.logs import data_of
from ..support.stores import PLAIN


@pytest.fixture
def stripe_unit() -> None:
    """Not that of the other tests: zlog's own default."""


def test_log_has_default_stripe_unit(store: zlog.Store, request: pytest.FixtureRequest) -> None:
    """One position where clients run the methods, so that single appends don't meet there."""
    plain = request.node.callspec.params["store_url"] == PLAIN
    with zlog.Log.create(store, "orders", width=2) as log:
        assert log.view.live_stripe.stripe_unit == (1 if plain else STRIPE_UNIT_DEFAULT)
        assert log.stat().stripe_unit == log.view.live_stripe.stripe_unit
    with zlog.Log.create(store, "said", width=2, stripe_unit=4) as log:
        assert log.view.live_stripe.stripe_unit == 4


@pytest.mark.parametrize("wrong", [0, -1, 3, STRIPE_UNIT_MAX * 2, STRIPE_UNIT_MAX - 1])
def test_stripe_unit_must_be_power_of_two(memory: zlog.Store, wrong: int) -> None:
    with pytest.raises(ValueError, match="power of two"):
        zlog.Log.create(memory, "orders", stripe_unit=wrong)
    with zlog.Log.create(memory, "orders", stripe_unit=1) as log:
        with pytest.raises(ValueError, match="power of two"):
            log.reconfigure(stripe_unit=wrong)
        assert len(log.view.stripes) == 1


def test_stripe_unit_is_stored_in_one_object(memory: zlog.Store) -> None:
    with zlog.Log.create(memory, "orders", width=3, stripe_unit=4) as log:
        log.append_many([b"%d" % i for i in range(30)])
        objects = [log.view.object_of(position).number for position in range(30)]
        assert objects == [p // 4 % 3 for p in range(30)]
        first = log.view.object_of(0)
        assert isinstance(memory, MemoryStore)
        content = memory.peek(first.name)
        assert content is not None
        _, omap, _ = content
        assert [*omap] == [b"e.%016x.c" % 27]  # twelve of one append, in one record


def test_reconfigure_changes_stripe_unit(memory: zlog.Store) -> None:
    entries = [b"%d" % i for i in range(60)]
    with zlog.Log.create(memory, "orders", width=3, stripe_unit=1) as log:
        for at, stripe_unit in ((0, 1), (7, 8), (30, 2)):
            log.reconfigure(stripe_unit=stripe_unit)
            assert log.view.live_stripe.stripe_unit == stripe_unit
            assert log.view.live_stripe.width == 3
            log.append_many(entries[at : at + 30 if at == 30 else 30 if at else 7])
        stripes = [(s.start, s.stripe_unit) for s in log.stripes()]
        assert stripes == [(0, 1), (7, 8), (30, 2)]
        before = log.view
        assert log.reconfigure(stripe_unit=2, width=3) == before  # it has them already
        assert log.roll().live_stripe.striping == before.live_stripe.striping
        assert data_of(log.read_range()) == entries
        assert b"".join(bytes(each.data) for each in log.read_columns()) == b"".join(entries)
        assert list(log.check()) == []
        log.trim_to(33)
        assert data_of(log.read_range(33)) == entries[33:]
