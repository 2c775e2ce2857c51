"""Checks of blocks that no test runs: names exist in Python, commands and data parse."""

from __future__ import annotations

import ast
import io
import json
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
import yaml

import zlog
from zlog.cli.main import command as zlog_command

from ..cli.conftest import all_commands
from ..support.programs import REPOSITORY
from .pages import DOCS, Block, blocks

PAGES = sorted([*DOCS.rglob("*.md"), *REPOSITORY.glob("*.md"), REPOSITORY / "ceph-dev/README.md"])
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
INDENTED = re.compile(r"^(?: {4}|\t)(.*)$", re.MULTILINE)
REDIRECTED = re.compile(r"\s\d?[<>]{1,2}&?\s*[^\s;|&)]+")
PLACEHOLDERS = re.compile(r"…|\[[A-Z]+\]|\.\.\.")
BEFORE_COMMANDS = {"sudo", "exec", "then", "do", "else", "if", "while", "until", "!"}


def languages(*names: str) -> list[Block]:
    return [block for page in PAGES for block in blocks(page) if block.language in names]


def where(block: Block) -> str:
    return f"{block.page.relative_to(REPOSITORY)}:{block.line}"


@pytest.mark.parametrize("block", languages("python"), ids=where)
def test_python_blocks_compile_and_use_existing_names(block: Block) -> None:
    tree = ast.parse(block.text)
    compile(block.text, str(block.page), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom) and "zlog" in ast.unparse(node):
            for package, needed in (("zlog.spark", "pyspark"), ("zlog.tables", "duckdb")):
                if package in ast.unparse(node):
                    pytest.importorskip(needed)
            exec(ast.unparse(node), {})
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            assert node.value.id != "zlog" or hasattr(zlog, node.attr), f"zlog.{node.attr}"


@pytest.mark.parametrize("block", languages("json", "yaml"), ids=where)
def test_data_blocks_parse(block: Block) -> None:
    assert {"json": json.loads, "yaml": yaml.safe_load}[block.language](block.text)


def typed(page: Path) -> Iterator[str]:
    """Go through the lines of shell on a page: in blocks of it, and indented."""
    for block in blocks(page):
        lines = block.text.replace("\\\n", " ").splitlines()
        if block.language == "console":
            yield from (line[2:] for line in lines if line.startswith(("$ ", "> ")))
        elif block.language == "sh":
            yield from lines
    yield from INDENTED.findall(FENCED.sub("", page.read_text()).replace("\\\n", " "))


def commands(line: str) -> Iterator[list[str]]:
    """Return the words of each `zlog` that a line of shell runs."""
    if not re.search(r"\bzlog ", line) or PLACEHOLDERS.search(line):
        return
    lexer = shlex.shlex(REDIRECTED.sub(" ", line), posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    try:
        words = list(lexer)
    except ValueError:
        return  # prose with an apostrophe, or a part of something that goes on
    found: list[str] = []
    for word in [*words, ";"]:
        if set(word) <= set("();<>|&"):
            if found[:1] == ["zlog"]:
                yield found[1:]
            found = []
        elif found or not (word in BEFORE_COMMANDS or re.match(r"\w+=", word)):
            found.append(word)


def parse(words: list[str]) -> None:
    """Have click take the words for a call of `zlog`, and go no further."""
    context = zlog_command.make_context("zlog", [*words])
    while isinstance(context.command, click.Group) and context._protected_args:
        rest = [*context._protected_args, *context.args]
        name, command, rest = context.command.resolve_command(context, rest)
        assert command is not None
        context = command.make_context(name, rest, parent=context)


EXAMPLES = [
    (f"{name} --help", line)
    for name, command in all_commands()
    for line in getattr(command, "examples", "").splitlines()
]
LINES = [
    (place, words)
    for place, line in [*((page.name, line) for page in PAGES for line in typed(page)), *EXAMPLES]
    for words in commands(line)
]


def test_every_command_is_in_the_command_reference() -> None:
    text = (DOCS / "cli.md").read_text()
    missing = [name for name, _ in all_commands() if not re.search(rf"\b{name}\b", text)]
    assert missing == []


def test_commands_parse(monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in (click.Path, click.File):  # they are on the reader's machine
        monkeypatch.setattr(kind, "convert", lambda _self, value, *_: Path(value))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"null")))
    assert len(LINES) > 300  # else the pages were not understood
    offences = []
    for place, words in LINES:
        try:
            parse(words)
        except click.exceptions.Exit:
            pass  # --help, --version
        except click.UsageError as error:
            offences.append(f"{place}: zlog {shlex.join(words)}: {error.format_message()}")
    assert offences == []
