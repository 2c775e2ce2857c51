"""The functions that the messages declared in C++ become, against their stub."""

from __future__ import annotations

import ast
import inspect
import pickle

import pytest

from tests.support.programs import REPOSITORY
from zlog._native import messages

STUB = ast.parse((REPOSITORY / "zlog/_native/messages.pyi").read_text())


def test_stub_declares_every_function() -> None:
    told = {
        each.name: [argument.arg for argument in each.args.args]
        for each in STUB.body
        if isinstance(each, ast.FunctionDef)
    }
    found = {
        name: list(inspect.signature(value).parameters)
        for name, value in vars(messages).items()
        if inspect.isroutine(value) and value.__module__ == messages.__name__
    }
    assert found == told
    assert len([name for name, words in told.items() if words != ["reply"]]) > 30


def test_stub_declares_every_named_tuple() -> None:
    told = {
        each.name: tuple(
            row.target.id
            for row in each.body
            if isinstance(row, ast.AnnAssign) and isinstance(row.target, ast.Name)
        )
        for each in STUB.body
        if isinstance(each, ast.ClassDef)
    }
    found = {
        name: value._fields for name, value in vars(messages).items() if hasattr(value, "_fields")
    }
    assert found == told
    stripe = messages.Stripe(1, 0, 8, 4, 1, b"")
    assert pickle.loads(pickle.dumps(stripe)) == stripe


def test_keyword_arguments_are_accepted() -> None:
    named = messages.seal(1, residue=0, create=True, stride=2)
    assert named == messages.seal(1, 2, 0, True)
    with pytest.raises(TypeError, match="nonsense"):
        messages.seal(1, 2, 0, True, nonsense=True)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="seal"):
        messages.seal(1, stride=2, create=True)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="stride"):
        messages.seal(1, 2, stride=2, residue=0, create=True)  # type: ignore[misc]


def test_omitted_argument_uses_default() -> None:
    assert messages.read(1, True, 9, 1, [0], tags=True) == messages.read(
        1, True, 9, 1, [0], False, True
    )


@pytest.mark.parametrize(
    ("values", "error"),
    [
        ((1, 2, 0), TypeError),
        ((1, 2, 0, True, 5, 4, 6), TypeError),
        ((1, 2, 0, True, 5, 6), ValueError),
        ((1.5, 2, 0, True), TypeError),
        ((-1, 2, 0, True), OverflowError),
        ((2**64, 2, 0, True), OverflowError),
        ((1, 2**32, 0, True), OverflowError),
        ((0, 2, 0, True), ValueError),
    ],
)
def test_invalid_arguments_are_refused(values: tuple[int, ...], error: type[Exception]) -> None:
    with pytest.raises(error):
        messages.seal(*values)


def test_bytes_and_text_are_not_interchangeable() -> None:
    with pytest.raises(TypeError):
        messages.head_create(b"orders", 1)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        messages.fill(1, 1, "w" * 16, 0, 1, [0])  # type: ignore[arg-type]
