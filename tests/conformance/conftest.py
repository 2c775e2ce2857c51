"""Options and fixtures of the conformance suite; the stores come from tests/conftest.py."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import uuid4

import pytest

import zlog

from .damage import make, make_head
from .objects import Head, Stripe
from .stored import Content, Door, door_to


def pytest_addoption(parser: pytest.Parser) -> None:
    """Offer to write the hosts' answers into the transcripts."""
    parser.addoption(
        "--rewrite-transcripts",
        action="store_true",
        help="put what a host answers into testdata/*.txt (when run as `pytest tests/conformance`)",
    )


@pytest.fixture
def rewrite_transcripts(pytestconfig: pytest.Config) -> bool:
    """Whether transcripts are to be rewritten; the option is only known in runs of this folder."""
    return bool(pytestconfig.getoption("--rewrite-transcripts", default=False))


@pytest.fixture
def prefix() -> str:
    """The start of object names that no other test uses."""
    return f"conformance.{uuid4().hex[:12]}"


@pytest.fixture
def door(store: zlog.Store) -> Iterator[Door]:
    """The way to the stored bytes, past the class; the embedded store has none."""
    with door_to(store) as opened:
        yield opened


@pytest.fixture
def stripe(store: zlog.Store, prefix: str) -> Stripe:
    """A stripe object with records of every kind; see `damage`."""
    return make(store, prefix)


@pytest.fixture
def sound(stripe: Stripe, door: Door) -> Content:
    """What that object stores."""
    return door.load(stripe.name)


@pytest.fixture
def head(store: zlog.Store, prefix: str) -> Head:
    """A head with two views."""
    return make_head(store, prefix)
