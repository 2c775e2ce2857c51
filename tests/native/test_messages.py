"""The functions that the messages declared in C++ become."""

from __future__ import annotations

import pytest

from zlog._native import messages


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
