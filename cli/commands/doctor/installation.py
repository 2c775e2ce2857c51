"""The parts of zlog that are installed on this machine."""

from __future__ import annotations

import importlib
import platform
from collections.abc import Iterator

import zlog
from zlog.admin import extension_file, librados_file
from zlog.cli.commands.doctor.diagnosis import Diagnosis, Level, note, ok
from zlog.cli.exit_codes import ExitCode
from zlog.errors import StoreUnavailable


def examine(*, ceph: bool) -> Iterator[Diagnosis]:
    """Examine the installation. With ``ceph``, it must have the parts for stores on Ceph."""
    yield ok("zlog", f"version {zlog.__version__}, on Python {platform.python_version()}")
    yield ok("embedded store", f"built in ({extension_file()})")
    yield _librados(needed=ceph)
    yield _python_rados()


def _librados(*, needed: bool) -> Diagnosis:
    try:
        return ok("librados", f"there ({librados_file()})")
    except StoreUnavailable as error:
        level = Level.FAILURE if needed else Level.NOTE
        return Diagnosis("librados", level, str(error), error.hint, ExitCode.UNREACHABLE)


def _python_rados() -> Diagnosis:
    part = "python-rados"
    try:
        module = importlib.import_module("rados")
    except ImportError as error:
        missing = isinstance(error, ModuleNotFoundError)
        why = "not installed" if missing else f"it does not load: {error}"
        text = f"{why}; only needed to use a rados.Ioctx as a store"
        fix = (
            "apt install python3-rados, and make the virtual environment with"
            " --system-site-packages"
        )
        return note(part, text, fix)
    return ok(part, f"there ({module.__file__})")
