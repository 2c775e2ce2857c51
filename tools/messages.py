"""Writes what follows from the messages of the object class, so that C++ alone declares them.

``python -m tools.messages`` writes the files below, ``--check`` says which are not current. It
builds ``cls_zlog/describe``, which prints the methods and the fields of every message, and reads
the codes and the limits off their headers.
"""

from __future__ import annotations

import argparse
import difflib
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.messages_docs import wire_tables
from tools.messages_python import codes_module, stub

ROOT = Path(__file__).parents[1]
CLASS = ROOT / "cls_zlog"
DESCRIPTION = ROOT / "build" / "messages.json"
_MARKED = re.compile(r"(<!-- generated: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


@dataclass(frozen=True)
class Constant:
    """A code or a limit: its name, its value, and what its comment says."""

    name: str
    value: int
    meaning: str


def describe() -> dict[str, Any]:
    """Return what the describe program prints; it is built again when a header has changed."""
    sources = [CLASS / "describe" / "main.cc", *(CLASS / "wire").glob("*.cc")]
    sources += (CLASS / "base").glob("*.cc")
    content = b"".join(path.read_bytes() for path in sorted([*CLASS.rglob("*.h"), *sources]))
    digest = hashlib.sha256(content).hexdigest()
    if DESCRIPTION.exists():
        known = json.loads(DESCRIPTION.read_text())
        if known.get("sources") == digest:
            return known  # type: ignore[no-any-return]
    compiler = os.environ.get("CXX", "c++")
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "describe"
        command = [compiler, "-std=c++17", "-O0", f"-I{ROOT}", *map(str, sources), "-o", program]
        subprocess.run(command, check=True)
        printed = subprocess.run([program], check=True, stdout=subprocess.PIPE, text=True).stdout
    described: dict[str, Any] = {"sources": digest, **json.loads(printed)}
    DESCRIPTION.parent.mkdir(exist_ok=True)
    DESCRIPTION.write_text(json.dumps(described))
    return described


def enumeration(name: str) -> list[Constant]:
    """Return the values of an enumeration in ``base/codes.h``, with their comments."""
    text = (CLASS / "base" / "codes.h").read_text()
    body = re.search(rf"^enum (?:class )?{name} .*?{{(.*?)^}};", text, re.MULTILINE | re.DOTALL)
    assert body is not None, name
    rows = re.findall(r"k(\w+) = (\d+),(?:\s*// (.*))?", body.group(1))
    return [
        Constant(re.sub(r"(?<!^)(?=[A-Z])", "_", each).upper(), int(value), meaning)
        for each, value, meaning in rows
    ]


def limits() -> list[Constant]:
    """Return the limits of ``base/limits.h``."""
    text = (CLASS / "base" / "limits.h").read_text()
    rows = re.findall(r"^constexpr \w+ (\w+) = (.*?);(?:\s*// (.*))?$", text, re.MULTILINE)
    return [Constant(name.upper(), _evaluate(value), meaning) for name, value, meaning in rows]


def _evaluate(expression: str) -> int:
    plain = expression.replace("UINT64_MAX", str(2**64 - 1))
    plain = re.sub(r"uint64_t\{(\d+)\}", r"\1", plain)
    plain = re.sub(r"(\d)u\b", r"\1", plain)
    if not re.fullmatch(r"[0-9()<\- ]+", plain):
        raise ValueError(f"not a constant: {expression}")
    return int(eval(plain))


def _formatted(content: str, name: str) -> str:
    command = [Path(sys.executable).parent / "ruff", "format", "--stdin-filename", name, "-"]
    done = subprocess.run(command, input=content, capture_output=True, text=True, check=True)
    return done.stdout


def files() -> Iterator[tuple[Path, str]]:
    """Return every generated file with its content."""
    described = describe()
    yield ROOT / "zlog" / "_native" / "messages.pyi", _formatted(stub(described), "messages.pyi")
    codes, states = enumeration("Code"), enumeration("EntryState")
    reasons = enumeration("FillReason")
    path = ROOT / "zlog" / "_base" / "codes.py"
    constants = codes_module(described["methods"], codes, states, reasons, limits())
    yield path, _formatted(constants, "codes.py")
    page = ROOT / "docs" / "formats" / "wire.md"
    tables = wire_tables(described, codes)
    content = _MARKED.sub(lambda m: f"{m[1]}\n{tables.pop(m[2])}\n{m[3]}", page.read_text())
    assert not tables, f"{page} has no place for {[*tables]}"
    yield page, content


def main() -> int:
    """Write the files, or check them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail where it would")
    check = parser.parse_args().check
    stale = 0
    for path, content in files():
        current = path.read_text() if path.exists() else ""
        if content == current:
            continue
        stale += 1
        if check:
            differences = difflib.unified_diff(
                current.splitlines(), content.splitlines(), "found", "wanted", lineterm="", n=1
            )
            print(f"{path.relative_to(ROOT)} is not current; run `python -m tools.messages`:")
            print("\n".join(list(differences)[:20]))
        else:
            path.write_text(content)
            print(f"wrote {path.relative_to(ROOT)}")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
