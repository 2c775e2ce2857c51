"""Stores at the command line: a session on a cluster, embedded stores, and what is no store."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import zlog

from .conftest import Cli, Inside

LINES = b"".join(
    b"2026-11-20T17:00:%02d host-%d app[%d]: request %d took %d ms\n" % (i % 60, i % 7, i, i, i * i)
    for i in range(2000)
)


def test_read_only_store_serves_reads(tmp_path: Path) -> None:
    url = (tmp_path / "store").as_uri()
    cli = Cli(url)
    cli.ok("create", "app")
    cli.ok("append", "app", stdin=LINES)
    cli.ok("cursor", "set", "app", "billing", "7")
    for file in ("sequencer", "lock.mdb", "reserve"):
        (tmp_path / "store" / file).unlink()
    read = Cli(f"{url}?mode=ro")
    assert read.ok("ls") == b"app\n"
    assert read.ok("read", "app") == LINES
    assert read.ok("tail", "app", "-n", "5").splitlines() == LINES.splitlines()[-5:]
    assert read.ok("check", "app") == b""
    assert b"billing" in read.ok("cursor", "ls", "app")
    for words in (["append", "app"], ["create", "new"], ["trim", "app", "--to", "1"]):
        result = read(*words, stdin=b"line\n")
        assert result.code == 6
        assert "the store is read-only" in result.err
        assert "hint: Open the store without ?mode=ro" in result.err
    assert [path.name for path in (tmp_path / "store").iterdir()] == ["data.mdb"]


def test_store_compact_shrinks_file(tmp_path: Path) -> None:
    cli = Cli((tmp_path / "store").as_uri())
    with zlog.connect(cli.url) as store, zlog.Log.create(store, "app") as log:
        log.append_many(LINES.splitlines() * 20)
        log.trim_to(39990)
    before = (tmp_path / "store" / "data.mdb").stat().st_size
    cli.ok("store", "compact")
    assert (tmp_path / "store" / "data.mdb").stat().st_size < before / 2
    assert cli("read", "app").out.splitlines() == LINES.splitlines()[-10:]
    with cli.start("tail", "app", "--follow") as follower:
        assert follower.stdout.readline()
        result = cli("store", "compact")
        assert result.code == 6
        assert "can't compact" in result.err
        assert "other processes have it open" in result.err
        follower.kill()


def test_restored_store_can_be_used(tmp_path: Path) -> None:
    cli = Cli((tmp_path / "store").as_uri())
    cli.ok("create", "app")
    cli.ok("append", "app", stdin=b"kept\n")
    shutil.copytree(tmp_path / "store", tmp_path / "backup")
    cli.ok("append", "app", stdin=b"lost\n")
    shutil.copy(tmp_path / "backup" / "data.mdb", tmp_path / "store")
    refused = cli("read", "app")
    assert refused.code == 6
    assert "it was restored from a backup" in refused.err
    assert "run `zlog store restore`" in refused.err
    for words in (["store", "restore"], ["store", "restore", tmp_path / "backup"]):
        cli.ok(*words)
        assert cli.ok("read", "app") == b"kept\n"
    with cli.start("tail", "app", "--follow") as follower:
        assert follower.stdout is not None
        assert follower.stdout.readline()
        in_use = cli("store", "restore", tmp_path / "backup")
        assert in_use.code == 6
        assert "it is open" in in_use.err
        follower.kill()
    nothing = cli("store", "restore", "--store", "ceph://logs", tmp_path / "backup")
    assert nothing.code == 2
    assert "only an embedded store can be restored" in nothing.err


@pytest.mark.parametrize(
    "words", [["ls"], ["info", "app"], ["append", "app"], ["read", "app"], ["check", "app"]]
)
def test_missing_store_is_not_created(tmp_path: Path, words: list[str]) -> None:
    result = Inside((tmp_path / "typo").as_uri())(*words)
    assert result.code == 6
    assert f"there is no store in {tmp_path}/typo" in result.err
    assert "`zlog create` creates a store" in result.err
    assert not [*tmp_path.iterdir()]


def test_uncreatable_directory_is_reported() -> None:
    result = Inside("file:///proc/nowhere")("create", "app")
    assert result.code == 6
    assert "the store's directory /proc/nowhere: No such file or directory" in result.err


def test_missing_ceph_conf_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("zlog._native.rados")
    monkeypatch.setenv("CEPH_CONF", str(tmp_path / "ceph.conf"))
    result = Inside("ceph://logs")("ls")
    assert result.code == 6
    looked = f"looked for {tmp_path}/ceph.conf ($CEPH_CONF)\n"
    assert result.err.startswith(f"zlog: there is no ceph.conf: {looked}")
    assert "-c PATH" in result.err


def test_path_allows_all_bytes_except_nul(tmp_path: Path) -> None:
    Inside(f"{tmp_path.as_uri()}/a%FF").ok("create", "app")
    assert [path.name for path in tmp_path.iterdir()] == ["a\udcff"]
    result = Inside(f"{tmp_path.as_uri()}/b/%00")("create", "app")
    assert (result.code, "a path can't contain %00" in result.err) == (2, True)
    assert len([*tmp_path.iterdir()]) == 1
