"""A damaged head or directory says so: no epoch, view, name or address is ever made up."""

from __future__ import annotations

import errno

import pytest

from . import requests, wire
from .damage import EIO, calls, damages
from .messages import encode
from .objects import Directory, Head, Store
from .replies import Answer, Code
from .requests import ADVANCE, CREATE, SET, Grant, Part, StripeView, View
from .stored import (
    HEAD,
    SEQUENCER,
    STORES_WITH_DOORS,
    Content,
    Door,
    envelope,
    fields_of,
    of_version,
)
from .wire import OPEN_END

FRAME_BYTES = 1 + 1 + 4  # in front of the fields

pytestmark = pytest.mark.parametrize("store_url", STORES_WITH_DOORS, indirect=True)


@pytest.fixture
def sound(head: Head, door: Door) -> Content:
    """What the head stores."""
    return door.load(head.name)


def test_damaged_head(head: Head, sound: Content, host: str, door: Door) -> None:
    for what, damaged in damages(sound.attrs[HEAD], host):
        content = sound.with_attr(HEAD, damaged)
        door.save(head.name, content)
        for method, answer in calls(head):
            expected = -errno.EEXIST if method == "head_create" else -errno.EIO
            assert answer == Answer(expected), (what, method)
        assert door.load(head.name) == content, what


def test_damaged_view(head: Head, sound: Content, host: str, door: Door) -> None:
    head.epoch_next()
    counted = door.load(head.name)
    view = View(3, 7, stripes=(StripeView(1, 0, OPEN_END, 8),))
    for epoch in (1, 2):
        key = b"v.%016x" % epoch
        for what, damaged in damages(sound.omap[key], host):
            door.save(head.name, counted.with_value(key, damaged))
            assert head.view_read() == EIO, what
            newest = head.view_read(latest=True)
            assert (newest == EIO) == (epoch == 2), what
            if epoch == 2:
                assert head.view_propose(2, view) == EIO, what
            assert head.epoch_read().code == Code.OK, what


def test_missing_newest_view(head: Head, sound: Content, door: Door) -> None:
    door.save(head.name, sound.without(b"v.%016x" % 2))
    assert head.view_read(latest=True) == EIO
    assert head.remove(2) == EIO


def test_damaged_cursor(head: Head, host: str, door: Door) -> None:
    """And nothing is trimmed meanwhile, unless all cursors may be passed."""
    assert head.tail_raise(2, 10).code == Code.OK
    for name in "ab":
        assert head.cursor_commit(name, SET, 50).code == Code.OK
    sound = door.load(head.name)
    for what, damaged in damages(sound.omap[b"c.b"], host):
        door.save(head.name, sound.with_value(b"c.b", damaged))
        assert head.cursor_read("b") == EIO, what
        assert head.cursor_list() == EIO, what
        assert head.cursor_commit("b", ADVANCE, 60) == EIO, what
        assert head.cursor_commit("b", CREATE, 60) == EIO, what
        assert head.trim_point_raise(10) == EIO, what
        assert head.cursor_read("a").code == Code.OK, what
        assert head.trim_point_raise(10, past_cursors=True).code == Code.OK, what
        assert head.cursor_commit("b", SET, 40, 9).code == Code.OK, what
        assert head.cursor_read("b") == Answer(Code.OK, (40, 9, 9)), what
        door.save(head.name, sound.with_value(b"c.b", damaged))
        assert head.cursor_remove("b").code == Code.OK, what
        assert head.trim_point_raise(10).code == Code.OK, what


def test_damaged_retention(head: Head, host: str, door: Door) -> None:
    for version in range(2):
        assert head.retention_write(version, b"seen").code == Code.OK
    sound = door.load(head.name)
    for what, damaged in damages(sound.omap[b"r."], host):
        door.save(head.name, sound.with_value(b"r.", damaged))
        assert head.retention_read() == EIO, what
        assert head.retention_write(2, b"more") == Answer(Code.SUPERSEDED, 0), what
        assert head.retention_write(0, b"new").code == Code.OK, what
        assert head.retention_read() == Answer(Code.OK, (1, b"new")), what


