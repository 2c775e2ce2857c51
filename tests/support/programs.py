"""Programs that tests run, and where they are."""

from __future__ import annotations

import subprocess
import sys
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
