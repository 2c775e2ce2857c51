"""Commands for several logs: LOG..., --match and --dry-run."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import zlog
from zlog import StoreUnavailable
from zlog.cli import several
from zlog.cli.exit_codes import ExitCode

from ..client import planted
from .conftest import Cli, Inside

NAMES = ["web-1", "web-2", "db"]


@pytest.fixture
def store(orders: zlog.Log) -> Iterator[zlog.Store]:
    """The store of the command, with three more logs of three entries."""
    for name in NAMES:
        with zlog.Log.create(orders.store, name, width=2) as log:
            log.append_many([b"a", b"b", b"c"])
    return orders.store


def trim_points(store: zlog.Store) -> list[int]:
    found = []
    for name in NAMES:
        with zlog.Log.open(store, name) as log:
            found.append(log.stat().trim_point)
    return found


def test_pattern_selects_logs(inside: Inside, store: zlog.Store) -> None:
    inside.ok("trim", "--match", "web-*", "--to", "2")
    assert trim_points(store) == [2, 2, 0]
    inside.ok("trim", "db", "web-2", "--to", "1", "--match", "[de]*")
    assert trim_points(store) == [2, 2, 1]
    inside.ok("reconfigure", "--match", "web-?", "--option", "team=billing")
    found = [json.loads(line) for line in inside.ok("info", "--json", *NAMES).splitlines()]
    assert [each["name"] for each in found] == NAMES
    assert [each["options"] for each in found] == [{"team": "billing"}, {"team": "billing"}, {}]


@pytest.mark.usefixtures("store")
def test_lines_name_their_logs(inside: Inside) -> None:
    assert inside.ok("info", "--match", "web-*").splitlines() == [
        b"web-1: tail 3, 3 entries, 3 B, store:",
        b"web-2: tail 3, 3 entries, 3 B, store:",
    ]
    assert inside.ok("retention", "db", "web-1") == (
        b"db: everything is kept\nweb-1: everything is kept\n"
    )
    lines = inside.ok("check", "--json", "db", "web-1").splitlines()
    assert [json.loads(line)["log"] for line in lines] == ["db", "web-1"]


@pytest.mark.usefixtures("store")
def test_each_log_is_exported_to_its_file(inside: Inside, tmp_path: Path) -> None:
    (tmp_path / "db.zlog").write_bytes(b"older")
    inside.ok("export", "--match", "*", "--directory", str(tmp_path))
    assert {path.name for path in tmp_path.glob("*.zlog")} == {
        "db.zlog",
        "orders.zlog",
        "web-1.zlog",
        "web-2.zlog",
    }
    assert (tmp_path / "db.zlog").read_bytes() == inside.ok("export", "db")
    assert not list(tmp_path.glob(".*"))
    assert inside("export", "db", "web-1").code == ExitCode.USAGE


@pytest.mark.usefixtures("store")
def test_failed_export_keeps_older_file(inside: Inside, tmp_path: Path) -> None:
    (tmp_path / "gone.zlog").write_bytes(b"older")
    assert inside("export", "gone", "--directory", str(tmp_path)).code == ExitCode.NO_SUCH_LOG
    assert inside("export", "db", "--from", "9", "--directory", str(tmp_path)).code == 2
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["gone.zlog"]
    assert (tmp_path / "gone.zlog").read_bytes() == b"older"


def test_removal_of_matching_logs_can_be_tried(inside: Inside, store: zlog.Store) -> None:
    words = "rm", "db", "--match", "web-*"
    assert inside.ok(*words, "--dry-run") == b"db\nweb-1\nweb-2\n"
    assert inside(*words).code == ExitCode.USAGE  # without a terminal it cannot ask
    assert zlog.Log.list(store) == ["db", "orders", "web-1", "web-2"]
    inside.ok(*words, "--yes")
    assert zlog.Log.list(store) == ["orders"]


def test_other_logs_follow_after_failure(inside: Inside, store: zlog.Store) -> None:
    result = inside("trim", "--to", "1", "web-1", "none", "web-2")
    assert (result.code, result.out) == (ExitCode.NO_SUCH_LOG, b"")
    assert "zlog: none: there is no log 'none'" in result.err
    assert "`zlog create none` creates one" in result.err
    assert result.err.endswith("zlog: 3 logs, 1 failed\n")
    assert trim_points(store) == [1, 1, 0]


def test_unavailable_store_ends_command(
    inside: Inside, store: zlog.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    remove, removed = zlog.Log.remove, []

    def fail_once(*args: object, **others: object) -> None:
        removed.append(args)
        if len(removed) == 2:
            raise StoreUnavailable("the store does not answer")
        remove(*args, **others)  # type: ignore[arg-type]

    monkeypatch.setattr(zlog.Log, "remove", fail_once)
    assert inside("rm", "--yes", *NAMES).code == ExitCode.UNREACHABLE
    assert zlog.Log.list(store) == ["db", "orders", "web-2"]


@pytest.mark.usefixtures("store")
def test_log_removed_after_listing_is_skipped(
    inside: Inside, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(several, "log_names", lambda *_: iter(["web-0", "web-1"]))
    assert inside.ok("info", "--match", "web-*").startswith(b"web-1: tail 3")


@pytest.mark.usefixtures("store")
def test_store_is_opened_once(inside: Inside, monkeypatch: pytest.MonkeyPatch) -> None:
    connect, opened = zlog.connect, []
    monkeypatch.setattr(zlog, "connect", lambda *a, **k: opened.append(a) or connect(*a, **k))
    inside.ok("info", "--match", "*")
    assert len(opened) == 1


@pytest.mark.parametrize(
    ("line", "code", "complaint"),
    [
        ("info", ExitCode.USAGE, "Missing argument 'LOG...'"),
        ("info --match x*", ExitCode.NO_SUCH_LOG, "no log matches 'x*'"),
        ("trim web-1 2 --match db", ExitCode.USAGE, "give either positions, or --to P"),
        ("trim web-1 2 --to 3", ExitCode.USAGE, "give either positions, or --to P"),
        ("trim --match db", ExitCode.USAGE, "give either positions, or --to P"),
        ("trim -- -1 --to 2", ExitCode.USAGE, "not a valid name for a log"),
        ("tail web-* --cursor a", ExitCode.USAGE, "need a single log"),
        ("tail web-* -n 3 --tag a", ExitCode.USAGE, "need a single log"),
        ("read web-* 3", ExitCode.USAGE, "need a single log"),
        ("read x*", ExitCode.NO_SUCH_LOG, "no log matches 'x*'"),
        ("read db,none", ExitCode.NO_SUCH_LOG, "there is no log 'none'"),
        ("tail -f db,none", ExitCode.NO_SUCH_LOG, "there is no log 'none'"),
        ("read db,", ExitCode.USAGE, "not a valid name"),
    ],
)
def test_nothing_happens_without_clear_selection(
    inside: Inside, store: zlog.Store, line: str, code: int, complaint: str
) -> None:
    result = inside(*line.split())
    assert (result.code, result.out) == (code, b"")
    assert complaint in result.err
    assert trim_points(store) == [0, 0, 0]


@pytest.fixture
def timed(store: zlog.Store) -> zlog.Store:
    """The same store. Three logs have a fourth entry, appended one after the other."""
    for name in NAMES:
        with zlog.Log.open(store, name) as log:
            log.append(name.upper().encode())
    return store


@pytest.mark.usefixtures("timed")
def test_read_sorts_several_logs_by_time(inside: Inside) -> None:
    expected = [b"web-1: WEB-1", b"web-2: WEB-2", b"db: DB"]
    assert inside.ok("read", "web-*,db", "3:").splitlines() == expected
    assert inside.ok("read", "[wd]*", "3:", "--reverse").splitlines() == expected[::-1]
    assert inside.ok("tail", "web-?", "-n", "1").splitlines() == expected[:2]
    assert inside.ok("tail", "[wd]*", "-n", "1", "--count", "1") == b"web-1: WEB-1\n"
    assert inside("read", "d*", "9:").err == "zlog: db: range 9: is empty: the tail is 4\n"
    assert (
        inside("tail", "d*", "--from", "9").err
        == "zlog: db: --from is beyond the tail, which is 4\n"
    )
    shown = json.loads(inside.ok("read", "d*", "3:", "--json"))
    assert (shown["log"], shown["position"], shown["data"]) == ("db", 3, "DB")
    assert inside.ok("read", "d*", "3:", "--format", "%l/%p") == b"db/3"
    assert inside.ok("read", "d*", "3:", "--raw") == b"DB"


def test_lost_entries_of_several_logs_are_reported(inside: Inside, timed: zlog.Store) -> None:
    with zlog.Log.open(timed, "web-2") as log:
        planted.flip(timed, next(iter(log.view.objects())).name, b"WEB-2", b"WOB-2")
    result = inside("read", "web-*", "3:")
    assert (result.code, result.out) == (ExitCode.FAILURE, b"web-1: WEB-1\n")
    assert "zlog: web-2: gap: " in result.err
    assert "`zlog check web-2` shows which" in result.err


def test_tail_follows_logs_that_match(cli: Cli, timed: zlog.Store) -> None:
    with cli.start("tail", "web-*", "--follow", "-n", "1", "--count", "4") as running:
        found = sorted(running.stdout.readline() for _ in range(2))
        assert found == [b"web-1: WEB-1\n", b"web-2: WEB-2\n"]
        with zlog.Log.open(timed, "web-2") as log:
            log.append_many([b"x", b"y"])
        assert running.stdout.readlines() == [b"web-2: x\n", b"web-2: y\n"]
    assert running.returncode == 0
