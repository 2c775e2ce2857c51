"""A sample of every request in literal bytes; see `golden` before you change one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from . import requests
from .golden import ENTRIES, PART, TIME, VIEW_BYTES, WRITER, bytes_of
from .requests import Grant


@dataclass(frozen=True)
class Sample:
    """A request: how the suite builds it, how `zlog._native.core` does, and what both must give."""

    name: str
    ours: Callable[[], bytes]
    native: str  # function of zlog._native.messages, or core.core
    arguments: tuple[object, ...]
    expected: bytes


def _sample(
    name: str, ours: Callable[[], bytes], native: str, arguments: tuple[object, ...], expected: str
) -> Sample:
    return Sample(name, ours, native, arguments, bytes_of(expected))


SAMPLES = (
    _sample(
        "seal",
        lambda: requests.seal(5, 4, 1, create=True),
        "seal",
        (5, 4, 1, True),
        "01 01 11000000 0500000000000000 04000000 01000000 01",
    ),
    _sample(
        "seal_existing",
        lambda: requests.seal(5, 4, 1, create=False),
        "seal",
        (5, 4, 1, False),
        "01 01 11000000 0500000000000000 04000000 01000000 00",
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
        01 01 6c000000                      # version, compat, bytes of the fields
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
        "read",
        (5, True, 1 << 20, 4, [5, 9, 17]),
        """
        01 01 2d000000 0500000000000000
        01                                  # with ids
        00001000                            # bytes_max
        04000000 02000000 0500000000000000 02000000 1100000000000000 01000000
        """,
    ),
    _sample(
        "verify",
        lambda: requests.verify(5, 4, [5, 9, 17], 1 << 20),
        "verify",
        (5, 1 << 20, 4, [5, 9, 17]),
        """
        01 01 2c000000 0500000000000000
        00001000                            # bytes_max
        04000000 02000000 0500000000000000 02000000 1100000000000000 01000000
        """,
    ),
    _sample(
        "fill",
        lambda: requests.fill(5, TIME, WRITER, 1, 4, [13]),
        "fill",
        (5, TIME, WRITER, 1, 4, [13]),
        """
        01 01 35000000 0500000000000000 00c029f73d540500 000102030405060708090a0b0c0d0e0f
        01                                  # reason: a reader waited
        04000000 01000000 0d00000000000000 01000000
        """,
    ),
    _sample(
        "trim",
        lambda: requests.trim(5, 4, [5]),
        "trim",
        (5, 4, [5]),
        "01 01 1c000000 0500000000000000 04000000 01000000 0500000000000000 01000000",
    ),
    _sample(
        "trim_to",
        lambda: requests.trim_to(5, 6, 1000),
        "trim_to",
        (5, 6, 1000),
        "01 01 14000000 0500000000000000 0600000000000000 e8030000",
    ),
    _sample(
        "epoch",
        lambda: requests.epoch(5),
        "max_position",
        (5,),
        "01 01 08000000 0500000000000000",
    ),
    _sample(
        "head_create",
        lambda: requests.head_create("orders", 7),
        "head_create",
        ("orders", 7),
        "01 01 12000000 06000000 6f7264657273 0700000000000000",
    ),
    _sample(
        "epoch_next",
        lambda: requests.epoch_next(8),
        "epoch_next",
        (8,),
        "01 01 04000000 08000000",
    ),
    _sample("empty", requests.empty, "epoch_read", (), "01 01 00000000"),
    _sample(
        "tail_raise",
        lambda: requests.tail_raise(3, 200),
        "tail_raise",
        (7, 3, 200),
        "01 01 18000000 0700000000000000 0300000000000000 c800000000000000",
    ),
    _sample(
        "trim_point",
        lambda: requests.trim_point(100),
        "trim_point_raise",
        (7, 100, False),
        "01 01 11000000 0700000000000000 6400000000000000 00",
    ),
    _sample(
        "trim_point_past_cursors",
        lambda: requests.trim_point(100, past_cursors=True),
        "trim_point_raise",
        (7, 100, True),
        "01 01 11000000 0700000000000000 6400000000000000 01",
    ),
    _sample(
        "cursor_commit",
        lambda: requests.cursor_commit(7, "app", 2, 100, TIME),
        "cursor_commit",
        (7, "app", 2, 100, TIME),
        "01 01 20000000 0700000000000000 03000000 617070 02 6400000000000000 00c029f73d540500",
    ),
    _sample(
        "cursor",
        lambda: requests.cursor(7, "app"),
        "cursor_read",
        (7, "app"),
        "01 01 0f000000 0700000000000000 03000000 617070",
    ),
    _sample(
        "delivery",
        lambda: requests.delivery(PART),
        "delivery_read",
        (7, "query", 3, 1),
        "01 01 1d000000 0700000000000000 05000000 7175657279 0300000000000000 01000000",
    ),
    _sample(
        "delivery_begin",
        lambda: requests.delivery_begin(PART, TIME),
        "delivery_begin",
        (7, "query", 3, 1, TIME),
        """
        01 01 25000000 0700000000000000 05000000 7175657279 0300000000000000 01000000
        00c029f73d540500
        """,
    ),
    _sample(
        "delivery_grant",
        lambda: requests.delivery_grant(Grant(PART, 2, 4, 100, 10, True, 5)),
        "delivery_grant",
        (7, "query", 3, 1, 5, 2, 4, 100, 10, True),
        """
        01 01 3e000000 0700000000000000 05000000 7175657279 0300000000000000 01000000
        0500000000000000 02000000 0400000000000000 6400000000000000 0a000000 01
        """,
    ),
    _sample(
        "delivery_done",
        lambda: requests.delivery_done(7, "query", 4, 5, TIME),
        "delivery_done",
        (7, "query", 4, 5, TIME),
        """
        01 01 29000000 0700000000000000 05000000 7175657279 0400000000000000
        0500000000000000 00c029f73d540500
        """,
    ),
    _sample(
        "delivery_list",
        lambda: requests.delivery_list(7, "a", 10),
        "delivery_list",
        (7, "a", 10),
        "01 01 11000000 0700000000000000 01000000 61 0a000000",
    ),
    _sample(
        "cursor_list",
        lambda: requests.cursor_list(7, "a", 10),
        "cursor_list",
        (7, "a", 10),
        "01 01 11000000 0700000000000000 01000000 61 0a000000",
    ),
    _sample(
        "view_propose",
        lambda: requests.view_propose(2, VIEW_BYTES),
        "view_propose",
        (2, VIEW_BYTES),
        "01 01 92000000 0200000000000000 86000000" + VIEW_BYTES.hex(),
    ),
    _sample(
        "view_read",
        lambda: requests.view_read(2, 100, latest=False),
        "view_read",
        (2, 100, False),
        "01 01 0d000000 0200000000000000 64000000 00",
    ),
    _sample(
        "view_read_latest",
        lambda: requests.view_read(0, 1, latest=True),
        "view_read",
        (0, 1, True),
        "01 01 0d000000 0000000000000000 01000000 01",
    ),
    _sample(
        "stripes_read",
        lambda: requests.stripes_read(7, 200, 10),
        "stripes_read",
        (7, 200, 10),
        "01 01 14000000 0700000000000000 c800000000000000 0a000000",
    ),
    _sample(
        "stripes_loose",
        lambda: requests.stripes_loose(7, 2, 10),
        "stripes_loose",
        (7, 2, 10),
        "01 01 14000000 0700000000000000 0200000000000000 0a000000",
    ),
    _sample(
        "stripe_forget",
        lambda: requests.stripe_forget(7, 2),
        "stripe_forget",
        (7, 2),
        "01 01 10000000 0700000000000000 0200000000000000",
    ),
    _sample(
        "directory_entry",
        lambda: requests.directory_entry("orders", 7),
        "directory_add",
        ("orders", 7),
        "01 01 12000000 06000000 6f7264657273 0700000000000000",
    ),
    _sample(
        "directory_list",
        lambda: requests.directory_list("a", 10),
        "directory_list",
        ("a", 10),
        "01 01 09000000 01000000 61 0a000000",
    ),
    _sample(
        "address",
        lambda: requests.address("tcp://host:1"),
        "sequencer_announce",
        ("tcp://host:1",),
        "01 01 10000000 0c000000 7463703a2f2f686f73743a31",
    ),
)
