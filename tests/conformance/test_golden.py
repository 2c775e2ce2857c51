"""The wire format, byte for byte: what is sent to every host, and what it answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from zlog._native import messages as native

from . import golden
from .golden import Taped, exchanges
from .messages import METHODS, decode
from .objects import Store
from .transcript import Interpreter


@pytest.mark.parametrize("path", golden.CONVERSATIONS, ids=lambda path: path.stem)
def test_golden_bytes(path: Path, store: Store, prefix: str) -> None:
    taped = Taped(store)
    interpreter = Interpreter(taped, prefix)
    for command, expected in golden.conversation(path):
        interpreter.run(command)
        if expected is not None:
            assert str(taped.passed) == str(expected), command


def test_golden_conversations_cover_every_method() -> None:
    """But for those whose replies are not the same on every host."""
    assert {each.method for each in exchanges()} == {*METHODS} - {"stat", "version"}


def _listed(value: Any) -> Any:
    """A decoded message in lists, as the two codecs use lists and tuples for the same.

    Without further fields of later versions: there are none, and only one of the codecs keeps them.
    """
    if getattr(value, "further", None) == b"":
        value = value[:-1]
    return [*map(_listed, value)] if isinstance(value, (list, tuple)) else value


@pytest.mark.parametrize("method", METHODS)
def test_native_codec_reads_golden_replies(method: str) -> None:
    for each in exchanges():
        if each.method == method and each.code != "OK":
            assert native.refusal(each.reply) == decode("RefusalReply", each.reply)
        elif each.method == method and hasattr(native, f"{method}_reply"):
            ours = decode(METHODS[method].reply, each.reply)
            theirs = getattr(native, f"{method}_reply")(each.reply)
            assert theirs._fields == ours._fields
            assert _listed(theirs) == _listed(ours)
