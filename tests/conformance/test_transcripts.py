"""Every transcript in testdata, on the models and on every host.

`pytest tests/conformance/test_transcripts.py --rewrite-transcripts` puts the hosts' answers into
the files; read the difference before you commit it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import zlog
from zlog._native import core

from .objects import Store
from .transcript import HostWorld, Interpreter, ModelWorld, World, format_file, parse_file

TRANSCRIPTS = sorted((Path(__file__).parent / "testdata").glob("*.txt"))


def check(path: Path, world: World, rewrite: bool) -> None:
    """Run one transcript; on `rewrite`, write down what was answered instead of complaining."""
    blocks, rest = parse_file(path.read_text())
    interpreter = Interpreter(world)
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


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
def test_host_answers_as_written(
    path: Path, store: Store, prefix: str, rewrite_transcripts: bool
) -> None:
    check(path, HostWorld(store, prefix), rewrite_transcripts)


class Submitted:
    """A store whose calls are submitted and waited for, one at a time."""

    def __init__(self, store: zlog.Store) -> None:
        self._store = store
        self._queue = core.CompletionQueue()

    def execute(self, object: str, method: str, payload: bytes) -> tuple[int, bytes]:
        """See `Store`."""
        self._store.submit(self._queue, 7, [(object, method, payload)])
        assert self._queue.wait(60)
        ((token, code, reply),) = self._queue.drain()
        assert token == 7
        return code, bytes(reply)  # large ones are not copied before that


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
def test_host_answers_the_same_to_what_is_submitted(
    path: Path, store: zlog.Store, prefix: str
) -> None:
    check(path, HostWorld(Submitted(store), prefix), rewrite=False)


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
def test_model_answers_as_written(path: Path) -> None:
    check(path, ModelWorld(), rewrite=False)


def test_a_transcript_survives_being_rewritten() -> None:
    for path in TRANSCRIPTS:
        content = path.read_text()
        assert format_file(*parse_file(content)) == content, path.name
