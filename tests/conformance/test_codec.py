"""The native codec against the suite's own, over generated requests and damaged replies."""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import zlog
from zlog._native import appends
from zlog._native import messages as native
from zlog._native.new_entries import Tagged
from zlog._native.replies import decode_read, fullest
from zlog._native.writes import encode_write

from . import golden, hostile, replies, requests, wire
from .head_model import well_formed
from .messages import METHODS, STRUCTS, request
from .model import POSITION_MAX, UNITS
from .objects import Store, Stripe
from .replies import Slot, State
from .requests import AppendPart, Entry, StripeView, View
from .victims import Victims
from .wire import OPEN_END

U32 = st.integers(0, 2**32 - 1)
U64 = st.integers(0, 2**64 - 1)
WRITER = st.binary(min_size=16, max_size=16)
STRIDE = st.integers(1, 1024)
TAGS = st.lists(st.sampled_from(["a", "b", "ä", "c" * 128]), max_size=4, unique=True).map(tuple)
ERRORS = (zlog.CorruptEntry, zlog.UnsupportedVersion)


@st.composite
def geometry_and_positions(draw: st.DrawFn) -> tuple[int, list[int]]:
    """A striping as requests have it, and positions of one object."""
    stride, stripe_unit = draw(STRIDE), draw(st.sampled_from(UNITS))
    residue = draw(st.integers(0, stride - 1))
    last = (POSITION_MAX + 1) // (stride * stripe_unit) * stripe_unit - 400
    base = draw(st.sampled_from([0, 10**6, last]))
    places = [base + place for place in draw(st.sets(st.integers(0, 300), min_size=1, max_size=50))]
    positions = [
        (place // stripe_unit * stride + residue) * stripe_unit + place % stripe_unit
        for place in sorted(places)
    ]
    return wire.striping_of(stride, stripe_unit), positions


ENCODED = [method for method in METHODS if method not in ("write", "append")]
WIDEST = {"bool": 1, "u8": 2**8 - 1, "u32": 2**32 - 1, "u64": 2**64 - 1}
NAME = st.from_regex(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,9}", fullmatch=True)
OTHERS = {  # by what is said of them, or else by their kind
    "u8[16]": WRITER,
    "at most 1,048,576": st.binary(max_size=20),
    "at most 8,192": st.binary(max_size=20),
    "string": st.binary(max_size=20),
    "at most 256": st.binary(max_size=20),
    "1 to 256": st.binary(min_size=1, max_size=20),
    "u8, u64": st.none() | st.integers(0, 2**63 - 1),
    "at most 2^63 - 1": st.none() | st.integers(0, 2**63 - 1),
    "runs": geometry_and_positions(),
    "u8[32]": st.binary(min_size=32, max_size=32),
    "1 to 1,024": st.binary(min_size=1, max_size=20),
    "1 to 4,096": st.none(),  # segments, which depend on other fields
    "1 to 64": st.lists(st.binary(min_size=1, max_size=9), min_size=1, max_size=9),  # tags
    "a name": NAME,
    "a name or empty": st.just("") | NAME,
    "an address": st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=20),
}


def number(words: str) -> int:
    """As the specification writes it: 1,024 or 2^64 - 2."""
    power, _, less = words.replace(",", "").partition(" - ")
    base, _, exponent = power.partition("^")
    return int(base) ** int(exponent or 1) - int(less or 0)


def bounds(kind: str, said: str) -> tuple[int, int]:
    """The least and the greatest value of an integer."""
    least, at_most, most = re.match(r"(?:at least )?(.*?)(at most | to |$)(.*)", said).groups()  # type: ignore[union-attr]
    return number(least) if least else 0, number(most) if at_most else WIDEST[kind]


