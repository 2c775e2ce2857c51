"""What a space appends to its log, as bytes: docs/formats/objects.md."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import msgspec

from zlog.objects.errors import NewerRecord, Stopped, UnknownRecord

VERSION = 1
"""Of all records; a record of another one stops those that do not know it."""

ID_BYTES_MAX = 128
"""An id of a transaction, in UTF-8."""

Version = Literal[1]


class Op(msgspec.Struct, array_like=True, forbid_unknown_fields=True, gc=False):
    """A command to one object; ``version`` is that of the object's class."""

    kind: str
    object: str
    command: Any
    version: int = 1


class Write(msgspec.Struct, array_like=True, forbid_unknown_fields=True, gc=False, tag=0):
    """Commands that need no answer."""

    version: Version
    ops: list[Op]


class Commit(msgspec.Struct, array_like=True, forbid_unknown_fields=True, gc=False, tag=1):
    """Commands that take effect once, and only if what was read still holds.

    Attributes:
        id: of the transaction.
        attempt: each time that it is made anew has a higher one.
        snapshot: of what was read: all entries below this position had been applied.
        reads: object, key or None for the whole object, and the version that was read.
        ranges: object, first key, end or None for none, and how many keys there were.
    """

    version: Version
    ops: list[Op]
    id: str
    attempt: int
    snapshot: int
    reads: list[tuple[str, str | None, int]]
    ranges: list[tuple[str, str, str | None, int]]


class Mark(msgspec.Struct, array_like=True, forbid_unknown_fields=True, gc=False, tag=2):
    """Where a checkpoint is taken: of the state with all entries up to this one."""

    version: Version
    id: str


class Manifest(msgspec.Struct, array_like=True, forbid_unknown_fields=True, gc=False, tag=3):
    """A checkpoint that is complete.

    Attributes:
        id: of its mark; empty for the first one of a space, which has none.
        start: it has all that entries below this position have done.
        pieces: positions of its pieces, in their order.
        size: their bytes together.
        digest: of these bytes.
        objects: digests of the states of objects of user-defined types, by name.
    """

    version: Version
    id: str
    start: int
    pieces: list[int]
    size: int
    digest: str
    objects: dict[str, str]


Record = Write | Commit | Mark | Manifest

Read = tuple[str, "str | None", int]
Range = tuple[str, str, "str | None", int]

_decoder = msgspec.msgpack.Decoder(Record)
_encoder = msgspec.msgpack.Encoder()
encode = _encoder.encode
encode_canonical = msgspec.msgpack.Encoder(order="deterministic").encode
decode_record = _decoder.decode
DecodeError = msgspec.DecodeError


class Tags(NamedTuple):
    """The tags of a space's entries.

    Attributes:
        space: of all records.
        checkpoint: of manifests, beside the first.
        piece: of the pieces of checkpoints, which are no records.
    """

    space: str
    checkpoint: str
    piece: str

    @classmethod
    def of(cls, name: str) -> Tags:
        """Return those of a space."""
        space = f"objects/{name}"
        return cls(space, f"{space}/checkpoint", f"{space}/piece")


def encode_write(ops: Iterable[tuple[Any, ...]]) -> bytes:
    """Return a record of commands; each is what an `Op` has, as a tuple."""
    return encode((0, VERSION, tuple(ops)))


def encode_commit(
    ops: Iterable[tuple[Any, ...]],
    id: str,
    attempt: int,
    snapshot: int,
    reads: Sequence[Read] = (),
    ranges: Sequence[Range] = (),
) -> bytes:
    """Return a record of a transaction."""
    return encode((1, VERSION, tuple(ops), id, attempt, snapshot, tuple(reads), tuple(ranges)))


def encode_mark(id: str) -> bytes:
    """Return the record of a place where a checkpoint is taken."""
    return encode((2, VERSION, id))


def encode_manifest(
    id: str, start: int, pieces: Sequence[int], size: int, digest: str, objects: Mapping[str, str]
) -> bytes:
    """Return the record that makes a checkpoint of its pieces."""
    return encode((3, VERSION, id, start, pieces, size, digest, objects))


def refusal(data: bytes | memoryview, position: int, error: Exception) -> Stopped:
    """Return why an entry is no record that this version can read."""
    try:
        found = msgspec.msgpack.decode(data)
        kind, version = found[0], found[1]
        newer = type(kind) is int and type(version) is int and (kind > 3 or version > VERSION)
    except Exception:  # noqa: BLE001 - whatever is wrong with it, it is no record
        newer = False
    if newer:
        return NewerRecord(
            f"the entry at {position} is a record of a newer version", position=position
        )
    return UnknownRecord(
        f"the entry at {position} is no record of a space: {error}", position=position
    )


def digest(data: bytes | msgspec.Raw = b"") -> hashlib.blake2b:
    """Return what sums up bytes; these are the first ones."""
    return hashlib.blake2b(data, digest_size=16)


_SCALARS = frozenset({str, int, float, bool, type(None)})
_INT_MIN, _INT_MAX = -(2**63), 2**64 - 1


NESTING_MAX = 100
"""Lists and dictionaries in each other. More could be written, and then not be read by a client
that has less of its stack left."""


def owned(value: Any, levels: int = NESTING_MAX) -> Any:
    """Return a copy of a value that an object may keep.

    Raises:
        TypeError, ValueError: it is not what JSON can say: None, bool, int of 64 bits, finite
            float, str, list, or dict of those with keys of str; or has more ``levels`` of them.
    """
    kind = type(value)
    if kind in _SCALARS:
        if kind is int and not _INT_MIN <= value <= _INT_MAX:
            raise ValueError(f"{value} takes more than 64 bits")
        if kind is float and not value - value == 0:
            raise ValueError(f"{value} is no finite number")
        return value
    if not levels:
        raise ValueError(f"a value has up to {NESTING_MAX} lists and dictionaries in each other")
    if isinstance(value, dict):
        for key in value:
            if type(key) is not str:
                raise TypeError(f"keys of dictionaries are str, not {key!r}")
        return {key: owned(each, levels - 1) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [owned(each, levels - 1) for each in value]
    raise TypeError(
        f"values are what JSON can say (None, bool, int, float, str, list, dict), not {value!r}"
    )


def given(value: Any) -> Any:
    """Return a value of a state as its caller's own: changes to it change nothing else."""
    kind = type(value)
    if kind is dict:
        return {key: given(each) for key, each in value.items()}
    if kind is list:
        return [given(each) for each in value]
    return value


def check_key(key: Any) -> str:
    """Return a key.

    Raises:
        TypeError: it is no text.
    """
    if type(key) is not str:
        raise TypeError(f"a key is a str, not {key!r}")
    return key


def check_number(number: int) -> int:
    """Return what a counter takes.

    Raises:
        TypeError: it is no int.
        ValueError: it takes more than 64 bits.
    """
    if type(number) is not int:
        raise TypeError(f"a counter takes an int, not {number!r}")
    return owned(number)  # type: ignore[no-any-return]
