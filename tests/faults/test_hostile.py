"""Random calls of the class from several threads at once, at memory and at live OSDs."""

from __future__ import annotations

import contextlib
import errno
import time
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest

import zlog

from ..conformance import replies
from ..conformance.messages import METHODS
from ..support.ceph import CephCluster, ClusterSpec
from ..support.programs import run_module
from .attacks import attack
from .hostile import Bombardment, bombard, bombard_cluster

SECONDS = 5.0
CALLS_MIN = 500


def assert_tried(found: Bombardment) -> None:
    """Every method was called, and most of them did something for some request."""
    assert {method for method, _ in found.answers} == {*METHODS}
    done = {method for method, code in found.answers if code == 0}
    assert len(done) > len(METHODS) / 2
    assert found.calls > CALLS_MIN


@pytest.mark.parametrize(
    "ceph_cluster", [ClusterSpec("memstore"), ClusterSpec("bluestore")], indirect=True, ids=str
)
def test_an_osd_survives_random_calls(ceph_cluster: CephCluster) -> None:
    found = bombard_cluster(ceph_cluster, 1, SECONDS)
    assert found.wrong == []
    assert_tried(found)


@pytest.fixture
def memory() -> Iterator[zlog.Store]:
    with zlog.connect("mem://") as store:
        yield store


@pytest.mark.parametrize("host", ["mem", "file"])
def test_a_store_in_this_process_survives_random_calls(
    memory: zlog.Store, host: str, tmp_path: Path
) -> None:
    opened = memory if host == "mem" else zlog.connect(tmp_path)
    with opened as store:
        found = bombard(lambda: contextlib.nullcontext(store), 2, 1.0)
    assert found.wrong == []
    assert_tried(found)


class Broken:
    """A store that does what it should, but for one method."""

    def __init__(self, store: zlog.Store, code: int, reply: bytes, method: str = "trim_to") -> None:
        self._store = store
        self._method = method
        self._answer = code, reply

    def execute(
        self, object: str, method: str, payload: bytes, timeout: float | None = None
    ) -> tuple[int, bytes]:
        if method == self._method:
            return self._answer
        return self._store.execute(object, method, payload, timeout)

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)


@pytest.mark.parametrize(
    ("code", "reply", "words"),
    [
        (-errno.ENOMEM, b"", "not documented"),
        (-errno.EINVAL, b"x", "with a reply"),
        (99, b"", "no code"),
        (0, b"x" * (replies.WRITE_REPLY_BYTES_MAX + 1), "too long"),
    ],
)
def test_a_wrong_answer_is_noticed(
    memory: zlog.Store, code: int, reply: bytes, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.faults.hostile.door_to", lambda _: _door(memory))
    broken = cast("zlog.Store", Broken(memory, code, reply))
    found = bombard(lambda: contextlib.nullcontext(broken), 3, 1.0)
    assert found.wrong
    assert all(words in each for each in found.wrong)


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
    refusing = cast("zlog.Store", Broken(memory, -errno.EPERM, b"", method))
    log = zlog.Log.create(memory, "attacked", width=2)
    wrong = attack(log, zlog.Log.open(refusing, "attacked"), 1, time.monotonic())
    assert wrong == [f"no {move} of the attacker ever succeeded" for move in moves]


@contextlib.contextmanager
def _door(store: zlog.Store) -> Iterator[object]:
    from ..conformance.stored import door_to

    with door_to(store) as door:
        yield door


def test_the_program_says_what_came_back(ceph_cluster: CephCluster) -> None:  # noqa: ARG001
    done = run_module("tests.faults", "--hostile", "--minutes", "0.02")
    assert done.returncode == 0, done.stderr
    assert "memstore, seed 1: " in done.stdout
    assert "bluestore, seed 1: " in done.stdout
    assert "EINVAL" in done.stdout