def test_damaged_stripe_index(head: Head, host: str, door: Door) -> None:
    head.epoch_next(4)
    stripes = (StripeView(3, 50, OPEN_END, 4),)
    assert head.view_propose(2, View(3, 7, stripes=stripes)).code == Code.OK
    head.epoch_next(4)
    sound = door.load(head.name)
    made = View(4, 7, stripes=(StripeView(4, 90, OPEN_END, 4),))
    archived, loose = b"t.%016x" % 49, b"l.%016x" % 4
    for what, damaged in damages(sound.omap[archived], host):
        door.save(head.name, sound.with_value(archived, damaged))
        assert head.stripes_read(7) == EIO, what
        assert head.trim_point_raise(50) == EIO, what
        assert head.epoch_read().value.trim_point == 0, what
        assert head.stripes_read(7, 50).value == (False, ()), what
    for what, damaged in damages(sound.omap[loose], host):
        door.save(head.name, sound.with_value(loose, damaged))
        assert head.stripes_loose(7) == EIO, what
        assert head.stripe_forget(7, 4) == EIO, what
        assert head.view_propose(3, made) == EIO, what
        assert head.epoch_read().value.newest == 3, what


def test_damaged_offload(head: Head, host: str, door: Door) -> None:
    head.epoch_next(4)
    stripes = (StripeView(1, 0, 50, 8), StripeView(3, 50, OPEN_END, 4))
    assert head.view_propose(2, View(3, 7, stripes=stripes, offloads=True)).code == Code.OK
    record = requests.offload(1, 0, 50)
    assert head.offload_put(record).code == Code.OK
    sound, key = door.load(head.name), b"o.%016x" % 49
    for what, damaged in damages(sound.omap[key], host):
        door.save(head.name, sound.with_value(key, damaged))
        assert head.offload_put(record) == EIO, what
        assert head.offload_list(49) == EIO, what
        assert head.offload_list(50).value == (False, ()), what
        assert head.trim_point_raise(50).code == Code.OK, what
        assert head.offload_forget(50, record.url) == EIO, what
    fields, _ = fields_of(sound.omap[key])
    stored = envelope(key, fields + b"further", version=2)
    door.save(head.name, sound.with_value(key, stored))
    assert head.offload_put(record._replace(state=2)).code == Code.OK
    assert fields_of(door.load(head.name).omap[key])[0].endswith(b"further")


def test_damaged_delivery(head: Head, host: str, door: Door) -> None:
    """A producer that is damaged can only be forgotten: which batches are done is not known."""
    part, producer = b"p.a/0000000000000003.00000001", b"s.a"
    assert head.delivery_begin(Part("a", 3, 1)) == Answer(Code.OK, (1, 0, 1))
    assert head.delivery_grant(Grant(Part("a", 3, 1), 1, 2, 5, 4)) == Answer(Code.OK, 5)
    sound = door.load(head.name)
    for what, damaged in damages(sound.omap[part], host):
        door.save(head.name, sound.with_value(part, damaged))
        assert head.delivery_begin(Part("a", 3, 1)) == EIO, what
        assert head.delivery_grant(Grant(Part("a", 3, 1), 1, 2, 9, 4)) == EIO, what
        assert head.delivery_read(Part("a", 3, 1)) == EIO, what
        assert head.delivery_begin(Part("a", 3, 2)) == Answer(Code.OK, (1, 0, 1)), what
        assert head.delivery_done("a", 4) == Answer(Code.OK, False), what
        assert head.delivery_begin(Part("a", 3, 1)) == Answer(Code.SEQUENCE_DONE, 4), what
    for what, damaged in damages(sound.omap[producer], host):
        door.save(head.name, sound.with_value(producer, damaged))
        assert head.delivery_begin(Part("a", 3, 1)) == EIO, what
        assert head.delivery_done("a", 4) == EIO, what
        assert head.delivery_done("a", 4, 0) == EIO, what
        assert head.delivery_done("a", 2**64 - 1) == EIO, what
        assert head.delivery_list() == EIO, what
        assert head.delivery_grant(Grant(Part("a", 3, 1), 1, 2, 9, 4)) == Answer(Code.OK, 9), what
        assert head.delivery_done("a", 2**64 - 1, 0) == Answer(Code.OK, False), what
        assert head.delivery_list() == Answer(Code.OK, (False, ())), what
        assert head.delivery_begin(Part("a", 3, 1)) == Answer(Code.OK, (1, 0, 2)), what


