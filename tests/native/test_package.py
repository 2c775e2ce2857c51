"""What is installed: one package and its name for Spark, no sources, modules that import."""

from __future__ import annotations

import importlib.metadata
import importlib.util
from pathlib import PurePosixPath

import pytest

import zlog
from tests.support.programs import REPOSITORY

from .support import run


def installed_files() -> list[PurePosixPath]:
    files = importlib.metadata.files("zlog-ceph")
    assert files
    return [PurePosixPath(str(file)) for file in files]


def test_the_only_top_level_package_is_zlog_beside_the_one_that_spark_looks_for() -> None:
    tops = {file.parts[0] for file in installed_files() if file.parts[0] != ".."}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"zlog", "pyspark_zlog"}


def test_the_commands_and_the_sequencer_are_inside_the_package() -> None:
    files = set(installed_files())
    assert PurePosixPath("zlog/cli/main.py") in files
    assert PurePosixPath("zlog/seqr/__init__.py") in files


def test_no_sources_of_the_extensions_are_installed() -> None:
    sources = {".pyx", ".pxd", ".pxi", ".cc", ".h", ".txt", ".cpp"}
    in_package = [file for file in installed_files() if file.parts[0] == "zlog"]
    assert [file for file in in_package if file.suffix in sources] == []


def test_types_are_installed() -> None:
    files = set(installed_files())
    assert {PurePosixPath(f"zlog/{name}") for name in ("py.typed", "_native/core.pyi")} <= files


def test_zlog_brings_asyncio_and_its_version() -> None:
    code = "import sys, zlog; print(zlog.aio.Log.__name__, 'importlib.metadata' in sys.modules)"
    assert run(code).split() == ["Log", "False"]
    installed = importlib.metadata.version("zlog-ceph")
    assert run("import zlog; print(zlog.__version__)").strip() == installed
    with pytest.raises(AttributeError, match="module 'zlog' has no attribute 'version'"):
        zlog.version  # type: ignore[attr-defined]  # noqa: B018


def test_python_m_zlog_is_the_command() -> None:
    code = """
        import runpy, sys
        sys.argv[1:] = ["--version"]
        runpy.run_module("zlog", run_name="__main__")
    """
    assert run(code).split() == ["zlog", zlog.__version__]


def test_the_licence_is_installed_and_named() -> None:
    metadata = importlib.metadata.metadata("zlog-ceph")
    assert metadata["License-Expression"] == "Apache-2.0"
    (licence,) = [file for file in installed_files() if file.name == "LICENSE"]
    text = importlib.metadata.distribution("zlog-ceph").read_text(f"licenses/{licence.name}")
    assert text == (REPOSITORY / "LICENSE").read_text()


def test_importing_zlog_loads_no_librados() -> None:
    loaded = run(
        "import sys, zlog; print('zlog._native.rados' in sys.modules, 'rados' in sys.modules)"
    )
    assert loaded.split() == ["False", "False"]


def test_extensions_export_their_start_only() -> None:
    spec = importlib.util.find_spec("zlog._native.core")
    assert spec is not None
    assert spec.origin is not None
    code = """
        import ctypes, sys
        library = ctypes.CDLL(sys.argv[1])
        print(hasattr(library, "PyInit_core"), hasattr(library, "_ZN4zlog7methodsEv"))
    """
    assert run(code, spec.origin).split() == ["True", "False"]
