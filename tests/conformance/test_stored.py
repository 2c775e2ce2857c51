"""The stored formats, byte for byte: what an object of each kind holds after a known history.

Objects outlive releases. A change that makes this test fail must come with a new version of the
stored value and with code that still reads the old one.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

import zlog
from zlog._native.messages import decode_view

from . import requests
from .golden import bytes_of
from .objects import ADVANCE, CREATE, Directory, Head, Store, Stripe
from .replies import Code
from .requests import Entry, Grant, Part, StripeView, View
from .stored import HEADER, STORES_WITH_DOORS, Content, Door, door_to, envelope, fields_of
from .wire import OPEN_END

TIME = 0x0005543DF729C000
WRITER = bytes(range(16))
ENTRIES = (Entry(5, 1007, b"five"), Entry(9, 1000, b""), Entry(17, 1001, b"\x00\xff"))
FIRST_VIEW = View(1, 7, stripes=(StripeView(1, 0, OPEN_END, 8),))
SECOND_VIEW = View(
    3,
    7,
    sequencer="tcp://host:1",
    stripes=(StripeView(1, 0, 200, 8), StripeView(3, 200, OPEN_END, 4)),
    options={"b": "2", "a": ""},
)
THIRD_VIEW = View(4, 7, stripes=(StripeView(3, 200, OPEN_END, 4),))
LARGE = b"x" * 32768  # from here on a batch's data goes to the bytestream

STRIPE = Content(
    attrs={
        b"zlog.header": bytes_of(
            """
            06 01 95000000 ce25e6b7                # version, compat, length, checksum
            0500000000000000                    # epoch
            04000000 01000000                   # stride, residue
            01 1900000000000000                 # highest position used
            0000000000000000                    # trim point
            0300000000000000 0680000000000000   # live entries and their bytes
            0500000000000000 0080000000000000   # records, end of the bytestream
            49000000                            # no value is longer
            1a00000000000000 01000000           # below 26 these may be unwritten:
            01 01 10000000 0100000000000000 0100000000000000
            00 0000000000000000                 # where its stripe begins is not known
            01000000                            # unit
            0000000000000000 0000000000000000   # nothing of the data is in blocks
            00 0000000000000000 00000000 00000000  # no tags, and no index of them
            """
        )
    },
    omap={
        b"e.0000000000000009.2": bytes_of(
            """
            01 01 3b000000 6c06eb04
            01                                  # entries, their data behind the index
            00c029f73d540500                    # time, µs
            000102030405060708090a0b0c0d0e0f    # writer
            e803000000000000                    # base of the numbers
            00 03                               # written, trimmed
            04000000 04000000                   # ends of the data
            0ebd805e 77cb2f87                   # checksums of (position, data)
            07000000 00000000                   # numbers over the base
            66697665
            """
        ),
        b"e.000000000000000d.1": bytes_of(
            """
            01 01 1a000000 0c373cc2
            03                                  # fill
            00c029f73d540500 000102030405060708090a0b0c0d0e0f
            01                                  # reason: a reader waited
            """
        ),
        b"e.0000000000000011.1": bytes_of(
            """
            01 01 2e000000 2e5a7658
            01 00c029f73d540500 000102030405060708090a0b0c0d0e0f e803000000000000
            00 02000000 830e4308 01000000
            00ff
            """
        ),
        b"e.0000000000000015.1": bytes_of("01 01 01000000 5599f158 04"),  # trimmed, never held any
        b"e.0000000000000019.1": bytes_of(
            """
            01 01 36000000 dbc8801e
            02                                  # entries, their data in the bytestream
            00c029f73d540500 000102030405060708090a0b0c0d0e0f 1900000000000000
            0000000000000000                    # where their data begins
            00 00800000 f88990f2 00000000
            """
        ),
    },
    stream=LARGE,
)

HEAD = Content(
    attrs={
        b"zlog.head": bytes_of(
            """
            01 01 3a000000 e4f27bbe
            0700000000000000                    # log id
            0400000000000000 0400000000000000   # epoch counter, newest view
            c800000000000000 6400000000000000   # tail floor, trim point
            0100000000000000                    # sources
            06000000 6f7264657273               # name
            """
        )
    },
    omap={
        b"v.0000000000000001": bytes_of(
            """
            01 01 56000000 ddf38271
            52000000 03 01 4c000000 0100000000000000 0700000000000000 00 00000000
            01000000 02 01 20000000 0100000000000000 0000000000000000 ffffffffffffffff 08000000
            01000000 00000000 00 00000000 00000000
            """
        ),
        b"c.app": bytes_of(
            """
            01 01 18000000 a0541203
            c800000000000000 00c029f73d540500 01c029f73d540500  # position, created, updated
            """
        ),
        b"s.query": bytes_of(
            """
            01 01 24000000 9b7e991b
            0100000000000000                    # incarnation
            0000000000000000 01000000           # batch, parts
            00c029f73d540500 00c029f73d540500   # created, updated
            """
        ),
        b"p.query/0000000000000003.00000001": bytes_of(
            """
            01 01 26000000 dd427ecd
            0100000000000000                    # incarnation
            01000000 01000000                   # attempt, grants
            01 01 10000000 6400000000000000 0a00000000000000
            """
        ),
        b"r.": bytes_of("01 01 10000000 4d614271 0100000000000000 04000000 7365656e"),
        b"v.0000000000000003": bytes_of(
            "01 01 9b000000 4489f0a6 97000000 " + requests.view(SECOND_VIEW).hex()
        ),
        b"v.0000000000000004": bytes_of(
            """
            01 01 56000000 6a0b6ffb
            52000000 03 01 4c000000 0400000000000000 0700000000000000 00 00000000
            01000000 02 01 20000000 0300000000000000 c800000000000000 ffffffffffffffff 04000000
            01000000 00000000 00 00000000 00000000
            """
        ),
        b"t.00000000000000c7": bytes_of(  # archived: id, start, end, width, unit
            """
            02 01 20000000 a8c2863d 0100000000000000 0000000000000000 c800000000000000 08000000
            01000000
            """
        ),
        b"l.0000000000000002": bytes_of(  # loose: id, width
            "01 01 0c000000 41ac64e2 0200000000000000 04000000"
        ),
    },
)

DIRECTORY = Content(
    attrs={
        b"zlog.sequencer": bytes_of("01 01 10000000 040f8767 0c000000 7463703a2f2f686f73743a31"),
    },
    omap={b"n.orders": bytes_of("01 01 08000000 1fea5916 0700000000000000")},
)

# The same as a class stored it that knew no units: headers of version 3, stripes of version 1.
STRIPE_BEFORE_UNITS = STRIPE.with_attr(
    HEADER,
    bytes_of(
        """
        03 01 70000000 c8a225c5
        0500000000000000 04000000 01000000 01 1900000000000000 0000000000000000
        0300000000000000 0680000000000000 0500000000000000 0080000000000000 49000000
        1a00000000000000 01000000 01 01 10000000 0100000000000000 0100000000000000
        00 0000000000000000
        """
    ),
)
VIEWS_BEFORE_UNITS = {
    b"v.0000000000000001": bytes_of(
        """
        01 01 49000000 330e19a5
        45000000 01 01 3f000000 0100000000000000 0700000000000000 00 00000000
        01000000 01 01 1c000000 0100000000000000 0000000000000000 ffffffffffffffff 08000000
        00000000
        """
    ),
    b"v.0000000000000003": bytes_of(
        """
        01 01 8a000000 a918cf6c
        86000000 01 01 80000000 0300000000000000 0700000000000000 00
        0c000000 7463703a2f2f686f73743a31
        02000000 01 01 1c000000 0100000000000000 0000000000000000 c800000000000000 08000000
        01 01 1c000000 0300000000000000 c800000000000000 ffffffffffffffff 04000000
        02000000 01000000 61 00000000 01000000 62 01000000 32
        """
    ),
    b"v.0000000000000004": bytes_of(
        """
        01 01 49000000 aa87bbee
        45000000 01 01 3f000000 0400000000000000 0700000000000000 00 00000000
        01000000 01 01 1c000000 0300000000000000 c800000000000000 ffffffffffffffff 04000000
        00000000
        """
    ),
}
HEAD_BEFORE_UNITS = replace(
    HEAD,
    omap={
        **HEAD.omap,
        **VIEWS_BEFORE_UNITS,
        b"t.00000000000000c7": bytes_of(
            "01 01 1c000000 953a400a 0100000000000000 0000000000000000 c800000000000000 08000000"
        ),
    },
)

# With units of 4: what must not be read as if there were none says so by its compat.
UNITS_HEADER = bytes_of(
    """
    06 04 95000000 49d4aaf3
    0500000000000000 02000000 01000000 01 0d00000000000000 0000000000000000
    0300000000000000 0300000000000000 0200000000000000 0000000000000000 55000000
    0e00000000000000 01000000 01 01 10000000 0400000000000000 0500000000000000
    01 0000000000000000 04000000 0000000000000000 0000000000000000
    00 0000000000000000 00000000 00000000
    """
)
UNITS_KEYS = (b"e.000000000000000c.3", b"e.000000000000000d.1")  # 6, 7 and 12; 13
UNITS_HEAD = {
    b"v.0000000000000001": bytes_of(
        """
        01 01 56000000 ee8d31b5
        52000000 03 01 4c000000 0100000000000000 0800000000000000 00 00000000
        01000000 02 02 20000000 0100000000000000 0000000000000000 ffffffffffffffff 02000000
        04000000 00000000 00 00000000 00000000
        """
    ),
    b"v.0000000000000002": bytes_of(
        """
        01 01 56000000 44a88ed7
        52000000 03 01 4c000000 0200000000000000 0800000000000000 00 00000000
        01000000 02 01 20000000 0200000000000000 6400000000000000 ffffffffffffffff 02000000
        01000000 00000000 00 00000000 00000000
        """
    ),
    b"t.0000000000000063": bytes_of(
        """
        02 02 20000000 6cf887d1
        0100000000000000 0000000000000000 6400000000000000 02000000 04000000
        """
    ),
}


def make_objects(store: Store, prefix: str) -> dict[str, Content]:
    """Objects with a known history, by name, and what must be stored of them."""
    stripe = Stripe(store, f"{prefix}.stripe", 4, 1)
    head = Head(store, f"{prefix}.head")
    directory = Directory(store, f"{prefix}.directory")
    answers = [
        stripe.seal(5),
        stripe.write(5, ENTRIES, WRITER, TIME),
        stripe.fill(5, [13], WRITER, TIME, 1),
        stripe.trim(5, [9, 21]),
        stripe.write(5, [Entry(25, 25, LARGE)], WRITER, TIME),
        head.create("orders", 7),
        head.epoch_next(8),
        head.view_propose(0, FIRST_VIEW),
        head.epoch_next(4),
        head.epoch_next(4),
        head.tail_raise(3, 200),
        head.trim_point_raise(100),
        head.cursor_commit("app", CREATE, 150, TIME),
        head.cursor_commit("app", ADVANCE, 200, TIME + 1),
        head.delivery_begin(Part("query", 3, 1)),
        head.delivery_grant(Grant(Part("query", 3, 1), 1, 3, 100, 10)),
        head.retention_write(0, b"seen"),
        head.view_propose(1, SECOND_VIEW),
        head.epoch_next(),
        head.view_propose(3, THIRD_VIEW),
        directory.add("orders", 7),
        directory.announce("tcp://host:1"),
    ]
    assert {answer.code for answer in answers} == {Code.OK}
    return {stripe.name: STRIPE, head.name: HEAD, directory.name: DIRECTORY}


def test_stored_values_are_these_bytes(store: zlog.Store, prefix: str, host: str) -> None:
    objects = make_objects(store, prefix)
    if host == "file":
        folder = Path(unquote(urlsplit(store.url).path))
        store.close()
        content = (folder / "data.mdb").read_bytes()
        for expected in objects.values():
            for value in (*expected.attrs.values(), *expected.omap.values(), expected.stream):
                assert value in content, value.hex(" ")
        return
    with door_to(store) as door:
        for name, expected in objects.items():
            found = door.load(name)
            assert {k: v.hex(" ") for k, v in found.attrs.items()} == {
                k: v.hex(" ") for k, v in expected.attrs.items()
            }
            assert {k: v.hex(" ") for k, v in found.omap.items()} == {
                k: v.hex(" ") for k, v in expected.omap.items()
            }
            assert found.stream == expected.stream


CONTENTS = {
    "stripe": STRIPE,
    "head": HEAD,
    "directory": DIRECTORY,
    "stripe before units": STRIPE_BEFORE_UNITS,
    "head before units": HEAD_BEFORE_UNITS,
    "units": Content({HEADER: UNITS_HEADER}, UNITS_HEAD),
}


@pytest.mark.parametrize("content", CONTENTS.values(), ids=CONTENTS)
def test_stored_values_are_enveloped_as_documented(content: Content) -> None:
    for key, value in [*content.attrs.items(), *content.omap.items()]:
        again = envelope(key, *fields_of(value), version=value[0], compat=value[1])
        assert value.hex(" ") == again.hex(" "), key


@pytest.mark.parametrize("store_url", STORES_WITH_DOORS, indirect=True)
def test_what_a_class_without_units_must_not_touch_is_stored_as_such(
    store: Store, prefix: str, door: Door
) -> None:
    stripe, head = Stripe(store, f"{prefix}.stripe", 2, 1, unit=4), Head(store, f"{prefix}.head")
    entries = [Entry(6, 6, b"six"), Entry(7, 7, b""), Entry(12, 12, b"")]
    answers = [
        stripe.seal(5, start=0),
        stripe.write(5, entries, WRITER, TIME),
        stripe.fill(5, [13], WRITER, TIME, 1),
        head.create("units", 8),
        head.epoch_next(2),
        head.view_propose(0, View(1, 8, stripes=(StripeView(1, 0, OPEN_END, 2, 4),))),
        head.epoch_next(2),
        head.view_propose(1, View(2, 8, stripes=(StripeView(2, 100, OPEN_END, 2),))),
    ]
    assert {answer.code for answer in answers} == {Code.OK}
    found = door.load(stripe.name)
    assert found.attrs[HEADER].hex(" ") == UNITS_HEADER.hex(" ")
    assert tuple(sorted(found.omap)) == UNITS_KEYS
    omap = door.load(head.name).omap
    for key, value in UNITS_HEAD.items():
        assert omap[key].hex(" ") == value.hex(" "), key


@pytest.mark.parametrize(
    ("in_stripe", "in_head"),
    [(STRIPE, HEAD), (STRIPE_BEFORE_UNITS, HEAD_BEFORE_UNITS)],
    ids=["same", "before-units"],
)
@pytest.mark.parametrize("store_url", STORES_WITH_DOORS, indirect=True)
def test_an_object_that_was_stored_before_is_read(
    store: Store, prefix: str, door: Door, in_stripe: Content, in_head: Content
) -> None:
    """The literals above, put where no code of this release has put them."""
    door.save(f"{prefix}.stripe", in_stripe)
    door.save(f"{prefix}.head", in_head)
    door.save(f"{prefix}.directory", DIRECTORY)
    stripe = Stripe(store, f"{prefix}.stripe", 4, 1)
    slots = stripe.read(5, [5, 9, 13, 17, 21, 25], with_ids=True).value.slots
    assert [slot.state for slot in slots] == [0, 3, 2, 0, 3, 0]
    assert [slot.data for slot in slots] == [b"five", b"", b"", b"\x00\xff", b"", LARGE]
    assert stripe.put(5, 29, b"goes on").code == Code.OK
    assert door.load(f"{prefix}.stripe").attrs[HEADER][:2] == b"\x06\x01"
    head = Head(store, f"{prefix}.head")
    found = head.view_read(0).value.views
    assert found == tuple(fields_of(in_head.omap[b"v.%016x" % epoch])[0][4:] for epoch in (1, 3, 4))
    stripes = [decode_view(view).stripes for view in found]
    assert [[(s.id, s.width, s.unit) for s in each] for each in stripes] == [
        [(1, 8, 1)],
        [(1, 8, 1), (3, 4, 1)],
        [(3, 4, 1)],
    ]
    assert head.epoch_next().code == Code.OK
    assert head.view_propose(4, replace(THIRD_VIEW, epoch=5)).code == Code.OK
    assert head.stripes_loose(7).value == (5, False, ((2, 4),))
    assert head.stripes_read(7).value == (False, (StripeView(1, 0, 200, 8),))
    assert Directory(store, f"{prefix}.directory").list().value == (False, ("orders",))
    assert Directory(store, f"{prefix}.directory").find().value == "tcp://host:1"
