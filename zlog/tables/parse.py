"""Makes columns from entries in Arrow's memory, as ``zlog table tail --parse`` does."""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa

from zlog.errors import ZlogError
from zlog.tables.common import check_groups, check_new, compiled, function_of, kind_of
from zlog.tables.schema import declared, from_json, from_text, or_none

Parser = Callable[[pa.Table], pa.Table]
"""Adds columns to a table of entries. All rows stay, even if they do not match."""


def unparsed(entries: pa.Table) -> pa.Table:
    """Return the table as it is."""
    return entries


def parser_of(how: str | None, schema: str | None) -> Parser:
    """Return the parser for the options ``--parse`` and ``--schema``: see :func:`kind_of`.

    Raises:
        ValueError: an argument is invalid, or running the file fails.
        OSError: reading the file fails.
    """
    kind = kind_of(how, schema)
    fields = [] if schema is None else declared(schema)
    if how is None:
        return unparsed
    if kind == "json":
        return _rows_parser(fields, _json_reader(fields))
    return _file_parser(how) if kind == "file" else _pattern_parser(how, fields)


def _rows_parser(fields: list[pa.Field], read: Callable[[str], Any]) -> Parser:
    """Return a parser that gets the values of each entry as a dict, or None if nothing matches."""
    check_new(each.name for each in fields)
    kind = pa.struct(fields)

    def parse(entries: pa.Table) -> pa.Table:
        # Bytes that are not UTF-8 become U+FFFD.
        parsed = [
            pa.array([read(each.decode("utf-8", "replace")) for each in chunk.to_pylist()], kind)
            for chunk in entries["data"].chunks
        ]
        for field, column in zip(fields, pa.chunked_array(parsed, kind).flatten(), strict=True):
            entries = entries.append_column(field, column)
        return entries

    return parse


def _json_reader(fields: list[pa.Field]) -> Callable[[str], Any]:
    decode, convert = json.JSONDecoder(parse_float=Decimal).raw_decode, from_json(pa.struct(fields))

    def read(text: str) -> Any:
        try:
            value, _ = decode(text.lstrip(" \t\r\n"))
        except (ValueError, RecursionError):
            return None
        return or_none(convert, value)

    return read


def _pattern_parser(pattern: str, typed: list[pa.Field]) -> Parser:
    search, groups = compiled(pattern).search, compiled(pattern).groupindex
    check_groups([each.name for each in typed], groups)
    types = {each.name: each for each in typed}
    fields = [types.get(name, pa.field(name, pa.string())) for name in groups]
    converts = [(each.name, from_text(each.type)) for each in fields]

    def read(text: str) -> Any:
        found = search(text)
        return found and {name: or_none(each, found[name] or "") for name, each in converts}

    return _rows_parser(fields, read)


def _file_parser(path: str) -> Parser:
    function = function_of(path)

    def parse(entries: pa.Table) -> pa.Table:
        try:
            table = function(entries)
        except Exception as error:
            raise ZlogError(
                f"parse() of {path}: {type(error).__name__}: {error}",
                hint="--debug shows where it failed.",
            ) from error
        if not isinstance(table, pa.Table):
            raise ValueError(f"parse() of {path} must return a pyarrow.Table, not {table!r}")
        return table

    return parse
