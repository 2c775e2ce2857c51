"""A log's layout: its views (CORFU's projections), their stripes, and the object of a position."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

from zlog._base import codes
from zlog._base.names import stripe_object
from zlog._base.options import MIRROR_OF, promotions
from zlog._base.striping import ObjectPositions, Striping
from zlog._native import messages
from zlog.errors import CorruptEntry
from zlog.limits import STRIPE_UNIT_MAX, WIDTH_MAX

OPEN_END = codes.END_OPEN
"""The ``end`` of a stripe that is still open."""

WRITTEN, PLACED, REMOVED = 1, 2, 3
"""The states of an offloaded stripe's file; see :class:`StripeFile`."""

STRIPES_MAX = codes.VIEW_STRIPES_MAX
"""The maximum number of stripes in a view. Older stripes are in the stripe index."""


def check_width(width: int) -> None:
    """Raise TypeError or ValueError if ``width`` is invalid."""
    if not isinstance(width, int):
        raise TypeError(f"a width must be an int, not {width!r}")
    if not 1 <= width <= WIDTH_MAX:
        raise ValueError(f"a width must be 1 to {WIDTH_MAX} stripe objects, not {width}")


def check_stripe_unit(stripe_unit: int) -> None:
    """Raise TypeError or ValueError if ``stripe_unit`` is invalid."""
    if not isinstance(stripe_unit, int):
        raise TypeError(f"a stripe unit must be an int, not {stripe_unit!r}")
    if not 1 <= stripe_unit <= STRIPE_UNIT_MAX or stripe_unit & (stripe_unit - 1):
        raise ValueError(
            f"stripe_unit must be a power of two from 1 to {STRIPE_UNIT_MAX}, not {stripe_unit}"
        )


@dataclass(frozen=True, slots=True)
class Stripe:
    """A range of positions ``[start, end)`` whose entries are stored in ``width`` objects.

    Position p is in the object with the number ``p // stripe_unit % width``. ``id`` is the epoch in
    which the stripe was created, and is part of the objects' names. ``further`` keeps the bytes of
    fields that a newer version of zlog added.
    """

    id: int
    start: int
    end: int
    width: int
    stripe_unit: int = 1
    further: bytes = b""

    @property
    def striping(self) -> Striping:
        """The mapping of positions to objects."""
        return Striping(self.width, self.stripe_unit)

    @property
    def open(self) -> bool:
        """Whether positions of this stripe can still be granted."""
        return self.end == OPEN_END

    def __repr__(self) -> str:
        end = "open" if self.open else self.end
        return (
            f"Stripe(id={self.id}, start={self.start}, end={end}, width={self.width},"
            f" stripe_unit={self.stripe_unit})"
        )


class FileSegment(NamedTuple):
    """Consecutive positions of a stripe's file, which begin where the previous segment ends.

    Attributes:
        end: one past the last position.
        entries: the number of entries.
        bytes: the size of their data, including MACs.
        oldest: the lowest timestamp of an entry, in µs since 1970; 0 without entries.
        newest: the highest timestamp.
    """

    end: int
    entries: int
    bytes: int
    oldest: int
    newest: int


class StripeFile(NamedTuple):
    """The file of an offloaded stripe, as the log's head records it.

    Attributes:
        id: the stripe's id.
        start: the stripe's first position.
        end: one past its last position.
        state: how far the stripe is offloaded. WRITTEN (1): the file is complete, but has its
            temporary name. PLACED (2): readers may use the file. REMOVED (3): the stripe's objects
            were removed.
        url: where the file is.
        size: the size of the file in bytes.
        checksum: the SHA-256 of the file.
        written: when the file was written, in µs since 1970, by its writer's clock.
        entries: the number of entries.
        bytes: the size of their data, including MACs.
        segments: the segments of the file, which can be read one by one.
    """

    id: int
    start: int
    end: int
    state: int
    url: str
    size: int
    checksum: bytes
    written: int
    entries: int
    bytes: int
    segments: tuple[FileSegment, ...]

    @property
    def folder(self) -> str:
        """The URL of the folder that contains the file."""
        path, mark, query = self.url.partition("?")
        return f"{path.rpartition('/')[0]}{mark}{query}"

    def segment_of(self, position: int) -> int:
        """Return the number of the segment that has a position of the stripe."""
        return bisect_right(self.segments, position, key=lambda segment: segment.end)

    def bounds(self, number: int) -> tuple[int, int]:
        """Return a segment's first position and its end."""
        start = self.segments[number - 1].end if number else self.start
        return start, self.segments[number].end

    def since(self, position: int) -> tuple[int, int]:
        """Return the entries and bytes of the segments that end above a position."""
        left = self.segments[self.segment_of(position) :]
        return sum(each.entries for each in left), sum(each.bytes for each in left)


