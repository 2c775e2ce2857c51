"""Stored bytes behind the store's back: to look at them, and to damage them.

`door_to` gives a door for a store that has one: memory by peek and poke, Ceph by plain librados
calls. The embedded store's bytes are in its file; see `damage_file`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import parse_qs, urlsplit

import zlog
from zlog._native.local import MemoryStore

from ..support.stores import MEMSTORE, PLAIN
from . import wire

# Of the fixture store_url.
STORES_WITH_DOORS = ("mem", MEMSTORE, "ceph-bluestore", PLAIN)
STORED_VERSION = 1
LATER = 5  # than every version of a record
HEADER = b"zlog.header"  # a stripe object's attribute
HEAD = b"zlog.head"  # a head object's
SEQUENCER = b"zlog.sequencer"  # a directory's


@dataclass(frozen=True)
class Content:
    """All that is stored of one object."""

    attrs: dict[bytes, bytes] = field(default_factory=dict)
    omap: dict[bytes, bytes] = field(default_factory=dict)
    stream: bytes = b""

    def with_attr(self, name: bytes, value: bytes) -> Content:
        """The same with another attribute."""
        return replace(self, attrs={**self.attrs, name: value})

    def with_value(self, key: bytes, value: bytes) -> Content:
        """The same with another value of a key."""
        return replace(self, omap={**self.omap, key: value})

    def without(self, *keys: bytes) -> Content:
        """The same without some keys, which it has."""
        assert self.omap.keys() >= {*keys}
        return replace(self, omap={k: v for k, v in self.omap.items() if k not in keys})

    def replaced(self, old: bytes, new: bytes) -> Content:
        """The same with other bytes, as many, wherever these are."""
        assert len(old) == len(new)
        attrs, omap = (
            {key: value.replace(old, new) for key, value in each.items()}
            for each in (self.attrs, self.omap)
        )
        changed = Content(attrs, omap, self.stream.replace(old, new))
        assert changed != self
        return changed


class Door(Protocol):
    """Reads and replaces what is stored of an object, past all rules."""

    def load(self, name: str) -> Content: ...

    def save(self, name: str, content: Content) -> None: ...


class MemoryDoor:
    """To objects of a `zlog._native.local.MemoryStore`."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store

    def load(self, name: str) -> Content:
        """What is stored; nothing for a missing object."""
        return Content(*(self._store.peek(name) or ({}, {}, b"")))

    def save(self, name: str, content: Content) -> None:
        """Put it there instead."""
        self._store.poke(name, content.attrs, content.omap, content.stream)


class CephDoor:
    """To objects in a pool, by plain reads and writes with no object class in between."""

    def __init__(self, io: Any) -> None:
        self._io = io

    def load(self, name: str) -> Content:
        """What is stored."""
        import rados

        size, _ = self._io.stat(name)
        attrs = {key.encode(): value for key, value in self._io.get_xattrs(name)}
        with rados.ReadOpCtx() as op:
            values, _ = self._io.get_omap_vals(op, "", "", 10_000)
            self._io.operate_read_op(op, name)
            omap = {key.encode(): value or b"" for key, value in values}
        return Content(attrs, omap, self._io.read(name, length=max(size, 1)))

    def save(self, name: str, content: Content) -> None:
        """Put it there instead."""
        import rados

        with contextlib.suppress(rados.ObjectNotFound):
            self._io.remove_object(name)
        with rados.WriteOpCtx() as op:
            op.new(0)
            op.write_full(content.stream)
            if content.omap:
                keys = tuple(key.decode() for key in content.omap)
                self._io.set_omap(op, keys, tuple(content.omap.values()))
            for key, value in content.attrs.items():
                op.set_xattr(key.decode(), value)
            self._io.operate_write_op(op, name)


@contextmanager
def door_to(store: zlog.Store) -> Iterator[Door]:
    """The door to a store's objects; the embedded store has none."""
    if isinstance(store, MemoryStore):
        yield MemoryDoor(store)
        return
    import rados

    url = urlsplit(store.url)
    (conf,) = parse_qs(url.query)["conf"]
    with rados.Rados(conffile=conf) as cluster, cluster.open_ioctx(url.netloc) as io:
        io.set_namespace(url.path.removeprefix("/"))
        yield CephDoor(io)


def damage_file(folder: Path, old: bytes, new: bytes) -> int:
    """Replace bytes in the file of a closed embedded store, wherever they are; how often."""
    assert len(old) == len(new)
    path = folder / "data.mdb"
    content = path.read_bytes()
    path.write_bytes(content.replace(old, new))
    return content.count(old)


ENVELOPE_BYTES = 1 + 1 + 4 + 4  # in front of the fields


def envelope(
    key: bytes,
    fields: bytes,
    payload: bytes = b"",
    version: int = STORED_VERSION,
    compat: int = STORED_VERSION,
) -> bytes:
    """A stored value as it must be: version, compat, length, checksum, fields, payload.

    The checksum is over the key and all that is stored but the payload.
    """
    head = wire.u8(version) + wire.u8(compat) + wire.u32(len(fields))
    return head + wire.u32(wire.crc32c(key + head + fields)) + fields + payload


def fields_of(value: bytes) -> tuple[bytes, bytes]:
    """The fields and the payload of a stored value."""
    length = int.from_bytes(value[2:6], "little")
    return value[ENVELOPE_BYTES : ENVELOPE_BYTES + length], value[ENVELOPE_BYTES + length :]


def of_version(key: bytes, value: bytes, version: int, compat: int = STORED_VERSION) -> bytes:
    """A stored value as another release might have written it, with a right checksum."""
    fields, payload = fields_of(value)
    return envelope(key, fields, payload, version, compat)
