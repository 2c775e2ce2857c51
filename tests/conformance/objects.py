"""Objects on a host, as typed Python calls: `Stripe`, `Head`, `Directory`.

`model` has the same classes without a host, so whatever drives the one drives the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from . import replies, requests, wire
from .messages import request
from .replies import Answer
from .requests import Entry, Grant, Part

TIME = 1_500_000_000_000_000  # µs since 1970, where a test does not care
BYTES_MAX = 1 << 20
ADVANCE, CREATE, SET = 0, 1, 2  # what cursor_commit does
RECORDS_MAX = 1024  # the most that one trim_to may be asked to free


class Store(Protocol):
    """The one door to storage, as far as this suite needs it."""

    def execute(self, object: str, method: str, payload: bytes) -> tuple[int, bytes]:
        """Run one method on one object; a code (negative: an errno) and its reply."""
        ...


def writer_id(letter: str) -> bytes:
    """A writer's 16-byte id for tests: one letter, repeated."""
    return letter.encode() * 16


WRITER = writer_id("w")


@dataclass
class _Object:
    store: Store
    name: str

    def call(self, method: str, *values: Any) -> Answer:
        """Run a method, with the values of its request's fields, and parse its answer."""
        return self.send(method, request(method, *values))

    def send(self, method: str, payload: bytes) -> Answer:
        """Run a method with any payload and parse its answer (not that of a good read)."""
        return replies.parse(method, *self.store.execute(self.name, method, payload))

    def damaged(self, after: bytes = b"") -> Answer:
        """damaged: OK with (names, next)."""
        return self.call("damaged", after)

    def salvage(self, name: bytes = b"", position: int | None = None) -> Answer:
        """salvage: OK with (name, last position, value, data), or UNREADABLE."""
        return self.call("salvage", name, position)

    def heal(self, name: bytes, value: bytes, data: bytes = b"") -> Answer:
        """heal: OK, READ_ONLY, or BELOW_TRIM_POINT."""
        return self.call("heal", name, value, data)

    def version(self) -> Answer:
        """version: OK with a VersionReply."""
        return self.call("version")


