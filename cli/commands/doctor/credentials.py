"""Whether the token file for sequencers is usable, and closed to other users."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

from zlog import SequencerRefused
from zlog.admin import Credentials
from zlog.cli.commands.doctor.diagnosis import Diagnosis, Level, failed, ok

_OTHERS = 0o077
"""The permissions of group and others."""


def examine(credentials: Credentials) -> Iterator[Diagnosis]:
    """Look at the token file, if one is named.

    Args:
        credentials: what this client shows to sequencers.
    """
    path = credentials.token_file
    if not path:
        return
    try:
        credentials.token()
    except SequencerRefused as error:
        yield failed("token file", error)
        return
    yield _permissions(path, Path(path).stat().st_mode)


def _permissions(path: str, mode: int) -> Diagnosis:
    if not mode & _OTHERS:
        return ok("token file", f"{path} belongs to its owner alone")
    return Diagnosis(
        "token file",
        Level.WARNING,
        f"other users of this machine have access to {path} (mode {mode & 0o777:04o}); a reader of"
        " it can act as a client, and as a sequencer",
        f"chmod 600 {shlex.quote(path)}; if others may have read it, replace the token too",
    )