def sound(kind: str, said: str) -> st.SearchStrategy[Any]:
    """Values that a field may have."""
    if kind == "bool":
        return st.booleans()
    if kind == "list of NumberedPart":
        grants = st.lists(st.tuples(st.integers(0, 9), st.integers(1, 9)), max_size=2)
        sequence, position = U64.filter(lambda v: v < 2**64 - 1), st.integers(0, POSITION_MAX)
        part = st.tuples(sequence, U32, U64, st.integers(0, 9), grants, position)
        return st.lists(part, max_size=3, unique_by=lambda p: p[:2]).map(sorted)
    if kind == "u8, u64":
        return st.none() | st.integers(0, POSITION_MAX)
    return st.integers(*bounds(kind, said)) if kind in WIDEST else OTHERS[said or kind]


@pytest.mark.parametrize("method", ENCODED)
@settings(max_examples=50, deadline=None)
@given(data=st.data())
def test_both_codecs_encode_requests_identically(method: str, data: st.DataObject) -> None:
    struct = STRUCTS[METHODS[method].request]
    values = [data.draw(sound(*each)) for each in zip(struct.kinds, struct.bounds, strict=True)]
    if method == "seal":
        values[2] %= values[1]  # its residue is below its stride
        values[5] = data.draw(st.sampled_from(UNITS))
    if method == "offload_put":
        ends = sorted(data.draw(st.sets(st.integers(1, 2**63), min_size=1, max_size=3)))
        segments = [(end, 1, 9, 1, 2) for end in ends]
        values[2:4], values[9:] = (0, ends[-1]), (len(ends), 9 * len(ends), segments)
    assume(method != "delivery_grant" or values[7] + values[8] <= POSITION_MAX + 1)
    assert getattr(native, method)(*arguments(values)) == request(method, *values)


def arguments(values: Sequence[Any]) -> list[Any]:
    """As the native codec takes them: a striping, then positions."""
    return [each for value in values for each in (value if type(value) is tuple else [value])]


