"""Conversations with objects of each kind in literal bytes; see `golden` before you change one."""

from __future__ import annotations

from dataclasses import dataclass

from . import requests
from .golden import ENTRIES, PART, TIME, VIEW_BYTES, WRITER, bytes_of
from .requests import Grant, StripeView, View
from .wire import OPEN_END


@dataclass(frozen=True)
class Exchange:
    """One step of a conversation: a method, its request, and the literal answer."""

    method: str
    request: bytes
    code: int
    reply: bytes


_EMPTY = "01 01 00000000"
_NONE = "01 01 08000000 0000000000000000"  # a refusal that has no number to tell


def _exchange(method: str, request: bytes, code: int, reply: str = _EMPTY) -> Exchange:
    return Exchange(method, request, code, bytes_of(reply))


_READ = [5, 9, 13, 17, 21, 25]

STRIPE = (
    _exchange(
        "seal",
        requests.seal(5, 4, 1, create=True),
        0,
        "01 01 15000000 00 0000000000000000 00000000 0000000000000000",
    ),
    _exchange("seal", requests.seal(5, 4, 1, create=True), 5, "01 01 08000000 0500000000000000"),
    _exchange("max_position", requests.epoch(5), 0, "01 01 09000000 00 0000000000000000"),
    _exchange(
        "write",
        requests.write(5, TIME, WRITER, 4, ENTRIES),
        0,
        "01 01 0c000000 02000000 0600000000000000",
    ),
    _exchange(
        "write",
        requests.write(5, TIME, bytes(16), 4, ENTRIES[1:]),
        2,
        "01 01 08000000 0900000000000000",
    ),
    _exchange(
        "write",
        requests.write(4, TIME, bytes(16), 4, ENTRIES[1:]),
        1,
        "01 01 08000000 0500000000000000",
    ),
    _exchange("fill", requests.fill(5, TIME, WRITER, 1, 4, [13]), 0),
    _exchange(
        "fill", requests.fill(5, TIME, WRITER, 1, 4, [13, 17]), 2, "01 01 08000000 1100000000000000"
    ),
    _exchange("trim", requests.trim(5, 4, [21]), 0),
    _exchange(
        "read",
        requests.read(5, 4, _READ, 100, with_ids=False),
        0,
        """
        01 01 74000000 01 1500000000000000 06000000 00                         # highest, entries
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
        01 01 62000000 01 1500000000000000 02000000 01
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
    _exchange(
        "read",
        requests.read(4, 4, _READ, 100, with_ids=False),
        1,
        "01 01 08000000 0500000000000000",
    ),
    _exchange(
        "verify",
        requests.verify(5, 4, _READ, 100),
        0,
        """
        01 01 2b010000 01 1500000000000000 06000000 06000000   # highest, positions, rows
        01 01 29000000
        01000000 00 000102030405060708090a0b0c0d0e0f ef03000000000000 00000000 0400000000000000
        01 01 29000000
        01000000 00 000102030405060708090a0b0c0d0e0f e803000000000000 00000000 0000000000000000
        01 01 29000000
        01000000 02 00000000000000000000000000000000 0000000000000000 00000000 0000000000000000
        01 01 29000000
        01000000 00 000102030405060708090a0b0c0d0e0f e903000000000000 00000000 0200000000000000
        01 01 29000000
        01000000 03 00000000000000000000000000000000 0000000000000000 00000000 0000000000000000
        01 01 29000000
        01000000 01 00000000000000000000000000000000 0000000000000000 00000000 0000000000000000
        """,
    ),
    _exchange("verify", requests.verify(4, 4, _READ, 100), 1, "01 01 08000000 0500000000000000"),
    _exchange("trim_to", requests.trim_to(5, 6, 1000), 0, "01 01 01000000 00"),
    _exchange(
        "seal",
        requests.seal(6, 4, 1, create=False),
        0,
        "01 01 15000000 01 1500000000000000 04000000 0200000000000000",
    ),
    _exchange("max_position", requests.epoch(6), 0, "01 01 09000000 01 1500000000000000"),
    _exchange("remove", requests.epoch(5), 1, "01 01 08000000 0600000000000000"),
    _exchange("remove", requests.epoch(6), 0),
)

HEAD = (
    _exchange("head_create", requests.head_create("orders", 7), 0),
    _exchange(
        "epoch_next", requests.epoch_next(8), 0, "01 01 10000000 0100000000000000 0000000000000000"
    ),
    _exchange("tail_raise", requests.tail_raise(1, 200), 0),
    _exchange("tail_raise", requests.tail_raise(2, 200), 1, "01 01 08000000 0100000000000000"),
    _exchange("trim_point_raise", requests.trim_point(100), 0, "01 01 01000000 00"),
    _exchange(
        "epoch_next", requests.epoch_next(4), 0, "01 01 10000000 0200000000000000 c800000000000000"
    ),
    _exchange(
        "epoch_next", requests.epoch_next(4), 0, "01 01 10000000 0300000000000000 c800000000000000"
    ),
    _exchange(
        "epoch_read",
        requests.empty(),
        0,
        """
        01 01 28000000 0300000000000000 0000000000000000                    # counter, newest view
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
    _exchange(
        "view_propose", requests.view_propose(0, VIEW_BYTES), 1, "01 01 08000000 0100000000000000"
    ),
    _exchange("view_propose", requests.view_propose(1, VIEW_BYTES), 0),
    _exchange(
        "view_read",
        requests.view_read(2, 100, latest=False),
        0,
        """
        01 01 b7000000 0300000000000000 0300000000000000
        c800000000000000 6400000000000000 0700000000000000
        00 01000000 86000000
        """
        + VIEW_BYTES.hex(),
    ),
    _exchange("head_remove", requests.epoch(3), 5, "01 01 08000000 0300000000000000"),
    _exchange(
        "epoch_next", requests.epoch_next(0), 0, "01 01 10000000 0400000000000000 c800000000000000"
    ),
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
        """
        01 01 27000000 00 01000000
        01 01 1c000000 0100000000000000 0000000000000000 c800000000000000 08000000
        """,
    ),
    _exchange("trim_point_raise", requests.trim_point(200), 0, "01 01 01000000 00"),
    _exchange("stripes_read", requests.stripes_read(7, 0, 10), 0, "01 01 05000000 00 00000000"),
    _exchange(
        "stripes_loose",
        requests.stripes_loose(7, 0, 10),
        0,
        """
        01 01 31000000 0400000000000000 00 02000000          # newest view, more, stripes
        01 01 0c000000 0100000000000000 08000000                # below the trim point
        01 01 0c000000 0200000000000000 04000000                # announced, and never came
        """,
    ),
    _exchange("stripe_forget", requests.stripe_forget(7, 2), 0),
)

