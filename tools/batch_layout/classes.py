"""The object class of each layout, built from this source."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from programs import ROOT, ProgramFailed, said

_LIMIT = "constexpr uint32_t inline_bytes_max = 32u << 10;"

LAYOUTS = {
    "inline": "constexpr uint32_t inline_bytes_max = 32u << 20;",
    "stream": "constexpr uint32_t inline_bytes_max = 0;",
    "zlog": _LIMIT,
}
"""What stands in cls_zlog/base/limits.h: all batches inside their records, none, and the small ones."""


def build(layout: str, folder: Path) -> Path:
    """Build the class with one limit changed; returns the library.

    Raises:
        ProgramFailed: it can't be built.
    """
    source = folder / "source" / layout
    shutil.rmtree(source, ignore_errors=True)
    source.mkdir(parents=True)
    for name in ("CMakeLists.txt", "pyproject.toml"):
        shutil.copyfile(ROOT / name, source / name)
    for name in ("cls_zlog", "ceph-dev"):
        shutil.copytree(ROOT / name, source / name)
    limits = source / "cls_zlog" / "base" / "limits.h"
    text = limits.read_text()
    if _LIMIT not in text:
        raise ProgramFailed(f"{limits} has no line that begins with: {_LIMIT}")
    limits.write_text(text.replace(_LIMIT, LAYOUTS[layout]))
    cluster, tree = source / "ceph-dev" / "cluster", folder / "class" / layout
    return Path(said(sys.executable, str(cluster), "build-class", str(tree)).strip())
