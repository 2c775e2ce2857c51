"""doctor on real clusters: what is wrong is told apart, and only what is wrong is told."""

from __future__ import annotations

import base64
import json
import struct
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import zlog
from zlog._base.deadline import Deadline
from zlog._catalog.directory import Directory
from zlog._io import BlockingIo, drive
from zlog.admin import librados_version

from ..support.ceph import CephCluster, ClusterSpec, ceph, with_keyring
from ..support.waiting import wait_until
from .conftest import Cli

SECONDS = 60.0


def diagnoses(cli: Cli) -> tuple[int, list[dict[str, Any]]]:
    result = cli("doctor", "--json")
    return result.code, [json.loads(line) for line in result.out.splitlines()]


def failure(cli: Cli) -> dict[str, Any]:
    """The one thing that is wrong, whose code is that of the command."""
    code, found = diagnoses(cli)
    (wrong,) = (each for each in found if each["level"] == "failure")
    assert wrong["code"] == code
    return wrong


def plain(cli: Cli, level: str = "note") -> dict[str, Any]:
    """What is said where nothing is wrong and methods run in the client."""
    code, found = diagnoses(cli)
    (why,) = (each for each in found if each["part"] == "object class")
    assert (code, why["level"], why["code"]) == (0, level, 0)
    return why


def rados(cluster: CephCluster, *words: str) -> None:
    """Run `rados` as the cluster's administrator, in the cluster's pool unless told another."""
    subprocess.run(["rados", "-c", str(cluster.conf), "-p", cluster.pool, *words], check=True)


@pytest.fixture
def without_python_rados(tmp_path: Path) -> str:
    """A PYTHONPATH with which python-rados can't be imported, as in most virtual environments."""
    folder = tmp_path / "without"
    folder.mkdir()
    (folder / "rados.py").write_text("raise ModuleNotFoundError(\"No module named 'rados'\")\n")
    return str(folder)


def test_missing_pool_is_reported(ceph_cluster: CephCluster) -> None:
    wrong = failure(Cli(f"ceph://nosuchpool?conf={ceph_cluster.conf}"))
    assert (wrong["code"], "ceph osd pool create nosuchpool" in wrong["fix"]) == (6, True)


@pytest.mark.long
@pytest.mark.parametrize("ceph_cluster", [ClusterSpec(manager=True)], indirect=True)
def test_doctor_examines_only_its_pool(
    ceph_cluster: CephCluster, without_python_rados: str
) -> None:
    """A manager counts what is stored; so a pool of its own can be full, of the same OSD."""

    def doctor(pool: str) -> Cli:
        cli = Cli(f"ceph://{pool}?conf={ceph_cluster.conf}")
        cli.environment["PYTHONPATH"] = without_python_rados
        return cli

    ceph(ceph_cluster, "osd", "pool", "create", "coded", "1", "1", "erasure")
    ceph(ceph_cluster, "osd", "pool", "create", "small", "1")
    ceph(ceph_cluster, "osd", "pool", "set-quota", "small", "max_objects", "1")
    for name in ("one", "two"):
        rados(ceph_cluster, "-p", "small", "put", name, "/dev/null")
    wait_until(lambda: "POOL_FULL" in ceph(ceph_cluster, "health", "detail"))

    coded, small = failure(doctor("coded")), failure(doctor("small"))
    assert (coded["part"], "erasure coded" in coded["text"]) == ("pool", True)
    assert (small["part"], "'small' has used up its quota" in small["text"]) == ("pool", True)
    code, found = diagnoses(doctor(ceph_cluster.pool))
    assert code == 0
    assert [each["text"] for each in found if each["level"] == "warning"] == [
        f"'{ceph_cluster.pool}' keeps only one copy, so entries are lost if their disk fails"
    ]
    for pool in ("coded", "small"):
        words = ("osd", "pool", "rm", pool, pool, "--yes-i-really-really-mean-it")
        ceph(ceph_cluster, *words)


