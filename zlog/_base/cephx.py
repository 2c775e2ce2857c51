"""What makes Ceph's monitors refuse a key: its type, and the release of librados.

Since CVE-2025-30156 there are two types of keys. Releases before 19.2.6 and 20.2.4 know only the
older type, and monitors of later releases can refuse it.
"""

from __future__ import annotations

import base64
import binascii
import configparser
import ctypes
import struct
from pathlib import Path

_TYPES = {1: "AES", 2: "AES256K"}
"""Key types by the number that a key begins with (Ceph's ``src/include/ceph_fs.h``)."""


def key_type(keyring: Path, entity: str) -> str | None:
    """Return the type of an entity's key in a keyring file; None if that cannot be read."""
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        parser.read_string("\n".join(line.strip() for line in keyring.read_text().splitlines()))
        key = base64.b64decode(parser[entity]["key"], validate=True)
        (number,) = struct.unpack_from("<H", key)
    except (OSError, UnicodeError, configparser.Error, KeyError, binascii.Error, struct.error):
        return None
    return _TYPES.get(number, f"number {number}")


def librados_version() -> str | None:
    """Return the Ceph release of the librados in this process, such as ``19.2.3``.

    Returns None if librados is not loaded or does not report its release.
    """
    try:  # librados' C API does not tell; this is ceph_version_to_str() of C++
        function = ctypes.CDLL("libceph-common.so.2")._Z19ceph_version_to_strv
    except (OSError, AttributeError):
        return None
    function.restype = ctypes.c_char_p
    version: bytes = function()
    return version.decode()