CURSOR = (
    _exchange("head_create", requests.head_create("orders", 7), 0),
    _exchange("cursor_commit", requests.cursor_commit(7, "app", 0, 100, TIME), 19, _NONE),
    _exchange("cursor_commit", requests.cursor_commit(7, "app", 1, 100, TIME), 0),
    _exchange(
        "cursor_commit",
        requests.cursor_commit(7, "app", 0, 99, TIME),
        16,
        "01 01 08000000 6400000000000000",
    ),
    _exchange("cursor_commit", requests.cursor_commit(7, "app", 0, 200, TIME + 1), 0),
    _exchange("cursor_commit", requests.cursor_commit(7, "b", 2, 150, TIME), 0),
    _exchange(
        "cursor_read",
        requests.cursor(7, "app"),
        0,
        "01 01 18000000 c800000000000000 00c029f73d540500 01c029f73d540500",
    ),
    _exchange("cursor_read", requests.cursor(7, "none"), 19, _NONE),
    _exchange(
        "cursor_list",
        requests.cursor_list(7, "", 1),
        0,
        """
        01 01 2a000000 01 01000000                                          # more, cursors
        01 01 1f000000 03000000 617070 c800000000000000 00c029f73d540500 01c029f73d540500
        """,
    ),
    _exchange("trim_point_raise", requests.trim_point(151), 17, "01 01 08000000 9600000000000000"),
    _exchange(
        "trim_point_raise", requests.trim_point(151, past_cursors=True), 0, "01 01 01000000 00"
    ),
    _exchange(
        "cursor_commit",
        requests.cursor_commit(7, "c", 1, 150, TIME),
        18,
        "01 01 08000000 9700000000000000",
    ),
    _exchange("cursor_remove", requests.cursor(7, "b"), 0),
    _exchange("cursor_remove", requests.cursor(7, "b"), 19, _NONE),
)

