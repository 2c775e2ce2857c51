"""Logs with MACs on the command line: keys come from files, and stay out of what is shown."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import zlog

from ..client import planted
from ..support.logs import data_of
from .conftest import Cli, Inside

KEY = b"0123456789abcdef not to be seen!"


@pytest.fixture
def key(tmp_path: Path) -> str:
    """A file that has a key."""
    path = tmp_path / "key"
    path.write_bytes(KEY)
    return str(path)


def test_log_with_key_is_created_and_read(
    inside: Inside, orders: zlog.Log, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside.ok("create", "signed", "--mac-key-file", key)
    inside.ok("append", "signed", "--mac-key-file", key, stdin=b"a\nb\n")
    result = inside("read", "signed")
    assert (result.code, result.out) == (9, b"")
    assert "'signed'" in result.err
    assert "--mac-key-file FILE, or $ZLOG_MAC_KEY_FILE" in result.err
    monkeypatch.setenv("ZLOG_MAC_KEY_FILE", key)
    inside.ok("append", "signed", "--exclusive", stdin=b"c\n")
    assert inside.ok("read", "signed") == b"a\nb\nc\n"
    assert inside.ok("tail", "signed", "-n", "1") == b"c\n"
    assert inside.ok("tail", "signed", "--follow", "--count", "3", "--since-start") == b"a\nb\nc\n"
    assert inside.ok("check", "signed") == b""
    assert inside("read", "orders").code == 9  # which has none
    inside.ok("create", "signed", "--exist-ok")
    assert inside("create", "orders", "--exist-ok").code == 9
    export = inside.ok("export", "signed")
    assert KEY not in export
    inside.ok("import", "copy", stdin=export)
    assert inside.ok("read", "copy") == b"a\nb\nc\n"
    monkeypatch.delenv("ZLOG_MAC_KEY_FILE")
    view = zlog.Log.open(orders.store, "signed").view
    assert view.mac is not None
    assert view.mac.key_id in inside.ok("info", "signed").decode()
    assert json.loads(inside.ok("info", "signed", "--json"))["mac_key_id"] == view.mac.key_id
    assert json.loads(inside.ok("info", "orders", "--json"))["mac_key_id"] is None
    assert b"signed" in inside.ok("ls", "--long")
    inside.ok("trim", "signed", "--to", "1")
    result = inside("check", "signed", "--json")
    assert result.code == 0
    assert "MACs were not checked" in result.err
    assert json.loads(result.out)["summary"]["forged"] is None
    assert KEY.decode() not in result.err + inside.ok("views", "signed", "--json").decode()


def test_forged_entries_are_reported(inside: Inside, orders: zlog.Log, key: str) -> None:
    inside.ok("create", "signed", "--width", "1", "--mac-key-file", key)
    with zlog.Log.open(orders.store, "signed", mac_key=KEY) as log:
        log.append_many([b"a", b"b"])
        planted.remake(log, log.view.object_of(0), epoch=log.view.epoch)
        planted.write(log, 0, b"the store's own.", 0, b"forged")
        planted.write(log, 1, b"the store's own.", 1, b"forged")
    result = inside("read", "signed", "--mac-key-file", key)
    assert (result.code, result.out) == (1, b"")
    assert "gap: positions 0 to 1: forged" in result.err
    assert "lost or forged" in result.err
    result = inside("read", "signed", "0", "--mac-key-file", key)
    assert result.code == 1
    assert "was made with the log's key" in result.err
    result = inside("check", "signed", "--mac-key-file", key)
    assert result.code == 1
    assert result.out.startswith(b"forged: positions 0 to 1 in ")


def test_mirror_has_its_own_key(inside: Inside, orders: zlog.Log, key: str, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_bytes(bytes(32))
    inside.ok("create", "signed", "--mac-key-file", key)
    inside.ok("append", "signed", "--mac-key-file", key, "-m", "a")
    words = ("mirror", "signed", "--to", inside.url, "--mac-key-file", key)
    inside.ok(*words, "--as", "same")
    inside.ok(*words, "--as", "own", "--target-mac-key-file", str(other))
    for name, own in (("same", KEY), ("own", bytes(32))):
        with zlog.Log.open(orders.store, name, mac_key=own) as log:
            assert data_of(log.read_range()) == [b"a"]


def test_invalid_key_file_is_reported(cli: Cli, tmp_path: Path) -> None:
    short = tmp_path / "short"
    short.write_bytes(b"too short")
    result = cli("create", "signed", "--mac-key-file", str(short))
    assert result.code == 2
    assert "a key has 16 to 4096 bytes, not 9" in result.err
    assert "too short" not in result.err
    assert cli("create", "signed", "--mac-key-file", str(tmp_path / "missing")).code == 2
    cli.environment["ZLOG_MAC_KEY_FILE"] = str(tmp_path / "missing")
    result = cli("create", "signed")
    assert result.code == 1
    assert "missing: No such file or directory" in result.err
