"""Keys that authenticate entries. Without the key, not even a store's owner can forge an entry.

docs/formats/mac.md describes the MACs, and the keys that are derived from the given one.
"""

from __future__ import annotations

import hmac
import os
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from zlog._base.codes import MAC_KEY_ID_BYTES
from zlog._native.replies import MacKey
from zlog.errors import ZlogError
from zlog.limits import MAC_KEY_BYTES_MAX, MAC_KEY_BYTES_MIN

MAC_HMAC_SHA256 = 1
"""The number for this version's kind of MACs in views."""

MAC_BYTES = 16
"""The size of a MAC in bytes. The MAC follows an entry's data."""

MacKeySource = bytes | os.PathLike[str] | Callable[[], bytes]
"""A key as a program gives it: its bytes, the path of its file, or a function that returns it."""


class Key:
    """A key, which never appears in a repr, an error or a pickle.

    Attributes:
        id: identifies the key, 32 hex digits. It can be public if the key is hard to guess.
    """

    __slots__ = ("_key", "id")

    def __init__(self, key: bytes) -> None:
        self._key = key
        self.id = self._derived(b"zlog key id 1")[:MAC_KEY_ID_BYTES].hex()

    def of_log(self, name: str, log_id: int) -> MacKey:
        """Derive the key for a log's MACs. Raises ZlogError if OpenSSL is missing."""
        derived = self._derived(b"zlog log key 1" + log_id.to_bytes(8, "little") + name.encode())
        try:
            return MacKey(derived)
        except RuntimeError as error:
            raise ZlogError(
                f"the key of log {name!r} cannot be used: {error}",
                hint="Install OpenSSL 3 (libssl3 on Debian and Ubuntu, openssl-libs on RPM).",
            ) from None

    def _derived(self, what: bytes) -> bytes:
        return hmac.digest(self._key, what, "sha256")

    def __repr__(self) -> str:
        return f"<key {self.id}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a key can't be pickled or copied: read it again in the other process")


def key_of(given: MacKeySource | None) -> Key | None:
    """Return the key that a program has given, or None. See :func:`key_bytes`."""
    return None if given is None else Key(key_bytes(given))


def key_bytes(given: MacKeySource) -> bytes:
    """Return the bytes of a key.

    Raises:
        TypeError: the source has another type, such as str, which could be a key or a path.
        ValueError: the key is too short or too long.
        OSError: the file cannot be read.
    """
    if isinstance(given, os.PathLike):
        with Path(given).open("rb") as file:
            key: object = file.read(MAC_KEY_BYTES_MAX + 1)
    else:
        key = given() if callable(given) else given
    if not isinstance(key, (bytes, bytearray)):
        what = "the function returned" if callable(given) else "not"
        raise TypeError(
            f"mac_key must be bytes, a pathlib.Path, or a function that returns bytes; {what}"
            f" {type(key).__name__}"
        )
    if not MAC_KEY_BYTES_MIN <= len(key) <= MAC_KEY_BYTES_MAX:
        size = f"more than {MAC_KEY_BYTES_MAX}" if len(key) > MAC_KEY_BYTES_MAX else len(key)
        where = f" ({os.fspath(given)})" if isinstance(given, os.PathLike) else ""
        raise ValueError(
            f"a key must have {MAC_KEY_BYTES_MIN} to {MAC_KEY_BYTES_MAX} bytes, not"
            f" {size}{where}; use 32 random bytes"
        )
    return bytes(key)
