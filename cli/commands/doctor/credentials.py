"""The token file for sequencers: whether it is usable, and other users have no access."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

from zlog import SequencerRefused
from zlog.admin import Credentials
from zlog.cli.commands.doctor.diagnosis import Diagnosis, failed, ok, warning

_OTHERS = 0o077
"""The permissions of group and others."""


def examine(credentials: Credentials) -> Iterator[Diagnosis]:
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
        f"other users of this machine have access to {path} (mode {mode & 0o777:04o}); a reader of"
        " it can act as a client, and as a sequencer",
        f"chmod 600 {shlex.quote(path)}; if others may have read it, replace the token too",
    )
