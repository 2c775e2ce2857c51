"""Writes the tables of ``docs/formats/wire.md``, so that only C++ declares messages and codes.

``python -m tools.messages`` writes them, and ``--check`` reports if they are outdated. It builds
``cls_zlog/describe``, which prints the methods and the fields of every message. The build itself
makes the functions and constants in Python (``tools/messages_cython.py``, ``tools/codes.py``).
"""

from __future__ import annotations

import argparse
import difflib
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from tools.codes import enumeration
from tools.messages_docs import wire_tables

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "build" / "package"
PAGE = ROOT / "docs" / "formats" / "wire.md"

_MARKED = re.compile(r"(<!-- generated: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def describe() -> dict[str, Any]:
    """Build the describe program if a header has changed, and return its output."""
    cmake = Path(sys.executable).parent / "cmake"
    build = [cmake, "--build", PACKAGE, "--target", "zlog_describe"]
    subprocess.run(build, check=True, stdout=subprocess.DEVNULL)
    program = PACKAGE / "zlog" / "_native" / "zlog_describe"
    printed = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    described: dict[str, Any] = json.loads(printed)
    return described


def page() -> str:
    """Return the page with the current tables."""
    tables = wire_tables(describe(), enumeration("Code"))
    content = _MARKED.sub(lambda m: f"{m[1]}\n{tables.pop(m[2])}\n{m[3]}", PAGE.read_text())
    assert not tables, f"{PAGE} has no place for {[*tables]}"
    return content


def main() -> int:
    """Write the page, or check it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--check", action="store_true", help="write nothing; fail if it is outdated"
    )
    check = parser.parse_args().check
    current, content = PAGE.read_text(), page()
    if content == current:
        return 0
    if not check:
        PAGE.write_text(content)
        print(f"wrote {PAGE.relative_to(ROOT)}")
        return 0
    differences = difflib.unified_diff(
        current.splitlines(), content.splitlines(), "found", "wanted", lineterm="", n=1
    )
    print(f"{PAGE.relative_to(ROOT)} is not current; run `python -m tools.messages`:")
    print("\n".join(list(differences)[:20]))
    return 1


if __name__ == "__main__":
    sys.exit(main())
