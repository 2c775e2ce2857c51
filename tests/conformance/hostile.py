"""Requests that no sound client sends: noise, truncations, flipped bits, lies about lengths."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from . import requests, wire
from .messages import METHODS, STRUCTS, encode_field, request
from .requests import AppendPart, Entry, StripeView, View
from .wire import OPEN_END

NO_STRIPINGS = (0, 1025, 4 << 16, 1 | 17 << 16, 1 | 32 << 16, 2**32 - 1)
"""No stride, one above 1,024, no stride with a shift, shifts above 16."""
_ENTRIES = [Entry(p, p, b"entry %d" % p) for p in (0, 1, 2, 5)]
_PART = (7, "query", 3, 1)
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
    "freeze": (1,),
    "append": (1, 1, b"w" * 16, 1, 0, [(1, 2, 0, [(b"\1a",)])], [0], [0], [0], 0, [], b"", [], []),
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
    "offload_put": (7, *requests.offload(1, 0, 5)[:-1], [(5, 5, 50, 1, 2)]),
    "offload_list": (7, 0, 10),
    "offload_forget": (7, 5, b"file:///a"),
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
    "delivery_begin": (*_PART, 1),
    "delivery_grant": (*_PART, 1, 1, 1, 5, 4, False, False),
    "delivery_read": _PART,
    "delivery_done": (7, "query", 3, 1, 1, 0),
    "delivery_list": (7, "a", 10),
    "producer_parts": _PART,
    "producer_copy": (7, 1, "query", 1, 1, 2, [(3, 1, 1, 1, [(5, 4)]), (3, 2, 1, 1, [])]),
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
_WITH_DATA = {
    "write": requests.write(1, 1, b"w" * 16, 1, _ENTRIES),
    "append": requests.append(
        1,
        1,
        b"w" * 16,
        0,
        [
            AppendPart((Entry(0, 7, b"data", (b"a",)),), unless=((b"b",),)),
            AppendPart((Entry(0, 8, b"b"),)),
        ],
    ),
}
SOUND = {method: _WITH_DATA.get(method) or request(method, *_VALUES[method]) for method in METHODS}


def malformed(method: str) -> Iterator[bytes]:
    """Requests that are wrong beyond doubt: cut short, too long, or of no version."""
    sound = SOUND[method]
    cut_max = 100 if method in _WITH_DATA else len(sound)
    yield from (sound[:length] for length in range(cut_max))
    yield sound + b"\0"
    yield sound + sound
    for version, compat in ((0, 1), (1, 2), (2, 255)):  # none can say so
        yield bytes([version, compat]) + sound[2:]
    for striping in NO_STRIPINGS if "runs" in STRUCTS[METHODS[method].request].kinds else ():
        at = sound.index(wire.raw_runs(1, _RUNS[method]))
        yield sound[:at] + wire.u32(striping) + sound[at + 4 :]


def lies() -> Iterator[tuple[str, bytes]]:
    """Small requests that promise much: counts and lengths near every limit."""
    for count in (2**16, 2**16 + 1, 2**31, 2**32 - 1):
        for method, values in _VALUES.items():
            message = METHODS[method].request
            fields = [*zip(STRUCTS[message].kinds, values, strict=False)]
            sound = [encode_field(*field) for field in fields]
            for at, (kind, _) in enumerate(fields):
                for lie in _lies_of(kind, sound[at], count):
                    lying = b"".join([*sound[:at], lie, *sound[at + 1 :]])
                    yield method, wire.frame(lying, STRUCTS[message].version)
        for runs in _lies_of("runs", wire.positions_in(1, [0]), count):
            yield "write", wire.frame(wire.u64(1) * 2 + b"w" * 16 + wire.u64(0) + runs)
        yield "view_propose", request("view_propose", 0, _view_that_lies(count))


def _lies_of(kind: str, field: bytes, count: int) -> Iterator[bytes]:
    """What may stand for a field: of that many elements, or bytes."""
    if kind == "runs":
        yield wire.raw_runs(1, [(0, count)])
        yield wire.raw_runs(count, [(0, 1)])  # no stride, or no shift, of that size
        yield field[:4] + wire.u32(count) + field[8:]
    elif kind in ("text", "string") or kind.startswith(("list of", "map of")):
        yield wire.u32(count) + field[4:]


def _view_that_lies(stripes: int) -> bytes:
    sound = requests.view(_VIEW)
    at = sound.index(wire.u32(1) + wire.u8(2) + wire.u8(1) + wire.u32(32) + wire.u64(1))
    return sound[:at] + wire.u32(stripes) + sound[at + 4 :]
