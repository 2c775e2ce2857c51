"""Requests of every method, built from the specification of the wire (see `wire`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from . import wire
from .wire import blob, text, u8, u32, u64

NUMBER_BASE_MAX = 2**64 - 2**32  # so that base and u32 delta never overflow


@dataclass(frozen=True)
class Entry:
    """One entry of a write: where it goes, its number in its writer's own count, its bytes."""

    position: int
    number: int
    data: bytes


@dataclass(frozen=True)
class StripeView:
    """One stripe in a view: positions `[start, end)` over `width` objects."""

    id: int
    start: int
    end: int
    width: int


@dataclass(frozen=True)
class View:
    """A log's layout in one epoch; `removed` is the state of a log on its way out.

    Options are sent in ascending order of their keys, so that a view has one encoding.
    """

    epoch: int
    log_id: int
    removed: bool = False
    sequencer: str = ""
    stripes: tuple[StripeView, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Part:
    """What is delivered: a part of a batch of a source, to a log."""

    source: str
    batch: int = 0
    part: int = 0
    log_id: int = 7


@dataclass(frozen=True)
class Grant:
    """What one attempt at a part asks for: `count` positions, from `first` on.

    With `reserve` they are above the tail floor, else they were granted by a sequencer already.
    """

    part: Part
    attempt: int
    epoch: int
    first: int
    count: int
    reserve: bool = False
    incarnation: int = 1


def _start(*parts: bytes) -> bytes:
    return wire.frame(b"".join(parts))


def empty() -> bytes:
    """A request that says nothing: epoch_read, sequencer_find."""
    return _start()


def epoch(value: int) -> bytes:
    """A request that carries an epoch only: max_position, stat, remove, head_remove."""
    return _start(u64(value))


def seal(epoch: int, stride: int, residue: int, create: bool) -> bytes:
    """seal: install `epoch`; the object holds positions ≡ `residue` modulo `stride`.

    Only with `create` a missing object is made: one that is lost must not come back empty.
    """
    return _start(u64(epoch), u32(stride), u32(residue), u8(create))


def write(
    epoch: int,
    timestamp: int,
    writer: bytes,
    stride: int,
    entries: Sequence[Entry],
    crcs: Sequence[int] | None = None,
) -> bytes:
    """write: ascending entries, `timestamp` in µs since 1970; `crcs` replaces the right ones."""
    base = min([NUMBER_BASE_MAX, *(e.number for e in entries)])
    ends, end = [], 0
    for entry in entries:
        end += len(entry.data)
        ends.append(end)
    if crcs is None:
        crcs = [wire.entry_crc(e.position, e.data) for e in entries]
    columns = _start(
        u64(epoch),
        u64(timestamp),
        writer,
        u64(base),
        wire.positions_in(stride, [e.position for e in entries]),
        wire.column_u32(ends),
        wire.column_u32(crcs),
        wire.column_u32(e.number - base for e in entries),
    )
    return columns + _padding(len(columns), end) + b"".join(e.data for e in entries)


def _padding(offset: int, data_bytes: int) -> bytes:
    """Zeros that let much data begin with a page in an OSD, behind the class and the method."""
    return bytes(-(len("zlog" + "write") + offset) % 4096 if data_bytes >= 32 << 10 else 0)


def read(
    epoch: int, stride: int, positions: Sequence[int], bytes_max: int, with_ids: bool
) -> bytes:
    """read: ascending positions; the reply stops before more than `bytes_max` bytes of data."""
    return _start(u64(epoch), u8(with_ids), u32(bytes_max), wire.positions_in(stride, positions))


def verify(epoch: int, stride: int, positions: Sequence[int], bytes_max: int) -> bytes:
    """verify: ascending positions; stops before it has checked more than `bytes_max` of data."""
    return _start(u64(epoch), u32(bytes_max), wire.positions_in(stride, positions))


def fill(
    epoch: int, timestamp: int, writer: bytes, reason: int, stride: int, positions: Sequence[int]
) -> bytes:
    """fill: put junk at ascending positions."""
    junk = wire.positions_in(stride, positions)
    return _start(u64(epoch), u64(timestamp), writer, u8(reason), junk)


def trim(epoch: int, stride: int, positions: Sequence[int]) -> bytes:
    """trim: give up ascending positions, one by one."""
    return _start(u64(epoch), wire.positions_in(stride, positions))


def trim_to(epoch: int, position: int, records_max: int) -> bytes:
    """trim_to: give up all below `position`, freeing at most `records_max` records now."""
    return _start(u64(epoch), u64(position), u32(records_max))


def head_create(name: str, log_id: int) -> bytes:
    """head_create: the head of a new log."""
    return _start(text(name), u64(log_id))


def epoch_next(width: int = 0) -> bytes:
    """epoch_next: the next epoch; `width` of the stripe that may be made in it, or 0."""
    return _start(u32(width))


def tail_raise(epoch: int, tail: int, log_id: int = 7) -> bytes:
    """tail_raise: the floor under every later tail, while `epoch` is the newest."""
    return _start(u64(log_id), u64(epoch), u64(tail))


def trim_point(position: int, log_id: int = 7, past_cursors: bool = False) -> bytes:
    """trim_point_raise: everything below `position` is given up."""
    return _start(u64(log_id), u64(position), u8(past_cursors))


def cursor_commit(log_id: int, name: str, mode: int, position: int, timestamp: int) -> bytes:
    """cursor_commit: a cursor is advanced (0), made (1) or set (2)."""
    return _start(u64(log_id), text(name), u8(mode), u64(position), u64(timestamp))


def cursor(log_id: int, name: str) -> bytes:
    """cursor_read, cursor_remove: a log's id and a cursor's name."""
    return _start(u64(log_id), text(name))


def _part(part: Part) -> bytes:
    return u64(part.log_id) + text(part.source) + u64(part.batch) + u32(part.part)


def delivery(part: Part) -> bytes:
    """delivery_read."""
    return _start(_part(part))


def delivery_begin(part: Part, timestamp: int) -> bytes:
    """delivery_begin: one attempt more."""
    return _start(_part(part), u64(timestamp))


def delivery_grant(grant: Grant) -> bytes:
    """delivery_grant: see `Grant`."""
    attempt = u64(grant.incarnation) + u32(grant.attempt) + u64(grant.epoch)
    positions = u64(grant.first) + u32(grant.count) + u8(grant.reserve)
    return _start(_part(grant.part), attempt, positions)


def delivery_done(log_id: int, source: str, batch: int, incarnation: int, timestamp: int) -> bytes:
    """delivery_done: batches below `batch` are, of a source of that incarnation."""
    return _start(u64(log_id), text(source), u64(batch), u64(incarnation), u64(timestamp))


def delivery_list(log_id: int, after: str, count_max: int) -> bytes:
    """delivery_list: sources named after `after`, ascending."""
    return _start(u64(log_id), text(after), u32(count_max))


def cursor_list(log_id: int, after: str, count_max: int) -> bytes:
    """cursor_list: cursors named after `after`, ascending."""
    return _start(u64(log_id), text(after), u32(count_max))


def view(value: View) -> bytes:
    """A view's bytes, as stored and as proposed."""
    return _start(
        u64(value.epoch),
        u64(value.log_id),
        u8(value.removed),
        text(value.sequencer),
        u32(len(value.stripes)),
        *(_start(u64(s.id), u64(s.start), u64(s.end), u32(s.width)) for s in value.stripes),
        u32(len(value.options)),
        *(text(key) + text(option) for key, option in sorted(value.options.items())),
    )


def view_propose(base: int, view_bytes: bytes) -> bytes:
    """view_propose: the next view, if `base` is still the newest view's epoch (0: none)."""
    return _start(u64(base), blob(view_bytes))


def view_read(from_epoch: int, count_max: int, latest: bool) -> bytes:
    """view_read: views from an epoch on, or the newest alone."""
    return _start(u64(from_epoch), u32(count_max), u8(latest))


def stripes_read(log_id: int, position: int, count_max: int) -> bytes:
    """stripes_read: archived stripes from the one that holds `position` on."""
    return _start(u64(log_id), u64(position), u32(count_max))


def stripes_loose(log_id: int, after_id: int, count_max: int) -> bytes:
    """stripes_loose: loose stripes of ids above `after_id`."""
    return _start(u64(log_id), u64(after_id), u32(count_max))


def stripe_forget(log_id: int, id: int) -> bytes:
    """stripe_forget: none of the loose stripe's objects exists any more."""
    return _start(u64(log_id), u64(id))


def directory_entry(name: str, log_id: int) -> bytes:
    """directory_add, directory_remove: a log's name and id."""
    return _start(text(name), u64(log_id))


def directory_list(after: str, count_max: int) -> bytes:
    """directory_list: names after `after`, ascending."""
    return _start(text(after), u32(count_max))


def address(value: str) -> bytes:
    """sequencer_announce, sequencer_withdraw: a sequencer's address."""
    return _start(text(value))
