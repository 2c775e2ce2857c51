"""Fixtures of the sequencer's tests."""

from __future__ import annotations

import pytest

from .fakes import FakeStore, ServerThread


@pytest.fixture
def store():
    return FakeStore()


@pytest.fixture
def server(store):
    """A server over the fake store, in a thread of its own."""
    running = ServerThread(store)
    yield running
    running.stop()
