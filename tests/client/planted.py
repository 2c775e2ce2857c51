"""Faults planted in a log behind its back, on every host."""

from __future__ import annotations

import mmap
from collections.abc import Iterable
from pathlib import Path

import zlog
from zlog._base.io import deadline_of
from zlog._base.names import stripe_object
from zlog._catalog.head import Head
from zlog._io import BlockingIo, drive
from zlog._layout.stripe_objects import seal as seal_objects
from zlog._native import messages
from zlog._native.local import EmbeddedStore
from zlog._native.replies import ReadReply, decode_read
from zlog._native.writes import encode_write
from zlog.view import ObjectRef

from ..conformance.stored import door_to


def flip(store: zlog.Store, name: str, old: bytes, new: bytes) -> None:
    """Change stored bytes of an object, of the same number, as a disk does that fails."""
    if isinstance(store, EmbeddedStore):
        _flip_in_file(Path(store.path) / "data.mdb", old, new)
        return
    with door_to(store) as door:
        door.save(name, door.load(name).replaced(old, new))


def _flip_in_file(path: Path, old: bytes, new: bytes) -> None:
    """In place: the store has the file mapped, and sees it at once."""
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as content:
        at = content.find(old)
        assert at >= 0
        while at >= 0:
            content[at : at + len(new)] = new
            at = content.find(old, at + 1)


def make_lost(log: zlog.Log, position: int) -> None:
    """Damage the record of an entry in memory that was appended alone."""
    name = log.view.object_of(position).name
    with door_to(log.store) as door:
        door.save(name, door.load(name).with_value(b"e.%016x.1" % position, b"damaged"))


def call(store: zlog.Store, name: str, method: str, request: bytes) -> None:
    """Run a method of the class that has to succeed."""
    code, _ = store.execute(name, method, request)
    assert code == 0, (name, method, code)


def exists(store: zlog.Store, name: str) -> bool:
    """Whether there is such an object."""
    return store.execute(name, "stat", messages.stat(2**64 - 1))[0] == 0


def remove(log: zlog.Log, ref: ObjectRef) -> None:
    """Remove a stripe object."""
    call(log.store, ref.name, "remove", messages.remove(log.view.epoch))


def seal(ref: ObjectRef, epoch: int, *, create: bool = False, start: int | None = None) -> bytes:
    """Return the request that seals an object as what it is."""
    width, stripe_unit = ref.striping
    return messages.seal(epoch, width, ref.number, create, start, stripe_unit)


def remake(log: zlog.Log, ref: ObjectRef, *, epoch: int) -> None:
    """Make an empty object under a name that is taken: `ref` has the name, and what it is."""
    remove(log, ref)
    call(log.store, ref.name, "seal", seal(ref, epoch, create=True))


def make_orphan(log: zlog.Log, stripe_id: int, log_id: int | None = None) -> str:
    """Make an object that no view has, as a client does that dies; returns its name."""
    log_id = log.view.log_id if log_id is None else log_id
    name = stripe_object(log.name, log_id, stripe_id, 0)
    call(log.store, name, "seal", messages.seal(stripe_id, 4, 0, True))
    return name


def write(log: zlog.Log, position: int, writer: bytes, number: int, data: bytes = b"x") -> None:
    """Write an entry at any position, as any append."""
    ref = log.view.object_of(position)
    call(log.store, ref.name, "write", entry(log, ref, position, writer, number, data))


def entry(
    log: zlog.Log, ref: ObjectRef, position: int, writer: bytes, number: int, data: bytes
) -> bytes:
    """Return the request that writes an entry to an object."""
    epoch = log.view.epoch
    return encode_write(epoch, 1, writer, ref.striping.packed, [position], [number], [data])


def stored_at(log: zlog.Log, position: int) -> ReadReply:
    """Return an object's answer about one position."""
    ref = log.view.object_of(position)
    request = messages.read(
        log.view.epoch, True, 1 << 20, ref.striping.packed, [position], blocks=True
    )
    code, reply = log.store.execute(ref.name, "read", request)
    assert code == 0
    return decode_read(reply, [position], None)


def append_at(log: zlog.Log, position: int) -> tuple[bytes, int]:
    """Return which append stands at a position: its writer's id and its number."""
    found = stored_at(log, position)
    return found.writer(0), found.number(0)


def leave_sealed(store: zlog.Store, refs: Iterable[ObjectRef]) -> int:
    """Seal objects of `orders` and die before the view; returns the epoch."""
    io = BlockingIo(store)
    deadline = deadline_of(io, 10)
    epoch, _ = drive(Head(io, "orders").epoch_next(deadline))
    assert not isinstance(drive(seal_objects(io, refs, epoch, deadline, start=0)), int)
    return epoch
