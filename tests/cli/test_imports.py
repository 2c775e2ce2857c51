"""The command line is made of zlog's public API, as any program could be."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import zlog.cli

CLI = Path(zlog.cli.__file__).parent


def private_imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        modules = []
        if isinstance(node, ast.Import):
            modules = [each.name for each in node.names]
        elif isinstance(node, ast.ImportFrom):
            modules = [f"{node.module}.{each.name}" for each in node.names]
        for module in modules:
            if module.startswith("zlog.") and "._" in module:
                yield module


def test_cli_imports_only_public_api() -> None:
    found = {
        str(path.relative_to(CLI)): [*private_imports(path)] for path in sorted(CLI.rglob("*.py"))
    }
    assert len(found) > 50  # else nothing was looked at
    assert [path for path, modules in found.items() if modules] == []
