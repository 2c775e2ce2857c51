"""Opening a log that is made if it is not there, by any number of clients at once."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import zlog
from zlog import aio

from ..support.threads import at_once
from .faulty import FaultyStore


def test_a_log_is_made_once_and_opened_then(store: zlog.Store) -> None:
    with zlog.Log.open(store, "orders", create=True, width=3, options={"a": "b"}) as log:
        assert log.append(b"first") == 0
        assert (log.view.live_stripe.width, log.view.options["a"]) == (3, "b")
    with zlog.Log.open(store, "orders", create=True, width=5, stripe_records=7) as again:
        assert again.view == log.view  # what is there stays as it is
        assert again.read(0).data == b"first"


def test_the_defaults_are_those_of_create(memory: zlog.Store) -> None:
    opened = zlog.Log.open(memory, "opened", create=True).view
    created = zlog.Log.create(memory, "created").view
    assert opened.live_stripe.width == created.live_stripe.width
    assert opened.options == created.options


@pytest.mark.parametrize(
    "setting", [{"width": 8}, {"stripe_bytes": 1 << 20}, {"stripe_records": 9}, {"options": {}}]
)
def test_how_to_make_a_log_is_said_where_one_may_be_made(
    memory: zlog.Store, setting: dict[str, Any]
) -> None:
    zlog.Log.create(memory, "orders")
    for face in (zlog.Log, aio.Log):
        with pytest.raises(ValueError, match="open it with create=True"):
            face.open(memory, "orders", **setting)
    with pytest.raises(ValueError, match="width"):
        zlog.Log.open(memory, "orders", create=True, width=0)
    with pytest.raises(zlog.LogNotFound):
        zlog.Log.open(memory, "payments")


def test_of_many_threads_one_makes_the_log(store: zlog.Store) -> None:
    count = 8

    def work(number: int) -> tuple[int, int]:
        with zlog.Log.open(store, "orders", create=True, width=4) as log:
            return log.view.log_id, log.append(b"%d" % number)

    ids, positions = zip(*at_once(work, count), strict=True)
    assert len(set(ids)) == 1
    assert sorted(positions) == [*range(count)]


async def test_of_many_tasks_one_makes_the_log(store: zlog.Store) -> None:
    opening = (aio.Log.open(store, "orders", create=True, width=4) for _ in range(8))
    logs = await asyncio.gather(*opening)
    assert len({log.view.log_id for log in logs}) == 1
    for log in logs:
        await log.close()


def test_others_may_make_and_remove_it_meanwhile(memory: zlog.Store) -> None:
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
