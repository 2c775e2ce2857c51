"""Answers as text, for transcripts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import replies
from .appended import Appended
from .messages import STRUCTS
from .replies import Answer, Read, Row, Sealed, Slot, Stat, State, Verified
from .requests import TIME, View, parse_view
from .wire import OPEN_END, following

_SHOWN_BYTES_MAX = 40
_DELIVERY: Any = STRUCTS["DeliveryReadReply"].type


def show_answer(method: str, answer: Answer) -> list[str]:
    """An answer as a transcript's lines: the code, then what came with it."""
    name, value = replies.code_name(answer.code), answer.value
    if value is None:
        return [name]
    show = _SHOW.get(method) if answer.code == 0 else None
    if show is not None:
        first, *rest = show(value)
        return [f"{name} {first}".rstrip(), *rest]
    if isinstance(value, tuple):
        return [f"{name} {_show_fields(value)}"]
    return [f"{name} {value}"]


def _or_none(value: int | None) -> str:
    return "none" if value is None else "max" if value == OPEN_END else str(value)


def _show_read(value: tuple[list[int], int, Read]) -> list[str]:
    positions, striping, read = value
    lines = [f"highest={_or_none(read.highest)}"]
    spans: list[tuple[int, int, str]] = []  # first, end, text: equal neighbours are shown once
    for position, slot in zip(positions, read.slots, strict=False):
        shown, end = _show_slot(slot), following(striping, position)
        if spans and spans[-1][1:] == (position, shown):
            spans[-1] = (spans[-1][0], end, shown)
        else:
            spans.append((position, end, shown))
    for first, end, shown in spans:
        alone = end == following(striping, first)
        lines.append(f"{first} {shown}" if alone else f"{first}..{end} {shown}")
    if len(read.slots) < len(positions):
        lines.append(f"({len(positions) - len(read.slots)} more)")
    return lines


def _show_slot(slot: Slot) -> str:
    parts = [slot.state.name.lower()]
    if slot.state == State.WRITTEN:
        parts.append(_show_data(slot.data))
    if slot.timestamp not in (0, TIME):
        parts.append(f"time={slot.timestamp}")
    if slot.writer is not None:
        parts.append(f"writer={_show_writer(slot.writer)}")
    if slot.number is not None:
        parts.append(f"number={slot.number}")
    if slot.reason is not None:
        parts.append(f"reason={slot.reason}")
    if slot.tags:
        parts.append("tags=" + ",".join(tag.decode() for tag in sorted(slot.tags)))
    return " ".join(parts)


def _show_data(data: bytes) -> str:
    if len(data) > 8 and data == data[:1] * len(data):
        return f"{_show_data(data[:1])}*{len(data)}"
    if len(data) > _SHOWN_BYTES_MAX:
        return f"{_show_data(data[:_SHOWN_BYTES_MAX])}… ({len(data)} bytes)"
    if all(32 <= byte < 127 for byte in data):
        return f'"{data.decode()}"'
    return f"0x{data.hex()}"


def _show_verified(verified: Verified) -> list[str]:
    return [f"highest={_or_none(verified.highest)}", *map(_show_row, verified.rows)]


def _show_row(row: Row) -> str:
    parts = [f"{row.length} {row.state.name.lower()}"]
    if row.writer is not None:
        parts.append(f"writer={_show_writer(row.writer)} number={row.number}+{row.step}")
    if row.state == State.WRITTEN:
        parts.append(f"bytes={row.data_bytes}")
    return " ".join(parts)


def _show_writer(writer: bytes) -> str:
    return writer[:1].decode() if writer == writer[:1] * 16 else writer.hex()


def _show_stat(stat: Stat) -> list[str]:
    points = f"highest={_or_none(stat.highest)} trim_point={_or_none(stat.trim_point)}"
    counts = f"entries={stat.entries} bytes={stat.data_bytes}" + " frozen" * stat.frozen
    return [f"epoch={stat.epoch} {points} {counts}"]


def _show_sealed(sealed: Sealed) -> list[str]:
    start = "" if sealed.start is None else f" start={sealed.start}"
    return [f"highest={_or_none(sealed.highest)}{start}"]


