"""Sessions in pages: what is typed after `$ `, and what appears below it."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from typing import NamedTuple

from .pages import Block
from .terminal import Terminal

_ANYTHING = "…"
_BACKGROUND_SECONDS = 20.0

_VARIES = (
    (re.compile(r"^building the object class\n", re.MULTILINE), ""),
    # The shell tells when it likes that a job has ended.
    (re.compile(r"^\n?\[\d+\][+-]? +[A-Z].*(\n|\Z)", re.MULTILINE), ""),
    (re.compile(r"^\[(\d+)\] \d+$", re.MULTILINE), r"[\1] PID"),
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+Z?| UTC)"), "TIME"),
    (re.compile(r"\b[0-9a-f]{16}\b|(?<=\(by )[0-9a-f]{8}\b"), "ID"),
    (re.compile(r"\b(pid|uptime s|grants|grants per second) +[\d.]+"), r"\1 N"),
    (re.compile(r"(?<![\w.])\d+\.\d+ (s|KiB|MiB|GiB)\b"), r"N \1"),
    (re.compile(r"\b\d+\.\d+\.\d+(?!\.)\b"), "VERSION"),
    (re.compile(r"\b127\.0\.0\.1:\d+"), "ADDRESS"),
    (re.compile(r"(?<=[\s(/=])/[^\s/)][^\s)]*"), "PATH"),
    (re.compile(r"[ ]+$", re.MULTILINE), ""),
)
"""What differs from run to run and from machine to machine, and what stands for it."""

_REPLACED = re.compile(r"\b(?:PID|TIME|ID|N|VERSION|ADDRESS|PATH)\b")


class Step(NamedTuple):
    """A command of a session.

    Attributes:
        command: what is typed.
        output: what the page says appears.
        beside: whether a command before it runs in the background: who prints first is open.
    """

    command: str
    output: str
    beside: bool

    def agrees(self, shown: str) -> bool:
        """Whether output is as the page says, where `…` stands for anything."""
        expected, shown = same_for_all(self.output), same_for_all(shown)
        if self.beside and sorted(shown.splitlines()) == sorted(expected.splitlines()):
            return True
        parts = (re.escape(part.strip("\n")) for part in expected.split(_ANYTHING))
        return re.fullmatch(r"[^\0]*".join(parts), shown) is not None


def steps(block: Block) -> Iterator[Step]:
    """Go through the commands of a block; `> ` goes on with the line before."""
    command: list[str] = []
    output: list[str] = []
    beside = False
    for line in block.text.splitlines():
        if line.startswith("$ "):
            if command:
                yield Step("\n".join(command), "\n".join(output), beside)
                beside = beside or command[-1].endswith("&")
            command, output = [line[2:]], []
        elif line.startswith("> ") and not output:
            command.append(line[2:])
        else:
            output.append(line)
    if command:
        yield Step("\n".join(command), "\n".join(output), beside)


def same_for_all(text: str) -> str:
    """Return output with everything replaced that differs from run to run."""
    for pattern, replacement in _VARIES:
        text = pattern.sub(replacement, text)
    return "\n".join(map(_narrowed, text.strip().splitlines()))


def _narrowed(line: str) -> str:
    """Return a line with narrow gaps, but for the first one: columns have the widths of values.

    Those in the first column are the same in each run, unless they are replaced.
    """
    first, gap, rest = re.findall(r"^(\S*)( *)(.*)$", line)[0]
    if _REPLACED.search(first):
        gap = "  "
    return first + gap + re.sub(r" {3,}", "  ", rest)


def run(terminal: Terminal, step: Step, seconds: float) -> str:
    """Run a step and return its output.

    What runs in the background may print after the command has ended, so this waits a while for
    the output that the page promises.

    Raises:
        TimeoutError: the command takes longer than that.
    """
    terminal.clear()
    terminal.enter(step.command)
    terminal.wait_until_idle(seconds)
    end = time.monotonic() + _BACKGROUND_SECONDS
    while not step.agrees(terminal.screen()) and time.monotonic() < end:
        terminal.read(0.1)
    return terminal.screen()
