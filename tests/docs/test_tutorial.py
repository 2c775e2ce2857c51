"""The tutorials do what they say: their commands are typed, and what appears is compared."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.ceph import choose, unavailable

from ..support.programs import REPOSITORY
from . import session
from .pages import DOCS, Block, blocks
from .terminal import Terminal

_SECONDS = 120.0
"""For one command, on a machine that has other things to do."""

_SEQUENCER = "zlog seqr 2>"
_FREE_PORT = "zlog seqr --listen 127.0.0.1:0 2>"
"""The tutorial's sequencer takes the default port, which may be taken here."""


@pytest.fixture
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The home directory of a reader who has the sources in ~/zlog, as the tutorial asks."""
    # A short name: the cluster's sockets lie in there, and a socket's path has 107 bytes.
    home = tmp_path_factory.mktemp("home")
    (home / "zlog").symlink_to(REPOSITORY)
    (home / "tutorial").mkdir()
    return home


@pytest.fixture
def terminal(home: Path) -> Iterator[Terminal]:
    programs = Path(sys.executable).parent
    environment = {
        "HOME": str(home),
        "PATH": f"{programs}:{os.environ['PATH']}:/usr/sbin:/sbin",
        "LANG": "C.UTF-8",
        "ZLOG_CEPH_DIR": str(home / "ceph"),
    }
    if library := os.environ.get("ZLOG_CLASS"):
        environment["ZLOG_CLASS"] = str(Path(library).absolute())
    with Terminal(home / "tutorial", environment) as terminal:
        terminal.wait_until_idle(_SECONDS)
        yield terminal
        terminal.enter("~/zlog/ceph-dev/cluster down")
        terminal.wait_until_idle(_SECONDS)


def follow(page: list[Block], terminal: Terminal, folder: Path) -> None:
    """Do what a page says, block by block."""
    for block in page:
        if block.file_name is not None:
            (folder / block.file_name).write_text(block.text)
        if block.language != "console":
            continue
        for step in session.steps(block):
            typed = step._replace(command=step.command.replace(_SEQUENCER, _FREE_PORT))
            shown = session.run(terminal, typed, _SECONDS)
            assert step.agrees(shown), (
                f"{block.page.name}, in the block of line {block.line}, says of `{step.command}`:\n"
                f"{step.output}\nbut it shows:\n{shown}"
            )


def test_embedded_tutorial_runs(terminal: Terminal, home: Path) -> None:
    page = [block for block in blocks(DOCS / "tutorial.md") if not block.needs_ceph]
    follow(page, terminal, home / "tutorial")


@pytest.mark.parametrize("page", ["objects.md", "groups.md"])
def test_page_runs(terminal: Terminal, home: Path, page: str) -> None:
    terminal.enter("export ZLOG_STORE=file://$HOME/zlog-store")
    terminal.wait_until_idle(_SECONDS)
    follow(blocks(DOCS / page), terminal, home / "tutorial")


def test_ceph_tutorial_runs(terminal: Terminal, home: Path) -> None:
    if choose() != "native":
        unavailable("the tutorial starts Ceph's daemons itself, and they are not installed")
    page = blocks(DOCS / "tutorial.md")
    files = [block for block in page if block.file_name is not None]
    sessions = [block for block in page if block.needs_ceph]
    follow([*files, *sessions], terminal, home / "tutorial")
