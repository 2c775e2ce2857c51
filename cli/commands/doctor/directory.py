"""The directory of an embedded store, its disk and its file system."""

from __future__ import annotations

import os
import pwd
import shlex
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from zlog.cli.commands.doctor.diagnosis import Diagnosis, failure, note, ok, warning
from zlog.cli.exit_codes import ExitCode
from zlog.cli.units import human_bytes

_PART = "directory"
_DATA_FILE = "data.mdb"
_LOCK_FILE = "lock.mdb"

_ANOTHER = "name another directory with --store"

_FULL_BYTES = 1 << 20
"""With less free space, the store refuses writes (cls_zlog/host/lmdb/env.cc)."""

_LOW_BYTES = 16 << 20
_LOW_SHARE = 0.05

_REMOTE = frozenset(("9p", "ceph", "cifs", "fuse.sshfs", "glusterfs", "nfs", "nfs4", "smb3"))
"""File systems that do not share locks and mapped memory, as LMDB requires."""


def examine(path: Path, *, read_only: bool = False) -> Iterator[Diagnosis]:
    """Examine an embedded store's directory, which need not exist, and its file system.

    Args:
        read_only: whether the store is opened for reading only (``?mode=ro``).
    """
    ground = _existing(path)
    data = path / _DATA_FILE
    if ground is None:
        yield _failure(f"{path} is in a directory that this user is not allowed to enter", _ANOTHER)
        return
    if not ground.is_dir():
        yield _failure(f"{ground} is not a directory", _ANOTHER)
    elif read_only:
        yield _readable(path)
        return
    elif not os.access(ground, os.R_OK | os.W_OK | os.X_OK):
        yield _not_writable(ground, path)
    elif ground != path:
        yield note(_PART, f"{path} does not exist yet; `zlog create` creates it")
    elif not data.exists():
        yield ok(_PART, f"{path} is writable and contains no store yet")
    elif not os.access(data, os.R_OK | os.W_OK):
        yield _not_writable(data, path)
    else:
        used = human_bytes(data.stat().st_blocks * 512)
        yield ok(_PART, f"{path} is writable; the store takes {used}")
    kind = _file_system(ground)
    if kind in _REMOTE:
        yield warning(
            "file system",
            f"{ground} is on {kind}, where the store is destroyed if several machines use it at"
            " once",
            "put the store on a local disk, or the logs on Ceph",
        )


def _readable(path: Path) -> Diagnosis:
    """Examine whether this user can read the store while others write."""
    data, listing = path / _DATA_FILE, path / _LOCK_FILE
    if not os.access(data, os.F_OK):
        return _failure(f"{path} contains no store that this user can see", _ANOTHER)
    if not os.access(data, os.R_OK):
        return _failure(f"{data} is not readable for this user", f"sudo chmod a+r {_word(data)}")
    if os.access(listing, os.R_OK | os.W_OK):
        return ok(_PART, f"{path} can be read, also while processes write")
    return ok(
        _PART,
        f"{path} can be read only while no process writes, because this user can't write to"
        f" {_LOCK_FILE}, where readers must register",
    )


def _existing(path: Path) -> Path | None:
    """Return the path or its nearest parent that exists; None if this user may not see it."""
    try:
        while not path.exists() and path != path.parent:
            path = path.parent
    except PermissionError:
        return None
    return path


def _not_writable(what: Path, path: Path) -> Diagnosis:
    """Report that this user cannot write to ``what``, which a store in ``path`` needs."""
    read = ""
    if os.access(path / _DATA_FILE, os.R_OK):
        read = f"; to read it: --store {_word(f'{path.absolute().as_uri()}?mode=ro')}"
    if os.statvfs(what).f_flag & os.ST_RDONLY:
        return _failure(f"{what} is on a read-only file system", f"{_ANOTHER}{read}")
    return _failure(f"{what} is not writable for this user", f"{_grant(path)}, or {_ANOTHER}{read}")


def _grant(path: Path) -> str:
    """Return how this user gets the right to write to a directory."""
    where, user = _word(path), os.environ.get("USER", "USER")
    if not path.exists():
        # Not for the parent of the store, which may belong to another user.
        return f"sudo install -d -o {user} {where}"
    owner = path.stat().st_uid
    if owner == os.geteuid():
        return f"chmod -R u+rwX {where}"
    with suppress(KeyError):
        return f"ask {pwd.getpwuid(owner).pw_name} for the right to write to all of {where}"
    return f"sudo chown -R {user} {where}"  # its owner no longer exists


def _word(path: Path | str) -> str:
    return shlex.quote(str(path))


def examine_disk(path: Path, space_inside: int = 0) -> Diagnosis:
    """Examine how much an embedded store can grow.

    Args:
        space_inside: the number of free bytes inside the store's file.
    """
    usage = shutil.disk_usage(_existing(path) or path)
    text = f"{human_bytes(usage.free)} of {human_bytes(usage.total)} are free"
    fix = "free some space, or trim logs: zlog trim LOG --to POSITION"
    if usage.free < _FULL_BYTES <= space_inside:
        text = (
            f"full: {text}. New entries can still use {human_bytes(space_inside)} that"
            " are free inside the store"
        )
        return warning("disk", text, fix)
    if usage.free < _FULL_BYTES:
        return failure("disk", f"full: {text}", fix)
    if usage.free < max(_LOW_BYTES, usage.total * _LOW_SHARE):
        return warning("disk", f"only {text}", fix)
    return ok("disk", text)


def _file_system(path: Path) -> str:
    """Return the type of a path's file system; empty if it is unknown."""
    try:
        lines = Path("/proc/self/mounts").read_text(errors="surrogateescape").splitlines()
    except OSError:
        return ""
    mounts = {fields[1]: fields[2] for line in lines if len(fields := line.split(" ")) > 2}
    real = path.resolve()
    for each in (real, *real.parents):
        if kind := mounts.get(str(each)):
            return kind
    return ""


def _failure(text: str, fix: str) -> Diagnosis:
    return failure(_PART, text, fix, ExitCode.UNREACHABLE)
