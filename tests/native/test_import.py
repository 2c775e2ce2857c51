"""Importing the package where its compiled part is not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def test_the_sources_are_not_the_package() -> None:
    """In a clone, Python finds the sources first: the error says so, and what to do."""
    repository = Path(__file__).resolve().parents[2]
    done = subprocess.run(
        [sys.executable, "-c", "import zlog"],
        cwd=repository,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "run from another directory" in done.stderr