def _show_appended(reply: Appended) -> list[str]:
    states = [f" {state.name.lower()}@{position}" for state, position in reply.outcomes]
    stored = f" stored={reply.stored}" if reply.stored else ""
    return [f"tail={reply.tail} since={reply.since}{stored}" + "".join(states)]


def _show_fields(value: Any, count: int | None = None) -> str:
    """A tuple's fields, or the first ones."""
    pairs = zip(value._fields[:count], value, strict=False)
    return " ".join(f"{name}={_or_none(each)}" for name, each in pairs)


def _show_views(read: Any) -> list[str]:
    views = [_show_view(parse_view(each)) for each in read.views]
    return [_show_fields(read, 5), *views, *_more(read)]


def _show_view(view: View) -> str:
    parts = [f"epoch={view.epoch} log_id={view.log_id}"]
    parts += ["removed"] if view.removed else []
    parts += ["offloads"] if view.offloads else []
    parts += ["ordered"] if view.ordered else []
    parts += [f"sequencer={view.sequencer}"] if view.sequencer else []
    parts += [f"option.{key}={value}" for key, value in view.options.items()]
    return " ".join([*parts, *map(_show_stripe, view.stripes)])


def _show_retention(read: Any) -> list[str]:
    return [f"version={read.version} state={_show_data(read.state)}"]


def _show_delivery(read: Any) -> list[str]:
    grants = [f"{first}..{first + count}" for first, count in read.grants]
    opened = [f"{read.open_from - 1}.."] if read.open_from else []
    return [" ".join([_show_fields(read, 2), *grants, *opened])]


def _show_parts(listed: Any) -> list[str]:
    lines = []
    for sequence, part, *read in listed.parts:
        lines += [f"{sequence}.{part} {_show_delivery(_DELIVERY(*read))[0]}"]
    return ["", *lines, *_more(listed)]


def _show_named(listed: Any) -> list[str]:
    """One in each line: its name, then its other fields."""
    lines = [f"{each.name} {_show_fields(each).partition(' ')[2]}" for each in listed[1]]
    return ["", *lines, *_more(listed)]


def _show_offloads(listed: Any) -> list[str]:
    lines = []
    for id_, start, end, state, url, size, *_, entries, data, segments in listed.records:
        spans = " ".join(f"..{each.end}/{each.entries}" for each in segments)
        lines += [f"{id_}:{start}-{end} {state} {_show_data(url)} {size} {entries}/{data} {spans}"]
    return ["", *lines, *_more(listed)]


def _more(listed: Any) -> list[str]:
    return ["(more)"] if listed.more else []


def _show_stripe(s: Any) -> str:
    stripe_unit = "" if s.stripe_unit == 1 else f"*{s.stripe_unit}"
    return f"{s.id}:{s.start}-{'' if s.end == OPEN_END else s.end}/{s.width}{stripe_unit}"


def _show_pending(value: Any) -> list[str]:
    shown = [f"{id_}/{width}" for id_, width in value.stripes]
    return [" ".join([f"newest={value.newest}", *shown, *_more(value)])]


def _show_more(more: bool) -> list[str]:
    return ["more" if more else ""]


_SHOW: dict[str, Callable[..., list[str]]] = {
    "seal": _show_sealed,
    "write": lambda _fullness: [""],
    "append": _show_appended,
    "read": _show_read,
    "verify": _show_verified,
    "trim_to": _show_more,
    "trim_point_raise": _show_more,
    "delivery_done": _show_more,
    "stat": _show_stat,
    "view_read": _show_views,
    "stripes_read": lambda read: [" ".join([*map(_show_stripe, read.stripes), *_more(read)])],
    "stripes_loose": _show_pending,
    "offload_list": _show_offloads,
    "directory_list": lambda listed: [" ".join([*listed.names, *_more(listed)])],
    "cursor_list": _show_named,
    "retention_read": _show_retention,
    "delivery_read": _show_delivery,
    "delivery_list": _show_named,
    "producer_parts": _show_parts,
    "sequencer_find": lambda address: [f'"{address}"'],
}
