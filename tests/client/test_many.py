"""`follow_many` follows several logs at once, and continues where its token says."""

from __future__ import annotations

import asyncio
import itertools
import json
import signal
import threading
import time
from collections.abc import AsyncIterator, Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

import zlog
from zlog import Entry, LogNotFound, StoreTimeout, StoreUnavailable, follow_many
from zlog.aio.many import Order

SOON = {"discover": 0.02}


@pytest.fixture
def store() -> Iterator[zlog.Store]:
    with zlog.connect("mem://") as store:
        yield store


def append(store: zlog.Store, name: str, *entries: str) -> None:
    with zlog.Log.open(store, name, create=True, width=2) as log:
        log.append_many([entry.encode() for entry in entries])


def take(following: zlog.Following, count: int) -> list[tuple[str, str]]:
    found = []
    for name, item in itertools.islice(following, count):
        assert isinstance(item, Entry)
        found.append((name, item.data.decode()))
    return found


def test_token_continues_after_last_item(store: zlog.Store) -> None:
    append(store, "a", "a0", "a1", "a2")
    append(store, "b", "b0", "b1", "b2")
    with follow_many(store, ["a", "b"], start="earliest") as following:
        assert following.logs == ["a", "b"]
        before = take(following, 3)
        token = following.token
    append(store, "a", "a3")
    with follow_many(store, ["a", "b"], token=token, start="latest") as following:
        after = take(following, 4)
    for name in "ab":
        own = [data for log, data in before + after if log == name]
        assert own == [f"{name}{number}" for number in range(3 + (name == "a"))]


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        ("latest", []),
        (-1, ["a2"]),
        (1, ["a1", "a2"]),
        (datetime(2020, 1, 1, tzinfo=timezone.utc), ["a0", "a1"]),
    ],
    ids=str,
)
def test_start(store: zlog.Store, start: Any, expected: list[str]) -> None:
    append(store, "a", "a0", "a1", "a2")
    with follow_many(store, ["a"], start=start) as following:
        append(store, "a", "new")
        assert [data for _, data in take(following, len(expected) + 1)][: len(expected)] == expected


def test_pattern_finds_new_and_drops_removed_logs(store: zlog.Store) -> None:
    append(store, "web-1", "old")
    append(store, "db", "other")
    with follow_many(store, "web-*", **SOON) as following:
        append(store, "web-2", "x", "y")
        assert take(following, 2) == [("web-2", "x"), ("web-2", "y")]
        zlog.Log.remove(store, "web-2")
        append(store, "web-1", "z")
        assert take(following, 1) == [("web-1", "z")]
        append(store, "web-2", "again")
        assert take(following, 1) == [("web-2", "again")]
        token = following.token
    zlog.Log.remove(store, "web-1")
    append(store, "web-1", "recreated")
    with follow_many(store, "web-*", token=token) as following:
        assert take(following, 1) == [("web-1", "recreated")]


def test_recreated_log_is_read_from_its_start(store: zlog.Store) -> None:
    append(store, "a", "x", "y")
    with follow_many(store, "*", start="earliest", **SOON) as following:
        assert take(following, 1) == [("a", "x")]
        zlog.Log.remove(store, "a")
        while following.logs:
            time.sleep(0.01)
        append(store, "a", "new")
        while not following.logs:
            time.sleep(0.01)
        assert take(following, 1) == [("a", "y")]  # was read ahead
        token = following.token
    with follow_many(store, "*", token=token) as following:
        assert take(following, 1) == [("a", "new")]


def test_it_works_inside_an_event_loop(store: zlog.Store) -> None:
    """As in a notebook."""

    async def main() -> None:
        append(store, "a", "x")
        with follow_many(store, ["a"], start="earliest") as following:
            assert take(following, 1) == [("a", "x")]

    asyncio.run(main())


def test_items_are_sorted_by_time(store: zlog.Store) -> None:
    for number in range(6):
        append(store, "ab"[number % 2], str(number))
        time.sleep(0.002)
    with follow_many(store, "[ab]", start="earliest", order="time", within=0.3) as following:
        assert [data for _, data in take(following, 6)] == list("012345")


