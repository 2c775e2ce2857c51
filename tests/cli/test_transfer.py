"""export, import, mirror and promote: pipes, exit codes and what is said."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import struct
from pathlib import Path

import pytest

import zlog

from ..support.logs import is_there
from .conftest import Cli, Inside

LINES = b"".join(b"line %d\n" % number for number in range(500))


@pytest.fixture
def there(tmp_path: Path) -> Cli:
    """The command with another store."""
    return Cli((tmp_path / "there").as_uri())


@pytest.mark.parametrize("store_url", ["embedded", "ceph-memstore"], indirect=True)
def test_log_survives_export_and_import(cli: Cli, store_url: str, tmp_path: Path) -> None:
    target, back = Cli(store_url), Cli((tmp_path / "back").as_uri())
    cli.ok("append", "orders", stdin=LINES)
    cli.ok("cursor", "set", "orders", "billing", "7")
    export = cli.ok("export", "orders", "--cursors")
    assert export.startswith(b"zlog-export 1\n")
    target.ok("import", "copy", stdin=export)
    assert target.ok("export", "copy", "--cursors") == export
    back.ok("import", "orders", stdin=target.ok("export", "copy", "--cursors"))
    assert back.ok("export", "orders", "--cursors") == export
    assert back.ok("read", "orders", "--json") == cli.ok("read", "orders", "--json")
    back.ok("append", "orders", stdin=b"more\n")


def test_ranges_are_exported_and_imported(cli: Cli, there: Cli) -> None:
    cli.ok("append", "orders", stdin=LINES)
    there.ok("import", "copy", "--no-promote", stdin=cli.ok("export", "orders", "--to", "200"))
    assert there("append", "copy", stdin=b"x\n").code == 8
    missing = there("import", "copy", stdin=cli.ok("export", "orders", "--from", "300"))
    assert missing.code == 1
    assert "zlog export SOURCE --from 200" in missing.err
    there.ok("import", "copy", stdin=cli.ok("export", "orders", "--from", "-300"))
    assert there.ok("read", "copy") == LINES


@pytest.mark.parametrize(
    ("bounds", "said"),
    [
        (("--from", "501"), "position 501 is beyond the tail (500)"),
        (("--from", "300", "--to", "200"), "the range from 300 to 200 is empty"),
    ],
)
def test_empty_export_range_is_refused(inside: Inside, bounds: tuple[str, ...], said: str) -> None:
    inside.ok("append", "orders", stdin=LINES)
    result = inside("export", "orders", *bounds)
    assert (result.code, result.out) == (2, b"")
    assert said in result.err
    assert inside.ok("export", "orders", "--from", "500") != b""


@pytest.mark.parametrize("data", [LINES, b"a\n", b""])
def test_import_refuses_other_files(inside: Inside, data: bytes) -> None:
    result = inside("import", "copy", stdin=data)
    assert (result.code, "the input is not an export" in result.err) == (1, True)


def test_mirror_copies_log_and_refuses_appends(cli: Cli, there: Cli) -> None:
    cli.ok("append", "orders", stdin=LINES)
    cli.ok("mirror", "orders", "--to", there.url, "--as", "copy", "--width", "5")
    info = json.loads(there.ok("info", "copy", "--json"))
    assert (info["tail"], info["width"]) == (500, 5)
    assert b"none: a mirror takes no appends" in there.ok("info", "copy")
    refused = there("append", "copy", stdin=b"x\n")
    assert (refused.code, "zlog access promote copy" in refused.err) == (8, True)
    there.ok("access", "promote", "copy")
    there.ok("append", "copy", stdin=b"x\n")
    again = cli("mirror", "orders", "--to", there.url, "--as", "copy")
    assert (again.code, "is not a mirror" in again.err) == (1, True)


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signal_ends_following_mirror(cli: Cli, there: Cli, sent: int, code: int) -> None:
    with cli.start("mirror", "orders", "--to", there.url, "--follow") as copier:
        cli.ok("append", "orders", stdin=LINES)
        with zlog.connect(there.url) as store:
            while not is_there(store, "orders"):
                pass
            items = zlog.Log.open(store, "orders").follow()
            assert b"".join(next(items).data + b"\n" for _ in range(500)) == LINES  # type: ignore[union-attr]
        os.kill(copier.pid, sent)
        assert copier.wait(20) == code


def test_following_mirror_retries_after_failure(cli: Cli, there: Cli, tmp_path: Path) -> None:
    """The target is being compacted when it is opened."""
    there.ok("create", "other")
    with (tmp_path / "there" / "data.mdb").open("r+b") as data:
        lock = struct.pack("hhqqi", fcntl.F_WRLCK, os.SEEK_SET, 0, 1, 0)
        fcntl.fcntl(data, fcntl.F_OFD_SETLK, lock)
        copier = cli.start("mirror", "orders", "--to", there.url, "--follow")
        assert b"it is being compacted; trying again" in copier.stderr.readline()
    cli.ok("append", "orders", stdin=LINES)
    with zlog.connect(there.url) as store:
        while not is_there(store, "orders"):
            pass
        items = zlog.Log.open(store, "orders").follow()
        assert next(items).position == 0
    copier.kill()
    copier.communicate()
    assert cli("mirror", "orders", "--to", "file:///proc/nowhere").code == 6


def test_entries_that_were_not_mirrored_are_listed(cli: Cli, there: Cli) -> None:
    cli.ok("append", "orders", stdin=LINES)
    cli.ok("mirror", "orders", "--to", there.url, "--as", "copy")
    cli.ok("append", "orders", stdin=b"a\nb\nc\n")
    cli.ok("trim", "orders", "501")
    there.ok("access", "promote", "copy")
    there.ok("append", "copy", stdin=b"new\n")
    origin = json.loads(cli.ok("info", "orders", "--json"))["log_id"]
    shown = json.loads(there.ok("info", "copy", "--json"))
    assert shown["promoted_from"] == [{"log_id": origin, "position": 500}]
    assert f"log {origin}, at position 500" in there.ok("info", "copy").decode()
    refused = cli("mirror", "orders", "--to", there.url, "--as", "copy")
    assert refused.code != 0
    assert "--missing" in refused.err
    found = cli("mirror", "orders", "--to", there.url, "--as", "copy", "--missing")
    assert found.out == b"500\n502\n"
    assert f"zlog --store '{cli.url}' read orders 500:" in found.err
