"""What is public: every class in a public signature can be imported from a public module."""

from __future__ import annotations

import ast
import contextlib
import importlib
import inspect
import typing
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

import zlog
import zlog.aio
import zlog.extension
import zlog.objects
import zlog.objects.aio
import zlog.store
import zlog.testing
import zlog.transfer
from tests.support.programs import REPOSITORY

MODULES: list[ModuleType] = [
    *(zlog, zlog.aio, zlog.objects, zlog.objects.aio),
    *(zlog.extension, zlog.store, zlog.testing, zlog.transfer),
]
for package in ("zlog.eventsourcing", "zlog.spark", "zlog.tables"):
    with contextlib.suppress(ImportError):  # where the packages that it needs are not there
        MODULES.append(importlib.import_module(package))

FOREIGN: dict[str, Any] = {"Self": Any, "rados": ModuleType("rados")}
"""Names that modules import for type checkers alone, and that are not zlog's."""
FOREIGN["rados"].Ioctx = object

PUBLIC = {
    f"{module.__name__}.{name}": getattr(module, name)
    for module in MODULES
    for name in module.__all__
    if not inspect.ismodule(getattr(module, name))
}
"""Every public name that zlog defines, by where it is imported from."""


def hints(value: Any) -> Iterator[Any]:
    """The types of a public function, or of a public class's fields and methods."""
    defining = value.__mro__ if inspect.isclass(value) else ()
    own = [vars(each) for each in defining if each.__module__.split(".")[0] == "zlog"]
    members = [member for each in own for name, member in each.items() if name[0] != "_"]
    for each in [value, *members]:
        plain = getattr(each, "__func__", getattr(each, "fget", each))
        if inspect.isfunction(plain) or inspect.isclass(plain):
            found = typing.get_type_hints(plain, localns=FOREIGN)
            yield from (hint for name, hint in found.items() if name[0] != "_")


def classes_in(hint: Any) -> Iterator[type]:
    """Zlog's classes that a type is made of."""
    if inspect.isclass(hint) and hint.__module__.split(".")[0] == "zlog":
        yield hint
    for part in typing.get_args(hint):
        for each in part if isinstance(part, list) else [part]:
            yield from classes_in(each)


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_classes_in_public_signatures_are_importable(name: str) -> None:
    used = {each for hint in hints(PUBLIC[name]) for each in classes_in(hint)}
    assert {each for each in used if not any(each is known for known in PUBLIC.values())} == set()


def is_documented(value: Any) -> bool:
    """Whether its definition has a docstring; that of a compiled class is in the stub."""
    if not (inspect.isclass(value) or inspect.isroutine(value)):
        return True
    if value.__doc__:
        return not value.__doc__.startswith(f"{value.__name__}(")  # as a dataclass without one has
    stub = REPOSITORY.joinpath(*value.__module__.split(".")).with_suffix(".pyi")
    defined = ast.parse(stub.read_text()).body
    (node,) = (n for n in defined if getattr(n, "name", "") == value.__name__)
    return isinstance(node, ast.ClassDef) and bool(ast.get_docstring(node))


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_public_names_are_sorted_and_documented(module: ModuleType) -> None:
    assert [*module.__all__] == sorted(set(module.__all__))
    assert [name for name in module.__all__ if not is_documented(getattr(module, name))] == []
