"""Translates Python's regular expressions into Java's, for Spark.

Spark evaluates a regular expression in the JVM, many times faster than Python could, but users
write it in Python's syntax. This module handles the few differences.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from zlog.tables.common import compiled

_FLAGS = "(?dU)"
r"""In Java, ``.``, ``^`` and ``$`` treat only ``\n`` as a line end, and ``\w``, ``\d`` and ``\s``
match all of Unicode, as in Python."""

_ESCAPES = {"Z": r"\z", "v": r"\x0B", "0": r"\x00"}
_ESCAPES_IN_CLASS = {**_ESCAPES, "b": r"\x08"}
_LITERAL_IN_CLASS = "[&# \t\n"
"""Characters without a meaning in Python's character classes, but with one in Java's."""

_NAMED = re.compile(r"\(\?P<\w+>")
_BACK = re.compile(r"\(\?P=(\w+)\)")
_REPEAT = re.compile(r"\{\d+(?:,\d*)?\}")
_REPEAT_FROM_0 = re.compile(r"\{,(\d*)\}")


@dataclass(frozen=True, slots=True)
class LinePattern:
    """A regular expression for lines. Each of its named groups becomes a column.

    Attributes:
        java: the expression in Java's syntax, which Spark needs.
        columns: maps the name of each group to its number, which is the same in Python and Java.
    """

    java: str
    columns: dict[str, int]

    @classmethod
    def compile(cls, pattern: str) -> LinePattern:
        """Check and translate a pattern. Raises ValueError if it is invalid or names no group."""
        groups = dict(compiled(pattern).groupindex)
        return cls(_FLAGS + _translated(pattern, groups), groups)


def _translated(pattern: str, groups: dict[str, int]) -> str:
    parts: list[str] = []
    at = 0
    while at < len(pattern):
        if pattern[at] == "[":
            end = _class_end(pattern, at)
            parts.append(_translated_class(pattern[at:end]))
        elif pattern[at] == "\\":
            end = at + 2
            parts.append(_ESCAPES.get(pattern[at + 1], pattern[at:end]))
        elif found := _NAMED.match(pattern, at):
            end = found.end()  # Java's names have no underscore, so groups are used by number
            parts.append("(")
        elif found := _BACK.match(pattern, at):
            end = found.end()
            parts.append(rf"(?:\{groups[found[1]]})")
        elif found := _REPEAT_FROM_0.match(pattern, at):
            end = found.end()
            parts.append(f"{{0,{found[1]}}}")
        elif found := _REPEAT.match(pattern, at):
            end = found.end()
            parts.append(found[0])
        else:
            end = at + 1
            # A brace that is not a quantifier is literal in Python, and an error in Java.
            parts.append(r"\{" if pattern[at] == "{" else pattern[at])
        at = end
    return "".join(parts)


def _class_end(pattern: str, start: int) -> int:
    """Return the end of a character class, whose first character may be its closing bracket."""
    at = start + 1
    if pattern[at] == "^":
        at += 1
    if pattern[at] == "]":
        at += 1
    while pattern[at] != "]":
        at += 2 if pattern[at] == "\\" else 1
    return at + 1


def _translated_class(text: str) -> str:
    opening = "[^" if text.startswith("[^") else "["
    parts = [opening]
    at, last = len(opening), len(text) - 1
    while at < last:
        if text[at] == "\\":
            parts.append(_ESCAPES_IN_CLASS.get(text[at + 1], text[at : at + 2]))
            at += 2
            continue
        literal = text[at] in _LITERAL_IN_CLASS or text[at] == "]"
        parts.append("\\" + text[at] if literal else text[at])
        at += 1
    return "".join([*parts, "]"])
