"""Fixtures for tests of offloaded stripes: short segments, and no long pauses."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from zlog._layout import offloaded
from zlog.offload import files

from ..client.conftest import small_windows

__all__ = ["small_windows"]


def forget() -> None:
    """Forget what this process has read of files."""
    offloaded._cache.clear()
    files._footers.clear()


@pytest.fixture(autouse=True)
def small_segments(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let each test read its own files."""
    monkeypatch.setattr("zlog.offload._parquet.SEGMENT_ROWS", 4)
    monkeypatch.setattr("zlog._layout.offloaded._PAUSE_SECONDS", 0.05)
    forget()
    yield
    forget()
