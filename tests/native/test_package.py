"""The wheel: one package and its name for Spark, no sources of extensions. Modules that import."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import subprocess
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from scikit_build_core.build import build_wheel

import zlog
from tests.support.programs import REPOSITORY
from tools import sync_facade
from zlog._native import messages

from .support import run

PACKAGES = ("zlog", "seqr", "cli", "pyspark_zlog", "zlog_command")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[zipfile.ZipFile]:
    """The wheel of these sources, without what CMake would compile."""
    folder = tmp_path_factory.mktemp("wheel")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(REPOSITORY)
        name = build_wheel(str(folder), {"wheel.cmake": "false"})
    with zipfile.ZipFile(folder / name) as opened:
        yield opened


def test_wheel_holds_each_file_of_the_packages_once(wheel: zipfile.ZipFile) -> None:
    tracked = subprocess.run(
        ["git", "ls-files", *PACKAGES, ":!zlog/seqr", ":!zlog/cli"],
        cwd=REPOSITORY,
        capture_output=True,
        check=True,
        text=True,
    ).stdout.split()
    sources = {".pyx", ".pxd", ".cc", ".h", ".txt"}
    expected = [
        f"zlog/{file}" if file.startswith(("seqr/", "cli/")) else file
        for file in tracked
        if Path(file).suffix not in sources
    ]
    held = [name for name in wheel.namelist() if ".dist-info/" not in name]
    generated = [str(path.relative_to(REPOSITORY)) for path in sync_facade.generated()]
    assert sorted(held) == sorted([*expected, *generated])


def test_package_exposes_aio_and_version_lazily() -> None:
    code = "import sys, zlog; print(zlog.aio.Log.__name__, 'importlib.metadata' in sys.modules)"
    assert run(code).split() == ["Log", "False"]
    installed = importlib.metadata.version("zlog-ceph")
    assert run("import zlog; print(zlog.__version__)").strip() == installed
    with pytest.raises(AttributeError, match="module 'zlog' has no attribute 'version'"):
        zlog.version  # type: ignore[attr-defined]  # noqa: B018


def test_python_m_zlog_runs_command() -> None:
    code = """
        import runpy, sys
        sys.argv[1:] = ["--version"]
        runpy.run_module("zlog", run_name="__main__")
    """
    assert run(code).split() == ["zlog", zlog.__version__]


def test_licence_is_installed_and_named() -> None:
    metadata = importlib.metadata.metadata("zlog-ceph")
    assert metadata["License-Expression"] == "Apache-2.0"
    text = importlib.metadata.distribution("zlog-ceph").read_text("licenses/LICENSE")
    assert text == (REPOSITORY / "LICENSE").read_text()


def test_importing_zlog_does_not_load_librados() -> None:
    loaded = run(
        "import sys, zlog; print('zlog._native.rados' in sys.modules, 'rados' in sys.modules)"
    )
    assert loaded.split() == ["False", "False"]


def test_process_wide_state_is_in_one_extension() -> None:
    """The hosts over LMDB and over librados keep tables that a second copy would not know."""
    assert messages.__file__
    files = [*Path(messages.__file__).parent.glob("*.so")]
    for library, module in (("liblmdb.so", "local"), ("librados.so.2", "rados")):
        users = [file.name for file in files if library.encode() in file.read_bytes()]
        assert [name.partition(".")[0] for name in users] == [module]


def test_extensions_export_only_init_function() -> None:
    spec = importlib.util.find_spec("zlog._native.local")
    assert spec is not None
    assert spec.origin is not None
    code = """
        import ctypes, sys
        library = ctypes.CDLL(sys.argv[1])
        print(hasattr(library, "PyInit_local"), hasattr(library, "_ZN4zlog7methodsEv"))
    """
    assert run(code, spec.origin).split() == ["True", "False"]
