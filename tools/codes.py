"""Writes ``zlog/_base/codes.py``, which has the codes and limits of the object class.

``python tools/codes.py DESCRIPTION OUTPUT``: the first is what ``cls_zlog/describe`` prints. Codes
and limits are read from their headers. The build runs it, so it needs the standard library only.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_BASE = Path(__file__).parents[1] / "cls_zlog" / "base"
_READS = 1
"""The flags of a method that changes nothing."""


@dataclass(frozen=True)
class Constant:
    """A code or a limit: its name, its value, and what its comment says."""

    name: str
    value: int
    meaning: str


def enumeration(name: str) -> list[Constant]:
    """Return the values of an enumeration in ``base/codes.h``, with their comments."""
    text = (_BASE / "codes.h").read_text()
    body = re.search(rf"^enum (?:class )?{name} .*?{{(.*?)^}};", text, re.MULTILINE | re.DOTALL)
    assert body is not None, name
    rows = re.findall(r"k(\w+) = (\d+),(?:\s*// (.*))?", body.group(1))
    return [
        Constant(re.sub(r"(?<!^)(?=[A-Z])", "_", each).upper(), int(value), meaning)
        for each, value, meaning in rows
    ]


def _limits() -> list[Constant]:
    """Return the limits of ``base/limits.h``."""
    text = (_BASE / "limits.h").read_text()
    rows = re.findall(r"^constexpr \w+ (\w+) =\s+(.*?);(?:\s*// (.*))?$", text, re.MULTILINE)
    assert len(rows) == text.count("\nconstexpr "), "a limit in an unknown form"
    return [Constant(name.upper(), _evaluate(value), meaning) for name, value, meaning in rows]


def _evaluate(expression: str) -> int:
    plain = expression.replace("UINT64_MAX", str(2**64 - 1))
    plain = re.sub(r"uint64_t\{(\d+)\}", r"\1", plain)
    plain = re.sub(r"(\d)u\b", r"\1", plain)
    if not re.fullmatch(r"[0-9()<\- ]+", plain):
        raise ValueError(f"not a constant: {expression}")
    return int(eval(plain))


def _lines(constants: Sequence[Constant], indent: str = "") -> str:
    return "".join(f"{indent}{each.name} = {each.value}\n" for each in constants)


def _class(name: str, doc: str, source: str) -> str:
    return f'class {name}(enum.IntEnum):\n    """{doc}"""\n\n' + _lines(enumeration(source), "    ")


def module(described: dict[str, Any]) -> str:
    """Return the module: limits, methods, codes and states."""
    reading = sorted(each["name"] for each in described["methods"] if each["flags"] == _READS)
    return "\n\n".join(
        [
            '"""Codes and limits of the object class (cls_zlog/base/codes.h, limits.h)."""',
            f"import enum\n\n{_lines(_limits())}",
            (
                f"READING_METHODS = frozenset({reading})\n"
                '"""The methods of the class that change nothing (cls_zlog/method_table.h)."""'
            ),
            _class("Code", "The answer of a class method, unless the store has failed.", "Code"),
            _class("State", "The state of one position in the reply of a read.", "EntryState"),
            _class("PartState", "What an append did with one of its parts.", "PartState"),
            _class("FillCode", "Why a position was filled, as it is stored.", "FillReason"),
        ]
    )


if __name__ == "__main__":
    Path(sys.argv[2]).write_text(module(json.loads(Path(sys.argv[1]).read_text())))
