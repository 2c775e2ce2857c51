"""Knows whether a log's entries have MACs, and keeps the key to make and check them."""

from __future__ import annotations

from zlog._base.mac import MAC_BYTES, MAC_HMAC_SHA256, Key
from zlog._native.replies import MacKey
from zlog.errors import KeyNeeded, MacsMissing, UnsupportedVersion, WrongKey
from zlog.view import View


class Macs:
    """The MACs of one log's entries. A log has MACs from its creation on, or not at all.

    Attributes:
        key: the key for encoding and decoding entries. It is None if they have no MACs, and a
            placeholder if they do but this client has no key.
        missing: whether entries have MACs but this client has no key.
        bytes: the size of the MAC that follows an entry's data.
    """

    def __init__(self, key: Key | None, view: View, url: str) -> None:
        self._own = key
        self._id = "" if view.mac is None else view.mac.key_id
        self._what = f"log {view.log!r} in {url}"
        self.check(view)
        self.missing = view.mac is not None and key is None
        self.bytes = 0 if view.mac is None else MAC_BYTES
        self.key: MacKey | None = None
        if view.mac is not None:
            self.key = MacKey(None) if key is None else key.of_log(view.log, view.log_id)

    def check_key(self) -> None:
        """Raise KeyNeeded if the key is missing."""
        if self.missing:
            raise KeyNeeded(
                f"the entries of {self._what} have MACs made with the key {self._id}, but no key"
                " was given"
            )

    def check(self, view: View) -> None:
        """Raise WrongKey, MacsMissing or UnsupportedVersion if a view lacks the given key."""
        if self._own is None:
            return
        if view.mac is None:
            raise MacsMissing(f"a key was given, but the entries of {self._what} have no MACs")
        if view.mac.algorithm != MAC_HMAC_SHA256:
            raise UnsupportedVersion(
                f"{self._what} has MACs in a format that only a newer version of zlog supports"
            )
        if view.mac.key_id != self._own.id:
            raise WrongKey(
                f"the key that was given has the id {self._own.id}, but the key of {self._what}"
                f" has the id {view.mac.key_id}"
            )
