"""Fixtures of the tests of replicas: a store that keeps three of each object, and a log in it."""

from __future__ import annotations

import pytest

from .replicated import Replicated, with_log


@pytest.fixture
def store() -> Replicated:
    """A store that keeps three replicas of each object."""
    return Replicated()


@pytest.fixture
def stripe(store: Replicated) -> str:
    """The name of the one object of a log in it."""
    return with_log(store)
