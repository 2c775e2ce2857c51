"""A new log's first stripe is its creator's own, whatever others did before its first view."""

from __future__ import annotations

from typing import Any

import pytest

import zlog
from zlog import FindingKind, aio
from zlog._base.codes import EPOCH_MAX, POSITION_MAX
from zlog._base.names import head_object
from zlog._base.striping import Striping
from zlog._native import messages
from zlog.view import OPEN_END, Stripe, objects_of

from ..support.logs import data_of
from . import planted
from .faulty import FaultyStore, Recorder, at_method, loses_first

WIDTH = 3
LOG_ID = 77
ENTRIES = [b"entry %d" % number for number in range(10)]


def make_head(store: zlog.Store) -> None:
    """Leave what a creator leaves that dies before the first view."""
    request = messages.head_create("orders", LOG_ID)
    planted.call(store, head_object("orders"), "head_create", request)


def check_in_use(log: zlog.Log) -> None:
    """The log takes appends from position 0 on, and changes of its layout."""
    assert log.append_many(ENTRIES) == [*range(len(ENTRIES))]
    log.roll()
    log.reconfigure(width=2)
    assert data_of(log.read_range()) == ENTRIES


@pytest.mark.parametrize(
    ("epoch", "stride", "start"),
    [(1, WIDTH, 0), (EPOCH_MAX, WIDTH, 0), (1, WIDTH + 1, 0), (1, WIDTH, POSITION_MAX)],
    ids=["same", "epoch", "width", "start"],
)
def test_creation_does_not_use_existing_objects(
    store: zlog.Store, epoch: int, stride: int, start: int
) -> None:
    """The head is there before the first view: others can read in it what names the objects."""
    make_head(store)
    for id_ in range(1, 20):
        for ref in objects_of("orders", LOG_ID, Stripe(id_, 0, OPEN_END, WIDTH)):
            request = messages.seal(epoch, stride, ref.number, True, start)
            planted.call(store, ref.name, "seal", request)
            if start == 0:
                request = messages.fill(epoch, 1, b"a stranger's id.", 0, stride, [ref.number])
                planted.call(store, ref.name, "fill", request)
    with zlog.Log.create(store, "orders", width=WIDTH) as log:
        assert log.view.log_id == LOG_ID
        check_in_use(log)
        assert {finding.kind for finding in log.check()} == {FindingKind.ORPHAN}
    zlog.Log.remove(store, "orders")
    assert zlog.Log.list(store) == []


def test_one_existing_object_makes_creation_take_other_objects(memory: zlog.Store) -> None:
    """Also one that is sealed with a lower epoch, so that the creator's seal is admitted."""
    make_head(memory)
    planted.call(memory, head_object("orders"), "epoch_next", messages.epoch_next(0))
    *_, last = objects_of("orders", LOG_ID, Stripe(2, 0, OPEN_END, WIDTH))
    planted.call(memory, last.name, "seal", messages.seal(1, WIDTH, last.number, True, 0))
    with zlog.Log.create(memory, "orders", width=WIDTH) as log:
        assert log.view.live_stripe.id > 2
        assert list(log.check()) == []
    assert not planted.exists(memory, last.name)


def test_existing_objects_make_new_stripe_take_other_objects(memory: zlog.Store) -> None:
    with zlog.Log.create(memory, "orders", width=1) as log:
        for id_ in range(2, 40):
            (ref,) = objects_of("orders", log.view.log_id, Stripe(id_, 0, OPEN_END, 1))
            planted.call(memory, ref.name, "seal", messages.seal(1000, 1, 0, True, 0))
        log.append(b"first")
        log.roll()
        assert log.view.live_stripe.id > 1000


def test_duplicate_seal_costs_one_epoch(memory: zlog.Store) -> None:
    sent: list[int] = []

    def fault(at: int, method: str) -> str | None:
        if method == "seal":
            sent.append(at)
        return "twice" if method == "seal" and len(sent) == 1 else None

    with zlog.Log.create(FaultyStore(memory, fault), "orders", width=WIDTH) as log:
        assert len(sent) == 2 * WIDTH
        assert list(log.check()) == []