def out_of_bounds() -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Each method with one value below or above what its field may have, and the others sound."""
    for method in ENCODED:
        struct = STRUCTS[METHODS[method].request]
        fields = [*zip(struct.kinds, struct.bounds, strict=True)]
        for at, (kind, said) in enumerate(fields):
            if kind in WIDEST and said:
                least, most = bounds(kind, said)
                wrong = [least - 1] * (least > 0) + [most + 1] * (most < WIDEST[kind])
                for value in wrong:
                    values = [LEAST.get(kind, 1) for kind, _ in fields]
                    yield method, (*values[:at], value, *values[at + 1 :])


LEAST: dict[str, Any] = {
    "text": "a",
    "u8[16]": bytes(16),
    "u8[32]": bytes(32),
    "string": b"",
    "runs": (1, [0]),
    "list of string": [b"a"],
    "list of NumberedPart": [],
    "list of OffloadSegment": [],
}
OUT_OF_BOUNDS = [
    *out_of_bounds(),
    ("seal", (1, 4, 4, True, None, 1)),
    *(
        ("seal", (1, 4, 0, True, None, stripe_unit))
        for stripe_unit in (3, 65535, 2**16 - 2**15 + 1, 2**31)
    ),
    ("head_create", ("", 1)),
    ("cursor_read", (1, "a/b")),
    ("sequencer_announce", ("two words",)),
    *(("select", (1, 0, 9, [tag], False, False, 9, 9, False)) for tag in (b"", b"x" * 129)),
    ("delivery_grant", (1, "a", 1, 1, 1, 1, 1, 2**63 - 1, 2, False, False)),
    ("producer_copy", (1, 1, "a", 1, 1, 1, [(2, 0, 1, 1, [], 0), (2, 0, 1, 1, [], 0)])),
    *(
        ("offload_put", (7, *requests.offload(1, 0, 5, entries=count, bytes=30, segments=segments)))
        for count, segments in [
            (5, [(2, 3, 10, 1, 2), (5, 2, 20, 1, 2)]),  # more entries than positions
            (3, [(2, 0, 10, 0, 0), (5, 3, 20, 1, 2)]),  # data, but no entries
            (3, [(2, 0, 0, 0, 2), (5, 3, 30, 1, 2)]),  # a time, but no entries
            (5, [(5, 5, 30, 2, 1)]),
            (5, [(5, 4, 30, 1, 2)]),
        ]
    ),
]


@pytest.mark.parametrize(("method", "values"), OUT_OF_BOUNDS, ids=str)
def test_native_codec_refuses_out_of_bounds_requests(method: str, values: tuple[Any, ...]) -> None:
    with pytest.raises(ValueError, match=f"not a valid {method} request"):
        getattr(native, method)(*arguments(values))


def test_hosts_refuse_out_of_bounds_requests(store: Store, prefix: str) -> None:
    """By a host that gets them all the same."""
    victims = Victims(store, prefix)
    for method, values in OUT_OF_BOUNDS:
        answer = store.execute(victims.name_of(method), method, request(method, *values))
        assert answer == (-errno.EINVAL, b""), (method, values)


@given(where=geometry_and_positions(), epoch=U64, time=U64, writer=WRITER, base=U64, data=st.data())
def test_both_codecs_encode_writes_identically(
    where: tuple[int, list[int]],
    epoch: int,
    time: int,
    writer: bytes,
    base: int,
    data: st.DataObject,
) -> None:
    striping, positions = where
    base = min(base, requests.NUMBER_BASE_MAX)
    size = len(positions)
    numbers = data.draw(st.lists(U32, min_size=size, max_size=size))
    contents = data.draw(st.lists(st.binary(max_size=20), min_size=size, max_size=size))
    tags = data.draw(st.just([()] * size) | st.lists(TAGS, min_size=size, max_size=size))
    entries = [
        Entry(p, base + n, d, tuple(tag.encode() for tag in own))
        for p, n, d, own in zip(positions, numbers, contents, tags, strict=True)
    ]
    sent = [Tagged(d, own) if own else d for d, own in zip(contents, tags, strict=True)]
    found = encode_write(
        epoch, time, writer, striping, positions, [e.number for e in entries], sent
    )
    assert found == requests.write(epoch, time, writer, striping, entries)


PARTS = st.lists(
    st.tuples(
        st.lists(st.tuples(st.binary(max_size=20), TAGS), min_size=1, max_size=3),
        st.none() | st.integers(0, POSITION_MAX),
        st.integers(0, POSITION_MAX + 1),
        st.lists(TAGS.filter(bool), max_size=2),
    ),
    min_size=1,
    max_size=4,
)


@given(parts=PARTS, epoch=U64, time=U64, writer=WRITER, base=st.integers(0, 2**64 - 2**32))
def test_both_codecs_encode_appends_identically(
    parts: list[Any], epoch: int, time: int, writer: bytes, base: int
) -> None:
    ours, theirs, sent, number = [], [], [], base
    for contents, expect, start, unless in parts:
        entries = [
            Entry(0, number + i, data, tuple(tag.encode() for tag in tags))
            for i, (data, tags) in enumerate(contents)
        ]
        sets = tuple(tuple(tag.encode() for tag in tags) for tags in unless)
        ours.append(AppendPart(tuple(entries), expect, start, sets))
        theirs.append(appends.AppendPart(number, len(entries), expect, start, tuple(unless)))
        sent += [Tagged(data, own) if own else data for data, own in contents]
        number += len(entries)
    found = appends.encode_append(epoch, time, writer, base % 2**63, theirs, sent)
    assert found == requests.append(epoch, time, writer, base % 2**63, ours)


@pytest.mark.parametrize("length", [(32 << 10) - 1, 32 << 10, 40_000, 1 << 20])
def test_data_of_large_write_is_page_aligned(length: int) -> None:
    content = bytes(range(256)) * (length // 256) + bytes(length % 256)
    found = encode_write(1, 2, b"w" * 16, 4, [1, 9], [5, 6], [content[:100], content[100:]])
    entries = [Entry(1, 5, content[:100]), Entry(9, 6, content[100:])]
    assert found == requests.write(1, 2, b"w" * 16, 4, entries)
    assert found.endswith(content)
    begin = len("zlog" + "write") + len(found) - len(content)
    assert (begin % 4096 == 0) == (length >= 32 << 10)


@pytest.mark.parametrize(
    "positions", [[3, 2], [2, 2], [-1], [2**64], [2**63], [0, 4, 5], []], ids=str
)
def test_invalid_positions_are_refused(positions: list[int]) -> None:
    for stripe_unit in (1, 2):
        with pytest.raises((ValueError, OverflowError)):
            native.trim(1, wire.striping_of(4, stripe_unit), positions)


@pytest.mark.parametrize("striping", hostile.NO_STRIPINGS, ids=hex)
def test_invalid_stripings_are_refused(striping: int) -> None:
    with pytest.raises(ValueError, match="not a valid striping"):
        native.trim(1, striping, [0])
    with pytest.raises(ValueError, match="not a valid striping"):
        encode_write(1, 1, b"w" * 16, striping, [0], [0], [b""])


@pytest.mark.parametrize(
    ("positions", "numbers", "data"),
    [
        ([0, 1], [0], [b"", b""]),
        ([0, 1], [0, 1], [b""]),
        ([0], [0, 1], [b""]),
        ([1, 0], [0, 1], [b"", b""]),
        ([0, 1], [0, 2**32], [b"", b""]),
        ([0], [-1], [b""]),
        ([0], [2**64], [b""]),
    ],
    ids=str,
)
def test_bad_writes_raise(positions: list[int], numbers: list[int], data: list[bytes]) -> None:
    with pytest.raises((ValueError, OverflowError)):
        encode_write(1, 1, b"w" * 16, 1, positions, numbers, data)


@pytest.mark.parametrize("length", [0, 15, 17])
def test_writer_id_must_have_16_bytes(length: int) -> None:
    with pytest.raises(ValueError, match=r"."):
        native.fill(1, 1, b"w" * length, 0, 1, [0])
    with pytest.raises(ValueError, match=r"."):
        encode_write(1, 1, b"w" * length, 1, [0], [0], [b""])


A_VIEW = View(3, 7, False, "tcp://a:1", (StripeView(1, 0, OPEN_END, 4),), {"b": "2", "a": ""})
VIEWS = st.builds(
    View,
    epoch=st.integers(1, 2**64 - 1),
    log_id=U64,
    removed=st.booleans(),
    sequencer=st.sampled_from(["", "store:", "tcp://host:1"]),
    stripes=st.sampled_from(UNITS).map(
        lambda stripe_unit: (StripeView(1, 0, OPEN_END, 1, stripe_unit),)
    ),
    options=st.dictionaries(
        st.text("abc.", min_size=1, max_size=5), st.text("xyzü", max_size=5), max_size=4
    ),
    read_only=st.booleans(),
    writer=st.lists(
        st.tuples(st.binary(min_size=16, max_size=16), st.binary(max_size=128), U64), max_size=1
    ).map(tuple),
    mac=st.lists(
        st.tuples(st.integers(0, 255), st.binary(min_size=16, max_size=16)), max_size=1
    ).map(tuple),
    offloads=st.booleans(),
    ordered=st.booleans(),
).filter(well_formed)


@given(view=VIEWS)
def test_views_round_trip(view: View) -> None:
    data = requests.view(view)
    fields = native.decode_view(data)
    assert native.encode_view(*fields) == data
    stripes = [(s.id, s.start, s.end, s.width, s.stripe_unit, b"") for s in view.stripes]
    head = (view.epoch, view.log_id, int(view.removed), view.sequencer)
    writer = [(*each, b"") for each in view.writer]
    mac = [(*each, b"") for each in view.mac]
    rest = view.options, view.read_only, writer, mac, view.offloads, view.ordered, b""
    assert fields == (*head, stripes, *rest)
    needs = [(view.ordered, 5), (view.offloads, 4), (mac, 3), (view.read_only or writer, 2)]
    compat = next((version for needed, version in needs if needed), 1)
    assert data[:2] == bytes([5, compat])


def slots(reply: Any, with_ids: bool) -> tuple[Slot, ...]:
    """A native reply as the suite's slots."""
    found = []
    for i in range(len(reply)):
        state = State(reply.state(i))
        if state not in (State.WRITTEN, State.FILLED):
            found.append(Slot(state))
            continue
        written = state == State.WRITTEN
        ids = (None, None, None)
        if with_ids:
            number = reply.number(i) if written else None
            ids = (reply.writer(i), number, None if written else reply.reason(i))
        found.append(Slot(state, reply.data(i), reply.timestamp(i), *ids))
    return tuple(found)


