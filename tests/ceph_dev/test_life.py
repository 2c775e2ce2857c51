"""Up, side by side, again, and down without a trace."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ..support.ceph import CLUSTER_PROGRAM, CephCluster, ClusterFailed
from .conftest import NO_CLASS, FolderOfCluster, ceph_osd_default, open_pool, option

rados = pytest.importorskip("rados")


def pool_settings(conf: str, pool: str) -> dict[str, object]:
    with rados.Rados(conffile=conf) as client:
        command = json.dumps({"prefix": "osd pool ls", "detail": "detail", "format": "json"})
        code, reply, _ = client.mon_command(command, b"")
    assert code == 0
    return next(one for one in json.loads(reply) if one["pool_name"] == pool)


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that only waits for its parent has no command line any more."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes() != b""
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_repeated_up_keeps_cluster_unchanged(folder: FolderOfCluster) -> None:
    assert folder.run("up", *NO_CLASS) == f"ceph://zlog?conf={folder.path}/ceph.conf\n"
    before = folder.status()
    assert folder.up() == before
    with pytest.raises(ClusterFailed, match="other settings"):
        folder.up("--osds", "2")
    assert folder.status() == before


@pytest.mark.parametrize(("osds", "size"), [(2, 2), (4, 3)])
def test_pool_has_up_to_three_replicas(folder: FolderOfCluster, osds: int, size: int) -> None:
    status = folder.up("--osds", str(osds))
    assert status["osds_up"] == list(range(osds))
    pool = pool_settings(status["conf"], "zlog")
    assert pool["size"] == size
    assert pool["application_metadata"] == {"zlog": {}}


def test_clusters_run_side_by_side(new_folder: Callable[[], FolderOfCluster]) -> None:
    one, other = new_folder(), new_folder()
    assert one.up()["fsid"] != other.up()["fsid"]
    with open_pool(one.path / "ceph.conf") as ioctx:
        ioctx.write_full("only here", b"")
    with open_pool(other.path / "ceph.conf") as ioctx:
        assert [found.key for found in ioctx.list_objects()] == []
    one.run("down")
    assert other.status()["healthy"]


@pytest.mark.parametrize("store", ["memstore", "bluestore"])
def test_data_survives_clean_stop(folder: FolderOfCluster, store: str) -> None:
    settings = ("--store", store, "--pool", "logs")
    status = folder.up(*settings)
    with open_pool(status["conf"], "logs") as ioctx:
        ioctx.write_full("object", b"data")
    folder.run("restart")
    folder.run("down", "--keep")
    assert not folder.status()["healthy"]
    assert folder.up(*settings)["healthy"]
    with open_pool(status["conf"], "logs") as ioctx:
        assert ioctx.read("object") == b"data"


def test_down_removes_processes_and_own_files(folder: FolderOfCluster) -> None:
    pids = [daemon["pid"] for daemon in folder.up("--osds", "2")["daemons"]]
    assert all(map(is_alive, pids))
    (folder.path / "notes").write_text("mine")
    folder.run("down")
    assert not any(map(is_alive, pids))
    assert [path.name for path in folder.path.iterdir()] == ["notes"]


def test_down_ignores_missing_cluster(folder: FolderOfCluster) -> None:
    folder.run("down")
    assert not folder.path.exists()


def test_down_spares_process_with_reused_pid(folder: FolderOfCluster) -> None:
    folder.up()
    folder.run("osd", "kill", "0")
    with subprocess.Popen(["sleep", "60"]) as untrusted:
        (folder.path / "run" / "osd.0.pid").write_text(str(untrusted.pid))
        assert folder.status()["daemons"][1]["state"] == "stopped"
        folder.run("down")
        assert untrusted.poll() is None
        untrusted.kill()


def test_foreground_cluster_ends_with_sigterm(folder: FolderOfCluster) -> None:
    words = ["up", "--foreground", "--dir", str(folder.path), *NO_CLASS]
    with subprocess.Popen(
        [sys.executable, str(CLUSTER_PROGRAM), *words], stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith(b"ceph://")
        pids = [daemon["pid"] for daemon in folder.status()["daemons"]]
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
    assert not any(map(is_alive, pids))
    assert not folder.path.exists()


def test_class_is_installed_with_those_of_ceph(with_class: CephCluster) -> None:
    with open_pool(with_class.conf) as ioctx:
        with pytest.raises(rados.ObjectNotFound):
            ioctx.execute("missing", "zlog", "epoch_read", b"\1")
        ioctx.lock_exclusive("locked", "name", "cookie")  # the class `lock`
        ioctx.remove_object("locked")


def test_class_that_cannot_be_loaded_is_reported(folder: FolderOfCluster) -> None:
    library = folder.path.with_name("libcls_zlog.so")
    library.write_bytes(b"no library at all")
    with pytest.raises(ClusterFailed, match=r"(?s)can't load the object class .*dlopen failed"):
        folder.run("up", "--class", str(library))


def test_class_lists_extend_defaults(with_class: CephCluster) -> None:
    defaults = ceph_osd_default("osd_class_default_list")
    for name in ("osd_class_load_list", "osd_class_default_list"):
        assert option(with_class.conf, "osd.0", name) == f"{defaults} zlog"


def test_build_does_not_change_running_cluster(with_class: CephCluster) -> None:
    copy = with_class.conf.parent / "classes" / "libcls_zlog.so"
    assert copy.is_file()
    assert not copy.is_symlink()


@pytest.mark.parametrize("missing", ["ceph-mon", "radosgw"])
def test_missing_program_is_named(
    folder: FolderOfCluster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, missing: str
) -> None:
    for name in {"ceph-mon", "ceph-osd", "monmaptool"} - {missing}:
        (tmp_path / name).symlink_to(str(shutil.which(name)))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ClusterFailed, match=rf"{missing} is not installed: apt-get .* {missing}"):
        folder.up("--rgw")
