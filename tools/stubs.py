"""Writes the stub of a compiled module (``.pyi``), from its Cython code alone.

``python tools/stubs.py MODULE.pyx OUTPUT [INCLUDED…]``. The build runs it, so it needs the standard
library only. C types become Python's, annotations give the other types, and docstrings are copied.
A parameter of a C type admits None unless it says ``not None``. A comment on the line of a
``cdef class`` names its base for type checkers, and a comment on the line of an attribute the type
of an ``object`` or a tuple. A comment after a ``namedtuple`` has the types of its fields; a class
that inherits from ``NamedTuple`` takes twice as long to make. Names that begin with an underscore
are left out, and classes without a docstring, which only other compiled modules use.
"""

from __future__ import annotations

import re
import sys
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from tokenize import TokenInfo

_VALUES = {"bint": "bool", "cbool": "bool", "double": "float"} | dict.fromkeys(
    ["int", "size_t", "Py_ssize_t", *(f"uint{bits}_t" for bits in (8, 16, 32, 64))], "int"
)
"""The types whose values are never None."""

_IGNORED = {"__dealloc__", "__reduce__", "__repr__", "__eq__"}
_BUFFER = "def __buffer__(self, flags: int, /) -> memoryview: ..."
_LITERALS = ("None", "True", "False")
_TUPLE_METHODS = ("count", "index")


@dataclass
class Statement:
    """A logical line of code, and the statements in it if it is a block."""

    tokens: list[TokenInfo]
    comment: str = ""
    body: list[Statement] = field(default_factory=list)

    @property
    def words(self) -> list[str]:
        """The text of the tokens."""
        return [token.string for token in self.tokens]

    def docstring(self) -> str:
        """Return the literal that the block begins with, or nothing."""
        first = self.body[0].tokens if self.body else []
        return first[0].string if len(first) == 1 and first[0].type == tokenize.STRING else ""


def statements(path: Path) -> list[Statement]:
    """Return the statements of a file; Cython's tokens are Python's."""
    blocks: list[list[Statement]] = [[]]
    line = Statement([])
    with path.open("rb") as file:
        for token in tokenize.tokenize(file.readline):
            if token.type == tokenize.INDENT:
                blocks.append(blocks[-1][-1].body)
            elif token.type == tokenize.DEDENT:
                blocks.pop()
            elif token.type == tokenize.COMMENT:
                line.comment = token.string.lstrip("# ") if line.tokens else ""
            elif token.type == tokenize.NEWLINE:
                blocks[-1].append(line)
                line = Statement([])
            elif token.type not in (tokenize.NL, tokenize.ENCODING, tokenize.ENDMARKER):
                line.tokens.append(token)
    return blocks[0]


def _text(tokens: list[TokenInfo]) -> str:
    """Return the code of tokens on one line."""
    out = ""
    for before, token in zip([None, *tokens], tokens, strict=False):
        out += " " if before is not None and before.end != token.start else ""
        out += token.string
    return re.sub(r"([(\[]) | (?=[)\]])", r"\1", out)


def _split(tokens: list[TokenInfo], mark: str) -> list[list[TokenInfo]]:
    """Split tokens at a mark that is not in brackets."""
    out: list[list[TokenInfo]] = [[]]
    depth = 0
    for token in tokens:
        depth += (token.string in "([{") - (token.string in ")]}")
        if token.string == mark and depth == 0:
            out.append([])
        else:
            out[-1].append(token)
    return out


def _python_type(words: list[str], *, optional: bool, where: str) -> str:
    name = " ".join(word for word in words if word not in ("unsigned", "const"))
    if name in _VALUES:
        return _VALUES[name]
    if not name or name == "object":
        raise SystemExit(f"{where} needs an annotation")
    return f"{name} | None" if optional else name


def _parameter(tokens: list[TokenInfo], where: str) -> str:
    declared, *default = _split(tokens, "=")
    declared, *annotation = _split(declared, ":")
    words = [token.string for token in declared]
    optional = words[-2:] != ["not", "None"]
    *words, name = words if optional else words[:-2]
    if name in ("self", "*", "/"):
        return name
    kind = _text(annotation[0]) if annotation else ""
    kind = kind or _python_type(words, optional=optional, where=f"{where}({name})")
    if not default:
        return f"{name}: {kind}"
    named = any(word.string not in _LITERALS for word in default[0] if word.type == tokenize.NAME)
    return f"{name}: {kind} = " + ("..." if named else _text(default[0]))


def _function(
    statement: Statement, indent: str, decorators: list[str], where: str
) -> Iterator[str]:
    _, name, *rest = statement.tokens
    if name.string in _IGNORED or (name.string[0] == "_" and name.string[-2:] != "__"):
        return
    if name.string == "__getbuffer__":
        yield indent + _BUFFER
        return
    head, *returned = _split(rest[:-1], "->")
    inside = [each for each in _split(head[1:-1], ",") if each]
    parameters = [_parameter(each, f"{where}.{name.string}") for each in inside]
    if not returned and name.string not in ("__init__", "__cinit__"):
        raise SystemExit(f"{where}.{name.string} does not say what it returns")
    kind = _text(returned[0]) if returned else "None"
    doc = statement.docstring()
    yield from (indent + decorator for decorator in decorators)
    called = name.string.replace("__cinit__", "__init__")
    yield f"{indent}def {called}({', '.join(parameters)}) -> {kind}:" + ("" if doc else " ...")
    if doc:
        yield f"{indent}    {doc}"