@dataclass
class Stripe(_Object):
    """A stripe object; the other fields are what the requests claim its geometry to be."""

    stride: int = 1
    residue: int = 0
    unit: int = 1

    @property
    def spacing(self) -> int:
        """Its stride and unit as requests have them."""
        return wire.spacing_of(self.stride, self.unit)

    def seal(self, epoch: int, create: bool = True, start: int | None = None) -> Answer:
        """seal: OK with a `replies.Sealed`, or INVALID_EPOCH with the object's epoch."""
        return self.call("seal", epoch, self.stride, self.residue, create, start, self.unit)

    def write(
        self,
        epoch: int,
        entries: Sequence[Entry],
        writer: bytes = WRITER,
        timestamp: int = TIME,
        crcs: Sequence[int] | None = None,
        in_block: int = 0,
    ) -> Answer:
        """write: OK with `replies.Fullness`, STALE_EPOCH, or READ_ONLY with the first one taken.

        `in_block`: so many entries are compressed together; 0: none. ALIKE comes with the first one
        that may be there.
        """
        payload = requests.write(epoch, timestamp, writer, self.spacing, entries, crcs, in_block)
        return self.send("write", payload)

    def put(self, epoch: int, position: int, data: bytes, writer: bytes = WRITER) -> Answer:
        """A write of one entry whose number is its position."""
        return self.write(epoch, [Entry(position, position, data)], writer)

    def read(
        self,
        epoch: int,
        positions: Sequence[int],
        bytes_max: int = BYTES_MAX,
        with_ids: bool = False,
        blocks: bool = True,
        tags: bool = False,
        without_data: bool = False,
    ) -> Answer:
        """read: OK with a `replies.Read`, or STALE_EPOCH."""
        rest = (blocks, tags, without_data)
        asked = request("read", epoch, with_ids, bytes_max, (self.spacing, positions), *rest)
        code, payload = self.store.execute(self.name, "read", asked)
        return replies.parse_read(code, payload, positions, with_ids, not without_data)

    def select(
        self,
        epoch: int,
        start: int,
        end: int,
        tags: Sequence[bytes],
        every: bool = False,
        reverse: bool = False,
        entries_max: int = 1000,
        bytes_max: int = BYTES_MAX,
        with_ids: bool = False,
        without_data: bool = False,
    ) -> Answer:
        """select: OK with a `replies.Selected`, or STALE_EPOCH."""
        rest = (every, reverse, entries_max, bytes_max, with_ids, without_data)
        asked = request("select", epoch, start, end, tags, *rest)
        code, payload = self.store.execute(self.name, "select", asked)
        return replies.parse_select(code, payload, with_ids, not without_data)

    def tags_check(self, epoch: int, start: int = 0, end: int = 2**63) -> Answer:
        """tags_check: OK with a TagsCheckReply, or STALE_EPOCH."""
        return self.call("tags_check", epoch, start, end)

    def tags_rebuild(self, epoch: int, start: int = 0, end: int = 2**63) -> Answer:
        """tags_rebuild: OK with how far it came, or STALE_EPOCH."""
        return self.call("tags_rebuild", epoch, start, end)

    def tags_list_bytes(self, epoch: int, start: int = 0, end: int = 2**63) -> tuple[int, bytes]:
        """tags_list, as clients get it."""
        asked = request("tags_list", epoch, start, end)
        return self.store.execute(self.name, "tags_list", asked)

    def tags_list(self, epoch: int, start: int = 0, end: int = 2**63) -> Answer:
        """tags_list: OK with a `replies.Listed`, or STALE_EPOCH."""
        return replies.parse_tags_list(*self.tags_list_bytes(epoch, start, end))

    def compact(self, epoch: int, start: int, end: int, positions: Sequence[int]) -> Answer:
        """compact: OK with a CompactReply, or STALE_EPOCH."""
        return self.call("compact", epoch, start, end, (self.spacing, positions))

    def verify(
        self,
        epoch: int,
        positions: Sequence[int],
        bytes_max: int = BYTES_MAX,
        keys_only: bool = False,
    ) -> Answer:
        """verify: OK with a `replies.Verified`, or STALE_EPOCH."""
        return self.call("verify", epoch, bytes_max, (self.spacing, positions), keys_only)

    def count(self, epoch: int, start: int, end: int) -> Answer:
        """count: OK with a CountReply, or STALE_EPOCH."""
        return self.call("count", epoch, start, end)

    def fill(
        self,
        epoch: int,
        positions: Sequence[int],
        writer: bytes = WRITER,
        timestamp: int = TIME,
        reason: int = 0,
    ) -> Answer:
        """fill: OK, STALE_EPOCH, or READ_ONLY or LOST with the first position that is so."""
        return self.call("fill", epoch, timestamp, writer, reason, (self.spacing, positions))

    def trim(self, epoch: int, positions: Sequence[int]) -> Answer:
        """trim: OK or STALE_EPOCH."""
        return self.call("trim", epoch, (self.spacing, positions))

    def trim_to(self, epoch: int, position: int, records_max: int = RECORDS_MAX) -> Answer:
        """trim_to: OK with True when records are left to free, or STALE_EPOCH."""
        return self.call("trim_to", epoch, position, records_max)

    def max_position(self, epoch: int, start: int = 0) -> Answer:
        """max_position: OK with (highest, unwritten), each None or a position, or STALE_EPOCH."""
        return self.call("max_position", epoch, start)

    def stat(self, epoch: int) -> Answer:
        """stat: OK with a `replies.Stat`, or STALE_EPOCH."""
        return self.call("stat", epoch)

    def remove(self, epoch: int) -> Answer:
        """remove: OK or STALE_EPOCH; after it the object is missing."""
        return self.call("remove", epoch)