def test_damaged_directory_entry(store: Store, prefix: str, host: str, door: Door) -> None:
    directory = Directory(store, prefix)
    directory.add("a")
    directory.add("b")
    sound = door.load(prefix)
    for what, damaged in damages(sound.omap[b"n.b"], host):
        door.save(prefix, sound.with_value(b"n.b", damaged))
        assert directory.list() == EIO, what
        assert directory.remove("b") == EIO, what
        assert directory.add("b").code == Code.OK, what
        assert directory.list().value == (False, ("a", "b")), what


def test_damaged_address(store: Store, prefix: str, host: str, door: Door) -> None:
    directory = Directory(store, prefix)
    directory.announce("tcp://host:1")
    sound = door.load(prefix)
    for what, damaged in damages(sound.attrs[SEQUENCER], host):
        door.save(prefix, sound.with_attr(SEQUENCER, damaged))
        assert directory.find() == EIO, what
        assert directory.announce("tcp://host:2").code == Code.OK, what
        assert directory.find().value == "tcp://host:2", what


def test_later_versions_in_head_are_refused(head: Head, door: Door) -> None:
    assert head.tail_raise(2, 5).code == Code.OK
    assert head.cursor_commit("a", CREATE, 5).code == Code.OK
    assert head.delivery_begin(Part("query")).code == Code.OK
    sound = door.load(head.name)
    refused = Answer(Code.STORED_TOO_NEW, 2)
    content = sound.with_attr(HEAD, of_version(HEAD, sound.attrs[HEAD], 2, compat=2))
    door.save(head.name, content)
    for answer in (head.epoch_next(), head.view_read(), head.cursor_list(), head.remove(2)):
        assert answer == refused
    assert door.load(head.name) == content

    def with_newer(key: bytes, version: int) -> Content:
        return sound.with_value(key, of_version(key, sound.omap[key], version, compat=version))

    for key, refusing in {
        b"c.a": [
            lambda: head.cursor_commit("a", ADVANCE, 6),
            lambda: head.cursor_commit("a", SET, 6),
            lambda: head.cursor_read("a"),
            lambda: head.cursor_remove("a"),
            lambda: head.trim_point_raise(5),
        ],
        b"s.query": [
            lambda: head.delivery_begin(Part("query")),
            lambda: head.delivery_done("query", 2**64 - 1, 0),
            head.delivery_list,
        ],
        b"p.query/0000000000000000.00000000": [
            lambda: head.delivery_begin(Part("query")),
            lambda: head.delivery_read(Part("query")),
        ],
        b"v.0000000000000002": [lambda: head.view_read(latest=True), lambda: head.remove(2)],
    }.items():
        version = 3 if key.startswith(b"p.") else 2
        content = with_newer(key, version)
        door.save(head.name, content)
        refused = Answer(Code.STORED_TOO_NEW, version)
        assert [call() for call in refusing] == [refused] * len(refusing), key
        assert door.load(head.name) == content


