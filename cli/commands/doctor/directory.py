"""Whether a local directory can hold an embedded store."""

from __future__ import annotations

import os
import pwd
import shlex
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from zlog.cli.commands.doctor.diagnosis import Diagnosis, Level, ok
from zlog.cli.exit_codes import ExitCode
from zlog.cli.units import human_bytes

_PART = "directory"
_DATA_FILE = "data.mdb"
_LOCK_FILE = "lock.mdb"

_ANOTHER = "name another directory with --store"

_FULL_BYTES = 1 << 20
"""With less left, the store itself takes a disk for full (cls_zlog/host/lmdb/env.cc)."""

_LOW_BYTES = 16 << 20
_LOW_SHARE = 0.05

_REMOTE = frozenset(("9p", "ceph", "cifs", "fuse.sshfs", "glusterfs", "nfs", "nfs4", "smb3"))
"""File systems on which locks and mapped memory are not shared as LMDB needs it."""


def examine(path: Path, *, read_only: bool = False) -> Iterator[Diagnosis]:
    """Look at the directory and its file system, without making it.

    Args:
        path: of the directory.
        read_only: whether it is only to be read (``?mode=ro``).
    """
    ground = _existing(path)
    if ground is None:
        yield _failure(f"{path} is in a directory that this user may not enter", _ANOTHER)
        return
    if not ground.is_dir():
        yield _failure(f"{ground} is not a directory", _ANOTHER)
    elif read_only:
        yield _readable(path)
        return
    elif not os.access(ground, os.R_OK | os.W_OK | os.X_OK):
        yield _not_writable(ground, path)
    elif ground != path:
        yield Diagnosis(_PART, Level.NOTE, f"{path} is not there yet; `zlog create` makes it")
    else:
        yield from _store_in(path)
    yield from _remote(ground)


def _readable(path: Path) -> Diagnosis:
    """Say whether this user can read the store in a directory, and beside whom."""
    data, listing = path / _DATA_FILE, path / _LOCK_FILE
    if not os.access(data, os.F_OK):
        return _failure(f"there is no store in {path} that this user may see", _ANOTHER)
    if not os.access(data, os.R_OK):
        return _failure(f"{data} is not readable for this user", f"sudo chmod a+r {_word(data)}")
    if os.access(listing, os.R_OK | os.W_OK):
        return ok(_PART, f"{path} can be read, also beside processes that write")
    return ok(
        _PART,
        f"{path} can be read while no process writes: this user can't write {_LOCK_FILE}, in"
        " which readers are listed",
    )


def _existing(path: Path) -> Path | None:
    """Return the nearest of the path and its parents that is there; None: not for us to know."""
    try:
        while not path.exists() and path != path.parent:
            path = path.parent
    except PermissionError:
        return None
    return path


def _not_writable(what: Path, path: Path) -> Diagnosis:
    """Say why this user can't write to what a store in ``path`` needs."""
    read = ""
    if os.access(path / _DATA_FILE, os.R_OK):
        read = f"; to read it: --store {_word(f'{path.absolute().as_uri()}?mode=ro')}"
    if os.statvfs(what).f_flag & os.ST_RDONLY:
        return _failure(f"{what} is on a read-only file system", f"{_ANOTHER}{read}")
    return _failure(f"{what} is not writable for this user", f"{_grant(path)}, or {_ANOTHER}{read}")


def _grant(path: Path) -> str:
    """Say how this user gets the right to write to a directory."""
    where, user = _word(path), os.environ.get("USER", "USER")
    if not path.exists():
        # Never the parent of a store that is to be made: it belongs to another user.
        return f"sudo install -d -o {user} {where}"
    owner = path.stat().st_uid
    if owner == os.geteuid():
        return f"chmod -R u+rwX {where}"
    with suppress(KeyError):
        return f"ask {pwd.getpwuid(owner).pw_name} for the right to write to all of {where}"
    return f"sudo chown -R {user} {where}"  # of a user that is no more


def _word(path: Path | str) -> str:
    return shlex.quote(str(path))


def _store_in(path: Path) -> Iterator[Diagnosis]:
    data = path / _DATA_FILE
    if not data.exists():
        yield ok(_PART, f"{path} is writable, and has no store in it so far")
    elif not os.access(data, os.R_OK | os.W_OK):
        yield _not_writable(data, path)
    else:
        used = human_bytes(data.stat().st_blocks * 512)
        yield ok(_PART, f"{path} is writable; the store takes {used}")


def examine_disk(path: Path, room_inside: int = 0) -> Diagnosis:
    """Look at how much a store can grow.

    Args:
        path: of its directory, which may not exist yet.
        room_inside: bytes that fit into the store's file without making it larger.
    """
    usage = shutil.disk_usage(_existing(path) or path)
    text = f"{human_bytes(usage.free)} of {human_bytes(usage.total)} are free"
    mend = "free some space, or trim logs: zlog trim LOG --to POSITION"
    if usage.free < _FULL_BYTES <= room_inside:
        text = f"full: {text}. Entries go into {human_bytes(room_inside)} free in the store"
        return Diagnosis("disk", Level.WARNING, text, mend)
    if usage.free < _FULL_BYTES:
        return Diagnosis("disk", Level.FAILURE, f"full: {text}", mend)
    if usage.free < max(_LOW_BYTES, usage.total * _LOW_SHARE):
        return Diagnosis("disk", Level.WARNING, f"only {text}", mend)
    return ok("disk", text)


def _remote(path: Path) -> Iterator[Diagnosis]:
    kind = _file_system(path)
    if kind in _REMOTE:
        yield Diagnosis(
            "file system",
            Level.WARNING,
            f"{path} is on {kind}: several machines that use the store at once destroy it",
            "put the store on a local disk, or the logs on Ceph",
        )


def _file_system(path: Path) -> str:
    """Return the type of the file system that holds a path; empty when the system doesn't tell."""
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


def _failure(text: str, mend: str) -> Diagnosis:
    return Diagnosis(_PART, Level.FAILURE, text, mend, ExitCode.UNREACHABLE)
