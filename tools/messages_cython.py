"""Writes the part of ``zlog/_native/messages.pyx`` that follows from the messages in C++.

``python tools/messages_cython.py DESCRIPTION OUTPUT``: the first is what ``cls_zlog/describe``
prints. The build runs it, so it needs the standard library only.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Field = dict[str, Any]
Structs = dict[str, list[Field]]

_WITH_ENTRIES = {
    "WriteRequest",
    "AppendRequest",
    "Fullness",
    "ReadReply",
    "SelectReply",
    "TagsListReply",
    "VerifyReply",
}
"""Other modules encode and decode these, many entries at once."""

_STORED_AGAIN = ("View", "Stripe", "ExclusiveWriter", "EntryMac")
"""Clients keep further fields of these as the last value: see ``further_of``."""

_FURTHER: Field = {"name": "further", "type": "further", "rule": 0, "version": 1}

_INTEGERS = {f"u{bits}": f"uint{bits}_t" for bits in (8, 16, 32, 64)}


def _of_messages(field: Field) -> bool:
    return bool(field["type"] == "list" and field["element"] != "string")


def _cpp_type(field: Field) -> str:
    """Return the type of a C++ field, as Cython has it. Assignments turn views into strings."""
    kind, element = field["type"], field.get("element")
    if kind == "list":
        return "vector[string]" if element == "string" else f"vector[Cpp{element}]"
    named = {
        "string": "string_view",
        "runs": "Runs",
        "map": "cpp_map[string, string]",
        "optional": "optional[uint64_t]",
        "further": "Further",
        "enum": f"Cpp{element}",
        "bool": "cbool",
    }
    return named.get(kind) or _INTEGERS[kind]


def _python_type(field: Field, *, encode: bool = False) -> str:
    """Return the type of a field's value, given to an encoder or returned by a decoder."""
    kind, text = field["type"], "str" if field["rule"] else "bytes"
    if kind == "list":
        element = field["element"] if _of_messages(field) else text
        return f"Sequence[{element}]" if encode else f"list[{element}]"
    named = {
        "string": text,
        "further": "bytes",
        "map": "Mapping[str, str]" if encode else "dict[str, str]",
        "optional": "int | None",
        "bool": "bool",
    }
    return named.get(kind, "int")


def _parameter(field: Field, *, required: bool) -> str:
    name, kind = field["name"], field["type"]
    if kind == "runs":
        return "striping: int, positions: Sequence[int]"
    if not required:
        wanted = _python_type(field, encode=True).removesuffix(" | None")
        return f"{name}: {wanted} | None = None"
    if kind == "bool":
        return f"bint {name}"
    return f"{name}: {_python_type(field, encode=True)}"


def _assigned(field: Field) -> str:
    """Return the statement that sets a field from the variable of its name."""
    name, kind = field["name"], field["type"]
    if _of_messages(field):
        return f"for each in {name}: message.{name}.push_back(taken_{field['element']}(each))"
    value = {
        "bool": name,
        "list": name,
        "runs": "runs_of(PyNumber_Index(striping), positions)",
        "string": f"{'text' if field['rule'] else 'bytes'}_view({name})",
        "map": f"map_of({name})",
        "optional": f"optional_of({name})",
        "enum": f"<Cpp{field.get('element')}> <uint8_t> PyNumber_Index({name})",
        "further": f"further_of({name})",
    }
    return f"message.{name} = {value.get(kind, f'PyNumber_Index({name})')}"


def _made(field: Field) -> str:
    """Return the expression for a field as Python's value."""
    name, kind = f"message.{field['name']}", field["type"]
    if _of_messages(field):
        return f"[made_{field['element']}({name}[i]) for i in range({name}.size())]"
    function = {
        "string": "text_of" if field["rule"] else "bytes_of",
        "list": "texts_of" if field["rule"] else "",
        "map": "text_map",
        "optional": "or_none",
        "enum": "<uint8_t> ",
        "further": "further_bytes",
    }.get(kind, "")
    return f"{function}({name})"