@pytest.mark.parametrize(
    ("view", "refused"),
    [
        (wire.frame(b"further", version=6, compat=6), Answer(Code.STORED_TOO_NEW, 6)),
        (wire.frame(b"no view"), EIO),
    ],
    ids=["of a later version", "malformed"],
)
def test_unreadable_view(head: Head, door: Door, view: bytes, refused: Answer) -> None:
    """Stored as it was proposed: the value around it is sound, and of this version."""
    assert head.epoch_next().code == Code.OK
    key = b"v.0000000000000002"
    content = door.load(head.name).with_value(key, envelope(key, wire.blob(view)))
    door.save(head.name, content)
    third = View(3, 7, stripes=(StripeView(1, 0, OPEN_END, 8),))
    assert head.view_propose(2, third) == refused
    assert head.remove(2) == refused
    assert door.load(head.name) == content


def further(frame: bytes, version: int = 2, compat: int = 1) -> bytes:
    """A frame with fields that this version does not know."""
    fields = frame[FRAME_BYTES:] + b"further"
    return wire.u8(version) + wire.u8(compat) + wire.u32(len(fields)) + fields


def view_with(stripe: bytes) -> bytes:
    """The bytes of the second view, with this as its stripe."""
    plain = encode("Stripe", 1, 0, OPEN_END, 8)
    whole = requests.view(View(2, 7, stripes=(StripeView(1, 0, OPEN_END, 8),)))
    return wire.frame(whole[FRAME_BYTES:].replace(plain, stripe))


def test_archived_stripe_keeps_unknown_fields(head: Head, door: Door) -> None:
    key = b"v.%016x" % 2
    view = view_with(further(encode("Stripe", 1, 0, OPEN_END, 8)))
    stored = envelope(key, wire.blob(view))
    door.save(head.name, door.load(head.name).with_value(key, stored))
    assert head.epoch_next(4).code == Code.OK
    stripes = (StripeView(3, 50, OPEN_END, 4),)
    assert head.view_propose(2, View(3, 7, stripes=stripes)).code == Code.OK
    archived = door.load(head.name).omap[b"t.%016x" % 49]
    assert archived[:2] == b"\x02\x01"
    assert fields_of(archived)[0] == encode("Stripe", 1, 0, 50, 8)[FRAME_BYTES:] + b"further"


def test_grants_keep_unknown_fields(head: Head, door: Door) -> None:
    part = Part("a", 3, 1)
    key = b"p.a/0000000000000003.00000001"
    assert head.delivery_begin(part).code == Code.OK
    assert head.delivery_grant(Grant(part, 1, 2, 5, 4)).code == Code.OK
    grant = encode("Grant", 5, 4)
    content = door.load(head.name)
    fields, _ = fields_of(content.omap[key])
    stored = envelope(key, fields.replace(grant, further(grant)))
    door.save(head.name, content.with_value(key, stored))
    assert head.delivery_begin(part) == Answer(Code.OK, (2, 1, 1))
    assert further(grant) in fields_of(door.load(head.name).omap[key])[0]


def test_element_of_later_version_is_refused(head: Head, door: Door) -> None:
    part = Part("a", 3, 1)
    assert head.delivery_begin(part).code == Code.OK
    assert head.delivery_grant(Grant(part, 1, 2, 5, 4)).code == Code.OK
    assert head.epoch_next().code == Code.OK
    grant, sound = encode("Grant", 5, 4), door.load(head.name)
    too_new = view_with(further(encode("Stripe", 1, 0, OPEN_END, 8), 3, 3))
    following = View(3, 7, stripes=(StripeView(1, 0, OPEN_END, 8),))
    key = b"p.a/0000000000000003.00000001"
    fields, _ = fields_of(sound.omap[key])
    grants = envelope(key, fields.replace(grant, further(grant, 2, 2)))
    view = b"v.%016x" % 2
    content = sound.with_value(key, grants).with_value(view, envelope(view, wire.blob(too_new)))
    door.save(head.name, content)
    for answer in (
        head.delivery_begin(part),
        head.delivery_grant(Grant(part, 1, 3, 9, 4)),
        head.delivery_read(part),
        head.view_propose(2, following),
        head.remove(2),
    ):
        assert answer.code == Code.STORED_TOO_NEW
    assert door.load(head.name) == content
