"""Watches: every change, once, in order, from wherever one begins."""

from __future__ import annotations

import threading
from itertools import islice
from typing import Any

import pytest

import zlog
from zlog.objects import Change, Event, PastLost, Space


def changes(watch: Any, count: int) -> list[tuple[str, Any, Any, bool]]:
    """The next changes, without their positions."""
    found: list[Change] = []
    while len(found) < count:
        found += next(watch).changes
    return [(*each,) for each in found]


def test_watch_filters_by_key_and_prefix(space: Space, other: Space) -> None:
    one = other.map("map").watch(key="ab")
    some = other.map("map").watch(prefix="a")
    all_ = other.watch()
    position = space.map("map").put_many({"a": 1, "ab": 2, "b": 3})
    space.map("map").delete("ab")
    space.map("map").delete("ab")
    space.queue("queue").push("x")
    space.queue("queue").pop()
    space.counter("counter").add(3)
    space.set("set").add("ab")
    space.register("register").set([1])
    with space.lock("lock").acquire("me", keep=False) as held:
        pass
    assert next(one) == Event(position, (Change("map", "ab", 2),))
    assert changes(one, 1) == [("map", "ab", None, True)]
    assert changes(some, 3) == [
        *(("map", "a", 1, False), ("map", "ab", 2, False)),
        ("map", "ab", None, True),
    ]
    found = changes(all_, 11)
    assert found[3:9] == [
        ("map", "ab", None, True),
        ("queue", None, "x", False),
        ("queue", None, "x", True),
        ("counter", None, 3, False),
        ("set", "ab", True, False),
        ("register", None, [1], False),
    ]
    assert [held.token, None] == [each[2] and each[2].token for each in found[9:]]


def test_lagging_watch_receives_all_events(space: Space, other: Space) -> None:
    watch = other.watch("map", events=3)
    expected = []
    for i in range(40):
        space.map("map").put(f"{i}", i)
        expected.append(("map", f"{i}", i, False))
        if i % 15 == 0:
            other.sync()
        if i == 20:
            space.checkpoint()
    other.sync()
    assert len(watch._inner._events) == 3
    assert changes(watch, 40) == expected
    space.map("map").put("more", 1)
    assert changes(watch, 1) == [("map", "more", 1, False)]


@pytest.mark.parametrize("start", range(0, 30, 3))
def test_watch_starts_at_any_position(space: Space, start: int) -> None:
    events = [Event(space.map("map").put("k", i), (Change("map", "k", i),)) for i in range(9)]
    space.checkpoint()
    space.queue("queue").push(1)
    with space.transaction() as txn:
        txn.map("map").put("k", "last")
        txn.map("map").put("j", "last")
    last = (Change("map", "k", "last"), Change("map", "j", "last"))
    events.append(Event(space.sync() - 1, last))
    expected = [event for event in events if event.position >= start]
    watch = space.map("map").watch(start=start)
    found = [*islice(watch, len(expected))]
    assert found == expected
    if expected:
        assert watch.position == found[-1].position + 1
        later = space.map("map").watch(start=found[0].position + 1)
        assert [*islice(later, len(expected) - 1)] == expected[1:]


def test_watch_starts_at_future_position(space: Space) -> None:
    watch = space.watch("map", start=space.map("map").put("key", 0) + 2)
    later = [space.map("map").put("key", i) for i in range(3)]
    assert [event.position for event in islice(watch, 2)] == later[1:]


def test_idle_watch_reports_trim(space: Space, other: Space) -> None:
    other.map("map").put("key", 0)
    watch = other.watch()
    heard: list[Exception] = []

    def listen() -> None:
        try:
            next(watch)
        except PastLost as error:
            heard.append(error)

    space.map("map").put("key", 1)
    start = space.checkpoint(trim=True)
    other.sync()
    thread = threading.Thread(target=listen, daemon=True)
    thread.start()
    thread.join(20)
    (lost,) = heard
    assert isinstance(lost, PastLost)
    assert lost.resume == start


def test_watch_position_advances_without_events(space: Space, other: Space) -> None:
    watch = other.watch("map")
    thread = threading.Thread(target=lambda: changes(watch, 1))
    thread.start()
    for _ in range(5):
        space.counter("other").add(1)
    before = space.sync()
    while watch.position < before:
        pass
    space.map("map").put("key", 1)
    thread.join()
    assert watch.position > before


def test_callback_receives_events_until_close(space: Space, other: Space) -> None:
    heard: list[Event] = []
    done = threading.Event()

    def hear(event: Event) -> None:
        heard.append(event)
        if len(heard) == 10:
            done.set()

    watch = other.watch("map")
    watch.call(hear)
    positions = [space.map("map").put("key", i) for i in range(10)]
    assert done.wait(30)
    assert [event.position for event in heard] == positions
    watch.close()
    ended = other.watch()
    other.close()
    assert [*ended] == []


def test_closed_watch_ends_while_waiting(log: zlog.Log, monkeypatch: pytest.MonkeyPatch) -> None:
    with zlog.Log.open(log.store, "log") as own, Space.open(own, "space") as opened:
        watch = opened.watch()
        replica = watch._inner._replica
        wait = replica.wait

        async def closed_meanwhile(seen: int) -> None:
            opened.close()
            own.close()
            await wait(seen)

        monkeypatch.setattr(replica, "wait", closed_meanwhile)
        assert [*watch] == []


def test_watch_refuses_key_with_prefix(space: Space) -> None:
    with pytest.raises(ValueError, match="or a prefix"):
        space.watch("map", key="a", prefix="b")


def test_invalid_watch_arguments_are_refused(space: Space) -> None:
    with pytest.raises(ValueError, match="must be at least 1"):
        space.watch(events=0)
    with pytest.raises(TypeError, match="a key must be a str"):
        space.map("map").watch(key=5)  # type: ignore[arg-type]