def _declarations(names: list[str], structs: Structs) -> Iterator[str]:
    yield 'cdef extern from "cls_zlog/method_table.h" namespace "zlog" nogil:'
    enums = {
        field["element"] for name in names for field in structs[name] if field["type"] == "enum"
    }
    for name in sorted(enums):
        yield f'    ctypedef uint8_t Cpp{name} "zlog::{name}"'
    for name in names:
        yield f'    cdef cppclass Cpp{name} "zlog::{name}":'
        yield from (f"        {_cpp_type(field)} {field['name']}" for field in structs[name])
        yield "        pass"


def _tuple_class(name: str, fields: list[Field]) -> Iterator[str]:
    names = [field["name"] for field in fields]
    typed = "; ".join(f"{field['name']}: {_python_type(field)}" for field in fields)
    yield f"{name} = namedtuple({name!r}, {names}, module=__name__)  # NamedTuple: {typed}"
    yield f"cdef object made_{name}(const Cpp{name}& message):"
    yield f"    return {name}({', '.join(map(_made, fields))})"


def _taker(name: str, fields: list[Field]) -> Iterator[str]:
    yield f"cdef Cpp{name} taken_{name}(values) except *:"
    yield f"    cdef Cpp{name} message"
    yield f"    {', '.join(field['name'] for field in fields)}, = values"
    yield from (f"    {_assigned(field)}" for field in fields)
    yield "    return message"


def _encoder(function: str, name: str, fields: list[Field]) -> Iterator[str]:
    required = max((i for i, field in enumerate(fields) if field["version"] == 1), default=-1)
    parameters = [_parameter(field, required=i <= required) for i, field in enumerate(fields)]
    yield f"def {function}({', '.join(parameters)}) -> bytes:"
    yield f"    cdef Cpp{name} message"
    yield "    cdef string out"
    for i, field in enumerate(fields):
        yield (
            "    "
            + (f"if {field['name']} is not None: " if i > required else "")
            + _assigned(field)
        )
    yield f'    valid(encode_message(message, &out), "{function.removeprefix("encode_")}")'
    yield "    return out"


def _decoder(function: str, name: str) -> Iterator[str]:
    what = function.removeprefix("decode_").replace("_reply", " reply")
    yield f"def {function}(reply: ReplyBytes) -> {name}:"
    yield f"    cdef Cpp{name} message"
    yield f'    well_formed(<int> decode_message(reply_view(reply), &message), "{what}")'
    yield f"    return made_{name}(message)"


def _with_parts(names: list[str], structs: Structs) -> list[str]:
    """Return these messages, each after the messages in its lists."""
    out: dict[str, None] = {}
    for name in names:
        parts = [field["element"] for field in structs[name] if _of_messages(field)]
        out |= dict.fromkeys([*_with_parts(parts, structs), name])
    return [*out]


def code(described: dict[str, Any]) -> str:
    """Return classes for the messages, and the functions that encode and decode them."""
    structs: Structs = dict(described["structs"])
    for name in _STORED_AGAIN:
        structs[name] = [*structs[name], _FURTHER]
    methods = described["methods"]
    encoded = {"encode_view": "View"} | {each["name"]: each["request"] for each in methods}
    decoded = {"refusal": "RefusalReply", "decode_view": "View"}
    decoded |= {f"{each['name']}_reply": each["reply"] for each in methods}
    encoders = {call: name for call, name in encoded.items() if name not in _WITH_ENTRIES}
    decoders = {
        call: name for call, name in decoded.items() if name not in _WITH_ENTRIES and structs[name]
    }
    taken = _with_parts([*encoders.values()], structs)
    made = _with_parts([*decoders.values()], structs)
    blocks = [
        _declarations(sorted({*taken, *made}), structs),
        *(_tuple_class(name, structs[name]) for name in made),
        *(_taker(name, structs[name]) for name in taken if name not in encoders.values()),
        *(_encoder(call, name, structs[name]) for call, name in encoders.items()),
        *(_decoder(call, name) for call, name in decoders.items()),
    ]
    return "\n\n".join("\n".join(block) for block in blocks) + "\n"


if __name__ == "__main__":
    Path(sys.argv[2]).write_text(code(json.loads(Path(sys.argv[1]).read_text())))
