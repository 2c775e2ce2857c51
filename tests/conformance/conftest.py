"""Options and fixtures of the conformance suite; the stores come from tests/conftest.py."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import uuid4

import pytest

import zlog

from .stored import Door, door_to


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
