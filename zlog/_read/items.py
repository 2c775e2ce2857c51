"""Makes slots, which are the entries or gaps of single positions, and joins adjacent gaps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import TypeVar

from zlog._base.codes import FillCode, State
from zlog._base.pieces import Filled, Lost, Trimmed
from zlog._native.completions import ReplyBytes
from zlog._native.entry import from_timestamp
from zlog._native.replies import FORGED, ReadReply, decode_fills
from zlog.entry import Entry, Fill, FillReason, Gap, GapKind, Loss, LossReason
from zlog.errors import (
    CorruptEntry,
    ForgedEntry,
    Invalidated,
    NotWritten,
    UnsupportedVersion,
    ZlogError,
)
from zlog.view import ObjectRef

Slot = Entry | Gap
"""What is at one position: an entry, or a gap of that position only."""

_SlotT = TypeVar("_SlotT", Slot, Gap)

_KINDS: dict[int, GapKind] = {
    **{state: GapKind[state.name] for state in State if state is not State.WRITTEN},
    FORGED: GapKind.FORGED,
}
_REASONS: dict[int, FillReason] = {code: FillReason[code.name] for code in FillCode}


def gap_of(position: int, state: int) -> Gap:
    """Return the gap of a position whose state has no further detail."""
    return Gap(position, position + 1, _KINDS[state])


def lost(position: int, why: LossReason, name: str) -> Gap:
    """Return the gap of a lost position, which the object ``name`` should hold."""
    return Gap(position, position + 1, GapKind.LOST, Loss(why, (name,)))


def gaps_of(
    piece: Filled | Trimmed | Lost, start: int, end: int, objects: Sequence[ObjectRef]
) -> Iterator[Gap]:
    """Return the gaps of a piece in ``[start, end)``, of a stripe with these objects."""
    if isinstance(piece, Lost):
        for position in range(start, end):
            name = objects[objects[0].striping.number(position)].name
            yield lost(position, LossReason.CORRUPT, name)
    elif start < end and isinstance(piece, Filled):
        fill = _fill(piece.writer, piece.timestamp, piece.reason)
        yield Gap(start, end, GapKind.FILLED, fill)
    elif start < end:
        yield Gap(start, end, GapKind.TRIMMED)


def is_open(slot: Slot) -> bool:
    """Whether a position is unwritten."""
    return isinstance(slot, Gap) and slot.kind is GapKind.UNWRITTEN


def is_bad(slot: Slot) -> bool:
    """Whether a stored entry is damaged, gone or forged. Another replica may still have it."""
    return isinstance(slot, Gap) and slot.kind in (GapKind.LOST, GapKind.FORGED)


def no_entry(gap: Gap, log: str) -> ZlogError:
    """Return the error to raise if a call finds this gap instead of an entry."""
    what = f"position {gap.position} of log {log!r}"
    why = "" if gap.detail is None else f" ({gap.detail})"
    if gap.kind is GapKind.UNWRITTEN:
        return NotWritten(f"{what} has not been written yet")
    if gap.kind is GapKind.LOST:
        return CorruptEntry(f"{what} is lost{why}", gap=gap)
    if gap.kind is GapKind.FORGED:
        return ForgedEntry(f"{what} holds no entry that was made with the log's key", gap=gap)
    if gap.kind is GapKind.UNREADABLE:
        return UnsupportedVersion(f"{what} was stored by a newer version of zlog", gap=gap)
    return Invalidated(f"{what} was {gap.kind.value}{why}", gap=gap)


def slot_of(reply: ReadReply, i: int, position: int, name: str) -> Slot:
    """Return the slot of the i-th position in a reply with ids, which object ``name`` sent."""
    state = reply.state(i)
    if state == State.WRITTEN:
        return reply.at_position(i, position)
    if state == State.LOST:
        return lost(position, LossReason.CORRUPT, name)
    if state == State.FILLED:
        fill = _fill(reply.writer(i), reply.timestamp(i), reply.reason(i))
        return Gap(position, position + 1, GapKind.FILLED, fill)
    return gap_of(position, state)


def fills_of(payload: ReplyBytes, asked: Sequence[int]) -> Iterator[tuple[int, Gap]]:
    """Return the filled positions of a reply with ids, as gaps. ``asked`` are its positions."""
    for position, writer, timestamp, reason in decode_fills(payload, asked):
        fill = _fill(writer, timestamp, reason)
        yield position, Gap(position, position + 1, GapKind.FILLED, fill)


@lru_cache(maxsize=64)
def _fill(writer: bytes, timestamp: int, reason: int) -> Fill:
    """Return the same Fill for all positions that were filled together."""
    why = _REASONS.get(reason, FillReason.UNKNOWN)
    return Fill(writer.hex(), from_timestamp(timestamp), why)


def in_order(slots: Iterable[_SlotT], *, apart: bool = False) -> list[_SlotT]:
    """Join adjacent gaps of slots, which are in ascending order.

    With ``apart``, also join successive gaps of some objects between which there are positions.
    """
    result: list[_SlotT] = []
    for slot in slots:
        last = result[-1] if result else None
        one = None
        if isinstance(last, Gap) and isinstance(slot, Gap) and (apart or last.end == slot.position):
            one = _joined(last, slot)
        if one is None:
            result.append(slot)
        else:
            result[-1] = one
    return result


def _joined(gap: Gap, following: Gap) -> Gap | None:
    """Join two adjacent gaps. Returns None if they differ in more than time or objects."""
    if gap.kind is not following.kind:
        return None
    one, other = gap.detail, following.detail
    if one is other:
        return Gap(gap.position, following.end, gap.kind, one)
    if isinstance(one, Fill) and isinstance(other, Fill):
        if one.by != other.by or one.why is not other.why:
            return None
        one = min(one, other, key=lambda fill: fill.at)
    elif isinstance(one, Loss) and isinstance(other, Loss):
        if one.why is not other.why:
            return None
        one = Loss(one.why, tuple(dict.fromkeys((*one.objects, *other.objects))))
    return Gap(gap.position, following.end, gap.kind, one)
