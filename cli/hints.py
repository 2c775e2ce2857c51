"""What to do about an error, in the words of the command line and for the store at hand."""

from __future__ import annotations

from urllib.parse import urlsplit

from zlog import (
    EntryTooLarge,
    Invalidated,
    StoreTimeout,
    ZlogError,
)

_WORDS: dict[type[ZlogError], str] = {
    EntryTooLarge: "Split the entry, or raise --max-bytes (16M at most).",
    StoreTimeout: (
        "The store is slow or unreachable (`zlog doctor`), or --timeout is too short; whether a"
        " write took effect is unknown."
    ),
    Invalidated: "It never will hold an entry; a range such as `zlog read LOG P:` passes over it.",
}
"""Where the library's own hint names calls and arguments of the library."""


def hint_of(error: ZlogError, url: str) -> str:
    """Return what the user can do.

    Args:
        error: that ended the command.
        url: of the store, as its user names it.
    """
    for kind, words in _WORDS.items():
        if isinstance(error, kind) and error.hint == kind.hint:
            return words
    return error.hint
