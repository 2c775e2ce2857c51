"""What the house asks of every file: that sentences name who acts, and that something uses it."""

from __future__ import annotations

import re

import pytest

from .files import CODE, ROOT, described, tracked

PROSE_AND_CODE = (".py", ".pyx", ".pyi", ".cc", ".h", ".md")

HIDDEN_SUBJECTS = re.compile(r"\b(whoever|nobody|somebody|everybody|anybody)\b", re.IGNORECASE)
"""Words that hide which part or role acts: the writer, a stale client, the leader."""

SUBJECTS_EXEMPT = re.compile(r"nobody\.invalid|\bid=nobody")
"""Names that are no prose."""

OLD_WORDS = re.compile(
    r"(?<![A-Za-z])(verbs?|rooms?|heal(s|ed|ing)?|rescued|spacings?|contenders?|strangers?|judges?"
    r"|players?|plain.hosts?|loose.stripes?|in_vain|mend(s|ed)?|deliver(y|ies))(?![a-z])",
    re.IGNORECASE,
)
"""Words that the terms of docs/glossary.md have replaced."""

OLD_WORDS_EXEMPT = re.compile(
    r"\b(repair::|messages\.)?heal\b(?=[\"(>*|]|` (checks|installs|may)|`.*salvage)"
    r"|salvage.*\bheal\b|heal \| changes"
    r"|HealRequest|[Dd]elivery_?(Begin|Grant|Read|Done|List|begin|grant|read|done|list|\.\*)"
    r"|DeliveryRequest|b\"zlog delivery\"|\"delivery\": \"producer\"|stored-delivery"
)
"""Names of methods and messages on the wire, of stored values, and of a command's old form."""

LINES_MAX = 450


@pytest.mark.parametrize("folder", [*CODE, "docs"])
def test_sentences_name_their_subject(folder: str) -> None:
    offences = []
    for file in tracked(*PROSE_AND_CODE, below=(folder,)):
        for number, line in enumerate(file.read_text().splitlines(), 1):
            if HIDDEN_SUBJECTS.search(SUBJECTS_EXEMPT.sub("", line)):
                offences.append(f"{file.relative_to(ROOT)}:{number}: {line.strip()}")
    assert not offences, described(offences)


@pytest.mark.parametrize("folder", [*CODE, "docs"])
def test_no_old_words(folder: str) -> None:
    offences = []
    for file in tracked(*PROSE_AND_CODE, ".js", ".pxd", below=(folder,)):
        if file == ROOT / "docs/upgrading.md":  # it lists them
            continue
        for number, line in enumerate(file.read_text().splitlines(), 1):
            if OLD_WORDS.search(OLD_WORDS_EXEMPT.sub("", line)):
                offences.append(f"{file.relative_to(ROOT)}:{number}: {line.strip()}")
    assert not offences, described(offences)


def test_every_package_has_docstring() -> None:
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
        for file in tracked(".py", ".pyx", ".toml", ".md", ".sh", ".yml", ".txt", "")
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


def test_targets_install_what_their_programs_import() -> None:
    """Helpers of tests use pytest, so a fresh clone needs more than the package to run them."""
    makefile = (ROOT / "Makefile").read_text()
    rules = re.findall(r"^([a-z-]+):(?!=) ?(.*)\n((?:\t.*\n)+)", makefile, re.MULTILINE)
    tests = re.compile(r"\$\((PYTEST|ALL_TESTS)[):]|\$\(BIN\)/python -m tests\.")
    programs = {name: needed for name, needed, recipe in rules if tests.search(recipe)}
    assert {"chaos-kills", "coverage-protocol", "fuzz", "test"} <= {*programs}
    assert [name for name, needed in programs.items() if "$(TESTING)" not in needed] == []


def test_files_are_short() -> None:
    offences = []
    for file in tracked(".py", ".pyx", ".pyi", ".pxd", ".cc", ".h"):
        lines = file.read_text().count("\n")
        if lines > LINES_MAX:
            offences.append(f"{file.relative_to(ROOT)}: {lines} lines")
    assert not offences, described(offences)
