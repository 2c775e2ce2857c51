"""A log is used while a client with documented caps attacks it."""

from __future__ import annotations

import errno
import time
from collections.abc import Callable, Iterator
from typing import cast

import pytest

import zlog

from ..support.ceph import CephCluster
from ..system.test_caps import SETS
from .attacks import CAPS, attack


@pytest.fixture
def memory() -> Iterator[zlog.Store]:
    with zlog.connect("mem://") as store:
        yield store


def test_the_user_of_an_attacked_log_notices_nothing(memory: zlog.Store) -> None:
    log = zlog.Log.create(memory, "attacked", width=2, unit=2)
    hostile = zlog.Log.open(memory, "attacked")
    assert attack(log, hostile, 2, time.monotonic() + 1) == []


def test_the_same_on_ceph(ceph_cluster: CephCluster, user: Callable[..., str]) -> None:
    before = ceph_cluster.pids()
    caps = (f"allow pool zlog class zlog {method}" for method in SETS[CAPS])
    with (
        zlog.connect(user("allow pool zlog class zlog", name="owner")) as own,
        zlog.connect(user(*caps, name="hostile")) as hostile,
    ):
        log = zlog.Log.create(own, "attacked", width=2)
        attacker = zlog.Log.open(hostile, "attacked")
        assert attack(log, attacker, 1, time.monotonic() + 2) == []
    assert ceph_cluster.pids() == before


class Refusing:
    """A store that refuses one method."""

    def __init__(self, store: zlog.Store, method: str) -> None:
        self._store = store
        self._method = method

    def execute(
        self, object: str, method: str, payload: bytes, timeout: float | None = None
    ) -> tuple[int, bytes]:
        if method == self._method:
            return -errno.EPERM, b""
        return self._store.execute(object, method, payload, timeout)

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)


@pytest.mark.parametrize(
    ("method", "moves"),
    [
        ("tail_raise", ["_raise_tail"]),
        ("fill", ["_fill"]),
        ("write", ["_write", "_forge"]),
        ("seal", ["_seal", "_guess"]),
    ],
)
def test_an_attack_that_is_refused_is_noticed(
    memory: zlog.Store, method: str, moves: list[str]
) -> None:
    refusing = cast("zlog.Store", Refusing(memory, method))
    log = zlog.Log.create(memory, "attacked", width=2)
    wrong = attack(log, zlog.Log.open(refusing, "attacked"), 1, time.monotonic())
    assert wrong == [f"no {move} of the attacker ever succeeded" for move in moves]
