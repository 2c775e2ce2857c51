"""Programs that tests run, and where they are."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]

ZLOG = str(Path(sys.executable).with_name("zlog"))
"""The command, as it is installed beside this Python."""


def run_module(name: str, *words: str, seconds: float = 120) -> subprocess.CompletedProcess[str]:
    """Run a program of the tests, as ``python -m NAME`` does."""
    return subprocess.run(
        [sys.executable, "-m", name, *words],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
        timeout=seconds,
    )


def copy_package(folder: Path) -> Path:
    """Copy zlog into a folder, as it is if it is not installed as links; returns the copy."""
    package = folder / "zlog"
    compiled = Path(sysconfig.get_path("platlib"), "zlog")
    for part in (REPOSITORY / "zlog", compiled):
        shutil.copytree(part, package, dirs_exist_ok=True)
    return package
