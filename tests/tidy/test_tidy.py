"""What the house asks of every file: that sentences name who acts, and that something uses it."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

PROSE_AND_CODE = (".py", ".pyx", ".pxi", ".pyi", ".cc", ".h", ".md")

HIDDEN_SUBJECTS = re.compile(r"\b(whoever|nobody|somebody|everybody|anybody)\b", re.IGNORECASE)
"""Words that hide which part or role acts: the writer, a stale client, the leader."""

SUBJECTS_EXEMPT = re.compile(r"nobody\.invalid|\bid=nobody")
"""Names that are no prose."""

CODE = ("cls_zlog", "zlog", "seqr", "cli", "pyspark_zlog", "ceph-dev", "tools", "examples")


def tracked(*suffixes: str, below: tuple[str, ...] = ()) -> list[Path]:
    """Return the files of the repository with these suffixes."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", *below], cwd=ROOT, capture_output=True, check=True, text=True
    ).stdout
    files = [ROOT / name for name in listed.split("\0") if name]
    return [file for file in files if file.suffix in suffixes and file.is_file()]


def described(offences: list[str]) -> str:
    return "\n" + "\n".join(offences)


@pytest.mark.parametrize("folder", [*CODE, "docs"])
def test_sentences_name_their_subject(folder: str) -> None:
    offences = []
    for file in tracked(*PROSE_AND_CODE, below=(folder,)):
        for number, line in enumerate(file.read_text().splitlines(), 1):
            if HIDDEN_SUBJECTS.search(SUBJECTS_EXEMPT.sub("", line)):
                offences.append(f"{file.relative_to(ROOT)}:{number}: {line.strip()}")
    assert not offences, described(offences)


def test_every_package_says_what_lives_in_it() -> None:
    packages = [file for file in tracked(".py", below=CODE) if file.name == "__init__.py"]
    offences = [
        str(file.relative_to(ROOT))
        for file in packages
        if not file.read_text().lstrip().startswith('"""')
    ]
    assert not offences, described(offences)


def test_every_module_is_used() -> None:
    """A module that no other file names is dead, or its name is not found by a search."""
    modules = [
        file
        for file in tracked(".py", below=(*CODE, "tests"))
        if not file.name.startswith(("test_", "__", "conftest"))
    ]
    named = [
        (file, file.read_text(errors="replace"))
        for file in tracked(".py", ".pyx", ".pxi", ".toml", ".md", ".sh", ".yml", ".txt", "")
    ]
    offences = [
        str(module.relative_to(ROOT))
        for module in modules
        if not any(
            re.search(rf"\b{re.escape(module.stem.rstrip('_'))}\b", text)
            for file, text in named
            if file != module
        )
    ]
    assert not offences, described(offences)
