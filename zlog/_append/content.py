"""The content of an entry, as far as two are the same: its data and its tags."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from zlog._native.new_entries import Tagged

if TYPE_CHECKING:
    from zlog._native.new_entries import NewEntry


def digest(entry: NewEntry, person: bytes = b"", prefix: bytes = b"") -> bytes:
    """Return 16 bytes that tell an entry from others; ``person`` as :func:`hashlib.blake2b`."""
    if isinstance(entry, Tagged):
        return digest_of(entry.data, entry.tags, person, prefix)
    return digest_of(entry, (), person, prefix)


def digest_of(
    data: bytes, tags: tuple[str, ...], person: bytes = b"", prefix: bytes = b""
) -> bytes:
    """Return the same of an entry that is taken apart. The order of tags means nothing."""
    salt = b""
    if tags:
        names = sorted(tag.encode() for tag in set(tags))
        listed = b"".join(bytes((len(name) & 0xFF,)) + name for name in names)
        salt = hashlib.blake2b(listed, digest_size=16, person=b"zlog tags").digest()
    what = hashlib.blake2b(prefix, digest_size=16, person=person, salt=salt)
    what.update(data)
    return what.digest()
