"""Columns declared as in SQL. Text and JSON are converted to their types as Spark converts them."""

from __future__ import annotations

import json
import re
from base64 import b64decode
from collections.abc import Callable
from datetime import date, datetime, timedelta, timezone
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

import pyarrow as pa
from pyarrow import types

Convert = Callable[[Any], Any]

_KINDS = {
    **dict.fromkeys(("byte", "tinyint"), pa.int8()),
    **dict.fromkeys(("short", "smallint"), pa.int16()),
    **dict.fromkeys(("int", "integer"), pa.int32()),
    **dict.fromkeys(("long", "bigint"), pa.int64()),
    **dict.fromkeys(("float", "real"), pa.float32()),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
}
_COLUMN = re.compile(r"\s*(`[^`]+`|\w+)\s*[:\s]\s*(\w+)\s*(?:[<(](.+)[>)])?\s*", re.DOTALL)

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_BLANK = "".join(map(chr, [*range(33), 127]))
_WHOLE = re.compile(r"[+-]?\d+", re.ASCII)
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_FLOAT = re.compile(rf"({_NUMBER.pattern})[dDfF]?|(?i:[+-]?inf(?:inity)?|nan)", re.ASCII)
_DAY = r"\+?(\d{4})(?:-(\d\d?)(?:-(\d\d?)"
_DATE = re.compile(rf"{_DAY}(?:[ T].*)?)?)?", re.ASCII | re.DOTALL)
_ZONE = r"(?: ?(?:Z|UTC|GMT)?(?:([+-]\d\d?)(?::?(\d\d))?)?)?"
_CLOCK = rf"(\d\d?)(?::(\d\d?)(?::(\d\d?)(?:\.(\d*))?{_ZONE})?)?"
_TIMESTAMP = re.compile(rf"{_DAY}(?:[ T]{_CLOCK})?)?)?", re.ASCII)
_FLAGS = {
    **dict.fromkeys(("t", "true", "y", "yes", "1"), True),
    **dict.fromkeys(("f", "false", "n", "no", "0"), False),
}


def declared(schema: str) -> list[pa.Field]:
    """Return the columns of a declaration such as ``time timestamp, tags array<string>``.

    Raises:
        ValueError: the syntax is wrong, or a type is unknown.
    """
    fields, depth, parts = [], 0, [""]
    for character in schema:
        depth += (character in "<(") - (character in ">)")
        parts += [""] if character == "," and not depth else [parts.pop() + character]
    for part in parts:
        column = _COLUMN.fullmatch(part)
        kind = column and _kind(column[2].lower(), column[3])
        if column is None or kind is None:
            raise ValueError(
                f"--schema: {part.strip()!r} is not a column with a type: write 'id long, price"
                f" decimal(9,2)'; the types are decimal, {', '.join(_KINDS)}, array<string> and"
                " struct<id: long>"
            )
        fields.append(pa.field(column[1].strip("`"), kind))
    return fields


def _kind(word: str, inner: str | None) -> pa.DataType | None:
    if word in ("decimal", "dec", "numeric"):
        return pa.decimal128(*map(int, (inner or "10").split(",")))
    if inner is None:
        return _KINDS.get(word)
    if word == "array":
        return pa.list_(declared(f"item {inner}")[0].type)
    return pa.struct(declared(inner)) if word == "struct" else None


def or_none(convert: Convert, value: Any) -> Any:
    """Return a converted value, or None if it does not have the type."""
    try:
        return None if value is None else convert(value)
    except (ArithmeticError, LookupError, TypeError, ValueError):
        return None


def from_text(kind: pa.DataType) -> Convert:
    """Return a function that converts text as ``try_cast`` does, and raises if it is wrong."""
    if types.is_string(kind):
        return str
    if types.is_binary(kind):
        return str.encode
    convert = _parser(kind)
    return lambda text: convert(str.strip(text, _BLANK))


def _parser(kind: pa.DataType) -> Convert:
    if types.is_boolean(kind):
        return lambda text: _FLAGS[text.lower()]
    if types.is_integer(kind):
        return lambda text: pa.scalar(int(_match(_WHOLE, text)[0]), kind).as_py()
    if types.is_floating(kind):
        return lambda text: float(_match(_FLOAT, text)[1] or text)
    if types.is_date(kind):
        return lambda text: date(*(int(each or 1) for each in _match(_DATE, text).groups()))
    if types.is_timestamp(kind):
        return _timestamp
    unit, context = Decimal(1).scaleb(-kind.scale), Context(kind.precision, ROUND_HALF_UP)
    return lambda text: context.quantize(Decimal(_match(_NUMBER, text)[0]), unit)


def _match(pattern: re.Pattern[str], text: str) -> re.Match[str]:
    found = pattern.fullmatch(text)
    if found is None:
        raise ValueError(text)
    return found


def _timestamp(text: str) -> datetime:
    *day, hour, minute, second, fraction, hours, minutes = _match(_TIMESTAMP, text).groups()
    year, month, number = (int(each or 1) for each in day)
    clock = int(hour or 0), int(minute or 0), int(second or 0), int(f"{fraction or ''}000000"[:6])
    east = timedelta(hours=int(hours or 0), minutes=int(f"{(hours or '+')[0]}{minutes or 0}"))
    return datetime(year, month, number, *clock, tzinfo=timezone.utc) - east


def from_json(kind: pa.DataType) -> Convert:
    """Return a function that converts decoded JSON as ``from_json`` does, or raises.

    Numbers with a fraction must have been decoded as Decimal.
    """
    if types.is_struct(kind):
        inner = [(each.name, from_json(each.type)) for each in kind]
        return lambda value: {
            name: or_none(convert, _checked(value, dict).get(name)) for name, convert in inner
        }
    if types.is_list(kind):
        item = from_json(kind.value_type)
        return lambda value: [None if it is None else item(it) for it in _checked(value, list)]
    if types.is_string(kind):
        return _json_text
    if types.is_binary(kind):
        return lambda value: b64decode(_checked(value, str), validate=True)
    convert = from_text(kind)
    if types.is_timestamp(kind):
        return lambda value: (
            _EPOCH + timedelta(seconds=value) if type(value) is int else convert(value)
        )
    expected = next(kinds for is_kind, kinds in _EXPECTED if is_kind(kind))
    return lambda value: convert(str(_checked(value, *expected)))


_EXPECTED = (
    (types.is_boolean, (bool,)),
    (types.is_integer, (int,)),
    (types.is_floating, (int, Decimal, float)),
    (types.is_decimal, (int, Decimal, str)),
    (types.is_date, (str,)),
)


def _checked(value: Any, *kinds: type) -> Any:
    if type(value) not in kinds:
        raise TypeError
    return value


def _json_text(value: Any) -> str:
    if not isinstance(value, str):
        value = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=float)
        if value in ("NaN", "Infinity", "-Infinity"):
            return f'"{value}"'
    # A string of JSON may have half of a surrogate pair, which UTF-8 cannot express.
    return str(value if value.isascii() else value.encode("utf-8", "replace").decode())