def test_both_codecs_decode_read_replies_identically(store: Store, prefix: str) -> None:
    stripe = Stripe(store, prefix, 4, 1)
    stripe.seal(1)
    stripe.write(1, [Entry(p, p, b"data %d" % p) for p in range(1, 81, 4)])
    stripe.fill(1, [85, 93], reason=2)
    stripe.trim(1, [5, 89])
    positions = range(1, 121, 4)
    for with_ids in (False, True):
        for bytes_max in (0, 50, 1000):
            asked = request("read", 1, with_ids, bytes_max, (4, positions))
            code, payload = store.execute(prefix, "read", asked)
            options = {"positions": positions, "with_ids": with_ids}
            ours = replies.parse("read", code, payload, options).value
            assert slots(decode_read(payload, positions, None), with_ids) == ours.slots


DECODERS = {
    f"{each.method}_reply": each.reply
    for each in reversed(golden.exchanges())
    if each.code == "OK" and hasattr(native, f"{each.method}_reply")
} | {"decode_view": requests.view(A_VIEW), "refusal": wire.frame(bytes(8))}


@pytest.mark.parametrize("name", DECODERS)
def test_malformed_replies_are_refused(name: str) -> None:
    decode, sound = getattr(native, name), DECODERS[name]
    decode(sound)
    for length in range(len(sound)):
        with pytest.raises(ERRORS):
            decode(sound[:length])
    with pytest.raises(ERRORS):
        decode(sound + b"\0")