def _attribute(statement: Statement, where: str) -> Iterator[str]:
    _, access, *words, name = statement.words
    kind = statement.comment if words[0] in ("object", "tuple") else ""
    kind = kind or _python_type(words, optional=False, where=f"{where}.{name}")
    if access == "public":
        yield f"    {name}: {kind}"
    elif access == "readonly":
        yield "    @property"
        yield f"    def {name}(self) -> {kind}: ..."


def _field(declared: str) -> str:
    """Return the line of a named tuple's field."""
    clash = "  # type: ignore[assignment]" if declared.split(":")[0] in _TUPLE_METHODS else ""
    return f"    {declared}{clash}"


def _class(statement: Statement, attributes: list[Statement], where: str) -> Iterator[str]:
    words = statement.words
    name = words[words.index("class") + 1]
    compiled = words[0] == "cdef"
    if name.startswith("_") or (compiled and not statement.docstring()):
        return
    base = (
        f"({statement.comment})"
        if compiled and statement.comment
        else "".join(words[:-1]).partition(name)[2]
    )
    yield f"class {name}{base}:"
    if statement.docstring():
        yield f"    {statement.docstring()}\n"
    members = [
        line
        for each in attributes + statement.body
        if each.words[0] == "cdef" and each.words[1] in ("public", "readonly")
        for line in _attribute(each, f"{where}.{name}")
    ]
    decorators: list[str] = []
    for each in statement.body:
        first = each.words[0]
        if first == "@":
            decorators.append(_text(each.tokens))
        elif first == "def":
            members += _function(each, "    ", decorators, f"{where}.{name}")
            decorators = []
        elif not compiled and ":" in each.words:
            members.append(_field(_text(_split(each.tokens, "=")[0])))
    yield from members or ["    ..."]


def _imports(found: list[Statement], body: str) -> Iterator[str]:
    """Yield the imports whose names the stub has."""
    for each in found:
        words = each.words
        if words[0] == "import":
            if re.search(rf"\b{re.escape(_text(each.tokens[1:]))}\.", body):
                yield _text(each.tokens)
            continue
        middle = words.index("cimport" if "cimport" in words else "import")
        module = "".join(words[1:middle])
        named = [
            _text(one)
            for one in _split([t for t in each.tokens[middle + 1 :] if t.string not in "()"], ",")
        ]
        used = [name for name in named if name and re.search(rf"\b{name}\b", body)]
        if used and ("cimport" not in words or module.startswith("zlog.")):
            yield f"from {module} import {', '.join(used)}"


def stub(module: Path, included: list[Path]) -> str:
    """Return the stub of a module."""
    declared = module.with_suffix(".pxd")
    declarations = statements(declared) if declared.exists() else []
    attributes = {
        each.words[2]: each.body for each in declarations if each.words[:2] == ["cdef", "class"]
    }
    code = [each for path in (module, *included) for each in statements(path)]
    imports: list[Statement] = []
    out: list[str] = []
    known = False
    for each in code:
        words = each.words
        if words[:2] == ["if", "TYPE_CHECKING"]:
            imports += [one for one in each.body if one.words[0] in ("import", "from")]
            out += [
                _text(one.tokens) for one in each.body if one.words[0] not in ("import", "from")
            ]
        elif words[0] in ("import", "from"):
            imports.append(each)
        elif words[:2] == ["cdef", "class"] or words[0] == "class":
            name = words[words.index("class") + 1]
            out += ["", *_class(each, attributes.get(name, []), module.stem)]
        elif words[0] == "def":
            out += ["", *_function(each, "", [], module.stem)]
        elif each.comment.startswith("NamedTuple: "):
            fields = each.comment.removeprefix("NamedTuple: ").split("; ")
            out += ["", f"class {words[0]}(NamedTuple):", *map(_field, fields)]
        elif len(words) > 1 and words[1] == ":" and words[0] != "else":
            alias = words[2] == "TypeAlias"
            out += ["", _text(each.tokens if alias else _split(each.tokens, "=")[0])]
        elif len(words) == 1 and known and each.tokens[0].type == tokenize.STRING:
            out.append(words[0])
        known = len(words) > 1 and words[1] == ":"
    body = "\n".join(out)
    doc = next((each.words[0] for each in code[:1] if each.tokens[0].type == tokenize.STRING), "")
    return "\n".join([doc, "", *_imports(imports, body), body, ""])


if __name__ == "__main__":
    source, output, *more = map(Path, sys.argv[1:])
    output.write_text(stub(source, more))
