"""The records that a space appends to its log (docs/formats/objects.md)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import msgspec

from zlog.objects.errors import NewerRecord, Stopped, UnknownRecord

VERSION = 1
"""The version of all records. A replica stops at a record of an unknown version."""

ID_BYTES_MAX = 128
"""The maximum size of a transaction's id in bytes of UTF-8."""

Version = Literal[1]


class Op(msgspec.Struct, array_like=True, forbid_unknown_fields=True, gc=False):
    """A command to one object; ``version`` is the version of the object's class."""

    kind: str
    object: str
    command: Any
    version: int = 1


class Write(msgspec.Struct, array_like=True, forbid_unknown_fields=True, gc=False, tag=0):
    """Commands without a result."""

    version: Version
    ops: list[Op]


class Commit(msgspec.Struct, array_like=True, forbid_unknown_fields=True, gc=False, tag=1):
    """A transaction, whose commands take effect only if nothing that it has read has changed.

    Attributes:
        id: the transaction's id. All attempts have the same id, and at most one takes effect.
        attempt: the number of the attempt. Later attempts have higher numbers.
        snapshot: the transaction has read the state after all entries below this position.
        reads: for each value that was read, the object, the key (None for the whole object), and
            the version.
        ranges: for each range that was read, the object, the first key, the end (or None), and the
            number of keys.
    """

    version: Version
    ops: list[Op]
    id: str
    attempt: int
    snapshot: int
    reads: list[tuple[str, str | None, int]]
    ranges: list[tuple[str, str, str | None, int]]


class Mark(msgspec.Struct, array_like=True, forbid_unknown_fields=True, gc=False, tag=2):
    """The mark of a checkpoint, which has the state with all entries up to this one."""

    version: Version
    id: str


class Manifest(msgspec.Struct, array_like=True, forbid_unknown_fields=True, gc=False, tag=3):
    """The record that completes a checkpoint and lists its pieces.

    Attributes:
        id: the id of the mark at which the snapshot was taken; empty for a space's first
            checkpoint, which needs no mark.
        start: the checkpoint contains the effects of all entries below this position.
        pieces: the positions of the pieces, in order.
        size: the size of all pieces in bytes.
        digest: the digest of all pieces.
        objects: maps the name of each object of a user-defined type to its digest.
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


_OBJECT_TAGS_MAX = 63
"""The number of objects that one record can name in its tags."""


class Tags(NamedTuple):
    """The tags by which the entries of one space are found in the log.

    Attributes:
        space: the tag of all records, among them the manifests of checkpoints.
        checkpoint: the second tag of each manifest.
        piece: the tag of a checkpoint's pieces, which are not records.
    """

    space: str
    checkpoint: str
    piece: str

    @classmethod
    def of(cls, name: str) -> Tags:
        """Return the tags of a space."""
        space = f"objects/{name}"
        return cls(space, f"{space}/checkpoint", f"{space}/piece")

    def of_object(self, name: str) -> str:
        """Return the tag of records that change an object, in a log ordered by its object."""
        return f"{self.space}/{hashlib.blake2b(name.encode(), digest_size=5).hexdigest()}"

    def of_changes(self, ops: Iterable[tuple[Any, ...]]) -> tuple[str, ...]:
        """Return the tags of a record that changes objects, in a log ordered by its object."""
        names = {op[1] for op in ops}
        objects = map(self.of_object, names) if len(names) <= _OBJECT_TAGS_MAX else ()
        return (self.space, *objects)


class ReadSet(NamedTuple):
    """What a transaction has read.

    Attributes:
        reads: objects and keys, with their versions.
        ranges: ranges of keys, with the number of keys in each.
        snapshot: the position below which entries had been applied.
    """

    reads: Sequence[Read]
    ranges: Sequence[Range]
    snapshot: int

    @property
    def names(self) -> set[str]:
        """The names of the objects."""
        return {name for name, *_ in self.reads} | {name for name, *_ in self.ranges}


def encode_write(ops: Iterable[tuple[Any, ...]]) -> bytes:
    """Return a record of commands, each a tuple with the fields of an `Op`."""
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
    """Return the record that marks a checkpoint."""
    return encode((2, VERSION, id))


def encode_manifest(
    id: str, start: int, pieces: Sequence[int], size: int, digest: str, objects: Mapping[str, str]
) -> bytes:
    """Return the record that completes a checkpoint."""
    return encode((3, VERSION, id, start, pieces, size, digest, objects))


def refusal(data: bytes | memoryview, position: int, error: Exception) -> Stopped:
    """Return the error that an entry is not a record this version can read."""
    try:
        found = msgspec.msgpack.decode(data)
        kind, version = found[0], found[1]
        newer = type(kind) is int and type(version) is int and (kind > 3 or version > VERSION)
    except Exception:  # noqa: BLE001 - any error means that it is not a record
        newer = False
    if newer:
        return NewerRecord(
            f"the entry at {position} is a record of a newer version", position=position
        )
    return UnknownRecord(
        f"the entry at {position} is not a record of a space: {error}", position=position
    )


def digest(data: bytes | msgspec.Raw = b"") -> hashlib.blake2b:
    """Return a hash that begins with these bytes."""
    return hashlib.blake2b(data, digest_size=16)


_SCALARS = frozenset({str, int, float, bool, type(None)})
_INT_MIN, _INT_MAX = -(2**63), 2**64 - 1


NESTING_MAX = 100
"""The maximum depth of lists and dictionaries. A client with little stack left could not decode
deeper ones."""


def owned(value: Any, levels: int = NESTING_MAX) -> Any:
    """Copy a JSON value, so that the copy does not change when the caller changes the original.

    Raises:
        TypeError, ValueError: the value is not None, a bool, an int of 64 bits, a finite float, a
            str, a list, or a dict with str keys, or it is nested more than ``levels`` deep.
    """
    kind = type(value)
    if kind in _SCALARS:
        if kind is int and not _INT_MIN <= value <= _INT_MAX:
            raise ValueError(f"{value} does not fit in 64 bits")
        if kind is float and not value - value == 0:
            raise ValueError(f"{value} is not a finite number")
        return value
    if not levels:
        raise ValueError(f"lists and dictionaries are nested more than {NESTING_MAX} levels deep")
    if isinstance(value, dict):
        for key in value:
            if type(key) is not str:
                raise TypeError(f"dictionary keys must be strings, not {key!r}")
        return {key: owned(each, levels - 1) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [owned(each, levels - 1) for each in value]
    raise TypeError(
        f"a value must be JSON (None, bool, int, float, str, list, dict), not {value!r}"
    )


def given(value: Any) -> Any:
    """Return a copy of a value of a state."""
    kind = type(value)
    if kind is dict:
        return {key: given(each) for key, each in value.items()}
    if kind is list:
        return [given(each) for each in value]
    return value


def check_key(key: Any) -> str:
    """Check a key, and return it. Raises TypeError if it is not a str."""
    if type(key) is not str:
        raise TypeError(f"a key must be a string, not {key!r}")
    return key


def check_number(number: int) -> int:
    """Return an int. Raises ValueError if it exceeds 64 bits, and TypeError for other types."""
    if type(number) is not int:
        raise TypeError(f"a counter accepts only an int, not {number!r}")
    return owned(number)  # type: ignore[no-any-return]
