"""A log's layout: views and stripes (CORFU's projections), and which object holds a position."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

from zlog._base import codes
from zlog._base.names import stripe_object
from zlog._base.options import MIRROR_OF
from zlog._base.striping import Places, Spacing
from zlog._native import messages
from zlog.errors import CorruptEntry
from zlog.limits import UNIT_MAX, WIDTH_MAX

OPEN_END = codes.END_OPEN
"""``end`` of the last stripe: it has none yet."""

STRIPES_MAX = codes.VIEW_STRIPES_MAX
"""Stripes of one view, at most; older ones are in the stripe index."""


def check_width(width: int) -> None:
    """Raise TypeError or ValueError unless ``width`` is a valid number of stripe objects."""
    if not isinstance(width, int):
        raise TypeError(f"a width is an int, not {width!r}")
    if not 1 <= width <= WIDTH_MAX:
        raise ValueError(f"width must be 1 to {WIDTH_MAX} stripe objects, not {width}")


def check_unit(unit: int) -> None:
    """Raise TypeError or ValueError unless ``unit`` is a valid number of positions in a row."""
    if not isinstance(unit, int):
        raise TypeError(f"a unit is an int, not {unit!r}")
    if not 1 <= unit <= UNIT_MAX or unit & (unit - 1):
        raise ValueError(f"unit must be a power of two from 1 to {UNIT_MAX}, not {unit}")


@dataclass(frozen=True, slots=True)
class Stripe:
    """A range of positions ``[start, end)`` spread over ``width`` objects, in units.

    The objects take turns, and in each turn an object has ``unit`` positions in a row: position p
    lives in the object of number ``p // unit % width``. ``id`` is the epoch that made the stripe;
    it is part of the objects' names. ``further`` are the fields, as bytes, that a newer version of
    zlog put in; they stay with the stripe.
    """

    id: int
    start: int
    end: int
    width: int
    unit: int = 1
    further: bytes = b""

    @property
    def spacing(self) -> Spacing:
        """Which object has which position."""
        return Spacing(self.width, self.unit)

    @property
    def open(self) -> bool:
        """Whether positions are still handed out in this stripe."""
        return self.end == OPEN_END

    def __repr__(self) -> str:
        end = "open" if self.open else self.end
        return (
            f"Stripe(id={self.id}, start={self.start}, end={end}, width={self.width},"
            f" unit={self.unit})"
        )


class ExclusiveWriter(NamedTuple):
    """The only client that appends to an exclusive log.

    Attributes:
        id: 32 hex digits, which its appends carry, and those of no other writer.
        name: what it calls itself: who is to be asked.
        since: when it took the log, in seconds since 1970 by its own clock.
        further: fields, as bytes, that a newer version of zlog put in.
    """

    id: str
    name: str
    since: float
    further: bytes = b""


class EntryMac(NamedTuple):
    """With what a log's entries are authenticated.

    Attributes:
        key_id: which key it is, 32 hex digits.
        algorithm: 1 is HMAC-SHA256, of which 16 bytes stand behind each entry's data.
        further: fields, as bytes, that a newer version of zlog put in.
    """

    key_id: str
    algorithm: int = 1
    further: bytes = b""


class ObjectRef(NamedTuple):
    """One stripe object: its name, and the geometry that is sealed into it."""

    name: str
    spacing: Spacing
    number: int

    def places(self, start: int, stop: int) -> Places:
        """Return the positions of ``[start, stop)`` that it has."""
        return self.spacing.places(start, stop, self.number)


def objects_of(log: str, log_id: int, stripe: Stripe) -> list[ObjectRef]:
    """Return the objects of a stripe, by index."""
    spacing = stripe.spacing
    return [
        ObjectRef(stripe_object(log, log_id, stripe.id, index), spacing, index)
        for index in range(stripe.width)
    ]


@dataclass(frozen=True, slots=True)
class View:
    """The layout of one log in one epoch. Immutable; a change is a new view in a higher epoch.

    Attributes:
        epoch: orders the views; every operation on a stripe object carries it.
        log: the log's name.
        log_id: random 64-bit number that tells this log from others that had its name.
        sequencer: who hands out positions: ``tcp://HOST:PORT``, ``store:`` (shared through the
            embedded store) or empty (none: writers find the tail themselves).
        stripes: the log's newest ones, 32 at most, contiguous and ascending; the last one is open.
            Positions below the first one's start are in archived stripes
            (docs/formats/stripe-index.md): :meth:`zlog.Log.stripes` has all.
        removed: the log is being removed.
        read_only: the log takes no appends.
        writer: the only client that appends, if the log is exclusive; None: any does.
        mac: with what entries are authenticated; None: they are not.
        options: settings that travel with the log.
        trim_point: positions below it are trimmed, as known when the view was read.
        tail_floor: positions below it are never handed out again in this epoch, because an
            earlier epoch's tail was shown to a client, as known when the view was read.
        further: fields, as bytes, that a newer version of zlog put in; they stay in later views.
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

    @property
    def mirror(self) -> bool:
        """Whether the log is a mirror: it takes no appends, and its tail is its tail floor."""
        return MIRROR_OF in self.options

    @property
    def live_stripe(self) -> Stripe:
        """The last stripe: the only one in which new positions are handed out."""
        return self.stripes[-1]

    def stripe_of(self, position: int) -> Stripe:
        """Return the stripe that holds ``position``.

        Raises:
            IndexError: the position lies below the first stripe that the view still has.
        """
        index = bisect_right(self.stripes, position, key=lambda stripe: stripe.start) - 1
        if index < 0:
            raise IndexError(f"position {position} lies below every stripe of {self.log!r}")
        return self.stripes[index]

    def object_of(self, position: int) -> ObjectRef:
        """Return the stripe object that holds ``position``."""
        stripe = self.stripe_of(position)
        return self.object_at(stripe, stripe.spacing.number(position))

    def object_at(self, stripe: Stripe, index: int) -> ObjectRef:
        """Return the stripe object of ``stripe`` with this index, 0 ≤ index < width."""
        return ObjectRef(
            stripe_object(self.log, self.log_id, stripe.id, index), stripe.spacing, index
        )

    def objects(self, stripe: Stripe | None = None) -> Iterator[ObjectRef]:
        """Iterate over the objects of one stripe, or of all that the view names."""
        for each in self.stripes if stripe is None else (stripe,):
            yield from objects_of(self.log, self.log_id, each)

    def __repr__(self) -> str:
        return (
            f"View(epoch={self.epoch}, log={self.log!r}, log_id={self.log_id:#018x},"
            f" sequencer={self.sequencer!r}, stripes={self.stripes!r}, removed={self.removed},"
            f" read_only={self.read_only}, writer={self.writer!r}, mac={self.mac!r},"
            f" options={dict(self.options)}, trim_point={self.trim_point},"
            f" tail_floor={self.tail_floor})"
        )

    def encode(self) -> bytes:
        """Return the bytes that the head object keeps for this view (docs/formats/view.md)."""
        return messages.encode_view(
            self.epoch,
            self.log_id,
            int(self.removed),
            self.sequencer,
            [
                messages.Stripe(s.id, s.start, s.end, s.width, s.unit, s.further)
                for s in self.stripes
            ],
            self.options,
            self.read_only,
            [] if self.writer is None else [_encode_writer(self.writer)],
            [] if self.mac is None else [_encode_mac(self.mac)],
            self.further,
        )

    @classmethod
    def decode(cls, log: str, data: bytes, *, trim_point: int = 0, tail_floor: int = 0) -> View:
        """Read a view from the head object's bytes.

        Raises:
            CorruptEntry: the bytes are not a view.
            UnsupportedVersion: a newer version made them.
        """
        try:
            view = messages.decode_view(data)
        except CorruptEntry:
            raise CorruptEntry(f"log {log!r}: the bytes are not a view") from None
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
            mac=_decode_mac(view.mac[0]) if view.mac else None,
        )


def _encode_writer(writer: ExclusiveWriter) -> messages.ExclusiveWriter:
    since = round(writer.since * 1_000_000)
    token = bytes.fromhex(writer.id)
    return messages.ExclusiveWriter(token, writer.name.encode(), since, writer.further)


def _decode_writer(writer: messages.ExclusiveWriter) -> ExclusiveWriter:
    name = writer.name.decode(errors="replace")
    return ExclusiveWriter(writer.id.hex(), name, writer.since / 1_000_000, writer.further)


def _encode_mac(mac: EntryMac) -> messages.EntryMac:
    return messages.EntryMac(mac.algorithm, bytes.fromhex(mac.key_id), mac.further)


def _decode_mac(mac: messages.EntryMac) -> EntryMac:
    return EntryMac(mac.key_id.hex(), mac.algorithm, mac.further)