@pytest.mark.parametrize("name", DECODERS)
def test_replies_of_later_versions(name: str) -> None:
    decode, sound = getattr(native, name), DECODERS[name]
    further, later = sound[6:] + b"further", sound[0] + 1
    found = decode(wire.frame(further, version=later))
    if name == "decode_view":
        assert native.encode_view(*found) == wire.frame(further, version=later)
        found = found._replace(further=b"")
    assert found == decode(sound)
    with pytest.raises(zlog.UnsupportedVersion) as raised:
        decode(wire.frame(further, version=later, compat=later))
    assert "Upgrade" in raised.value.hint


def test_unreadable_write_reply_is_ignored() -> None:
    fields = golden.bytes_of("02000000 0600000000000000")
    sound, too_new = wire.frame(fields), wire.frame(fields, version=2, compat=2)
    assert fullest([(0, sound)]) == (2, 6)
    for wrong in (sound[:-1], sound + b"\0", b"", too_new):
        assert fullest([(0, wrong), (0, sound), (0, wrong)]) == (2, 6)
        assert fullest([(0, wrong)]) == (0, 0)


@settings(max_examples=300, deadline=None)
@given(name=st.sampled_from(sorted(DECODERS)), data=st.data())
def test_damaged_replies_never_crash_decoder(name: str, data: st.DataObject) -> None:
    sound = bytearray(DECODERS[name])
    for _ in range(data.draw(st.integers(1, 4))):
        sound[data.draw(st.integers(0, len(sound) - 1))] = data.draw(st.integers(0, 255))
    try:
        getattr(native, name)(bytes(sound))
    except ERRORS:
        pass
    except UnicodeDecodeError as error:  # a ValueError, and yet: text must be refused as such
        raise AssertionError(name) from error
