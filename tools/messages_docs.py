"""The tables of ``docs/formats/wire.md``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tools.codes import Constant

_KINDS = {1: "reads", 3: "changes", 7: "adds data"}
_RULES = {1: "a name", 2: "a name or empty", 3: "an address"}
_WORDS = {2**64 - 1: "2^64 - 1", 2**64 - 2: "2^64 - 2", 2**63: "2^63", 2**63 - 1: "2^63 - 1"}
_WIDEST = {"u8": 2**8 - 1, "u16": 2**16 - 1, "u32": 2**32 - 1, "u64": 2**64 - 1}


def _number(value: int) -> str:
    return _WORDS.get(value, f"{value:,}")


def _bounds(field: dict[str, Any]) -> str:
    kind, low, high = field["type"], field["min"], field["max"]
    widest = _WIDEST.get(kind, 2**64 - 1)
    if field["rule"] and kind == "string":
        return _RULES[field["rule"]]
    if field["each"] or field["raw"] or (low == 0 and high >= widest):
        return ""
    if high >= widest:
        return f"at least {_number(low)}"
    return f"at most {_number(high)}" if low == 0 else f"{_number(low)} to {_number(high)}"


def _type(field: dict[str, Any]) -> str:
    kind, element = field["type"], field["element"]
    if field["raw"] and field["each"]:
        return "u8[16] × n"
    if field["raw"]:
        return f"u8[{field['max']}]"
    return {
        "enum": "u8",
        "optional": "u8, u64",
        "column": f"{element} × n",
        "list": "list of names" if field["rule"] else f"list of {element}",
        "map": "map of strings",
    }.get(kind, kind)


def _fields(fields: Sequence[dict[str, Any]]) -> str:
    rows = []
    for field in fields:
        notes = [_bounds(field)]
        if field["version"] > 1:
            heeded = f", needed above {field['min']}" if field["heeded"] else ""
            notes.append(f"since version {field['version']}{heeded}")
        said = ", ".join(filter(None, notes))
        rows.append(f"{field['name']} {_type(field)}" + (f" ({said})" if said else ""))
    return ", ".join(rows) or "–"


def wire_tables(described: dict[str, Any], codes: Sequence[Constant]) -> dict[str, str]:
    """Return the tables by the names of their markers in the page."""
    structs = described["structs"]
    methods = ["| method | | request | reply |\n| --- | --- | --- | --- |\n"]
    methods += [
        f"| {each['name']} | {_KINDS[each['flags']]} | {each['request']} | {each['reply']} |\n"
        for each in described["methods"]
    ]
    messages = ["| message | fields |\n| --- | --- |\n"]
    messages += [f"| {name} | {_fields(fields)} |\n" for name, fields in structs.items()]
    rows = ["| code | name | the number that comes with it |\n| --- | --- | --- |\n"]
    rows += [f"| {each.value} | {each.name} | {each.meaning} |\n" for each in codes]
    return {"methods": "".join(methods), "messages": "".join(messages), "codes": "".join(rows)}
