"""Imports go down the layers of docs/design/source-tree.md, never up."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import NamedTuple

import pytest

from tools import sync_facade

from .files import ROOT, described, tracked

LAYERS: tuple[tuple[str, ...], ...] = (
    (
        *("_base", "_native", "distribution", "entry", "environment", "errors", "limits"),
        *("names", "read_only", "store", "view"),
    ),
    ("_sequencer",),
    ("_io",),
    ("_replica",),
    ("_catalog",),
    ("_layout",),
    ("_positions",),
    ("_templates",),
    ("_lifecycle",),
    ("_read",),
    ("_append",),
    ("_trim",),
    ("_audit",),
    ("_client",),
    ("_transfer",),
    ("aio", "sync"),
    ("spool",),
    ("transfer", "admin", "many", "overview", "metrics", "templates"),
    ("zlog",),
    ("extension",),
    ("eventsourcing", "objects", "offload", "spark", "tables", "testing", "web"),
    ("groups",),
    ("seqr",),
    ("cli", "__main__"),
)
"""From the lowest up, members of the package; ``zlog`` is its own ``__init__``."""

LEVELS = {member: level for level, layer in enumerate(LAYERS) for member in layer}


class Import(NamedTuple):
    """A module of zlog, or a name of one, that another module takes."""

    source: str
    line: int
    target: str

    def __str__(self) -> str:
        return f"{self.source}:{self.line} imports {self.target}"


def modules() -> dict[str, Path]:
    """All modules of the package, by their names when it is installed."""
    found = {}
    for file in (
        *tracked(".py", ".pyx", below=("zlog", "seqr", "cli")),
        *sync_facade.generated(),
    ):
        parts = file.relative_to(ROOT).with_suffix("").parts
        name = ".".join(parts if parts[0] == "zlog" else ("zlog", *parts))
        found[name.removesuffix(".__init__")] = file
    return found


MODULES = modules()


@cache
def imports() -> list[Import]:
    """All of them, wherever they stand: those in functions and for type checkers too."""
    return [each for module, file in MODULES.items() for each in imports_of(module, file)]


def imports_of(module: str, file: Path) -> Iterator[Import]:
    """What a module imports of zlog; of Cython the plain imports, which stand on one line."""
    text = file.read_text()
    if file.suffix != ".py":
        text = "\n".join(re.findall(r"^(?:from zlog[.\w]* )?import .*", text, re.MULTILINE))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}:{node.lineno} imports by a relative name"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        yield from (Import(module, node.lineno, n) for n in names if n.split(".")[0] == "zlog")


def module_of(name: str) -> str:
    """The module that a name is, or is defined in."""
    return name if name in MODULES else name.rpartition(".")[0]


def member(name: str) -> str:
    """The member of the package in which a module or a name lies."""
    parts = module_of(name).split(".")
    return parts[1] if len(parts) > 1 else parts[0]


def test_every_module_is_in_layer() -> None:
    assert {member(module) for module in MODULES} == {*LEVELS}


def test_imports_go_down() -> None:
    offences = [
        str(each) for each in imports() if LEVELS[member(each.target)] > LEVELS[member(each.source)]
    ]
    assert not offences, described(offences)


def test_imports_are_acyclic() -> None:
    """Compiled modules raise zlog's errors, which name what is compiled: they are left out."""
    wanted: dict[str, set[str]] = {module: set() for module in MODULES}
    for each in imports():
        target = module_of(each.target)
        if target != each.source and MODULES[each.source].suffix == ".py":
            wanted[each.source].add(target)
    try:
        TopologicalSorter(wanted).prepare()
    except CycleError as error:
        pytest.fail(" imports ".join(reversed(error.args[1])))


def test_private_names_stay_in_their_package() -> None:
    """A name that begins with an underscore, of a package, a module, or of what a module has."""
    offences = [
        str(each)
        for each in imports()
        if not all(f"{each.source}.".startswith(f"{owner}.") for owner in owners(each.target))
    ]
    assert not offences, described(offences)


def owners(name: str) -> Iterator[str]:
    """The packages to which the private parts of a name belong."""
    parts = name.split(".")
    for i, part in enumerate(parts):
        if part.startswith("_") and not part.endswith("__"):
            holder = ".".join(parts[:i])
            is_package = MODULES[holder].name == "__init__.py"
            yield holder if is_package else holder.rpartition(".")[0]


ADD_ONS = re.compile(
    r"zlog\.(eventsourcing|objects|offload|spark|spool|tables|testing|web|cli\.commands\.(objects|offload|spark|sql|table|http|console|top|exporter|bench)|cli)\b"
)


def test_add_ons_import_public_names_only() -> None:
    """An add-on and the command line build on the core as a program of a user does."""
    offences = [
        str(each)
        for each in imports()
        if (own := ADD_ONS.match(each.source))
        and not each.target.startswith(f"{own[0]}.")
        and any(part.startswith("_") for part in each.target.split("."))
    ]
    assert not offences, described(offences)


def test_design_page_lists_layers_in_order() -> None:
    page = (ROOT / "docs" / "design" / "source-tree.md").read_text()
    table = page.partition("## Layers of the client")[2].partition("\n#")[0]
    rows = re.findall(r"^\| ([^|]*`[^|]*) \|", table, re.MULTILINE)
    shown = [{name.strip("/") for name in re.findall(r"`([^`]+)`", row)} for row in rows]
    assert shown == [{*layer} for layer in LAYERS]
