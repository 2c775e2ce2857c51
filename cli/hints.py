"""What to do about an error, in the words of the command line and for the store at hand."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from zlog import (
    EntryTooLarge,
    Invalidated,
    SequencerUnavailable,
    StoreTimeout,
    StoreUnavailable,
    ZlogError,
)

_WORDS: dict[type[ZlogError], str] = {
    EntryTooLarge: "Split the entry, or raise --max-bytes (16M at most).",
    StoreTimeout: (
        "The store is slow or unreachable (`zlog doctor`), or --timeout is too short; whether a"
        " write took effect is unknown."
    ),
    Invalidated: "It holds no entry, for good; a range such as `zlog read LOG P:` passes over it.",
}
"""Where the library's own hint names calls and arguments of the library."""

_CONFS = ("/etc/ceph/ceph.conf", "~/.ceph/ceph.conf", "./ceph.conf")
"""Where librados looks for its configuration, after ``$CEPH_CONF`` (Ceph's manual, "Config")."""


def hint_of(error: ZlogError, url: str) -> str:
    """Return what the user can do.

    Args:
        error: that ended the command.
        url: of the store, as its user names it.
    """
    for kind, words in _WORDS.items():
        if isinstance(error, kind) and error.hint == kind.hint:
            return words
    if urlsplit(url).scheme != "ceph":
        if isinstance(error, SequencerUnavailable) and error.hint == SequencerUnavailable.hint:
            return "The store did not answer in time: give it more with --timeout."
    elif isinstance(error, StoreUnavailable) and _no_conf(url):
        return (
            f"There is no ceph.conf: looked for $CEPH_CONF, {', '.join(_CONFS)}. Name one with"
            " ?conf=PATH in the URL, or with -c PATH."
        )
    return error.hint


def _no_conf(url: str) -> bool:
    """Whether librados is left to find its configuration, and there is none."""
    if "conf" in parse_qs(urlsplit(url).query) or os.environ.get("CEPH_CONF"):
        return False
    return not any(Path(path).expanduser().exists() for path in _CONFS)
