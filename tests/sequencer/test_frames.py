"""The codec: what one end packs, the other reads, however the network cuts it."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zlog._base.sequencer import LogAddress
from zlog._sequencer.frames import (
    FRAME,
    FRAME_BYTES,
    STATUS_BYTES_MAX,
    Code,
    Kind,
    Payload,
    Reply,
    ReplyReader,
    pack_payload,
    payload_frames,
)

u8, u16, u32, u64 = (st.integers(0, 2**bits - 1) for bits in (8, 16, 32, 64))


def cut(data: bytes, places: list[int]) -> list[bytes]:
    """Cut ``data`` at these places, taken modulo its length."""
    at = sorted({place % (len(data) + 1) for place in places} | {0, len(data)})
    return [data[begin:end] for begin, end in pairwise(at)]


def test_frame_is_24_bytes_little_endian():
    frame = FRAME.pack(Kind.NEXT, Code.OK, 0x0102, 0x03040506, 7, 8)
    assert frame.hex() == "030002010605040307000000000000000800000000000000"
    assert FRAME_BYTES == 24


@given(st.binary(max_size=500))
def test_payload_survives_framing(data):
    padded = pack_payload(data)
    assert len(padded) == payload_frames(len(data)) * FRAME_BYTES
    payload = Payload(len(data))
    for frame in FRAME.iter_unpack(padded):
        assert not payload.complete
        payload.add(frame)
    assert payload.complete
    assert payload.data() == data


def test_nonzero_padding_is_refused():
    payload = Payload(1)
    payload.add(FRAME.unpack(b"x" + b"\0" * 22 + b"y"))
    with pytest.raises(ValueError, match="padding"):
        payload.data()


replies = st.one_of(
    st.builds(
        lambda code, handle, request, a, b: Reply(Kind.NEXT, code, handle, request, a, b),
        u8,
        u16,
        u32,
        u64,
        u64,
    ),
    st.builds(
        lambda request, payload: Reply(Kind.STATUS, Code.OK, 0, request, len(payload), 0, payload),
        u32,
        st.binary(max_size=100),
    ),
    st.builds(lambda request: Reply(Kind.STATUS, Code.LIMIT, 0, request, 0, 0), u32),
)


@given(st.lists(replies, max_size=20), st.lists(st.integers(0, 3000)))
def test_replies_survive_any_chunking(sent, places):
    data = b"".join(FRAME.pack(*reply[:6]) + pack_payload(reply.payload) for reply in sent)
    reader = ReplyReader()
    assert [reply for chunk in cut(data, places) for reply in reader.feed(chunk)] == sent


def test_oversized_payload_is_refused():
    with pytest.raises(ValueError, match=f"{STATUS_BYTES_MAX + 1} bytes"):
        ReplyReader().feed(FRAME.pack(Kind.STATUS, Code.OK, 0, 0, STATUS_BYTES_MAX + 1, 0))


names = st.from_regex(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}", fullmatch=True)
pools = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=60)


@given(pools, pools, names, u64)
def test_address_survives_encoding(pool, namespace, name, log_id):
    address = LogAddress(pool, namespace, name, log_id)
    assert LogAddress.decode(address.encode()) == address


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"orders",
        b"\0\0orders",
        b"\0\0orders\0",
        b"\0\0\0" + b"0" * 16,
        b"\0\0../x\0" + b"0" * 16,
        b"\0\0orders\0" + b"0" * 17,
        b"\0\0orders\0" + b"F" * 16,
        b"\0\0orders\0+" + b"0" * 15,
        b"\0\0orders\0-" + b"0" * 14 + b"f",
        b"\0\0orders\0001" + b"0" * 16,
        b"\0\0orders\0" + b"0" * 16 + b"\0",
        b"\xff\0\0orders\0" + b"0" * 16,
        b"p" * 256 + b"\0\0orders\0" + b"0" * 16,
        b"\0\0" + b"o" * 129 + b"\0" + b"0" * 16,
    ],
)
def test_inexact_address_is_refused(payload):
    with pytest.raises(ValueError, match=r"."):
        LogAddress.decode(payload)


@given(st.binary(max_size=200))
def test_address_decoder_handles_arbitrary_bytes(payload):
    try:
        address = LogAddress.decode(payload)
    except ValueError:
        return
    assert address.encode() == payload
