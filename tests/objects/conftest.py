"""A log to put spaces in: in memory, since what spaces do is the same on every host."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import zlog
from zlog.objects import Space


@pytest.fixture
def log() -> Iterator[zlog.Log]:
    """An empty log in memory."""
    with zlog.connect("mem://") as store, zlog.Log.create(store, "log", hole_timeout=0.05) as log:
        yield log


@pytest.fixture
def space(log: zlog.Log) -> Iterator[Space]:
    """A new space."""
    with Space.open(log, "space") as space:
        yield space


@pytest.fixture
def other(log: zlog.Log, space: Space) -> Iterator[Space]:
    """Another client of the same space."""
    assert space.name == "space"
    with (
        zlog.Log.open(log.store, "log", hole_timeout=0.05) as own,
        Space.open(own, "space") as opened,
    ):
        yield opened