def test_next_creation_records_objects_after_lost_reply(memory: zlog.Store) -> None:
    with pytest.raises(zlog.StoreTimeout):
        zlog.Log.create(
            FaultyStore(memory, loses_first("seal")), "orders", width=WIDTH, timeout=0.2
        )
    with zlog.Log.create(memory, "orders", width=WIDTH) as log:
        assert {finding.kind for finding in log.check()} == {FindingKind.LEFTOVER}
        assert log.append(b"first") == 0
        log.trim_to(1)
        assert list(log.check()) == []


def test_creation_notices_another_creator(memory: zlog.Store) -> None:
    other = at_method("view_propose", lambda: zlog.Log.create(memory, "orders"))
    with pytest.raises(zlog.LogExists, match="another client created log 'orders'"):
        zlog.Log.create(FaultyStore(memory, other), "orders")


def test_log_removed_during_creation_leaves_no_objects(memory: zlog.Store) -> None:
    def fault(_: int, method: str) -> None:
        if method == "seal" and len(creator.names) == 1:
            zlog.Log.create(memory, "orders", width=WIDTH).close()
            zlog.Log.remove(memory, "orders")

    creator = Recorder(memory, fault)
    with pytest.raises(zlog.LogNotFound):
        zlog.Log.create(creator, "orders", width=WIDTH)
    assert len(creator.names) == WIDTH
    assert not any(planted.exists(memory, name) for name in creator.names)


@pytest.mark.parametrize("striping", [Striping(WIDTH + 1), Striping(WIDTH, 2)], ids=str)
def test_log_with_replaced_object_can_be_removed(store: zlog.Store, striping: Striping) -> None:
    with zlog.Log.create(store, "orders", width=WIDTH) as log:
        log.append_many(ENTRIES)
        ref = next(log.view.objects())
        planted.remake(log, ref._replace(striping=striping), epoch=log.view.epoch)
    zlog.Log.remove(store, "orders")
    assert not planted.exists(store, ref.name)
    with zlog.Log.create(store, "orders", width=WIDTH) as log:
        check_in_use(log)


def test_open_with_create_keeps_existing_log(store: zlog.Store) -> None:
    with zlog.Log.open(store, "orders", create=True, width=3, options={"a": "b"}) as log:
        assert log.append(b"first") == 0
        assert (log.view.live_stripe.width, log.view.options["a"]) == (3, "b")
    with zlog.Log.open(store, "orders", create=True, width=5, stripe_records=7) as again:
        assert again.view == log.view  # what is there stays as it is
        assert again.read(0).data == b"first"


def test_open_uses_defaults_of_create(memory: zlog.Store) -> None:
    opened = zlog.Log.open(memory, "opened", create=True).view
    created = zlog.Log.create(memory, "created").view
    assert opened.live_stripe.width == created.live_stripe.width
    assert opened.options == created.options


@pytest.mark.parametrize(
    "setting", [{"width": 8}, {"stripe_bytes": 1 << 20}, {"stripe_records": 9}, {"options": {}}]
)
def test_creation_settings_need_create_true(memory: zlog.Store, setting: dict[str, Any]) -> None:
    zlog.Log.create(memory, "orders")
    for face in (zlog.Log, aio.Log):
        with pytest.raises(ValueError, match="open it with create=True"):
            face.open(memory, "orders", **setting)
    with pytest.raises(ValueError, match="width"):
        zlog.Log.open(memory, "orders", create=True, width=0)
    with pytest.raises(zlog.LogNotFound):
        zlog.Log.open(memory, "payments")


def test_open_retries_after_concurrent_create_and_remove(memory: zlog.Store) -> None:
    """It is not there; another makes it, and a third removes it before it is opened."""
    steps = iter(
        [
            ("head_create", lambda: zlog.Log.create(memory, "orders", width=2).append(b"theirs")),
            ("view_read", lambda: None),  # it is there: LogExists
            ("view_read", lambda: zlog.Log.remove(memory, "orders")),
        ]
    )
    awaited, step = "view_read", lambda: None  # nothing there

    def meanwhile(_: int, method: str) -> None:
        nonlocal awaited, step
        if method == awaited:
            done = step
            awaited, step = next(steps, ("", step))
            done()

    with zlog.Log.open(FaultyStore(memory, meanwhile), "orders", create=True, width=3) as log:
        assert awaited == ""
        assert log.view.live_stripe.width == 3
        assert log.append(b"ours") == 0
