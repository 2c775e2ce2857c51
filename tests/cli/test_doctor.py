"""doctor: whatever is missing is named, with a way to fix it and the right exit code."""

from __future__ import annotations

import errno
import getpass
import json
import os
import shutil
import socket
from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast

import pytest

import zlog
from zlog._base.deadline import Deadline
from zlog._catalog.directory import Directory
from zlog._io import BlockingIo, drive
from zlog._layout.views import take_over
from zlog._native.completions import CompletionQueue
from zlog._sequencer.credentials import Credentials
from zlog.cli.ceph import Target, new_client
from zlog.cli.commands.doctor import directory, installation, pool, service
from zlog.cli.commands.doctor.diagnosis import Diagnosis, Level, failed, worst
from zlog.cli.exit_codes import ExitCode
from zlog.errors import StoreUnavailable
from zlog.testing import FaultyStore

from ..support.local_sequencer import LocalSequencer
from .conftest import Inside

URL = "ceph://logs?id=me"


def by_part(diagnoses: Iterable[Diagnosis]) -> dict[str, Diagnosis]:
    return {diagnosis.part: diagnosis for diagnosis in diagnoses}


def findings(out: bytes) -> dict[str, dict[str, Any]]:
    return {found["part"]: found for found in map(json.loads, out.splitlines())}


def test_doctor_passes_sound_embedded_store(inside: Inside) -> None:
    found = findings(inside.ok("doctor", "--json"))
    assert {each["level"] for part, each in found.items() if "rados" not in part} == {"ok"}
    assert found["logs"]["text"] == "1"
    assert "shared through the store" in found["sequencer"]["text"]
    assert b"ok       directory: " in inside.ok("doctor")


def test_doctor_does_not_create_missing_store(inside: Inside, tmp_path: Path) -> None:
    path = tmp_path / "not" / "there"
    found = findings(inside.ok("--store", path.as_uri(), "doctor", "--json"))
    assert found["directory"]["level"] == "note"
    assert "store" not in found
    assert not path.parent.exists()


def test_an_invalid_store_url_is_a_usage_error(inside: Inside) -> None:
    result = inside("--store", "logs", "doctor")
    assert (result.code, b"directory" in result.out) == (2, False)
    assert "'logs' is not a store URL" in result.err


def test_file_instead_of_directory_is_reported(inside: Inside, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    result = inside("--store", (tmp_path / "file").as_uri(), "doctor")
    assert result.code == 6
    assert b"is not a directory" in result.out
    assert (b"mv " in result.out, b"fix: name another directory" in result.out) == (False, True)
    assert b"zlog doctor" not in result.out


def test_unwritable_directory_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("os.access", lambda *_: False)
    found = by_part(directory.examine(tmp_path))["directory"]
    assert (found.level, found.code) == (Level.FAILURE, ExitCode.UNREACHABLE)
    assert found.fix.startswith("chmod -R u+rwX ")
    monkeypatch.setattr("os.geteuid", lambda: os.getuid() + 1)
    found = by_part(directory.examine(tmp_path))["directory"]
    assert found.fix.startswith(f"ask {getpass.getuser()} for the right to write")
    absent = by_part(directory.examine(tmp_path / "new" / "store"))["directory"]
    assert absent.fix.startswith("sudo install -d -o")


def test_read_only_file_system_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    class ReadOnly:
        f_flag = os.ST_RDONLY

    monkeypatch.setattr("os.access", lambda *_: False)
    monkeypatch.setattr("os.statvfs", lambda _: ReadOnly)
    monkeypatch.setattr("shutil.disk_usage", lambda _: (1 << 40, 0, 1 << 39))
    found = next(iter(directory.examine(tmp_path)))
    assert "read-only file system" in found.text
    assert "chown" not in found.fix


def test_inaccessible_directory_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(_: Path) -> bool:
        raise PermissionError

    monkeypatch.setattr(Path, "exists", refused)
    (found,) = directory.examine(Path("/closed/store"))
    assert (found.level, found.code) == (Level.FAILURE, ExitCode.UNREACHABLE)


def test_doctor_hints_do_not_suggest_doctor() -> None:
    assert failed("store", zlog.StoreUnavailable("broken")).fix == ""


def test_store_of_other_user_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "data.mdb").touch()
    monkeypatch.setattr("os.access", lambda path, _: Path(path) == tmp_path)
    found = by_part(directory.examine(tmp_path))["directory"]
    assert (found.level, found.code) == (Level.FAILURE, ExitCode.UNREACHABLE)


