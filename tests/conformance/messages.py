"""Messages field by field, as the tables of docs/formats/wire.md say that they are.

Nothing here knows more of a message than its specification does, and bounds are not looked at: to
refuse what is outside of them is the host's part. The data behind the fields of a write and of the
reply of a read, and the columns of that reply, are in `requests` and `answers`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..support.programs import REPOSITORY
from . import wire
from .wire import Malformed, Reader

_PAGE = (REPOSITORY / "docs" / "formats" / "wire.md").read_text()
_FIELD = re.compile(  # its name, its kind, and what is said of it
    r"(\w+) (u8, u64|list of \w+|map of strings|[\w\[\]]+(?: × n)?)(?: \(([^)]*)\))?(?:, |$)"
)
_SINCE = re.compile(r"(?:, )?since version (\d+)(?:, needed above (\d))?")
_TEXT = ("a name", "an address")  # what is said of a string that is text
_CODECS: dict[str, tuple[Callable[[Any], bytes], Callable[[Reader], Any]]] = {
    "bool": (wire.u8, Reader.flag),
    "u8": (wire.u8, Reader.u8),
    "u32": (wire.u32, Reader.u32),
    "u64": (wire.u64, Reader.u64),
    "u8, u64": (lambda v: wire.u8(v is not None) + wire.u64(v or 0), Reader.optional_u64),
    "u8[16]": (bytes, lambda reader: reader.take(16)),
    "u8[32]": (bytes, lambda reader: reader.take(32)),
    "string": (wire.blob, Reader.blob),
    "text": (wire.text, Reader.text),
    "names": (wire.text, Reader.text),
}
"""How each kind of field is written and read."""


def _rows(table: str) -> Iterator[list[str]]:
    """The rows of a table, cell by cell."""
    content = _PAGE.partition(f"<!-- generated: {table} -->")[2].partition("<!-- end -->")[0]
    for line in content.strip().splitlines()[2:]:
        yield [cell.strip() for cell in line.strip("|").split("|")]


@dataclass(frozen=True)
class Struct:
    """A message, or an element of a list in one: a tuple of its fields, and what each is.

    Attributes:
        type: the tuple's.
        kinds: as in the specification, and `text` for a string that is a name or an address.
        bounds: what the specification says of each field's values; often nothing.
        version: that of the newest field.
        needed: by number, the versions of the fields that readers of earlier ones refuse, and above
            which value or how many elements they do.
    """

    type: Any
    kinds: tuple[str, ...]
    bounds: tuple[str, ...]
    version: int
    needed: Mapping[int, tuple[int, int]]

    def compat(self, values: Sequence[Any]) -> int:
        """The oldest version whose readers understand these values of its fields."""
        return max(
            (v for at, (v, least) in self.needed.items() if _amount(values[at]) > least), default=1
        )


def _amount(value: Any) -> int:
    return len(value) if isinstance(value, (bytes, list, tuple)) else int(value)


def _struct(name: str, fields: str) -> Struct:
    version = max((int(since) for since, _ in _SINCE.findall(fields)), default=1)
    needed = {}
    for number, (*_, told) in enumerate(_FIELD.findall(fields)):
        if (since := _SINCE.search(told)) and since[2]:
            needed[number] = int(since[1]), int(since[2])
    found = _FIELD.findall(_SINCE.sub("", fields).replace(" ()", ""))
    kinds = tuple("text" if bounds.startswith(_TEXT) else kind for _, kind, bounds in found)
    fields_type = NamedTuple(name, [(field, Any) for field, *_ in found])  # type: ignore[misc]
    bounds = tuple(bounds for *_, bounds in found)
    later = [*zip(kinds, bounds, strict=True)][min(needed, default=len(kinds)) :]
    fields_type.__new__.__defaults__ = tuple(_left_out(*each) for each in later)
    return Struct(fields_type, kinds, bounds, version, needed)


def _left_out(kind: str, bounds: str) -> Any:
    """What a field is without its being said."""
    if kind.startswith("list of ") or kind.endswith(" × n"):
        return ()
    if kind == "string":
        return b""
    return None if kind == "u8, u64" else int(bounds.startswith("1 to"))


@dataclass(frozen=True)
class Method:
    """What a method is sent and answers, and whether it only reads."""

    request: str
    reply: str
    reads: bool


STRUCTS = {name: _struct(name, fields) for name, fields in _rows("messages")}
METHODS = {
    name: Method(request, reply, kind == "reads") for name, kind, request, reply in _rows("methods")
}


def request(method: str, *values: Any, compat: int = wire.COMPAT) -> bytes:
    """A request, with the values of its fields in their order; positions as (striping, positions).

    The last ones may be left out where none or the least is said.
    """
    return encode(METHODS[method].request, *values, compat=compat)


def encode(name: str, *values: Any, compat: int = wire.COMPAT) -> bytes:
    """A message or an element in its frame."""
    struct = STRUCTS[name]
    rest = [*zip(struct.kinds, struct.bounds, strict=True)][len(values) :]
    values = *values, *(_left_out(kind, bounds) for kind, bounds in rest)
    fields = [encode_field(k, v) for k, v in zip(struct.kinds, values, strict=True)]
    return wire.frame(b"".join(fields), struct.version, max(compat, struct.compat(values)))


def encode_field(kind: str, value: Any) -> bytes:
    """A field as its kind is encoded."""
    if kind in _CODECS:
        return _CODECS[kind][0](value)
    if kind == "runs":
        return wire.positions_in(*value)
    if kind.endswith(" × n"):
        return bytes(value) if kind.startswith("u8") else wire.column_u32(value)
    if kind == "map of strings":
        pairs = sorted(value.items())
        return wire.u32(len(pairs)) + b"".join(wire.text(k) + wire.text(v) for k, v in pairs)
    element = kind.removeprefix("list of ")
    if element in _CODECS:
        return wire.u32(len(value)) + b"".join(map(_CODECS[element][0], value))
    return wire.u32(len(value)) + b"".join(encode(element, *each) for each in value)


def decode(name: str, data: bytes) -> Any:
    """The fields of a message, which has not a byte too many."""
    whole = Reader(data)
    found = decode_frame(name, whole)
    whole.done()
    return found


def decode_frame(name: str, reader: Reader) -> Any:
    """The fields of the message or element that comes next."""
    struct = STRUCTS[name]
    compat, fields = reader.frame(struct.version)
    found = struct.type(*(_decoded(kind, fields) for kind in struct.kinds))
    fields.done()
    if compat != struct.compat(found):
        raise Malformed(f"{found} with compat {compat}")
    return found


def _decoded(kind: str, reader: Reader) -> Any:
    if kind in _CODECS:
        return _CODECS[kind][1](reader)
    if kind == "map of strings":
        return {reader.text(): reader.text() for _ in range(reader.u32())}
    element = kind.removeprefix("list of ")
    if element == kind:
        raise Malformed(f"no field of {kind} is read here")
    if element in STRUCTS:
        return tuple(decode_frame(element, reader) for _ in range(reader.u32()))
    return tuple(_decoded(element, reader) for _ in range(reader.u32()))
