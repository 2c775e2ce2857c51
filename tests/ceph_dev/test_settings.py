"""What `up` can be asked for, and what it refuses."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from ..support.ceph import ClusterFailed
from .conftest import FolderOfCluster, open_pool, option

rados = pytest.importorskip("rados")


def test_cephx_requires_key(folder: FolderOfCluster, tmp_path: Path) -> None:
    conf = folder.up("--cephx", "on")["conf"]
    assert (folder.path / "keyring").stat().st_mode & 0o077 == 0
    nothing = tmp_path / "keyring"
    nothing.touch()
    with open_pool(conf):
        pass
    with pytest.raises(rados.Error), open_pool(conf, keyring=str(nothing)):
        pass


def test_disabled_cephx_requires_only_config(folder: FolderOfCluster, tmp_path: Path) -> None:
    conf = folder.up("--cephx", "off")["conf"]
    with open_pool(conf, keyring=str(tmp_path / "missing")) as ioctx:
        ioctx.write_full("object", b"data")


def test_options_reach_intended_daemons(folder: FolderOfCluster) -> None:
    options = ("osd_max_write_size=11", "osd:osd-op-threads = 3", "osd_heartbeat_grace=7")
    conf = folder.up(*(word for option in options for word in ("--set", option)))["conf"]
    assert option(conf, "mon.a", "osd_max_write_size") == "11"
    assert option(conf, "osd.0", "osd_max_write_size") == "11"
    assert option(conf, "mon.a", "osd_heartbeat_grace") == "7"  # in the place of ceph-dev's own
    assert "osd heartbeat grace = 3" not in Path(conf).read_text()


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--osds", "0"], "at least one"),
        (["--osds", "2", "--size", "3"], "can't hold it"),
        (["--class", "/nowhere/libcls_zlog.so"], "no object class at /nowhere"),
        (["--set", "no equals sign"], r"expected \[SECTION:\]KEY=VALUE"),
        (["--set", ":key=value"], r"expected \[SECTION:\]KEY=VALUE"),
        (["--osd-bytes", "many"], "--osd-bytes"),
    ],
)
def test_bad_specs_are_refused(folder: FolderOfCluster, words: list[str], complaint: str) -> None:
    with pytest.raises(ClusterFailed, match=complaint):
        folder.run("up", *words)
    with pytest.raises(ClusterFailed, match="no cluster in"):
        folder.status()


def test_folder_in_use_is_refused(folder: FolderOfCluster) -> None:
    folder.path.mkdir()
    (folder.path / "thesis.tex").write_text("x")
    with pytest.raises(ClusterFailed, match=r"not empty \(thesis.tex\)"):
        folder.up()
    assert (folder.path / "thesis.tex").exists()


def test_folder_path_too_long_is_refused(folder: FolderOfCluster) -> None:
    deep = FolderOfCluster(folder.path / ("d" * 90))
    with pytest.raises(ClusterFailed, match="too long for the daemons' sockets"):
        deep.up()


def test_osd_that_cannot_start_leaves_nothing_running(folder: FolderOfCluster) -> None:
    no_ports = ("ms_bind_port_min=1", "ms_bind_port_max=0", "ms_bind_retry_count=0")
    words = [word for option in no_ports for word in ("--set", f"osd:{option}")]
    with pytest.raises(ClusterFailed, match=r"start of osd\.0 failed"):
        folder.up(*words)
    for command in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            assert str(folder.path).encode() not in command.read_bytes()
    assert folder.up()["healthy"]
