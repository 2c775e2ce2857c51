"""The keys of a cluster, with which its monitor starts."""

from __future__ import annotations

import base64
import os
import struct
import time
from collections.abc import Iterable

_CAPS = {
    "mon": {"mon": "allow *"},
    "mgr": {"mon": "allow profile mgr", "osd": "allow *", "mds": "allow *"},
    "osd": {"mon": "allow profile osd", "mgr": "allow profile osd", "osd": "allow *"},
    "client": {"mon": "allow *", "mgr": "allow *", "osd": "allow *"},
}


def render_keyring(names: Iterable[str]) -> str:
    """Return a keyring with a new key and caps for each name (such as `osd.0`)."""
    lines = []
    for name in names:
        lines += [f"[{name}]", f"\tkey = {_new_key()}"]
        caps = _CAPS[name.partition(".")[0]]
        lines += [f'\tcaps {service} = "{cap}"' for service, cap in caps.items()]
    return "\n".join(lines) + "\n"


def _new_key() -> str:
    """Return a cephx secret: type 1 (AES), the time, a length, and that many random bytes."""
    secret = os.urandom(16)
    header = struct.pack("<HIIH", 1, int(time.time()), 0, len(secret))
    return base64.b64encode(header + secret).decode()
