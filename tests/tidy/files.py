"""The repository's files, and how offences are shown."""

from __future__ import annotations

import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]

CODE = (
    "cls_zlog",
    "zlog",
    "seqr",
    "cli",
    "pyspark_zlog",
    "ceph-dev",
    "tools",
    "examples",
    "zlog_command",
)
"""The folders that hold it, without tests."""


def tracked(*suffixes: str, below: tuple[str, ...] = ()) -> list[Path]:
    """Return the files of the repository with these suffixes."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", *below], cwd=ROOT, capture_output=True, check=True, text=True
    ).stdout
    files = [ROOT / name for name in listed.split("\0") if name]
    return [file for file in files if file.suffix in suffixes and file.is_file()]


def described(offences: list[str]) -> str:
    """Return them as what a failed assertion says."""
    return "\n" + "\n".join(offences)
