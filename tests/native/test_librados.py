"""librados is found when a store on Ceph is opened, and not before."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from .support import run

FIND = """
    import zlog, zlog._native.rados
    try:
        print(zlog._native.rados.find_librados())
    except zlog.StoreUnavailable as error:
        print(error, error.retryable, error.hint)
"""


def test_importing_extension_does_not_load_librados() -> None:
    code = "import zlog._native.rados; print('librados' in open('/proc/self/maps').read())"
    assert run(code).strip() == "False"


def test_outdated_librados_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library = tmp_path / "librados.so.2"
    build = ["gcc", "-shared", "-Wl,-soname,librados.so.2", "-x", "c", "-", "-o", str(library)]
    subprocess.run(build, input="int rados_create(void) { return 0; }", text=True, check=True)
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
    said = run(FIND)
    assert said.startswith("librados is older than Ceph Octopus and lacks rados_conf_read_file, ")
    assert "rados_create," not in said
    assert said.strip().endswith("False Install a newer librados2.")