DELIVERY = (
    _exchange("head_create", requests.head_create("orders", 7), 0),
    _exchange("tail_raise", requests.tail_raise(0, 100), 0),
    _exchange(
        "delivery_begin",
        requests.delivery_begin(PART, TIME),
        0,
        "01 01 10000000 01000000 00000000 0100000000000000",
    ),
    _exchange(
        "delivery_grant",
        requests.delivery_grant(Grant(PART, 1, 0, 40, 10, False)),
        0,
        "01 01 08000000 2800000000000000",
    ),
    _exchange(
        "delivery_grant",
        requests.delivery_grant(Grant(PART, 1, 0, 40, 10, True)),
        0,
        "01 01 08000000 6400000000000000",
    ),
    _exchange(
        "delivery_grant",
        requests.delivery_grant(Grant(PART, 1, 1, 110, 10, True)),
        1,
        "01 01 08000000 0000000000000000",
    ),
    _exchange(
        "delivery_begin",
        requests.delivery_begin(PART, TIME + 1),
        0,
        "01 01 10000000 02000000 02000000 0100000000000000",
    ),
    _exchange(
        "delivery_grant",
        requests.delivery_grant(Grant(PART, 1, 0, 110, 10, True)),
        21,
        "01 01 08000000 0200000000000000",
    ),
    _exchange(
        "delivery_read",
        requests.delivery(PART),
        0,
        """
        01 01 3c000000 0100000000000000                 # incarnation
        02000000 02000000                   # attempt, grants
        01 01 10000000 2800000000000000 0a00000000000000   # [40, 50)
        01 01 10000000 6400000000000000 0a00000000000000   # [100, 110)
        """,
    ),
    _exchange(
        "delivery_done",
        requests.delivery_done(7, "a", 1, 0, TIME + 1),
        19,
        "01 01 08000000 0200000000000000",
    ),
    _exchange(
        "delivery_done", requests.delivery_done(7, "a", 1, 2, TIME + 1), 0, "01 01 01000000 00"
    ),
    _exchange(
        "delivery_list",
        requests.delivery_list(7, "", 1),
        0,
        """
        01 01 2c000000 01 01000000                                          # more, sources
        01 01 21000000 01000000 61 0100000000000000 00000000                   # name, batch, parts
        01c029f73d540500 01c029f73d540500
        """,
    ),
    _exchange(
        "delivery_list",
        requests.delivery_list(7, "a", 10),
        0,
        """
        01 01 30000000 00 01000000
        01 01 25000000 05000000 7175657279 0000000000000000 01000000
        00c029f73d540500 01c029f73d540500
        """,
    ),
    _exchange(
        "delivery_done",
        requests.delivery_done(7, "query", 4, 2, TIME),
        21,
        "01 01 08000000 0100000000000000",
    ),
    _exchange(
        "delivery_done", requests.delivery_done(7, "query", 4, 1, TIME), 0, "01 01 01000000 00"
    ),
    _exchange(
        "delivery_begin",
        requests.delivery_begin(PART, TIME),
        22,
        "01 01 08000000 0400000000000000",
    ),
    _exchange("delivery_read", requests.delivery(PART), 19, _NONE),
)

DIRECTORY = (
    _exchange("directory_add", requests.directory_entry("b", 7), 0),
    _exchange("directory_add", requests.directory_entry("orders", 7), 0),
    _exchange(
        "directory_list",
        requests.directory_list("", 1),
        0,
        "01 01 0a000000 01 01000000 01000000 62",
    ),
    _exchange(
        "directory_list",
        requests.directory_list("a", 10),
        0,
        "01 01 14000000 00 02000000 01000000 62 06000000 6f7264657273",
    ),
    _exchange("sequencer_find", requests.empty(), 0, "01 01 04000000 00000000"),
    _exchange("sequencer_announce", requests.address("tcp://host:1"), 0),
    _exchange(
        "sequencer_find", requests.empty(), 0, "01 01 10000000 0c000000 7463703a2f2f686f73743a31"
    ),
    _exchange("sequencer_withdraw", requests.address("tcp://host:1"), 0),
    _exchange("directory_remove", requests.directory_entry("b", 7), 0),
)
