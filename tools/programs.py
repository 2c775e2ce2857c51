"""Programs that the tools run."""

from __future__ import annotations

import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
"""This repository."""


class ProgramFailed(Exception):
    """A program that a tool needs has failed."""


def said(*words: str) -> str:
    """Run a program and return what it says on stdout.

    Raises:
        ProgramFailed: it ended with another exit code than 0.
    """
    done = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=False)  # noqa: S603
    if done.returncode:
        raise ProgramFailed(f"{' '.join(words)}: exit code {done.returncode}")
    return done.stdout
