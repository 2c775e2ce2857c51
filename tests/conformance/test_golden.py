"""The wire format, byte for byte: what is sent to every host, and what it answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from zlog._native import messages as native
from zlog._native.replies import crc32c

from . import golden, requests, wire
from .golden import Taped, bytes_of, exchanges
from .messages import METHODS, decode, request
from .objects import Store
from .requests import Entry
from .transcript import HostWorld, Interpreter


@pytest.mark.parametrize("path", golden.CONVERSATIONS, ids=lambda path: path.stem)
def test_golden_bytes(path: Path, store: Store, prefix: str) -> None:
    taped = Taped(store)
    interpreter = Interpreter(HostWorld(taped, prefix))
    for command, expected in golden.conversation(path):
        interpreter.run(command)
        if expected is not None:
            assert str(taped.passed) == str(expected), command


def test_golden_conversations_cover_every_method() -> None:
    assert {each.method for each in exchanges()} == {*METHODS} - {"stat", "version"}
    # see below, and test_version


def test_stat_reply_has_fixed_layout(store: Store, prefix: str) -> None:
    """Two of its numbers are the layout's own; the rest is fixed."""
    entries = [Entry(5, 1, b""), Entry(9, 2, b""), Entry(17, 3, b"\x00\xff")]
    store.execute(prefix, "seal", request("seal", 5, 4, 1, True))
    store.execute(prefix, "write", requests.write(5, 1, bytes(16), 4, entries))
    store.execute(prefix, "trim_to", request("trim_to", 5, 6, 1000))
    code, reply = store.execute(prefix, "stat", request("stat", 5))
    fixed = bytes_of(
        "03 01 4e000000"
        "0500000000000000 01 1100000000000000 0600000000000000 0200000000000000 0200000000000000"
    )
    assert (code, reply[:47].hex(), len(reply)) == (0, fixed.hex(), 84)
    assert reply[63:].hex() == "04000000" + "01000000" + "01000000" + "01" + "0200000000000000"
    assert native.stat_reply(reply) == decode("StatReply", reply)


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
        assert crc32c(data) == expected


def _listed(value: Any) -> Any:
    """A decoded message in lists, as the two codecs use lists and tuples for the same.

    Without further fields of later versions: there are none, and only one of the codecs keeps them.
    """
    if getattr(value, "further", None) == b"":
        value = value[:-1]
    return [*map(_listed, value)] if isinstance(value, (list, tuple)) else value


@pytest.mark.parametrize("method", METHODS)
def test_native_codec_reads_golden_replies(method: str) -> None:
    for each in exchanges():
        if each.method == method and each.code != "OK":
            assert native.refusal(each.reply) == decode("RefusalReply", each.reply)
        elif each.method == method and hasattr(native, f"{method}_reply"):
            ours = decode(METHODS[method].reply, each.reply)
            theirs = getattr(native, f"{method}_reply")(each.reply)
            assert theirs._fields == ours._fields
            assert _listed(theirs) == _listed(ours)