class ExclusiveWriter(NamedTuple):
    """The only client that appends to an exclusive log.

    Attributes:
        id: the id of the writer's appends, 32 hex digits. No other writer has the same id.
        name: the writer's name, which clients see when their appends are refused.
        since: when the writer took the log, by its clock, in seconds since 1970.
        further: the bytes of fields that a newer version of zlog added; they are kept.
    """

    id: str
    name: str
    since: float
    further: bytes = b""


class EntryMac(NamedTuple):
    """How a log's entries are authenticated.

    Attributes:
        key_id: the id of the key, 32 hex digits.
        algorithm: 1 means HMAC-SHA256, shortened to 16 bytes, which follow each entry's data.
        further: the bytes of fields that a newer version of zlog added.
    """

    key_id: str
    algorithm: int = 1
    further: bytes = b""


class Origin(NamedTuple):
    """A log whose entries below ``position`` are also in a mirror that was promoted there."""

    log_id: int
    position: int


class ObjectRef(NamedTuple):
    """A stripe object: its name and the positions that it holds."""

    name: str
    striping: Striping
    number: int

    def positions(self, start: int, stop: int) -> ObjectPositions:
        """Return the positions of ``[start, stop)`` that are in this object."""
        return self.striping.positions(start, stop, self.number)


def objects_of(log: str, log_id: int, stripe: Stripe) -> list[ObjectRef]:
    """Return the objects of a stripe, in the order of their numbers."""
    striping = stripe.striping
    return [
        ObjectRef(stripe_object(log, log_id, stripe.id, index), striping, index)
        for index in range(stripe.width)
    ]


