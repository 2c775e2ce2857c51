"""What is public: every name in a public signature can be imported from a public module."""

from __future__ import annotations

import ast
import contextlib
import importlib
import inspect
import typing
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import zlog
import zlog.aio
import zlog.objects
import zlog.objects.aio
import zlog.store
import zlog.testing
import zlog.transfer
from tests.support.programs import REPOSITORY

MODULES: list[ModuleType] = [
    *(zlog, zlog.aio, zlog.objects, zlog.objects.aio),
    *(zlog.store, zlog.testing, zlog.transfer),
]
with contextlib.suppress(ImportError):  # where there is no Spark
    MODULES.append(importlib.import_module("zlog.spark"))

MADE_BY_CALLS = (
    *(zlog.Check, zlog.Cursor, zlog.Log, zlog.Stream, zlog.Writer),
    *(zlog.aio.Check, zlog.aio.Cursor, zlog.aio.Log, zlog.aio.Stream, zlog.aio.Writer),
    *(
        getattr(module, name)
        for module in (zlog.objects, zlog.objects.aio)
        for name in module.__all__
        if name not in ("Replicated", "aio") and not name.isupper()
    ),
)
"""Classes that programs get from a call, and do not make: what they are made of is private."""

FOREIGN: dict[str, Any] = {"Self": Any, "rados": ModuleType("rados")}
"""Names that modules import for type checkers alone, and that are not zlog's."""
FOREIGN["rados"].Ioctx = object


def public() -> dict[str, Any]:
    """Every public name that zlog defines, by where it is imported from."""
    return {
        f"{module.__name__}.{name}": getattr(module, name)
        for module in MODULES
        for name in module.__all__
        if not inspect.ismodule(getattr(module, name))
    }


PUBLIC = public()


@cache
def source(module: str) -> ast.Module:
    """The source of a module; of a compiled one its stub."""
    file = importlib.import_module(module).__file__
    assert file is not None
    path = Path(file)
    if path.suffix != ".py":
        path = REPOSITORY.joinpath(*module.split(".")).with_suffix(".pyi")
    return ast.parse(path.read_text())


@cache
def imports(module: str) -> dict[str, tuple[str, str]]:
    """Names that a module imports from others of zlog, with module and name there."""
    return {
        alias.asname or alias.name: (node.module, alias.name)
        for node in ast.walk(source(module))
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "zlog"
        for alias in node.names
        if node.module
    }


def annotations(node: ast.AST, name: str, value: Any) -> Iterator[tuple[str, ast.expr]]:
    """The annotations of a public function, or of a public class's fields and methods."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        arguments = node.args
        for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
            if each.annotation is not None:
                yield f"{name}({each.arg})", each.annotation
        if node.returns is not None:
            yield f"{name}()", node.returns
    elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        yield name, node.annotation
    elif isinstance(node, ast.ClassDef):
        for member in node.body:
            own = getattr(member, "name", getattr(getattr(member, "target", None), "id", "_"))
            made = own == "__init__" and value not in MADE_BY_CALLS
            if not own.startswith("_") or made:
                yield from annotations(member, f"{name}.{own}", None)


def classes(value: Any) -> list[Any]:
    """A class, and the classes of zlog that it extends."""
    return [each for each in value.__mro__ if each.__module__.split(".")[0] == "zlog"]


def definition(value: Any) -> tuple[str, ast.ClassDef | ast.FunctionDef] | None:
    """The module that defines a class or a function, and its node there; None for others."""
    if not (inspect.isclass(value) or inspect.isroutine(value)):
        return None
    module = value.__module__
    for node in source(module).body:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and node.name == value.__name__:
            return module, node
    raise AssertionError(f"{module} does not define {value.__name__}")


def used_names() -> Iterator[tuple[str, str, str]]:
    """Names in annotations of what is public: where, and the module and name that it stands for."""
    for name, value in PUBLIC.items():
        parts = classes(value) if inspect.isclass(value) else [value]
        for module, defined in filter(None, map(definition, parts)):
            yield from names_in(module, defined, name, value)


def names_in(
    module: str, defined: ast.AST, name: str, value: Any
) -> Iterator[tuple[str, str, str]]:
    """Those of one definition."""
    local = {getattr(node, "name", None) for node in source(module).body}
    for where, annotation in annotations(defined, name, value):
        if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
            annotation = ast.parse(annotation.value, mode="eval").body
        for used in ast.walk(annotation):
            if isinstance(used, ast.Name) and used.id in imports(module):
                yield where, *imports(module)[used.id]
            elif isinstance(used, ast.Name) and used.id in local:
                yield where, module, used.id


def test_every_name_in_a_public_signature_can_be_imported() -> None:
    known = {id(value) for value in PUBLIC.values()}
    used = [*used_names()]
    assert len(used) > 200
    private = {
        f"{where}: {module}.{name}"
        for where, module, name in used
        if id(getattr(importlib.import_module(module), name)) not in known
    }
    assert not private


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_annotations_can_be_evaluated(name: str) -> None:
    value = PUBLIC[name]
    defining = classes(value) if inspect.isclass(value) else []
    members = [member for each in defining for own, member in vars(each).items() if own[0] != "_"]
    for each in [value, *members]:
        plain = getattr(each, "__func__", getattr(each, "fget", each))
        if inspect.isfunction(plain) or inspect.isclass(plain):
            typing.get_type_hints(plain, localns=FOREIGN)


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_what_is_public_says_so(module: ModuleType) -> None:
    assert [*module.__all__] == sorted(set(module.__all__))
    for name in module.__all__:
        found = definition(getattr(module, name))
        assert found is None or ast.get_docstring(found[1]), name
