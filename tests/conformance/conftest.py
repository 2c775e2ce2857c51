"""Options and fixtures of the conformance suite; the stores come from tests/conftest.py."""

from __future__ import annotations

from uuid import uuid4

import pytest


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