@dataclass(frozen=True, slots=True)
class View:
    """The layout of one log in one epoch. It is immutable, and every change makes a new view.

    Attributes:
        epoch: the number that orders the log's views.
        log: the log's name.
        log_id: a random 64-bit number. A log that is removed and created again gets another id.
        sequencer: the address of the sequencer that grants positions: ``tcp://HOST:PORT``,
            ``tls://HOST:PORT`` or ``store:`` (shared through the embedded store). Empty if writers
            find the tail themselves, or if the log is ordered by its object.
        stripes: the newest stripes, up to 32, contiguous and ascending. The last one is open. Lower
            positions are in archived stripes (docs/formats/stripe-index.md);
            :meth:`zlog.Log.stripes` returns all stripes.
        removed: whether the log is being removed.
        read_only: whether the log takes no appends.
        writer: the only client that may append; None if the log is not exclusive.
        mac: how entries are authenticated; None if they are not.
        offloads: whether ended stripes may be in files instead of objects. It is never unset.
        ordered: whether the log is ordered by its object: the only object of the live stripe
            assigns the positions, and the log has no sequencer.
        options: settings that are stored with the log.
        trim_point: positions below it were trimmed when the view was read.
        tail_floor: a lower bound of the tail, from when the view was read. In an earlier epoch a
            client saw a tail that high, so no position below it is granted in this epoch.
        offloaded: the number of offloaded stripes that the client knew when it read the view.
        further: the bytes of fields that a newer version of zlog added; they are kept.
    """

    epoch: int
    log: str
    log_id: int
    sequencer: str
    stripes: tuple[Stripe, ...]
    removed: bool = False
    options: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    trim_point: int = 0
    tail_floor: int = 0
    further: bytes = b""
    read_only: bool = False
    writer: ExclusiveWriter | None = None
    mac: EntryMac | None = None
    offloads: bool = False
    ordered: bool = False
    offloaded: int = 0

    @property
    def ordering(self) -> str:
        """The log's setting ``ordering``: ``object`` or ``sequencer``."""
        return "object" if self.ordered else "sequencer"

    @property
    def mirror(self) -> bool:
        """Whether the log is a mirror, which takes no appends. Its tail is its tail floor."""
        return MIRROR_OF in self.options

    @property
    def mirror_of(self) -> int | None:
        """The log_id of the log that is copied to this mirror.

        None if the log is not a mirror, was imported from a file, or is being promoted.
        """
        source = self.options.get(MIRROR_OF, "")
        return int(source, 16) if len(source) == 16 else None

    @property
    def promoted_from(self) -> tuple[Origin, ...]:
        """The logs that this log was a mirror of, oldest first, with its tail when it was promoted.

        It includes those of its sources. Only the newest 64 are known.
        """
        pairs = (each.split("@") for each in promotions(self.options))
        return tuple(Origin(int(log_id, 16), int(at)) for log_id, at in pairs)

    def common_end(self, log_id: int) -> int | None:
        """Return the position below which this log has the entries of the log with ``log_id``.

        The view of a mirror may be outdated, so that more was copied since. Returns None if this
        log is neither a mirror of that log nor promoted from one.
        """
        copied = [] if self.mirror_of is None else [Origin(self.mirror_of, self.tail_floor)]
        origins = [*self.promoted_from, *copied]
        for index, origin in enumerate(origins):
            if origin.log_id == log_id:
                return min(each.position for each in origins[index:])
        return None

    @property
    def live_stripe(self) -> Stripe:
        """The last stripe. It is the only one whose positions are still granted."""
        return self.stripes[-1]

    def stripe_of(self, position: int) -> Stripe:
        """Return the stripe that holds ``position``.

        Raises:
            IndexError: the position is below the first stripe of the view.
        """
        index = bisect_right(self.stripes, position, key=lambda stripe: stripe.start) - 1
        if index < 0:
            raise IndexError(f"position {position} is below the first stripe of {self.log!r}")
        return self.stripes[index]

    def object_of(self, position: int) -> ObjectRef:
        """Return the stripe object that holds ``position``."""
        stripe = self.stripe_of(position)
        return self.object_at(stripe, stripe.striping.number(position))

    def object_at(self, stripe: Stripe, index: int) -> ObjectRef:
        """Return the stripe object of ``stripe`` with this number, 0 ≤ index < width."""
        return ObjectRef(
            stripe_object(self.log, self.log_id, stripe.id, index), stripe.striping, index
        )

    def objects(self, stripe: Stripe | None = None) -> Iterator[ObjectRef]:
        """Iterate over the objects of one stripe, or of all stripes of the view."""
        for each in self.stripes if stripe is None else (stripe,):
            yield from objects_of(self.log, self.log_id, each)

    def __repr__(self) -> str:
        return (
            f"View(epoch={self.epoch}, log={self.log!r}, log_id={self.log_id:#018x},"
            f" sequencer={self.sequencer!r}, stripes={self.stripes!r}, removed={self.removed},"
            f" read_only={self.read_only}, writer={self.writer!r}, mac={self.mac!r},"
            f" offloads={self.offloads}, ordered={self.ordered}, options={dict(self.options)},"
            f" trim_point={self.trim_point}, tail_floor={self.tail_floor})"
        )

    def encode(self) -> bytes:
        """Encode this view as stored in the head object (docs/formats/view.md)."""
        macs = []
        if self.mac is not None:
            key_id = bytes.fromhex(self.mac.key_id)
            macs = [messages.EntryMac(self.mac.algorithm, key_id, self.mac.further)]
        return messages.encode_view(
            self.epoch,
            self.log_id,
            int(self.removed),
            self.sequencer,
            [
                messages.Stripe(s.id, s.start, s.end, s.width, s.stripe_unit, s.further)
                for s in self.stripes
            ],
            self.options,
            self.read_only,
            [] if self.writer is None else [_encode_writer(self.writer)],
            macs,
            self.offloads,
            self.ordered,
            self.further,
        )

    @classmethod
    def decode(cls, log: str, data: bytes, *, trim_point: int = 0, tail_floor: int = 0) -> View:
        """Decode a view from the head object's bytes.

        Raises:
            CorruptEntry: the bytes are not a view.
            UnsupportedVersion: a newer version of zlog encoded them.
        """
        try:
            view = messages.decode_view(data)
        except CorruptEntry:
            raise CorruptEntry(f"log {log!r}: the bytes are not a view") from None
        mac = next(iter(view.mac), None)
        return cls(
            epoch=view.epoch,
            log=log,
            log_id=view.log_id,
            sequencer=view.sequencer,
            stripes=tuple(Stripe(*each) for each in view.stripes),
            removed=bool(view.state),
            options=MappingProxyType(view.options),
            trim_point=trim_point,
            tail_floor=tail_floor,
            further=view.further,
            read_only=view.read_only,
            writer=_decode_writer(view.writer[0]) if view.writer else None,
            mac=EntryMac(mac.key_id.hex(), mac.algorithm, mac.further) if mac else None,
            offloads=view.offloads,
            ordered=view.ordered,
        )


def _encode_writer(writer: ExclusiveWriter) -> messages.ExclusiveWriter:
    since = round(writer.since * 1_000_000)
    token = bytes.fromhex(writer.id)
    return messages.ExclusiveWriter(token, writer.name.encode(), since, writer.further)


def _decode_writer(writer: messages.ExclusiveWriter) -> ExclusiveWriter:
    name = writer.name.decode(errors="replace")
    return ExclusiveWriter(writer.id.hex(), name, writer.since / 1_000_000, writer.further)
