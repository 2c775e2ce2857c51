"""Followers without a sequencer to wait at are woken. Where they are not, they look."""

from __future__ import annotations

import errno
import threading
import time
from collections.abc import Callable, Iterator

import pytest

import zlog
from zlog._base.names import wake_object
from zlog.testing import Fate, FaultyStore, StoreCall

from ..support.stores import listed
from ..support.waiting import wait_until
from .faulty import WithoutSequencer

SOON_SECONDS = 0.2
"""Before which a follower does not look again, if it was told in time until now."""


class Following:
    """Follows a log in a thread; counts what its store is asked."""

    def __init__(self, store: zlog.Store, plan: Callable[[StoreCall], Fate | None]) -> None:
        self.calls: list[str] = []
        self.arrived: dict[int, float] = {}
        self._more = threading.Condition()
        self._plan = plan
        judged = FaultyStore(store, self._judge, share_sequencer=False)
        self._log = zlog.Log.open(judged, "orders")
        self._over = self._gone = False
        self._thread = threading.Thread(target=self._follow)
        self._thread.start()

    def _judge(self, call: StoreCall) -> Fate:
        self.calls.append(call.method)
        return self._plan(call) or Fate()

    def _follow(self) -> None:
        try:
            for item in self._log.follow():
                with self._more:
                    self.arrived[item.position] = time.monotonic()
                    self._more.notify_all()
                if self._over:
                    return
        except zlog.LogNotFound:
            self._gone = True

    def wait(self, position: int) -> float:
        """When an entry came."""
        with self._more:
            assert self._more.wait_for(lambda: position in self.arrived, 10)
            return self.arrived[position]

    def wait_until_it_is_heard(self) -> None:
        """Wait until it watches."""
        wakes = self._log._client.positions._notifications
        wait_until(lambda: wakes.number > 0)

    def wait_until_the_log_is_gone(self) -> None:
        """Wait until it finds that."""
        self._thread.join(10)
        assert self._gone
        self._log.close()

    def assert_notified(self, append: Callable[[bytes], object]) -> None:
        """Append entries: all but few come at once, as soon as the writer knows of the follower."""
        late = 0
        for position in range(8):
            append(b"x")
            came = time.monotonic()
            late += self.wait(position) - came > SOON_SECONDS
            time.sleep(0.02 if position else 1.1)
        assert late < 3

    def end(self, append: Callable[[], object]) -> None:
        self._over = True
        append()
        self._thread.join()
        self._log.close()


def other(store: zlog.Store, store_url: str) -> zlog.Store:
    """The store, opened once more if it can be."""
    return store if store_url == "mem://" else zlog.connect(store_url)


@pytest.fixture
def follow(store: zlog.Store, store_url: str) -> Iterator[Callable[..., Following]]:
    stores = []

    def start(plan: Callable[[StoreCall], Fate | None] = lambda _: None) -> Following:
        stores.append(other(store, store_url))
        return Following(stores[-1], plan)

    yield start
    for each in stores:
        each.close()


def test_notified_follower_rarely_polls(log: zlog.Log, follow: Callable[..., Following]) -> None:
    with log.writer() as writer:
        following = follow()
        following.assert_notified(writer.append)
        del following.calls[:]
        time.sleep(1.5)
        assert len(following.calls) < 15, following.calls  # ten a second, at the very most
        assert following.calls.count("max_position") <= 2, following.calls
        following.end(lambda: writer.append(b"the last"))


def test_follower_without_notifications_polls(
    log: zlog.Log, follow: Callable[..., Following]
) -> None:
    """They are refused, or lost."""
    for refused in (True, False):

        def plan(call: StoreCall, refused: bool = refused) -> Fate | None:
            if call.method != "watch":
                return None
            return Fate(reply=0.0, error=errno.EPERM) if refused else Fate(None, None)

        with log.writer() as writer:
            first = writer.start
            following = follow(plan)
            for position in range(first, first + 3):
                time.sleep(0.3)
                writer.append(b"x")
                assert following.wait(position) - time.monotonic() < 0.5
            following.end(lambda: writer.append(b"the last"))
            assert following.calls.count("watch") == 1 or not refused


def test_log_without_sequencer_notifies_followers(
    store: zlog.Store, follow: Callable[..., Following]
) -> None:
    log = zlog.Log.create(WithoutSequencer(store), "orders", width=2)
    following = follow()
    following.assert_notified(log.append)
    following.end(lambda: log.append(b"the last"))


def test_removed_log_leaves_no_notification_object(
    store: zlog.Store, store_url: str, follow: Callable[..., Following]
) -> None:
    log = zlog.Log.create(WithoutSequencer(store), "orders", width=2)
    following = follow()
    following.wait_until_it_is_heard()
    on_ceph = store_url.startswith("ceph://")
    assert (wake_object("orders") in listed(store, "zlog.")[0]) == on_ceph
    assert zlog.Log.list(store) == ["orders"]
    assert list(log.check()) == []
    zlog.Log.remove(store, "orders")
    following.wait_until_the_log_is_gone()
    left = listed(store, "zlog.")[0]
    assert [name for name in left if not name.startswith("zlog.directory")] == []
