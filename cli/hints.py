"""Hints for errors, in the words of the command line and with the name of the log."""

from __future__ import annotations

import re

from zlog import (
    AppendRefused,
    Conflict,
    EntryTooLarge,
    Fenced,
    HeldByCursor,
    Invalidated,
    KeyNeeded,
    StoreTimeout,
    ZlogError,
)

_WORDS: dict[type[ZlogError], str] = {
    AppendRefused: "Append to its source, or make it a separate log: `zlog access promote LOG`.",
    Conflict: "Read the new entries (`zlog read LOG`), and append with a new condition.",
    Fenced: (
        "`zlog access show LOG` shows who writes it now. `zlog append LOG --exclusive` fences that"
        " writer and takes the log back. If the log is read-only, open it first:"
        " `zlog access read-only LOG --off`."
    ),
    EntryTooLarge: "Split the entry, or raise --max-bytes or the log's limit (16M at most).",
    KeyNeeded: "Specify the file with the key: --mac-key-file FILE, or $ZLOG_MAC_KEY_FILE.",
    HeldByCursor: (
        "Wait for the cursor's reader (`zlog cursor ls LOG`), remove the cursor if its"
        " reader no longer exists, or trim anyway with --past-cursors."
    ),
    StoreTimeout: (
        "The store is slow or unreachable (`zlog doctor`), or --timeout is too short; it is"
        " unknown whether a write took effect."
    ),
    Invalidated: "The position never gets an entry. A range such as `zlog read LOG P:` skips it.",
}
"""Hints instead of the library's own, which name its calls and arguments."""


def hint_of(error: ZlogError, log: str | None) -> str:
    """Return a hint for the error that ended a command.

    Args:
        log: the name of the command's log, if it has exactly one.
    """
    own = (words for kind, words in _WORDS.items() if isinstance(error, kind))
    hint = next(own, error.hint) if error.hint == type(error).hint else error.hint
    return hint if log is None else re.sub(r"\bLOG\b", log, hint)