@pytest.mark.parametrize(
    ("total", "free", "level", "text"),
    [
        (1 << 40, 0, Level.FAILURE, "full: 0 B of 1.0 TiB are free"),
        (1 << 40, (1 << 20) - 1, Level.FAILURE, "full: 1024.0 KiB of 1.0 TiB are free"),
        (1 << 40, 1 << 30, Level.WARNING, "only 1.0 GiB of 1.0 TiB are free"),
        (1 << 40, 1 << 39, Level.OK, "512.0 GiB of 1.0 TiB are free"),
        (16 << 20, 15 << 20, Level.WARNING, "only 15.0 MiB of 16.0 MiB are free"),
    ],
)
def test_disk_space_is_examined(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, total: int, free: int, level: Level, text: str
) -> None:
    usage = type(shutil.disk_usage(tmp_path))(total, 0, free)
    monkeypatch.setattr("shutil.disk_usage", lambda _: usage)
    found = directory.examine_disk(tmp_path)
    assert (found.level, found.text) == (level, text)


def test_doctor_examines_read_only_store(inside: Inside, tmp_path: Path) -> None:
    url = f"{(tmp_path / 'store').as_uri()}?mode=ro"
    found = findings(inside.ok("--store", url, "doctor", "--json"))
    assert {each["level"] for part, each in found.items() if "rados" not in part} == {"ok"}
    assert found["directory"]["text"].endswith("can be read, also while processes write")
    assert found["object class"]["text"] == "answers, for reading"
    (tmp_path / "store" / "lock.mdb").unlink()
    (alone,) = directory.examine(tmp_path / "store", read_only=True)
    assert "can be read only while no process writes" in alone.text
    (missing,) = directory.examine(tmp_path, read_only=True)
    assert (missing.level, missing.code) == (Level.FAILURE, ExitCode.UNREACHABLE)


def test_doctor_suggests_read_only_mode(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "data.mdb").touch()
    monkeypatch.setattr("os.access", lambda _, mode: mode == os.R_OK)
    found = by_part(directory.examine(tmp_path))["directory"]
    assert found.level is Level.FAILURE
    assert f"to read it: --store '{tmp_path.as_uri()}?mode=ro'" in found.fix


def test_network_file_system_is_a_warning(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert "file system" not in by_part(directory.examine(tmp_path))
    monkeypatch.setattr(directory, "_file_system", lambda _: "nfs4")
    assert by_part(directory.examine(tmp_path))["file system"].level is Level.WARNING


def test_missing_librados_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent() -> str:
        raise StoreUnavailable("there is none", hint="Install it.")

    monkeypatch.setattr(installation, "librados_file", absent)
    needed = by_part(installation.examine(ceph=True))["librados"]
    assert (needed.level, needed.code) == (Level.FAILURE, ExitCode.UNREACHABLE)
    assert (needed.text, needed.fix) == ("there is none", "Install it.")
    assert by_part(installation.examine(ceph=False))["librados"].level is Level.NOTE


def test_missing_python_rados_is_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "rados", None)
    found = by_part(installation.examine(ceph=True))["python-rados"]
    assert (found.level, "python3-rados" in found.fix) == (Level.NOTE, True)


@pytest.fixture
def token(tmp_path: Path) -> Path:
    """A token file that is its owner's alone."""
    path = tmp_path / "a token"
    path.write_text("0123456789abcdef\n")
    path.chmod(0o600)
    return path


@pytest.mark.parametrize(
    ("mode", "level"),
    [
        (0o600, Level.OK),
        (0o400, Level.OK),
        (0o640, Level.WARNING),
        (0o604, Level.WARNING),
        (0o620, Level.WARNING),
    ],
)
def test_token_file_permissions_are_checked(token: Path, mode: int, level: Level) -> None:
    token.chmod(mode)
    (found,) = installation.examine_token(Credentials(token_file=str(token)))
    assert found.level is level
    assert str(token) in found.text
    if level is Level.WARNING:
        assert f"(mode {mode:04o})" in found.text
        assert found.fix.startswith(f"chmod 600 '{token}'")


def test_missing_token_file_setting_is_ignored() -> None:
    assert list(installation.examine_token(Credentials())) == []


@pytest.mark.parametrize("content", ["", "too short", None])
def test_unusable_token_file_is_reported(token: Path, content: str | None) -> None:
    if content is None:
        token.unlink()
    else:
        token.write_text(content)
    (found,) = installation.examine_token(Credentials(token_file=str(token)))
    assert (found.level, found.code) == (Level.FAILURE, ExitCode.UNREACHABLE)
    assert str(token) in found.text
    assert "ZLOG_SEQUENCER_TOKEN_FILE" in found.fix