def test_recovery_setting_is_checked(
    new_ceph_cluster: Callable[[ClusterSpec], CephCluster],
) -> None:
    """With Ceph's own setting there is a warning, whose fix mends it."""
    cluster = new_ceph_cluster(ClusterSpec(osds=2))
    option = "osd_object_clean_region_max_num_intervals"

    def recovery() -> dict[str, Any]:
        code, found = diagnoses(Cli(cluster.url()))
        assert code == 0
        (about_it,) = (each for each in found if each["part"] == "recovery")
        return about_it

    assert recovery()["level"] == "ok"
    ceph(cluster, "config", "rm", "osd", option)
    warning = recovery()
    assert (warning["level"], warning["fix"]) == ("warning", f"ceph config set osd {option} 0")
    ceph(cluster, *warning["fix"].split()[1:])
    assert recovery()["level"] == "ok"


@pytest.mark.parametrize(
    ("use", "text", "caps"),
    [
        ("auto", "caps allow it to {} neither with the class nor without", "pool zlog"),
        ("require", "caps don't allow it to {} with the class", "pool zlog"),
        ("never", "caps don't allow it to read in the pool", "rw pool=zlog"),
    ],
)
@pytest.mark.parametrize(
    ("mine", "what"),
    [
        (["allow pool zlog class zlog sequencer_find"], "write"),
        (["allow pool zlog class lock"], "read"),
    ],
)
def test_insufficient_caps_are_reported(
    user: Callable[..., str], use: str, text: str, caps: str, mine: list[str], what: str
) -> None:
    wrong = failure(Cli(f"{user(*mine)}&class={use}"))
    assert (wrong["part"], wrong["code"]) == ("object class", 7)
    assert text.format(what) in wrong["text"]
    assert wrong["fix"].startswith("create a client with ceph auth get-or-create client.zlog")
    assert f"osd 'allow {caps} " in wrong["fix"]
    assert "OSD" not in wrong["fix"]


@pytest.mark.parametrize("ceph_cluster", [ClusterSpec(with_class=False)], indirect=True)
@pytest.mark.parametrize("use", ["auto", "never"])
def test_caps_of_other_pool_are_reported(user: Callable[..., str], use: str) -> None:
    url = f"{user('allow rw pool=another')}&class={use}"
    wrong = failure(Cli(url))
    assert (wrong["part"], wrong["code"]) == ("object class", 7)
    assert "osd 'allow rw pool=zlog namespace=" in wrong["fix"]
    assert "restart" not in wrong["fix"]
    assert "'allow rw pool=POOL'" in Cli(url)("ls").err


def test_caps_without_class_are_reported(user: Callable[..., str]) -> None:
    why = plain(Cli(user("allow rw pool=zlog")))
    assert why["text"].startswith(
        "this client's caps don't allow it to read with the class (EPERM), so its methods run in"
    )
    assert "client that may write to the pool can overwrite logs" in why["text"]


def test_missing_class_on_osds_is_reported(
    new_ceph_cluster: Callable[[ClusterSpec], CephCluster], tmp_path: Path
) -> None:
    """Not allowed, not a library, not there: each is told, and the fix mends it."""
    cluster = new_ceph_cluster(ClusterSpec())
    cli = Cli(cluster.url())
    assert diagnoses(cli)[0] == 0
    library = cluster.conf.parent / "classes" / "libcls_zlog.so"
    cluster.osd("stop", 0)
    sound = library.rename(tmp_path / library.name)
    library.write_text("no library")
    cluster.osd("start", 0)
    wrong = failure(cli)
    assert (wrong["part"], wrong["code"]) == ("object class", 7)
    assert wrong["text"] == "the OSDs have it but can't load it (EIO)"
    assert "ceph versions" in wrong["fix"]
    library.unlink()
    why = plain(cli)
    assert why["text"].startswith(
        "the OSDs don't have it (EOPNOTSUPP), so its methods run in this client"
    )
    assert "restart" not in why["fix"]
    wrong = failure(Cli(f"{cluster.url()}&class=require"))
    assert (wrong["part"], wrong["code"]) == ("object class", 7)
    cluster.osd("stop", 0)
    library.write_bytes(sound.read_bytes())
    cluster.osd("start", 0)
    (about_it,) = (each for each in diagnoses(cli)[1] if each["part"] == "versions")
    assert (about_it["level"], about_it["fix"]) == ("ok", "")


