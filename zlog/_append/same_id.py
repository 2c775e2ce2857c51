"""Compares stored entries by content with the appends that may have written them.

The object class does not decompress. If it stores an entry with the same id, length and checksum,
but in another block than the one sent, it answers SAME_ID. The writer must then compare the
contents, because a hostile reader can store other data under an append id.
"""

from __future__ import annotations

import errno
import hashlib
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from zlog._base.codes import Code, State
from zlog._base.deadline import Deadline
from zlog._base.io import Call
from zlog._base.refusals import refused_call
from zlog._layout.layout import Layout
from zlog._native import messages
from zlog._native.new_entries import NewEntry, Tagged
from zlog._native.replies import FORGED, decode_read
from zlog.view import ObjectRef, View

_BYTES_MAX = 4 << 20


class AppendId(NamedTuple):
    """The identity of an append, and its entry."""

    writer: bytes
    number: int
    entry: NewEntry


async def compare(
    layout: Layout, ref: ObjectRef, wanted: Mapping[int, AppendId], deadline: Deadline
) -> dict[int, bool | None]:
    """Compare entries of an object with the appends that are expected at their positions.

    A position's result is True if it holds the expected entry, False if it holds another, and None
    if its entry is damaged or from a newer version of zlog. Raises ZlogError if the read fails.
    """
    found: dict[int, bool | None] = {}
    rest = sorted(wanted)
    while rest:
        asked: Sequence[int] = rest

        def calls(view: View, asked: Sequence[int] = asked) -> list[Call]:
            packed = ref.striping.packed
            request = messages.read(
                view.epoch, True, _BYTES_MAX, packed, asked, blocks=True, tags=True
            )
            return [Call(ref.name, "read", request)]

        _, (reply,) = await layout.guarded(calls, deadline)
        if reply.code == -errno.ENOENT:
            break  # the object was removed; the next write will notice
        if reply.code != Code.OK:
            raise refused_call(reply.code, "read", ref.name)
        stored = decode_read(reply.payload, asked, layout.macs.key)
        for i, position in enumerate(asked[: len(stored)]):
            if stored.state(i) == State.WRITTEN:
                own = AppendId(stored.writer(i), stored.number(i), stored.entry(i))
                found[position] = own == wanted[position]
            elif stored.state(i) == FORGED:  # its MAC is not the one that was sent
                found[position] = False
            elif stored.state(i) in (State.LOST, State.UNREADABLE):
                found[position] = None
        rest = rest[len(stored) :]
    return found


def digest(entry: NewEntry, person: bytes = b"", prefix: bytes = b"") -> bytes:
    """Return 16 bytes that identify an entry's content. ``person`` is a parameter of blake2b."""
    if isinstance(entry, Tagged):
        return digest_of(entry.data, entry.tags, person, prefix)
    return digest_of(entry, (), person, prefix)


def digest_of(
    data: bytes, tags: tuple[str, ...], person: bytes = b"", prefix: bytes = b""
) -> bytes:
    """Return the digest of data and tags. The order of tags does not matter."""
    salt = b""
    if tags:
        names = sorted(tag.encode() for tag in set(tags))
        listed = b"".join(bytes((len(name) & 0xFF,)) + name for name in names)
        salt = hashlib.blake2b(listed, digest_size=16, person=b"zlog tags").digest()
    found = hashlib.blake2b(prefix, digest_size=16, person=person, salt=salt)
    found.update(data)
    return found.digest()
