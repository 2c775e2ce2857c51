"""A damaged file of the embedded store, as a failing disk leaves it: what is lost, and repaired."""

from __future__ import annotations

from pathlib import Path

import pytest

import zlog

from . import wire
from .damage import EIO, EPOCH, POSITIONS, calls, flip, lost, make, salvaged
from .objects import Stripe
from .replies import Answer, Code
from .stored import HEADER, damage_file, door_to


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where an embedded store lives."""
    return tmp_path / "store"


@pytest.mark.parametrize(
    ("what", "old", "new", "expected"),
    [
        ("data in a record", b"zero", b"ZERO", [0]),
        ("the writer in a record", b"w" * 16 + wire.u64(5), b"W" * 16 + wire.u64(5), [5]),
        ("data in the bytestream", b"B" * 9_000, b"B" * 8_999 + b"C", [9]),
    ],
)
def test_damaged_file(folder: Path, what: str, old: bytes, new: bytes, expected: list[int]) -> None:
    with zlog.connect(folder.as_uri()) as store:
        stripe = make(store, "object")
        sound = [salvaged(stripe, position=position) for position in expected]
    assert damage_file(folder, old, new) >= 1, what
    with zlog.connect(folder.as_uri()) as store:
        stripe = Stripe(store, "object")
        assert lost(stripe.read(EPOCH, POSITIONS)) == expected, what
        for position, offered in zip(expected, sound, strict=True):
            damaged = Answer(Code.LOST, position) if "writer" in what else EIO
            assert stripe.salvage(position=position) == damaged
            assert stripe.heal(*offered).code == Code.OK
        assert lost(stripe.read(EPOCH, POSITIONS)) == [], what


def test_a_damaged_header_in_the_embedded_store_is_an_error(folder: Path) -> None:
    with zlog.connect(folder.as_uri()) as store, zlog.connect("mem://") as twin:
        make(store, "object")
        make(twin, "object")
        with door_to(twin) as door:
            header = door.load("object").attrs[HEADER]
    assert damage_file(folder, header, flip(header, 20)) >= 1
    with zlog.connect(folder.as_uri()) as store:
        stripe = Stripe(store, "object")
        for method, answer in calls(stripe):
            assert answer == EIO, method
        assert stripe.damaged().value.names == (HEADER,)
        assert stripe.heal(HEADER, header).code == Code.OK
        assert lost(stripe.read(EPOCH, POSITIONS)) == []
