"""The wire in literal bytes: sample requests and replies of every method, field by field.

These are the format. A change that makes a test of them fail breaks every client and every OSD that
is out there; it needs a new version of the message, not a new literal here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from . import requests
from .requests import Entry, Grant, Part, StripeView, View
from .wire import OPEN_END


def bytes_of(text: str) -> bytes:
    """Hexadecimal with spaces and `# comments` at the ends of lines."""
    return bytes.fromhex(" ".join(line.partition("#")[0] for line in text.splitlines()))


@dataclass(frozen=True)
class Sample:
    """A request: how the suite builds it, how `zlog._native` does, and what both must give."""

    name: str
    ours: Callable[[], bytes]
    native: str  # function of zlog._native
    arguments: tuple[object, ...]
    expected: bytes


TIME = 0x0005543DF729C000
WRITER = bytes(range(16))
ENTRIES = (Entry(5, 1007, b"five"), Entry(9, 1000, b""), Entry(17, 1001, b"\x00\xff"))
PART = Part("query", 3, 1)
VIEW = View(
    3,
    7,
    False,
    "tcp://host:1",
    (StripeView(1, 0, 200, 8), StripeView(3, 200, OPEN_END, 4)),
    {"b": "2", "a": ""},
)
VIEW_TUPLE = (
    3,
    7,
    0,
    "tcp://host:1",
    ((1, 0, 200, 8), (3, 200, OPEN_END, 4)),
    (("a", ""), ("b", "2")),
)
VIEW_BYTES = bytes_of(
    """
    01                                     # version
    0300000000000000 0700000000000000      # epoch, log id
    00                                     # live
    0c000000 7463703a2f2f686f73743a31      # sequencer
    02000000                               # stripes
    0100000000000000 0000000000000000 c800000000000000 08000000
    0300000000000000 c800000000000000 ffffffffffffffff 04000000
    02000000                               # options, in the order of their keys
    01000000 61 00000000
    01000000 62 01000000 32
    """
)


def _sample(
    name: str, ours: Callable[[], bytes], native: str, arguments: tuple[object, ...], expected: str
) -> Sample:
    return Sample(name, ours, native, arguments, bytes_of(expected))


SAMPLES = (
    _sample(
        "seal",
        lambda: requests.seal(5, 4, 1, create=True),
        "encode_seal",
        (5, 4, 1, True),
        "01 0500000000000000 04000000 01000000 01",
    ),
    _sample(
        "seal_existing",
        lambda: requests.seal(5, 4, 1, create=False),
        "encode_seal",
        (5, 4, 1, False),
        "01 0500000000000000 04000000 01000000 00",
    ),
    _sample(
        "write",
        lambda: requests.write(5, TIME, WRITER, 4, ENTRIES),
        "encode_write",
        (
            5,
            TIME,
            WRITER,
            4,
            [e.position for e in ENTRIES],
            [e.number for e in ENTRIES],
            [e.data for e in ENTRIES],
        ),
        """
        01                                  # version
        0500000000000000                    # epoch
        00c029f73d540500                    # timestamp, µs
        000102030405060708090a0b0c0d0e0f    # writer
        e803000000000000                    # base of the numbers
        04000000 02000000                   # stride, runs
        0500000000000000 02000000           # 5, 9
        1100000000000000 01000000           # 17
        04000000 04000000 06000000          # ends
        0ebd805e 77cb2f87 830e4308          # checksums of (position, data)
        07000000 00000000 01000000          # numbers over the base
        66697665 00ff                       # data
        """,
    ),
    _sample(
        "read",
        lambda: requests.read(5, 4, [5, 9, 17], 1 << 20, with_ids=True),
        "encode_read",
        (5, 4, [5, 9, 17], 1 << 20, True),
        """
        01 0500000000000000
        01                                  # with ids
        00001000                            # bytes_max
        04000000 02000000 0500000000000000 02000000 1100000000000000 01000000
        """,
    ),
    _sample(
        "verify",
        lambda: requests.verify(5, 4, [5, 9, 17], 1 << 20),
        "encode_verify",
        (5, 4, [5, 9, 17], 1 << 20),
        """
        01 0500000000000000
        00001000                            # bytes_max
        04000000 02000000 0500000000000000 02000000 1100000000000000 01000000
        """,
    ),
    _sample(
        "fill",
        lambda: requests.fill(5, TIME, WRITER, 1, 4, [13]),
        "encode_fill",
        (5, TIME, WRITER, 1, 4, [13]),
        """
        01 0500000000000000 00c029f73d540500 000102030405060708090a0b0c0d0e0f
        01                                  # reason: a reader waited
        04000000 01000000 0d00000000000000 01000000
        """,
    ),
    _sample(
        "trim",
        lambda: requests.trim(5, 4, [5]),
        "encode_trim",
        (5, 4, [5]),
        "01 0500000000000000 04000000 01000000 0500000000000000 01000000",
    ),
    _sample(
        "trim_to",
        lambda: requests.trim_to(5, 6, 1000),
        "encode_trim_to",
        (5, 6, 1000),
        "01 0500000000000000 0600000000000000 e8030000",
    ),
    _sample(
        "epoch",
        lambda: requests.epoch(5),
        "encode_epoch",
        (5,),
        "01 0500000000000000",
    ),
    _sample(
        "head_create",
        lambda: requests.head_create("orders", 7),
        "encode_head_create",
        ("orders", 7),
        "01 06000000 6f7264657273 0700000000000000",
    ),
    _sample(
        "epoch_next",
        lambda: requests.epoch_next(8),
        "encode_epoch_next",
        (8,),
        "01 08000000",
    ),
    _sample("empty", requests.empty, "encode_empty", (), "01"),
    _sample(
        "tail_raise",
        lambda: requests.tail_raise(3, 200),
        "encode_tail_raise",
        (7, 3, 200),
        "01 0700000000000000 0300000000000000 c800000000000000",
    ),
    _sample(
        "trim_point",
        lambda: requests.trim_point(100),
        "encode_trim_point",
        (7, 100, False),
        "01 0700000000000000 6400000000000000 00",
    ),
    _sample(
        "trim_point_past_cursors",
        lambda: requests.trim_point(100, past_cursors=True),
        "encode_trim_point",
        (7, 100, True),
        "01 0700000000000000 6400000000000000 01",
    ),
    _sample(
        "cursor_commit",
        lambda: requests.cursor_commit(7, "app", 2, 100, TIME),
        "encode_cursor_commit",
        (7, "app", 2, 100, TIME),
        "01 0700000000000000 03000000 617070 02 6400000000000000 00c029f73d540500",
    ),
    _sample(
        "cursor",
        lambda: requests.cursor(7, "app"),
        "encode_cursor",
        (7, "app"),
        "01 0700000000000000 03000000 617070",
    ),
    _sample(
        "delivery",
        lambda: requests.delivery(PART),
        "encode_delivery",
        (7, "query", 3, 1),
        "01 0700000000000000 05000000 7175657279 0300000000000000 01000000",
    ),
    _sample(
        "delivery_begin",
        lambda: requests.delivery_begin(PART, TIME),
        "encode_delivery_begin",
        (7, "query", 3, 1, TIME),
        """
        01 0700000000000000 05000000 7175657279 0300000000000000 01000000
        00c029f73d540500
        """,
    ),
    _sample(
        "delivery_grant",
        lambda: requests.delivery_grant(Grant(PART, 2, 4, 100, 10, True, 5)),
        "encode_delivery_grant",
        (7, "query", 3, 1, 5, 2, 4, 100, 10, True),
        """
        01 0700000000000000 05000000 7175657279 0300000000000000 01000000
        0500000000000000 02000000 0400000000000000 6400000000000000 0a000000 01
        """,
    ),
    _sample(
        "delivery_done",
        lambda: requests.delivery_done(7, "query", 4, TIME),
        "encode_delivery_done",
        (7, "query", 4, TIME),
        "01 0700000000000000 05000000 7175657279 0400000000000000 00c029f73d540500",
    ),
    _sample(
        "delivery_list",
        lambda: requests.delivery_list(7, "a", 10),
        "encode_delivery_list",
        (7, "a", 10),
        "01 0700000000000000 01000000 61 0a000000",
    ),
    _sample(
        "cursor_list",
        lambda: requests.cursor_list(7, "a", 10),
        "encode_cursor_list",
        (7, "a", 10),
        "01 0700000000000000 01000000 61 0a000000",
    ),
    _sample(
        "view_propose",
        lambda: requests.view_propose(2, VIEW_BYTES),
        "encode_view_propose",
        (2, VIEW_BYTES),
        "01 0200000000000000 75000000" + VIEW_BYTES.hex(),
    ),
    _sample(
        "view_read",
        lambda: requests.view_read(2, 100, latest=False),
        "encode_view_read",
        (2, 100, False),
        "01 0200000000000000 64000000 00",
    ),
    _sample(
        "view_read_latest",
        lambda: requests.view_read(0, 1, latest=True),
        "encode_view_read",
        (0, 1, True),
        "01 0000000000000000 01000000 01",
    ),
    _sample(
        "stripes_read",
        lambda: requests.stripes_read(7, 200, 10),
        "encode_stripes_read",
        (7, 200, 10),
        "01 0700000000000000 c800000000000000 0a000000",
    ),
    _sample(
        "stripes_loose",
        lambda: requests.stripes_loose(7, 2, 10),
        "encode_stripes_loose",
        (7, 2, 10),
        "01 0700000000000000 0200000000000000 0a000000",
    ),
    _sample(
        "stripe_forget",
        lambda: requests.stripe_forget(7, 2),
        "encode_stripe_forget",
        (7, 2),
        "01 0700000000000000 0200000000000000",
    ),
    _sample(
        "directory_entry",
        lambda: requests.directory_entry("orders", 7),
        "encode_directory_entry",
        ("orders", 7),
        "01 06000000 6f7264657273 0700000000000000",
    ),
    _sample(
        "directory_list",
        lambda: requests.directory_list("a", 10),
        "encode_directory_list",
        ("a", 10),
        "01 01000000 61 0a000000",
    ),
    _sample(
        "address",
        lambda: requests.address("tcp://host:1"),
        "encode_address",
        ("tcp://host:1",),
        "01 0c000000 7463703a2f2f686f73743a31",
    ),
)


@dataclass(frozen=True)
class Exchange:
    """One step of a conversation: a method, its request, and the literal answer."""

    method: str
    request: bytes
    code: int
    reply: bytes


def _exchange(method: str, request: bytes, code: int, reply: str = "") -> Exchange:
    return Exchange(method, request, code, bytes_of(reply))


_READ = [5, 9, 13, 17, 21, 25]

STRIPE_CONVERSATION = (
    _exchange(
        "seal",
        requests.seal(5, 4, 1, create=True),
        0,
        "01 00 0000000000000000 00000000 0000000000000000",
    ),
    _exchange("seal", requests.seal(5, 4, 1, create=True), 5, "01 0500000000000000"),
    _exchange("max_position", requests.epoch(5), 0, "01 00 0000000000000000"),
    _exchange(
        "write", requests.write(5, TIME, WRITER, 4, ENTRIES), 0, "01 02000000 0600000000000000"
    ),
    _exchange(
        "write", requests.write(5, TIME, bytes(16), 4, ENTRIES[1:]), 2, "01 0900000000000000"
    ),
    _exchange(
        "write", requests.write(4, TIME, bytes(16), 4, ENTRIES[1:]), 1, "01 0500000000000000"
    ),
    _exchange("fill", requests.fill(5, TIME, WRITER, 1, 4, [13]), 0),
    _exchange("fill", requests.fill(5, TIME, WRITER, 1, 4, [13, 17]), 2, "01 1100000000000000"),
    _exchange("trim", requests.trim(5, 4, [21]), 0),
    _exchange(
        "read",
        requests.read(5, 4, _READ, 100, with_ids=False),
        0,
        """
        01 01 1500000000000000 06000000                         # highest, entries
        00 00 02 00 03 01                                       # states
        00c029f73d540500 00c029f73d540500 00c029f73d540500
        00c029f73d540500 0000000000000000 0000000000000000      # timestamps
        04000000 04000000 04000000 06000000 06000000 06000000   # ends
        0ebd805e 77cb2f87 00000000 830e4308 00000000 00000000   # checksums
        66697665 00ff
        """,
    ),
    _exchange(
        "read",
        requests.read(5, 4, [5, 13], 100, with_ids=True),
        0,
        """
        01 01 1500000000000000 02000000
        00 02
        00c029f73d540500 00c029f73d540500
        04000000 04000000
        0ebd805e 00000000
        000102030405060708090a0b0c0d0e0f 000102030405060708090a0b0c0d0e0f
        ef03000000000000 0000000000000000                       # numbers
        00 01                                                   # reasons
        66697665
        """,
    ),
    _exchange("read", requests.read(4, 4, _READ, 100, with_ids=False), 1, "01 0500000000000000"),
    _exchange(
        "verify",
        requests.verify(5, 4, _READ, 100),
        0,
        """
        01 01 1500000000000000 06000000 06000000                # highest, positions, rows
        01000000 00 000102030405060708090a0b0c0d0e0f ef03000000000000 00000000 0400000000000000
        01000000 00 000102030405060708090a0b0c0d0e0f e803000000000000 00000000 0000000000000000
        01000000 02 00000000000000000000000000000000 0000000000000000 00000000 0000000000000000
        01000000 00 000102030405060708090a0b0c0d0e0f e903000000000000 00000000 0200000000000000
        01000000 03 00000000000000000000000000000000 0000000000000000 00000000 0000000000000000
        01000000 01 00000000000000000000000000000000 0000000000000000 00000000 0000000000000000
        """,
    ),
    _exchange("verify", requests.verify(4, 4, _READ, 100), 1, "01 0500000000000000"),
    _exchange("trim_to", requests.trim_to(5, 6, 1000), 0, "01 00"),
    _exchange(
        "seal",
        requests.seal(6, 4, 1, create=False),
        0,
        "01 01 1500000000000000 04000000 0200000000000000",
    ),
    _exchange("max_position", requests.epoch(6), 0, "01 01 1500000000000000"),
    _exchange("remove", requests.epoch(5), 1, "01 0600000000000000"),
    _exchange("remove", requests.epoch(6), 0),
)

HEAD_CONVERSATION = (
    _exchange("head_create", requests.head_create("orders", 7), 0),
    _exchange("epoch_next", requests.epoch_next(8), 0, "01 0100000000000000 0000000000000000"),
    _exchange("tail_raise", requests.tail_raise(1, 200), 0),
    _exchange("tail_raise", requests.tail_raise(2, 200), 1, "01 0100000000000000"),
    _exchange("trim_point_raise", requests.trim_point(100), 0, "01 00"),
    _exchange("epoch_next", requests.epoch_next(4), 0, "01 0200000000000000 c800000000000000"),
    _exchange("epoch_next", requests.epoch_next(4), 0, "01 0300000000000000 c800000000000000"),
    _exchange(
        "epoch_read",
        requests.empty(),
        0,
        """
        01 0300000000000000 0000000000000000                    # counter, newest view
        c800000000000000 6400000000000000 0700000000000000      # tail floor, trim point, log id
        """,
    ),
    _exchange(
        "view_propose",
        requests.view_propose(
            0, requests.view(View(1, 7, stripes=(StripeView(1, 0, OPEN_END, 8),)))
        ),
        0,
    ),
    _exchange("view_propose", requests.view_propose(0, VIEW_BYTES), 1, "01 0100000000000000"),
    _exchange("view_propose", requests.view_propose(1, VIEW_BYTES), 0),
    _exchange(
        "view_read",
        requests.view_read(2, 100, latest=False),
        0,
        """
        01 0300000000000000 0300000000000000
        c800000000000000 6400000000000000 0700000000000000
        00 01000000 75000000
        """
        + VIEW_BYTES.hex(),
    ),
    _exchange("head_remove", requests.epoch(3), 5, "01 0300000000000000"),
    _exchange("epoch_next", requests.epoch_next(0), 0, "01 0400000000000000 c800000000000000"),
    _exchange(
        "view_propose",
        requests.view_propose(
            3, requests.view(View(4, 7, stripes=(StripeView(3, 200, OPEN_END, 4),)))
        ),
        0,
    ),
    _exchange(
        "stripes_read",
        requests.stripes_read(7, 0, 10),
        0,
        "01 00 01000000 0100000000000000 0000000000000000 c800000000000000 08000000",
    ),
    _exchange("trim_point_raise", requests.trim_point(200), 0, "01 00"),
    _exchange("stripes_read", requests.stripes_read(7, 0, 10), 0, "01 00 00000000"),
    _exchange(
        "stripes_loose",
        requests.stripes_loose(7, 0, 10),
        0,
        """
        01 0400000000000000 00 02000000                         # newest view, more, stripes
        0100000000000000 08000000                               # below the trim point
        0200000000000000 04000000                               # announced, and never came
        """,
    ),
    _exchange("stripe_forget", requests.stripe_forget(7, 2), 0),
)

CURSOR_CONVERSATION = (
    _exchange("head_create", requests.head_create("orders", 7), 0),
    _exchange("cursor_commit", requests.cursor_commit(7, "app", 0, 100, TIME), 3),
    _exchange("cursor_commit", requests.cursor_commit(7, "app", 1, 100, TIME), 0),
    _exchange(
        "cursor_commit",
        requests.cursor_commit(7, "app", 0, 99, TIME),
        2,
        "01 6400000000000000",
    ),
    _exchange("cursor_commit", requests.cursor_commit(7, "app", 0, 200, TIME + 1), 0),
    _exchange("cursor_commit", requests.cursor_commit(7, "b", 2, 150, TIME), 0),
    _exchange(
        "cursor_read",
        requests.cursor(7, "app"),
        0,
        "01 c800000000000000 00c029f73d540500 01c029f73d540500",
    ),
    _exchange("cursor_read", requests.cursor(7, "none"), 3),
    _exchange(
        "cursor_list",
        requests.cursor_list(7, "", 1),
        0,
        """
        01 01 01000000                                          # more, cursors
        03000000 617070 c800000000000000 00c029f73d540500 01c029f73d540500
        """,
    ),
    _exchange("trim_point_raise", requests.trim_point(151), 2, "01 9600000000000000"),
    _exchange("trim_point_raise", requests.trim_point(151, past_cursors=True), 0, "01 00"),
    _exchange(
        "cursor_commit",
        requests.cursor_commit(7, "c", 1, 150, TIME),
        4,
        "01 9700000000000000",
    ),
    _exchange("cursor_remove", requests.cursor(7, "b"), 0),
    _exchange("cursor_remove", requests.cursor(7, "b"), 3),
)

DELIVERY_CONVERSATION = (
    _exchange("head_create", requests.head_create("orders", 7), 0),
    _exchange("tail_raise", requests.tail_raise(0, 100), 0),
    _exchange(
        "delivery_begin",
        requests.delivery_begin(PART, TIME),
        0,
        "01 01000000 00000000 0100000000000000",
    ),
    _exchange(
        "delivery_grant",
        requests.delivery_grant(Grant(PART, 1, 0, 40, 10, False)),
        0,
        "01 2800000000000000",
    ),
    _exchange(
        "delivery_grant",
        requests.delivery_grant(Grant(PART, 1, 0, 40, 10, True)),
        0,
        "01 6400000000000000",
    ),
    _exchange(
        "delivery_grant",
        requests.delivery_grant(Grant(PART, 1, 1, 110, 10, True)),
        1,
        "01 0000000000000000",
    ),
    _exchange(
        "delivery_begin",
        requests.delivery_begin(PART, TIME + 1),
        0,
        "01 02000000 02000000 0100000000000000",
    ),
    _exchange(
        "delivery_grant",
        requests.delivery_grant(Grant(PART, 1, 0, 110, 10, True)),
        2,
        "01 0200000000000000",
    ),
    _exchange(
        "delivery_read",
        requests.delivery(PART),
        0,
        """
        01 0100000000000000                 # incarnation
        02000000 02000000                   # attempt, grants
        2800000000000000 0a00000000000000   # [40, 50)
        6400000000000000 0a00000000000000   # [100, 110)
        """,
    ),
    _exchange("delivery_done", requests.delivery_done(7, "a", 1, TIME + 1), 0, "01 00"),
    _exchange(
        "delivery_list",
        requests.delivery_list(7, "", 1),
        0,
        """
        01 01 01000000                                          # more, sources
        01000000 61 0100000000000000 00000000                   # name, batch, parts
        01c029f73d540500 01c029f73d540500
        """,
    ),
    _exchange(
        "delivery_list",
        requests.delivery_list(7, "a", 10),
        0,
        """
        01 00 01000000
        05000000 7175657279 0000000000000000 01000000
        00c029f73d540500 01c029f73d540500
        """,
    ),
    _exchange("delivery_done", requests.delivery_done(7, "query", 4, TIME), 0, "01 00"),
    _exchange(
        "delivery_begin",
        requests.delivery_begin(PART, TIME),
        4,
        "01 0400000000000000",
    ),
    _exchange("delivery_read", requests.delivery(PART), 3),
)

DIRECTORY_CONVERSATION = (
    _exchange("directory_add", requests.directory_entry("b", 7), 0),
    _exchange("directory_add", requests.directory_entry("orders", 7), 0),
    _exchange(
        "directory_list",
        requests.directory_list("", 1),
        0,
        "01 01 01000000 01000000 62",
    ),
    _exchange(
        "directory_list",
        requests.directory_list("a", 10),
        0,
        "01 00 02000000 01000000 62 06000000 6f7264657273",
    ),
    _exchange("sequencer_find", requests.empty(), 0, "01 00000000"),
    _exchange("sequencer_announce", requests.address("tcp://host:1"), 0),
    _exchange("sequencer_find", requests.empty(), 0, "01 0c000000 7463703a2f2f686f73743a31"),
    _exchange("sequencer_withdraw", requests.address("tcp://host:1"), 0),
    _exchange("directory_remove", requests.directory_entry("b", 7), 0),
)
