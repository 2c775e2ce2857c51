"""Requests that no sound client sends: noise, truncations, flipped bits, lies about lengths."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from . import requests, wire
from .messages import METHODS, STRUCTS, request
from .requests import Entry, Grant, Part, StripeView, View
from .wire import OPEN_END

NO_SPACINGS = (0, 1025, 4 << 16, 1 | 17 << 16, 1 | 32 << 16, 2**32 - 1)
"""No stride, one above 1,024, no stride with a shift, shifts above 16."""
_ENTRIES = [Entry(p, p, b"entry %d" % p) for p in (0, 1, 2, 5)]
_PART = Part("query", 3, 1)
_VIEW = View(
    1, 7, sequencer="tcp://a:1", stripes=(StripeView(1, 0, OPEN_END, 4),), options={"a": ""}
)

# One sound request of every method, for an object of stride 1 that was sealed with epoch 1.
_VALUES: dict[str, tuple[Any, ...]] = {
    "seal": (1, 1, 0, True, None, 1),
    "read": (1, True, 1000, (1, [0, 1, 2, 5, 9])),
    "select": (1, 0, 10, (b"a", b"b"), False, False, 10, 1000, False),
    "tags_check": (1, 0, 10),
    "tags_rebuild": (1, 0, 10),
    "tags_list": (1, 0, 10),
    "compact": (1, 0, 10, (1, [0, 5])),
    "count": (1, 0, 10),
    "verify": (1, 1000, (1, [0, 1, 2, 5, 9]), False),
    "fill": (1, 1, b"f" * 16, 1, (1, [3, 7, 8])),
    "trim": (1, (1, [2, 4])),
    "trim_to": (1, 1, 10),
    "max_position": (1,),
    "stat": (1,),
    "remove": (1,),
    "head_create": ("log", 7),
    "epoch_next": (4,),
    "epoch_read": (),
    "tail_raise": (7, 1, 5),
    "trim_point_raise": (7, 5, False),
    "view_propose": (0, requests.view(_VIEW)),
    "view_read": (0, 10, False),
    "head_remove": (1,),
    "stripes_read": (7, 0, 10),
    "stripes_loose": (7, 0, 10),
    "stripe_forget": (7, 1),
    "directory_add": ("log", 7),
    "directory_remove": ("log", 7),
    "directory_list": ("a", 10),
    "sequencer_announce": ("tcp://a:1",),
    "sequencer_withdraw": ("tcp://a:1",),
    "sequencer_find": (),
    "cursor_commit": (7, "reader", 2, 5, 1),
    "cursor_read": (7, "reader"),
    "cursor_list": (7, "a", 10),
    "cursor_remove": (7, "reader"),
    "retention_read": (7,),
    "retention_write": (7, 0, b"seen"),
    "delivery_begin": (*_PART.fields, 1),
    "delivery_grant": Grant(_PART, 1, 1, 5, 4, False).fields,
    "delivery_read": _PART.fields,
    "delivery_done": (7, "query", 3, 1, 1),
    "delivery_list": (7, "a", 10),
    "damaged": (b"",),
    "salvage": (b"", 2),
    "heal": (b"e.0000000000000002.1", b"value", b"data"),
    "version": (),
}
_RUNS = {
    method: wire.runs_of(1, positions)
    for method, positions in {
        "write": [entry.position for entry in _ENTRIES],
        **{name: v[-1][1] for name, v in _VALUES.items() if v and isinstance(v[-1], tuple)},
        "verify": [0, 1, 2, 5, 9],
    }.items()
}
_WRITE = requests.write(1, 1, b"w" * 16, 1, _ENTRIES)
SOUND = {
    method: _WRITE if method == "write" else request(method, *_VALUES[method]) for method in METHODS
}


def malformed(method: str) -> Iterator[bytes]:
    """Requests that are wrong beyond doubt: cut short, too long, or of no version."""
    sound = SOUND[method]
    yield from (sound[:length] for length in range(len(sound)) if method != "write" or length < 100)
    yield sound + b"\0"
    yield sound + sound
    for version, compat in ((0, 1), (1, 2), (2, 255)):  # none can say so
        yield bytes([version, compat]) + sound[2:]
    for spacing in NO_SPACINGS if "runs" in STRUCTS[METHODS[method].request].kinds else ():
        at = sound.index(wire.raw_runs(1, _RUNS[method]))
        yield sound[:at] + wire.u32(spacing) + sound[at + 4 :]


def lies() -> Iterator[tuple[str, bytes]]:
    """Small requests that promise much: counts and lengths near every limit."""
    for count in (2**16, 2**16 + 1, 2**31, 2**32 - 1):
        for method, fields in _fields_that_lie(count):
            yield method, wire.frame(fields)
            yield method, wire.u8(1) + wire.u8(1) + wire.u32(count) + fields
        yield "view_propose", request("view_propose", 0, _view_that_lies(count))
        yield "stripes_read", request("stripes_read", 7, 0, count)
        yield "stripes_loose", request("stripes_loose", 7, 0, count)


def _fields_that_lie(count: int) -> Iterator[tuple[str, bytes]]:
    epoch, time, writer = wire.u64(1), wire.u64(1), b"w" * 16
    one = wire.raw_runs(1, [(0, count)])
    many = wire.u32(1) + wire.u32(count) + wire.u64(0) + wire.u32(1)
    spread = wire.raw_runs(count, [(0, 1)])  # no stride, or no shift, of that size
    for runs in (one, many, spread):
        yield "write", epoch + time + writer + wire.u64(0) + runs
        yield "read", epoch + wire.u8(0) + wire.u32(2**32 - 1) + runs
        yield "verify", epoch + wire.u32(2**32 - 1) + runs
        yield "fill", epoch + time + writer + wire.u8(0) + runs
        yield "trim", epoch + runs
    span = epoch + wire.u64(0) + wire.u64(2**63)
    yield "select", span + wire.u32(count) + wire.blob(b"a")
    yield "select", span + wire.u32(1) + wire.u32(count) + b"a"
    yield "select", span + wire.u32(1) + wire.blob(b"a") + wire.u8(0) * 2 + wire.u32(count)
    yield "head_create", wire.u32(count) + b"log" + wire.u64(7)
    yield "directory_add", wire.u32(count) + b"log" + wire.u64(7)
    yield "directory_list", wire.u32(0) + wire.u32(count)
    yield "sequencer_announce", wire.u32(count) + b"tcp://a:1"
    cursor = wire.u64(7) + wire.u32(count)
    for method in ("cursor_commit", "cursor_read", "cursor_remove"):
        yield method, cursor + b"reader"
    for method in ("delivery_begin", "delivery_read", "delivery_done"):
        yield method, cursor + b"query" + wire.u64(3)
    granted = wire.u64(1) + wire.u32(1) + wire.u64(1) + wire.u64(5) + wire.u32(count) + wire.u8(2)
    yield "delivery_grant", request("delivery_read", *_PART.fields)[6:] + granted
    yield "delivery_list", wire.u64(7) + wire.u32(0) + wire.u32(count)
    yield "cursor_list", wire.u64(7) + wire.u32(0) + wire.u32(count)
    yield "view_read", wire.u64(0) + wire.u32(count) + wire.u8(0)
    yield "view_propose", wire.u64(0) + wire.u32(count) + requests.view(_VIEW)
    yield "epoch_next", wire.u32(count)
    yield "trim_to", epoch + wire.u64(2**64 - 1) + wire.u32(count)
    yield "seal", epoch + wire.u32(count) + wire.u32(count - 1) + wire.u8(1)
    if count > 2**16:
        yield "seal", request("seal", 1, 1, 0, True, None, count)[6:]


def _view_that_lies(stripes: int) -> bytes:
    sound = requests.view(_VIEW)
    at = sound.index(wire.u32(1) + wire.u8(2) + wire.u8(1) + wire.u32(32) + wire.u64(1))
    return sound[:at] + wire.u32(stripes) + sound[at + 4 :]