def test_doctor_warns_of_readable_token(
    inside: Inside, token: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    token.chmod(0o644)
    monkeypatch.setenv("ZLOG_SEQUENCER_TOKEN_FILE", str(token))
    out = inside.ok("doctor")
    assert b"warning  token file: " in out
    assert b"0123456789abcdef" not in out


class Refusing:
    """A store that answers calls with the same code, but for what it says of unknown methods."""

    read_only = False
    url = "ceph://logs"
    load_list = "lock rbd"

    def __init__(self, code: int, unknown: int = -errno.EOPNOTSUPP) -> None:
        self.code = code
        self.unknown = unknown

    def ask_monitor(self, queue: CompletionQueue, token: int, command: str) -> None:
        assert json.loads(command)["prefix"] == "config dump"
        options = [{"name": "osd_class_load_list", "value": self.load_list}]
        queue.put(token, 0, json.dumps(options).encode())

    def execute(
        self, object: str, method: str, payload: bytes, timeout: float
    ) -> tuple[int, bytes]:
        assert (object, timeout) == ("zlog.directory", 1)
        assert isinstance(payload, bytes)
        return self.code if method.startswith("sequencer") else self.unknown, b""


@pytest.mark.parametrize(
    ("code", "text", "fix", "exit_code"),
    [
        (-errno.EACCES, "EACCES", "caps", 6),
        (-errno.ETIMEDOUT, "did not answer in time", "ceph osd tree", 6),
        (-errno.ENOSPC, "the store is full", "rim", 6),
    ],
)
def test_failing_object_class_is_reported(code: int, text: str, fix: str, exit_code: int) -> None:
    """What real OSDs answer without the class or the caps is in test_doctor_ceph.py."""
    store = cast("zlog.Store", Refusing(code))
    (found,) = service.examine_class(store, f"{URL}&class=require", 1)
    assert (found.level, found.code) == (Level.FAILURE, exit_code)
    assert text in found.text
    assert fix in found.fix


def test_class_disallowed_by_osds_is_reported() -> None:
    store = Refusing(-errno.EPERM, -errno.EPERM)
    store.load_list = "zlog"
    (found,) = service.examine_class(cast("zlog.Store", store), f"{URL}&class=require", 1)
    assert ("ceph config set" in found.fix, "ceph.conf" in found.fix) == (False, True)


@pytest.mark.parametrize("unknown", [-errno.EPERM, -errno.EOPNOTSUPP])
def test_fixes_never_remove_caps(unknown: int) -> None:
    """`ceph auth caps` replaces all that a client may do; for the admin this locks everyone out."""
    store = cast("zlog.Store", Refusing(-errno.EPERM, unknown))
    (found,) = service.examine_class(store, "ceph://logs/a", 1)
    assert "auth caps" not in found.fix
    assert "osd 'allow pool logs namespace a class zlog'" in new_client(
        Target("logs", "a", None, "admin")
    )


def test_class_works_on_pool_without_logs() -> None:
    (found,) = service.examine_class(cast("zlog.Store", Refusing(-errno.ENOENT)), URL, 1)
    assert found.level is Level.OK


POOL: dict[str, Any] = {
    "pool_name": "logs",
    "pool_id": 7,
    "type": 1,
    "size": 3,
    "min_size": 2,
    "flags_names": "hashpspool",
}


@pytest.mark.parametrize(
    ("fields", "level", "text"),
    [
        ({}, Level.OK, "3 copies, and appends need 2"),
        ({"size": 1, "min_size": 1}, Level.WARNING, "one copy"),
        ({"type": 3}, Level.FAILURE, "ceph osd pool set logs supports_omap true"),
        ({"type": 3, "flags_names": "ec_overwrites,supports_omap"}, Level.OK, "erasure coded"),
    ],
)
def test_replica_count_of_pool_is_checked(fields: dict[str, Any], level: Level, text: str) -> None:
    found = pool._copies({**POOL, **fields}, 3)
    assert (found.level, text in f"{found.text} {found.fix}") == (level, True)


@pytest.mark.parametrize(("osds", "fix"), [(3, "ceph osd pool set logs size 3"), (1, "add OSDs")])
def test_suggested_replicas_do_not_exceed_osds(osds: int, fix: str) -> None:
    found = pool._copies({**POOL, "size": 1}, osds)
    assert found.fix.startswith(fix)
    assert ("pool set" in found.fix) == (osds >= 3)


@pytest.mark.parametrize(
    ("flags", "level", "text"),
    [
        ("hashpspool,full,full_quota", Level.FAILURE, "quota"),
        ("hashpspool,full", Level.FAILURE, "is full"),
        ("hashpspool,nearfull", Level.WARNING, "nearly full"),
        ("backfillfull", Level.WARNING, "nearly full"),
    ],
)
def test_full_pool_is_reported(flags: str, level: Level, text: str) -> None:
    (found,) = pool._space({**POOL, "flags_names": flags})
    assert (found.level, text in found.text) == (level, True)
    assert not list(pool._space(POOL))


def test_health_covers_only_the_pool() -> None:
    groups = [{"message": "pg 7.1a is stuck"}, {"message": "pg 77.0 is stuck"}]
    checks = {
        "PG_AVAILABILITY": {"detail": groups},
        "OSD_DOWN": {"summary": {"message": "1 osds down"}},
        "POOL_FULL": {"detail": [{"message": "pool 'other' is full"}]},
    }
    found = list(pool._health(POOL, {"checks": checks}))
    assert {each.level for each in found} == {Level.WARNING}
    assert [each.text for each in found] == [
        "'logs' has placement groups that do not answer: pg 7.1a is stuck",
        "OSD_DOWN: 1 osds down",
    ]
    assert not list(pool._health(POOL, {}))


def test_the_most_basic_failure_sets_the_exit_code() -> None:
    fine = Diagnosis("a", Level.WARNING, "")
    down = Diagnosis("b", Level.FAILURE, "", code=ExitCode.UNREACHABLE)
    other = Diagnosis("c", Level.FAILURE, "")
    assert worst([fine]) == 0
    assert worst([fine, down, other]) == 6
    assert worst([other, down]) == 1


@pytest.fixture
def nobody() -> str:
    """An address where no sequencer is."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
        return f"tcp://127.0.0.1:{port}"


def test_stopped_announced_sequencer_is_failure(
    inside: Inside, orders: zlog.Log, nobody: str
) -> None:
    drive(Directory(BlockingIo(orders.store)).announce(nobody, Deadline(10)))
    result = inside("doctor", "--json")
    assert result.code == 6
    found = findings(result.out)["sequencer"]
    assert found["level"] == "failure"
    assert f"{nobody}, announced in the store, does not answer" in found["text"]
    assert "zlog seqr" in found["fix"]


def test_stopped_sequencer_of_view_is_warning(
    inside: Inside, orders: zlog.Log, nobody: str
) -> None:
    drive(take_over(BlockingIo(orders.store), "orders", nobody, Deadline(10)))
    out = inside.ok("doctor")
    assert f"warning  sequencer: {nobody}, named by log orders, does not answer".encode() in out


def test_former_sequencer_with_live_leader_is_note(
    inside: Inside, orders: zlog.Log, nobody: str
) -> None:
    """The log was not in use when it was lost, and its next writer asks the leader."""
    drive(take_over(BlockingIo(orders.store), "orders", nobody, Deadline(10)))
    leader = LocalSequencer(orders.store)
    try:
        out = inside.ok("doctor")
    finally:
        leader.stop()
    assert f"sequencer: {leader.address}, announced in the store, answers".encode() in out
    assert f"note     sequencer: {nobody}, named by log orders, does not answer".encode() in out


def test_logs_ordered_by_their_objects_need_no_sequencer(memory: zlog.Store) -> None:
    store = FaultyStore(memory, share_sequencer=False)
    zlog.Log.create(store, "a", ordering="object")
    found = by_part(service.examine_logs(store, URL, 10))
    assert {each.level for each in found.values()} == {Level.OK}
    assert found["ordering"].text.startswith("log a; ordered by the log's object")
    zlog.Log.create(store, "b")
    assert by_part(service.examine_logs(store, URL, 10))["sequencer"].level is Level.NOTE


def test_damaged_store_is_reported(inside: Inside, monkeypatch: pytest.MonkeyPatch) -> None:
    def damaged(*_: object, **__: object) -> list[str]:
        raise zlog.CorruptEntry("the directory is damaged")

    monkeypatch.setattr(zlog.Log, "list", damaged)
    result = inside("doctor", "--json")
    assert result.code == 1
    assert findings(result.out)["logs"]["text"] == "the directory is damaged"


def test_unreachable_cluster_is_reported(inside: Inside) -> None:
    result = inside("--store", "ceph://logs?conf=/nowhere", "doctor", "--json")
    assert result.code == 6
    assert "/nowhere" in findings(result.out)["store"]["text"]