def test_log_with_backlog_does_not_delay_others(store: zlog.Store) -> None:
    append(store, "long", *map(str, range(20_000)))
    append(store, "short", "x")
    with follow_many(store, ["long", "short"], start="earliest") as following:
        assert ("short", "x") in take(following, 4096)


def test_many_waiting_logs_need_few_threads(tmp_path: Path) -> None:
    with zlog.connect((tmp_path / "store").as_uri()) as store:
        names = [f"log-{number}" for number in range(40)]
        for name in names:
            append(store, name, "old")
        before = threading.active_count()
        with follow_many(store, names) as following:
            for name in reversed(names):
                append(store, name, "new")
                assert take(following, 1) == [(name, "new")]
            assert threading.active_count() < before + 30


def test_named_log_must_exist(store: zlog.Store) -> None:
    append(store, "a", "x")
    with pytest.raises(LogNotFound), follow_many(store, ["a", "none"]):
        pass
    with follow_many(store, ["a"]) as following:
        zlog.Log.remove(store, "a")
        for _ in range(2):
            with pytest.raises(LogNotFound):
                next(following)


def test_interrupted_call_loses_nothing(store: zlog.Store) -> None:
    append(store, "a")
    with follow_many(store, ["a"]) as following:
        signal.signal(signal.SIGALRM, signal.default_int_handler)
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(KeyboardInterrupt):
            next(following)
        append(store, "a", "x", "y")
        assert take(following, 2) == [("a", "x"), ("a", "y")]


@pytest.mark.parametrize(
    "options", [{"token": "{}"}, {"token": "x"}, {"token": "[1]"}, {"order": "size"}], ids=str
)
def test_invalid_arguments_are_refused(store: zlog.Store, options: dict[str, Any]) -> None:
    with (
        pytest.raises(ValueError, match=r"token is not one|order must be"),
        follow_many(store, "*", **options),
    ):
        pass


def test_token_names_only_followed_logs(store: zlog.Store) -> None:
    append(store, "a", "x")
    with follow_many(store, "*") as following:
        token = following.token
    assert list(json.loads(token)["logs"]) == ["a"]
    zlog.Log.remove(store, "a")
    with follow_many(store, "*", token=token) as following:
        assert json.loads(following.token)["logs"] == {}


def test_entries_that_wait_are_sorted_too(store: zlog.Store) -> None:
    for name, data in (("b", "0"), ("a", "1"), ("b", "2")):
        append(store, name, data)
        time.sleep(0.002)
    with follow_many(store, "*", start="earliest", order="time", within=0.2) as following:
        assert take(following, 1) == [("b", "0")]
        for name, data in (("a", "3"), ("b", "4"), ("a", "5")):
            append(store, name, data)
            time.sleep(0.002)
        time.sleep(0.3)  # longer than items are held back
        assert [data for _, data in take(following, 5)] == list("12345")


@pytest.mark.parametrize("order", ["arrival", "time"])
def test_error_of_one_log_ends_iterator(
    store: zlog.Store, order: Order, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object, **__: object) -> AsyncIterator[Entry]:
        raise StoreTimeout("too late")
        yield

    append(store, "a", "x")
    monkeypatch.setattr("zlog.aio.Log.follow", fail)
    with follow_many(store, ["a"], order=order) as following, pytest.raises(StoreTimeout):
        next(following)


def test_closed_iterator_is_refused(store: zlog.Store) -> None:
    append(store, "a", "x")
    with follow_many(store, "*") as following:
        pass
    with pytest.raises(StoreUnavailable, match="is closed"):
        next(following)

    async def main() -> None:
        following = await zlog.aio.follow_many(store, "*")
        waiting = asyncio.ensure_future(anext(following))
        await asyncio.sleep(0)
        await following.close()
        with pytest.raises(StoreUnavailable, match="is closed"):
            await waiting

    asyncio.run(main())
