"""Every transcript in testdata, on the models and on every host.

`pytest tests/conformance/test_transcripts.py --rewrite-transcripts` puts the hosts' answers into
the files; read the difference before you commit it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from .objects import Store
from .transcript import Interpreter, format_file, parse_file

TRANSCRIPTS = sorted((Path(__file__).parent / "testdata").glob("*.txt"))
PARAMETERS = [
    pytest.param(path, id=path.stem, marks=pytest.mark.long if path.stem == "stripe_large" else ())
    for path in TRANSCRIPTS
]


def check(path: Path, interpreter: Interpreter, rewrite: bool) -> None:
    """Run one transcript; on `rewrite`, write down what was answered instead of complaining."""
    blocks, rest = parse_file(path.read_text())
    wrong = []
    for block in blocks:
        try:
            answered = interpreter.run(block.command)
        except Exception as error:
            raise AssertionError(f"{path.name}:{block.line}: {block.command}") from error
        if answered is None or answered == block.expected:
            continue
        wrong.append("\n".join([f"{path.name}:{block.line}: {block.command}", *answered]))
        block.expected = answered
    if rewrite:
        path.write_text(format_file(blocks, rest))
    else:
        assert not wrong, "\n\n".join(wrong)


@pytest.mark.parametrize("path", PARAMETERS)
def test_host_follows_transcript(
    path: Path, store: Store, prefix: str, rewrite_transcripts: bool
) -> None:
    check(path, Interpreter(store, prefix), rewrite_transcripts)


@pytest.mark.parametrize("path", [each for each in PARAMETERS if each.id != "directory"])
def test_model_follows_transcript(path: Path) -> None:
    check(path, Interpreter(), rewrite=False)


def test_transcripts_are_in_canonical_form() -> None:
    for path in TRANSCRIPTS:
        content = path.read_text()
        assert format_file(*parse_file(content)) == content, path.name
