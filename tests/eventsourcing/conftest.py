"""Logs for recorders of the library eventsourcing."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import zlog

if sys.version_info < (3, 11):  # the library does not exist for it
    collect_ignore_glob = ["test_*.py"]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[zlog.Store]:
    with zlog.connect((tmp_path / "store").as_uri()) as opened:
        yield opened


@pytest.fixture
def log(store: zlog.Store) -> Iterator[zlog.Log]:
    with zlog.Log.create(store, "school", ordering="object", hole_timeout=0.01) as opened:
        yield opened
