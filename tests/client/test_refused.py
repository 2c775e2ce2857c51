"""A client that the sequencer refuses: it may read, it may not append, and it harms no other."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

import zlog
from zlog.seqr.security import Security

from ..support.local_sequencer import LocalSequencer

TOKEN = "0123-a-token-for-tests-4567"
VARIABLE = "ZLOG_SEQUENCER_TOKEN_FILE"


@pytest.fixture
def token_file(tmp_path: Path) -> str:
    path = tmp_path / "token"
    path.write_text(TOKEN)
    return str(path)


@pytest.fixture
def sequencer(plain: zlog.Store, token_file: str) -> Iterator[LocalSequencer]:
    sequencer = LocalSequencer(plain, security=Security(token_file=token_file))
    sequencer.announce()
    yield sequencer
    sequencer.stop()


@pytest.fixture
def log(
    plain: zlog.Store,
    sequencer: LocalSequencer,
    token_file: str,
    monkeypatch: pytest.MonkeyPatch,
) -> zlog.Log:
    """A log that the sequencer serves, of a client that knows the token."""
    with monkeypatch.context() as patch:
        patch.setenv(VARIABLE, token_file)
        log = zlog.Log.create(plain, "orders", width=2)
        assert log.append(b"first") == 0
    assert log.view.sequencer == sequencer.address
    return log


def test_refused_append_fails_immediately(
    plain: zlog.Store, log: zlog.Log, sequencer: LocalSequencer
) -> None:
    with zlog.Log.open(plain, "orders", sequencer_timeout=0.5) as refused:
        for _ in range(20):
            with pytest.raises(zlog.SequencerRefused, match="requires a token"):
                refused.append(b"x")
    assert log.append(b"second") == 1
    assert log.view.sequencer == sequencer.address
    assert len(log.views()) == 2  # as it was made, and with the sequencer


def test_refused_client_cannot_bypass_sequencer(
    plain: zlog.Store,
    sequencer: LocalSequencer,  # noqa: ARG001  # it is on offer
) -> None:
    log = zlog.Log.create(plain, "audit")
    for _ in range(3):
        with pytest.raises(zlog.SequencerRefused, match="requires a token"):
            log.append(b"x")
    assert log.tail() == 0


def test_refused_client_reads_and_warns_once(
    plain: zlog.Store, log: zlog.Log, caplog: pytest.LogCaptureFixture
) -> None:
    log.append(b"second")
    refused = zlog.Log.open(plain, "orders")
    with caplog.at_level(logging.WARNING, "zlog"):
        assert refused.tail() == 2
        assert [entry.data for entry in refused.read_range(0)] == [b"first", b"second"]
        assert refused.tail() == 2
    (line,) = [record.getMessage() for record in caplog.records]
    assert "read without its sequencer" in line
    assert TOKEN not in line


def test_refused_client_is_admitted_after_token_fix(
    plain: zlog.Store,
    log: zlog.Log,  # noqa: ARG001  # has a sequencer
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("zlog._sequencer.dialing._REFUSED_SECONDS", 0.0)
    own = tmp_path / "own"
    monkeypatch.setenv(VARIABLE, str(own))
    client = zlog.Log.open(plain, "orders")
    with pytest.raises(zlog.SequencerRefused, match="can't use the token"):
        client.append(b"x")
    own.write_text(TOKEN[::-1])
    with pytest.raises(zlog.SequencerRefused, match="does not use this client's token"):
        client.append(b"x")
    own.write_text(TOKEN)
    assert client.append(b"second") == 1
