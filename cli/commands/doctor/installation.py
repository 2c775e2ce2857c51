"""The parts of zlog on this machine, and the token file for sequencers."""

from __future__ import annotations

import importlib
import platform
import shlex
from collections.abc import Iterator
from pathlib import Path

import zlog
from zlog.admin import Credentials, extension_file, librados_file, librados_version
from zlog.cli.commands.doctor.diagnosis import Diagnosis, Level, failed, note, ok, warning
from zlog.cli.exit_codes import ExitCode
from zlog.errors import SequencerRefused, StoreUnavailable

_OTHERS = 0o077
"""The permissions of group and others."""


def examine(*, ceph: bool) -> Iterator[Diagnosis]:
    """Examine the installation. If ``ceph`` is set, it must have the parts for stores on Ceph."""
    yield ok("zlog", f"version {zlog.__version__}, on Python {platform.python_version()}")
    yield ok("embedded store", f"built in ({extension_file()})")
    yield _librados(needed=ceph)
    yield _python_rados()


def _librados(*, needed: bool) -> Diagnosis:
    try:
        path = librados_file()
        return ok("librados", f"version {librados_version() or 'unknown'} ({path})")
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
            "apt install python3-rados, and create the virtual environment with"
            " --system-site-packages"
        )
        return note(part, text, fix)
    return ok(part, f"found ({module.__file__})")


def examine_token(credentials: Credentials) -> Iterator[Diagnosis]:
    """Examine the token file of a client, if one is named."""
    path = credentials.token_file
    if not path:
        return
    try:
        credentials.token()
    except SequencerRefused as error:
        yield failed("token file", error)
        return
    mode = Path(path).stat().st_mode
    if not mode & _OTHERS:
        yield ok("token file", f"{path} belongs to its owner alone")
        return
    yield warning(
        "token file",
        f"other users of this machine have access to {path} (mode {mode & 0o777:04o}), and"
        " can use it to act as a client or as a sequencer",
        f"chmod 600 {shlex.quote(path)}; if others may have read it, replace the token too",
    )
