"""Markdown pages, as far as tests need to understand them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from ..support.programs import REPOSITORY

DOCS = REPOSITORY / "docs"

_FENCE = re.compile(r"^```(\S*)[ ]*([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"# (\w+\.py)\n")


class Block(NamedTuple):
    """A fenced block of a page.

    Attributes:
        page: where it stands.
        line: of its opening fence, from 1.
        language: the first word behind the fence.
        words: the other words behind it.
        text: what is inside.
    """

    page: Path
    line: int
    language: str
    words: tuple[str, ...]
    text: str

    @property
    def needs_ceph(self) -> bool:
        """Whether it only works where a cluster runs."""
        return "ceph" in self.words

    @property
    def file_name(self) -> str | None:
        """The name of the file that this is the content of, where its first line says so."""
        found = _FILE.match(self.text) if self.language == "python" else None
        return found[1] if found else None


def blocks(page: Path) -> list[Block]:
    """Return the fenced blocks of a page, in order."""
    text = page.read_text()
    return [
        Block(page, text.count("\n", 0, each.start()) + 1, each[1], tuple(each[2].split()), each[3])
        for each in _FENCE.finditer(text)
    ]


def table(page: Path, head: str) -> list[list[str]]:
    """Return the rows of the table with this first line."""
    lines = page.read_text().splitlines()
    start = lines.index(head) + 2
    rows = []
    for line in lines[start:]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return rows
