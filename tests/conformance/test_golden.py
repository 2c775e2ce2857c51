"""The wire format, byte for byte: requests of both codecs and replies of every host."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from zlog._native import core, messages

from . import golden, golden_conversations, golden_requests, replies, requests, wire
from .golden_conversations import Exchange
from .golden_requests import Sample
from .objects import Store

CONVERSATIONS = {
    "stripe": golden_conversations.STRIPE,
    "head": golden_conversations.HEAD,
    "cursors": golden_conversations.CURSOR,
    "deliveries": golden_conversations.DELIVERY,
    "directory": golden_conversations.DIRECTORY,
}


def exchange_of(conversation: Sequence[Exchange], method: str, code: int = 0) -> Exchange:
    """The first step of that method and code."""
    return next(step for step in conversation if (step.method, step.code) == (method, code))


@pytest.mark.parametrize("sample", golden_requests.SAMPLES, ids=lambda sample: sample.name)
def test_requests_are_these_bytes(sample: Sample) -> None:
    assert sample.ours() == sample.expected
    module = core if hasattr(core, sample.native) else messages
    assert getattr(module, sample.native)(*sample.arguments) == sample.expected


@pytest.mark.parametrize("name", CONVERSATIONS)
def test_replies_are_these_bytes(name: str, store: Store, prefix: str) -> None:
    for step in CONVERSATIONS[name]:
        code, reply = store.execute(prefix, step.method, step.request)
        found, expected = (code, reply.hex(" ")), (step.code, step.reply.hex(" "))
        assert found == expected, step.method


def test_every_method_has_a_sample_and_an_exchange() -> None:
    shown = {step.method for conversation in CONVERSATIONS.values() for step in conversation}
    assert shown >= set(replies.METHODS) - {"stat"}  # its counters belong to the layout


def test_view_is_these_bytes() -> None:
    assert requests.view(golden.VIEW) == golden.VIEW_BYTES
    assert replies.parse_view(golden.VIEW_BYTES) == golden.VIEW
    assert messages.encode_view(*golden.VIEW_FIELDS) == golden.VIEW_BYTES
    assert messages.decode_view(golden.VIEW_BYTES) == golden.VIEW_FIELDS


def test_crc32c_is_castagnoli() -> None:
    """The check value of the CRC catalogue, and the vectors of RFC 3720 (iSCSI), B.4."""
    vectors = {
        b"123456789": 0xE3069283,
        bytes(32): 0x8A9136AA,
        b"\xff" * 32: 0x62A8AB43,
        bytes(range(32)): 0x46DD794E,
        bytes(range(31, -1, -1)): 0x113FDB5C,
        b"": 0,
    }
    for data, expected in vectors.items():
        assert wire.crc32c(data) == expected
        assert core.crc32c(data) == expected


def test_native_codec_reads_these_replies() -> None:
    stripe, head = golden_conversations.STRIPE, golden_conversations.HEAD
    assert messages.seal_reply(exchange_of(stripe, "seal").reply) == (None, 0, 0)
    written = exchange_of(stripe, "write")
    other = wire.frame(golden.bytes_of("01000000 0700000000000000"))
    assert core.fullest([(written.code, written.reply), (0, other)]) == (2, 7)
    assert messages.max_position_reply(exchange_of(stripe, "max_position").reply).highest is None
    assert messages.refusal(exchange_of(stripe, "seal", 5).reply).number == 5
    assert messages.refusal(exchange_of(stripe, "write", 2).reply).number == 9
    assert messages.trim_to_reply(exchange_of(stripe, "trim_to").reply).more is False
    assert messages.epoch_next_reply(exchange_of(head, "epoch_next").reply) == (1, 0)
    assert messages.epoch_read_reply(exchange_of(head, "epoch_read").reply) == (3, 0, 200, 100, 7)
    views = messages.view_read_reply(exchange_of(head, "view_read").reply)
    assert views == (3, 3, 200, 100, 7, False, [golden.VIEW_BYTES])
    cursors = golden_conversations.CURSOR
    times = (0x0005543DF729C000, 0x0005543DF729C001)
    assert messages.cursor_read_reply(exchange_of(cursors, "cursor_read").reply) == (200, *times)
    found = messages.cursor_list_reply(exchange_of(cursors, "cursor_list").reply)
    assert found == (True, [("app", 200, *times)])
    read = messages.stripes_read_reply(exchange_of(head, "stripes_read").reply)
    assert read == (False, [(1, 0, 200, 8)])
    loose = messages.stripes_loose_reply(exchange_of(head, "stripes_loose").reply)
    assert loose == (4, False, [(1, 8), (2, 4)])
    deliveries = golden_conversations.DELIVERY
    begun = messages.delivery_begin_reply(exchange_of(deliveries, "delivery_begin").reply)
    assert begun == (1, 0, 1)
    part = messages.delivery_read_reply(exchange_of(deliveries, "delivery_read").reply)
    assert part == (1, 2, [(40, 10), (100, 10)])
    sources = messages.delivery_list_reply(exchange_of(deliveries, "delivery_list").reply)
    assert sources == (True, [("a", 1, 0, times[1], times[1])])
    directory = golden_conversations.DIRECTORY
    listed = messages.directory_list_reply(exchange_of(directory, "directory_list").reply)
    assert listed == (True, ["b"])
    assert messages.sequencer_find_reply(exchange_of(directory, "sequencer_find").reply) == ("",)


def test_native_codec_reads_a_read_reply() -> None:
    step = [s for s in golden_conversations.STRIPE if s.method == "read"][1]
    reply = core.decode_read(step.reply, [5, 13])
    assert (len(reply), reply.count) == (2, 2)
    assert [reply.state(i) for i in range(2)] == [0, 2]
    assert [reply.timestamp(i) for i in range(2)] == [0x0005543DF729C000] * 2
    assert (reply.data(0), reply.data(1)) == (b"five", b"")
    assert (reply.writer(0), reply.number(0)) == (golden.WRITER, 1007)
    assert (reply.writer(1), reply.reason(1)) == (golden.WRITER, 1)


def test_stat_reply_has_this_shape(store: Store, prefix: str) -> None:
    """Two of its numbers are the layout's own; the rest is fixed."""
    store.execute(prefix, "seal", requests.seal(5, 4, 1, create=True))
    store.execute(prefix, "write", requests.write(5, 1, golden.WRITER, 4, golden.ENTRIES))
    store.execute(prefix, "trim_to", requests.trim_to(5, 6, 1000))
    code, reply = store.execute(prefix, "stat", requests.epoch(5))
    fixed = (
        "01 01 41000000"
        "0500000000000000 01 1100000000000000 0600000000000000 0200000000000000 0200000000000000"
    )
    assert (code, reply[:47].hex(), len(reply)) == (0, fixed.replace(" ", ""), 71)
    assert reply[63:].hex() == "04000000" + "01000000"
    stat = messages.stat_reply(reply)
    assert (*stat[:5], *stat[7:]) == (5, 17, 6, 2, 2, 4, 1)
