"""The encoder of appends: conditions and blocks as the object expects them, and its replies."""

from __future__ import annotations

from typing import Any

import pytest

from zlog._base.codes import Code, PartState
from zlog._native import messages
from zlog._native.appends import AppendPart, append_outcomes, encode_append
from zlog._native.local import MemoryStore
from zlog._native.new_entries import Tagged
from zlog._native.replies import decode_read

WRITER = b"w" * 16
TEXT = b"compressible " * 100
UNLESS = (("red", "ä"),)


@pytest.fixture
def store() -> MemoryStore:
    store = MemoryStore()
    assert store.execute("log", "seal", messages.seal(1, 1, 0, True, 0))[0] == Code.OK
    return store


def append(
    store: MemoryStore, parts: list[AppendPart], entries: list[Any], compression: str = "none"
) -> tuple[Any, list[tuple[int, int]]]:
    """Append, and return the reply and the outcomes."""
    request = encode_append(1, 2, WRITER, 0, parts, entries, compression)
    code, reply = store.execute("log", "append", request)
    assert code == Code.OK
    found = messages.append_reply(reply)
    return found, [(state, position) for state, position in append_outcomes(found, parts)]


@pytest.mark.parametrize("compression", ["zstd", "lz4"])
@pytest.mark.parametrize(("unless", "records"), [((), 1), (UNLESS, 2)], ids=["plain", "condition"])
def test_parts_with_conditions_have_their_own_blocks(
    store: MemoryStore, compression: str, unless: Any, records: int
) -> None:
    parts = [AppendPart(0, 2, None, 0, ()), AppendPart(2, 1, None, 0, unless)]
    reply, outcomes = append(store, parts, [TEXT, TEXT, TEXT], compression)
    assert (reply.records, reply.stored) == (records, 2)
    assert reply.bytes < len(TEXT)
    assert outcomes == [(PartState.APPENDED, 0), (PartState.APPENDED, 2)]
    _, again = append(store, parts, [TEXT, TEXT, TEXT], compression)
    assert again == outcomes
    code, payload = store.execute(
        "log", "read", messages.read(1, False, 1 << 20, 1, [0, 1, 2], True)
    )
    assert code == Code.OK
    assert [bytes(decode_read(payload, [0, 1, 2], None).data(i)) for i in range(3)] == [TEXT] * 3


def test_part_without_data_is_not_compressed(store: MemoryStore) -> None:
    parts = [AppendPart(0, 1, 0, 0, ()), AppendPart(1, 1, 1, 0, ())]
    reply, _ = append(store, parts, [TEXT, b""], "zstd")
    assert (reply.stored, reply.bytes) == (2, len(TEXT))


def test_parts_after_a_conflict_are_sent_again(store: MemoryStore) -> None:
    parts = [AppendPart(n, 1, None, 0, UNLESS) for n in range(3)]
    entries = [b"free", Tagged(b"first", ("ä", "red")), Tagged(b"second", ("ä", "red"))]
    _, outcomes = append(store, parts, entries)
    assert outcomes == [(PartState.APPENDED, 0), (PartState.APPENDED, 1), (PartState.SEARCHED, 0)]
    _, outcomes = append(store, parts[2:], entries[2:])
    assert outcomes == [(PartState.CONFLICT, 1)]


@pytest.mark.parametrize(
    ("parts", "entries"),
    [
        ([AppendPart(0, 2, None, 0, ())], [b"one"]),
        ([], []),
        ([AppendPart(0, 0, None, 0, ()), AppendPart(0, 1, None, 0, ())], [b"one"]),
        ([AppendPart(1, 1, None, 0, ()), AppendPart(1, 1, None, 0, ())], [b"one", b"two"]),
        ([AppendPart(0, 1, None, 0, ((),))], [b"one"]),
        ([AppendPart(0, 1, None, 0, (("a" * 129,),))], [b"one"]),
        ([AppendPart(0, 1, None, 0, (("a",),) * 33)], [b"one"]),
        ([AppendPart(0, 1, 2**63, 0, ())], [b"one"]),
        ([AppendPart(0, 1, None, 2**63 + 1, ())], [b"one"]),
        ([AppendPart(0, 1, None, 0, (("a",),)) for _ in range(1)], [bytes((16 << 20) + 1)]),
    ],
    ids=[
        "count",
        "none",
        "empty",
        "numbers",
        "no tags",
        "tag",
        "sets",
        "expect",
        "start",
        "entry",
    ],
)
def test_bad_appends_raise(parts: list[AppendPart], entries: list[bytes]) -> None:
    with pytest.raises(ValueError, match=r"."):
        encode_append(1, 2, WRITER, 0, parts, entries)


def test_since_must_be_a_position() -> None:
    with pytest.raises(ValueError, match="not a valid append"):
        encode_append(1, 2, WRITER, 2**63 + 1, [AppendPart(0, 1, None, 0, ())], [b"one"])