def test_class_disallowed_on_osds_is_reported(
    new_ceph_cluster: Callable[[ClusterSpec], CephCluster],
) -> None:
    cluster = new_ceph_cluster(ClusterSpec(with_class=False))
    cli = Cli(cluster.url())
    why = plain(cli)
    assert why["text"].startswith("the OSDs are not allowed to load it (EPERM), so")
    assert why["fix"].startswith("ceph config set osd osd_class_load_list")
    assert cli("ls").code == 0
    assert "not requested" in plain(Cli(f"{cluster.url()}&class=never"), "ok")["text"]
    assert Cli(f"{cluster.url()}&class=require")("ls").code == 7

    cluster.monitor("freeze")
    began = time.monotonic()
    result = cli("doctor", "--timeout", "1", "--json")
    cluster.monitor("thaw")
    assert time.monotonic() - began < 20
    assert result.code == 6
    assert "ceph -s" in json.loads(result.out.splitlines()[-1])["fix"]


def test_damaged_directory_is_not_class_failure(ceph_cluster: CephCluster, tmp_path: Path) -> None:
    url = ceph_cluster.url(tmp_path.name)
    with zlog.connect(url) as store:
        drive(Directory(BlockingIo(store)).announce("tcp://a.invalid:1", Deadline(SECONDS)))
    rados(ceph_cluster, "-N", tmp_path.name, "setxattr", "zlog.directory", "zlog.sequencer", "x")
    wrong = failure(Cli(url))
    assert (wrong["part"], wrong["code"]) == ("object class", 1)
    assert "zlog.directory or its disk is damaged" in wrong["text"]


def test_missing_keyring_is_reported(ceph_cluster: CephCluster, tmp_path: Path) -> None:
    paths = [tmp_path / "client.me.keyring", tmp_path / "keyring"]
    named = f"{tmp_path}/$name.keyring,{tmp_path}/keyring"
    conf = with_keyring(ceph_cluster, named, tmp_path / "ceph.conf")
    wrong = failure(Cli(f"ceph://zlog?conf={conf}&id=me"))
    assert wrong["code"] == 6
    assert wrong["text"] == (
        f"there is no keyring for client.me: looked for {', '.join(map(str, paths))}"
    )
    assert "`ceph auth get client.me -o PATH`" in wrong["fix"]


def test_keyring_without_client_is_reported(ceph_cluster: CephCluster) -> None:
    wrong = failure(Cli(f"{ceph_cluster.url()}&id=untrusted"))
    keyring = ceph_cluster.conf.parent / "keyring"
    assert f"rejects the key of client.untrusted in {keyring}: " in wrong["text"]
    assert "key's type" not in wrong["fix"]


@pytest.mark.parametrize(
    ("kind", "size", "reason"),
    [
        (1, 16, "type is AES, which monitors can refuse (`ceph mon dump` shows"),
        (2, 32, "type is AES256K, which only librados 19.2.6, 20.2.4, 21.2 and later"),
    ],
)
def test_type_of_rejected_key_is_reported(
    ceph_cluster: CephCluster, tmp_path: Path, kind: int, size: int, reason: str
) -> None:
    key = base64.b64encode(struct.pack("<HIIH", kind, 0, 0, size) + bytes(size)).decode()
    (tmp_path / "keyring").write_text(f"[client.admin]\n\tkey = {key}\n")
    conf = with_keyring(ceph_cluster, tmp_path / "keyring", tmp_path / "ceph.conf")
    wrong = failure(Cli(f"ceph://zlog?conf={conf}"))
    assert "rejects the key of client.admin" in wrong["text"]
    assert reason in wrong["fix"]
    assert f"this is librados {librados_version()}." in wrong["fix"]


def test_missing_librados_is_reported(tmp_path: Path) -> None:
    """The loader meets a librados that is none; as a rule there is no ceph.conf then either."""
    (tmp_path / "librados.so.2").touch()
    cli = Cli("ceph://logs")
    cli.environment["LD_LIBRARY_PATH"] = str(tmp_path)
    cli.environment.pop("CEPH_CONF", None)
    wrong = failure(cli)
    assert (wrong["part"], wrong["code"]) == ("librados", 6)
    assert "apt install librados2" in wrong["fix"]
    result = cli("ls")
    assert result.code == 6
    assert "librados, the client library of Ceph, was not found" in result.err
    assert "`apt install librados2`" in result.err
    assert "ceph.conf" not in result.err
