"""Hints speak of the command line, and of the log at hand."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

import zlog
from zlog._base.refusals import refused_call
from zlog.cli.hints import hint_of

from ..client.faulty import Refusing
from .conftest import Inside


def test_hints_name_only_options_and_commands(inside: Inside, orders: zlog.Log) -> None:
    orders.append(b"x")
    orders.trim(0)
    assert "zlog read orders P:" in inside("read", "orders", "0").err
    orders.cursor("slow", create=0)
    held = inside("trim", "orders", "--to", "1").err
    assert "zlog cursor ls orders" in held
    assert "past_cursors" not in held
    assert "--max-bytes" in hint_of(zlog.EntryTooLarge("x"), None)
    assert "log.promote" not in hint_of(zlog.AppendRefused("x"), None)
    assert hint_of(zlog.Invalidated("x", hint="own"), None) == "own"


def test_messages_name_log_and_debug_names_method(
    inside: Inside, orders: zlog.Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = Refusing(orders.store, "head_create")
    monkeypatch.setattr(zlog, "connect", lambda *_, **__: refused)
    monkeypatch.setattr(refused, "close", lambda: None)
    told = inside("create", "down")
    assert (told.code, told.err.startswith("zlog: cannot create log 'down': ")) == (7, True)
    assert "head_create" not in told.err
    told = inside("--debug", "create", "down")
    assert "zlog: call: head_create on zlog.down.head\n" in told.err


def test_hint_suggests_sequencer_only_if_needed(inside: Inside) -> None:
    result = inside("--timeout", "1e-9", "append", "orders", stdin=b"x\n")
    assert result.code == 6
    assert "--timeout" in result.err
    assert "zlog seqr" not in result.err
    assert "zlog seqr" in hint_of(zlog.SequencerTimeout("x"), None)


def test_store_file_errors_are_not_timeouts(tmp_path: Path) -> None:
    inside = Inside((tmp_path / "broken").as_uri())
    inside.ok("create", "first")
    (tmp_path / "broken" / "sequencer").unlink()
    (tmp_path / "broken" / "sequencer").mkdir()
    error, hint = inside("create", "orders").err.splitlines()
    assert error.endswith("Is a directory")
    assert hint == "zlog: hint: `zlog doctor` examines the store's directory."


def test_slow_store_hint_suggests_timeout(inside: Inside, monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(*_: object, **__: object) -> None:
        raise refused_call(-errno.ETIMEDOUT, "tail_raise", "zlog.orders.head")

    monkeypatch.setattr(zlog.Log, "tail", slow)
    result = inside("tail", "orders")
    assert result.code == 6
    assert "cannot find the tail of log 'orders': the store did not answer in time\n" in result.err
    assert "--timeout is too short" in result.err


def test_full_store_hint_suggests_removal(inside: Inside, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise zlog.StoreUnavailable("trim: the store is full", hint="Trim logs.")

    monkeypatch.setattr(zlog.Log, "trim_to", full)
    result = inside("trim", "orders", "--to", "1")
    assert result.code == 6
    assert "zlog rm" in result.err


def test_messages_are_short_without_control_characters(inside: Inside) -> None:
    assert len(inside("append", "orders", "x" * 100_000).err) < 3000
    assert "'" in inside("objects", "put", "orders", "m", "k", "[" * 100_000).err
    found = inside("append", "orders", "/nowhere/\x1b[31m").err
    assert ("\x1b" in found, r"/nowhere/\x1b[31m" in found) == (False, True)


def test_memory_store_warns_on_terminal(inside: Inside, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("zlog.cli.output.stderr_is_terminal", lambda: True)
    assert "deleted when this command ends" in inside("--store", "mem://", "ls").err
    assert inside("ls").err == ""
