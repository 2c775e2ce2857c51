"""Fixtures of the client's tests: an open store and a log in it, on every host."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import zlog


@pytest.fixture
def store(store_url: str) -> Iterator[zlog.Store]:
    with zlog.connect(store_url) as opened:
        yield opened


@pytest.fixture
def log(store: zlog.Store) -> Iterator[zlog.Log]:
    with zlog.Log.create(store, "orders", width=4, hole_timeout=0.05) as opened:
        yield opened


@pytest.fixture
def memory() -> Iterator[zlog.Store]:
    """A store in memory, for tests that are about the client and not about its host."""
    with zlog.connect("mem://") as opened:
        yield opened