@dataclass
class Head(_Object):
    """A log's head object."""

    def create(self, name: str, log_id: int) -> Answer:
        """head_create: OK, or the outer EEXIST."""
        return self.call("head_create", name, log_id)

    def epoch_next(self, width: int = 0, above: int = 0) -> Answer:
        """epoch_next: OK with (epoch, tail floor)."""
        return self.call("epoch_next", width, above)

    def epoch_read(self) -> Answer:
        """epoch_read: OK with a HeadReply."""
        return self.call("epoch_read")

    def tail_raise(self, epoch: int, tail: int, log_id: int = 7) -> Answer:
        """tail_raise: OK, STALE_EPOCH with the counter, or BEYOND_STRIPE with the highest tail."""
        return self.call("tail_raise", log_id, epoch, tail)

    def trim_point_raise(
        self, position: int, log_id: int = 7, past_cursors: bool = False
    ) -> Answer:
        """trim_point_raise: OK with True when archived stripes below the point are left.

        HELD_BY_CURSOR with the lowest cursor.
        """
        return self.call("trim_point_raise", log_id, position, past_cursors)

    def cursor_commit(
        self, name: str, mode: int, position: int, timestamp: int = TIME, log_id: int = 7
    ) -> Answer:
        """cursor_commit: OK, or why not; mode is ADVANCE, CREATE or SET."""
        return self.call("cursor_commit", log_id, name, mode, position, timestamp)

    def cursor_read(self, name: str, log_id: int = 7) -> Answer:
        """cursor_read: OK with a CursorReply, or NOT_FOUND."""
        return self.call("cursor_read", log_id, name)

    def cursor_list(self, after: str = "", count_max: int = 1000, log_id: int = 7) -> Answer:
        """cursor_list: OK with (more, NamedCursors)."""
        return self.call("cursor_list", log_id, after, count_max)

    def cursor_remove(self, name: str, log_id: int = 7) -> Answer:
        """cursor_remove: OK, or NOT_FOUND."""
        return self.call("cursor_remove", log_id, name)

    def retention_read(self, log_id: int = 7) -> Answer:
        """retention_read: OK with a RetentionReply."""
        return self.call("retention_read", log_id)

    def retention_write(self, version: int, state: bytes, log_id: int = 7) -> Answer:
        """retention_write: OK, or SUPERSEDED with the version that there is."""
        return self.call("retention_write", log_id, version, state)

    def delivery_begin(self, part: Part, timestamp: int = TIME) -> Answer:
        """delivery_begin: OK with (attempt, grants before, incarnation), or BATCH_DONE."""
        return self.call("delivery_begin", *part.fields, timestamp)

    def delivery_grant(self, grant: Grant) -> Answer:
        """delivery_grant: OK with the first position, or why not."""
        return self.call("delivery_grant", *grant.fields)

    def delivery_read(self, part: Part) -> Answer:
        """delivery_read: OK with a DeliveryReadReply, or NOT_FOUND."""
        return self.call("delivery_read", *part.fields)

    def delivery_done(
        self, source: str, batch: int, incarnation: int = 1, timestamp: int = TIME, log_id: int = 7
    ) -> Answer:
        """delivery_done: OK with whether to call again, or the incarnation that it is."""
        return self.call("delivery_done", log_id, source, batch, incarnation, timestamp)

    def delivery_list(self, after: str = "", count_max: int = 1000, log_id: int = 7) -> Answer:
        """delivery_list: OK with (more, NamedSources)."""
        return self.call("delivery_list", log_id, after, count_max)

    def view_propose(self, base: int, view: requests.View) -> Answer:
        """view_propose: OK, INVALID_EPOCH or STALE_EPOCH."""
        return self.propose_bytes(base, requests.view(view))

    def propose_bytes(self, base: int, view: bytes) -> Answer:
        """view_propose of a view that is encoded already, well or badly."""
        return self.call("view_propose", base, view)

    def view_read(self, from_epoch: int = 0, count_max: int = 100, latest: bool = False) -> Answer:
        """view_read: OK with a ViewReadReply."""
        return self.call("view_read", from_epoch, count_max, latest)

    def stripes_read(self, log_id: int, position: int = 0, count_max: int = 100) -> Answer:
        """stripes_read: OK with (more, stripes)."""
        return self.call("stripes_read", log_id, position, count_max)

    def stripes_loose(self, log_id: int, after_id: int = 0, count_max: int = 100) -> Answer:
        """stripes_loose: OK with (the newest view's epoch, more, (id, width) of stripes)."""
        return self.call("stripes_loose", log_id, after_id, count_max)

    def stripe_forget(self, log_id: int, id: int) -> Answer:
        """stripe_forget: OK, or INVALID_EPOCH with the newest view's epoch."""
        return self.call("stripe_forget", log_id, id)

    def remove(self, epoch: int) -> Answer:
        """head_remove: OK, or INVALID_EPOCH."""
        return self.call("head_remove", epoch)


@dataclass
class Directory(_Object):
    """The directory of logs and the place where a sequencer announces itself."""

    def add(self, name: str, log_id: int = 7) -> Answer:
        """directory_add: OK."""
        return self.call("directory_add", name, log_id)

    def remove(self, name: str, log_id: int = 7) -> Answer:
        """directory_remove: OK, or the outer ENOENT of a missing directory."""
        return self.call("directory_remove", name, log_id)

    def list(self, after: str = "", count_max: int = 1000) -> Answer:
        """directory_list: OK with (more, names)."""
        return self.call("directory_list", after, count_max)

    def announce(self, address: str) -> Answer:
        """sequencer_announce: OK."""
        return self.call("sequencer_announce", address)

    def withdraw(self, address: str) -> Answer:
        """sequencer_withdraw: OK."""
        return self.call("sequencer_withdraw", address)

    def find(self) -> Answer:
        """sequencer_find: OK with the address, empty when there is none."""
        return self.call("sequencer_find")
