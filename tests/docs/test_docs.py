"""The documentation is complete, agrees with the program, and its Python runs."""

from __future__ import annotations

import importlib.util
import inspect
import re
import subprocess
import sys
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

import zlog
import zlog.admin
import zlog.aio
import zlog.groups
import zlog.store
import zlog.testing
from tests.support.ceph import CephCluster
from zlog.cli import template
from zlog.cli.exit_codes import ExitCode

from ..support.programs import REPOSITORY
from .pages import DOCS, Block, blocks, table

README = REPOSITORY / "README.md"
API = DOCS / "api.md"
CLI = DOCS / "cli.md"
TESTING = DOCS / "testing.md"


def python_blocks(page: Path, *, ceph: bool) -> list[Block]:
    return [
        block
        for block in blocks(page)
        if block.language == "python" and block.file_name is None and block.needs_ceph is ceph
    ]


def run(block: Block, names: dict[str, Any], **replaced: str) -> None:
    """Run a block, with its line numbers, in the names that earlier blocks left."""
    text = block.text
    for old, new in replaced.items():
        assert old in text, f"{block.page.name}, line {block.line}: no {old}"
        text = text.replace(old, new)
    exec(compile("\n" * block.line + text, str(block.page), "exec"), names)


def words(page: Path) -> set[str]:
    """Return every name that stands in backquotes, alone or at the beginning of a call."""
    code = re.findall(r"`([^`\n]+)`|^ {4}(.+)$", page.read_text(), re.MULTILINE)
    return {name for pair in code for name in re.findall(r"\w+", "".join(pair))}


@pytest.fixture
def generate() -> Any:
    """The program docs/generate.py."""
    spec = importlib.util.spec_from_file_location("generate", DOCS / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_readme_example_runs(tmp_path: Path) -> None:
    (block,) = python_blocks(README, ceph=False)
    run(block, {}, **{"file:///tmp/zlog-store": (tmp_path / "store").as_uri()})


def test_python_reference_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ZLOG_STORE", (tmp_path / "store").as_uri())
    monkeypatch.chdir(tmp_path)  # a block writes a file
    names: dict[str, Any] = {}
    for block in python_blocks(API, ceph=False):
        run(block, names)
    names["store"].close()


def test_testing_page_runs() -> None:
    names: dict[str, Any] = {}
    for block in python_blocks(TESTING, ceph=False):
        run(block, names)


def test_every_referenced_test_file_exists() -> None:
    text = (DOCS / "correctness.md").read_text()
    named = set(re.findall(r"`(tests/[\w/.]+)`", text))
    assert len(named) > 20  # else nothing was found
    assert [name for name in sorted(named) if not (REPOSITORY / name).exists()] == []


def test_every_testing_name_is_documented() -> None:
    assert not {*zlog.testing.__all__} - words(TESTING)


def test_python_reference_runs_on_ceph(ceph_cluster: CephCluster) -> None:
    for module in ("rados", "zlog._native.rados"):
        pytest.importorskip(module, reason=f"{module} is not there")
    for block in python_blocks(API, ceph=True):
        place = {"/etc/ceph/ceph.conf": str(ceph_cluster.conf), '"logs"': repr(ceph_cluster.pool)}
        run(block, {"zlog": zlog}, **place)


def test_documentation_links_resolve() -> None:
    program = [sys.executable, str(REPOSITORY / "tools" / "check-links"), str(README), str(DOCS)]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_every_page_is_in_index() -> None:
    index = (DOCS / "README.md").read_text()
    for page in DOCS.glob("*.md"):
        assert page.name == "README.md" or f"({page.name})" in index


def test_metric_tables_match_help_texts(generate: Any) -> None:
    text = (DOCS / "metrics.md").read_text()
    assert generate.render(text) == text, "run: python docs/generate.py"
    for family in chain.from_iterable(generate.metrics().values()):
        words = family.documentation.split()
        assert len(words) > 1
        assert words[0] not in ("That", "Of", "In", "When", "Whose", "Since"), "lacks its subject"
        assert words[-1].endswith(".")


def test_every_exit_code_is_documented() -> None:
    rows = table(CLI, "| code | meaning |")
    assert {int(code) for code, _ in rows} == set(ExitCode)


def test_every_format_token_is_documented() -> None:
    rows = table(CLI, "| token | becomes |")
    tokens = {token.strip("`") for row in rows for token in row[0].split()}
    known = {"%": {*template._TOKENS}, "\\": {*template._ESCAPES}}
    assert tokens == {sign + key for sign, keys in known.items() for key in keys}


def test_every_finding_is_documented() -> None:
    rows = table(CLI, "| kind | serious | meaning |")
    serious = {kind.strip("`"): answer == "yes" for kind, answer, _ in rows}
    findings = [zlog.Finding(kind, "", None, None, "") for kind in zlog.FindingKind]
    assert serious == {finding.kind.value: finding.serious for finding in findings}


CLASSES = {
    value
    for module in (zlog, zlog.store)
    for value in map(vars(module).get, module.__all__)
    if inspect.isclass(value) and not issubclass(value, Exception)
}


@pytest.mark.parametrize(
    "documented",
    [
        zlog,
        zlog.admin,
        zlog.aio,
        zlog.groups,
        zlog.store,
        *sorted(CLASSES, key=lambda each: each.__name__),
    ],
    ids=lambda documented: documented.__name__,
)
def test_every_public_name_is_documented(documented: Any) -> None:
    names = getattr(documented, "__all__", None)
    if names is None:
        inherited = {*dir(tuple), *dir(object)}
        names = [name for name in vars(documented) if name[0] != "_" and name not in inherited]
        names += getattr(documented, "__dataclass_fields__", [])
    missing = {*names} - words(API)
    assert not missing


def test_every_error_is_documented() -> None:
    rows = table(API, "| error | retryable | when |")
    retryable = {name.strip("`"): answer == "yes" for name, answer, _ in rows}
    errors = {
        name: value
        for name in zlog.__all__
        if inspect.isclass(value := getattr(zlog, name)) and issubclass(value, zlog.ZlogError)
    }
    assert retryable == {name: error.retryable for name, error in errors.items()}


@pytest.mark.parametrize("face", [zlog.Log, zlog.aio.Log])
def test_settings_have_the_documented_defaults(face: Any) -> None:
    rows = table(API, "| setting | default | means |")
    documented = {name.strip("`"): float(value) for name, value, _ in rows}
    for call in (face.open, face.create):
        parameters = inspect.signature(call).parameters
        assert documented == {name: parameters[name].default for name in documented}
        of_the_log = {"create", "width", "stripe_unit", "stripe_bytes", "stripe_records"}
        of_the_log |= {"compression", "hole_timeout", "entry_bytes_max", "options", "mac_key"}
        of_the_log |= {"ordering"}
        assert {*parameters} - {*documented} <= {"store", "name", *of_the_log}


def test_documented_certificates_are_strictly_valid(tmp_path: Path) -> None:
    (recipe,) = [each for each in blocks(DOCS / "operating.md") if "openssl" in each.text]
    subprocess.run(["sh", "-euc", recipe.text], cwd=tmp_path, check=True, capture_output=True)
    verify = ["openssl", "verify", "-x509_strict", "-CAfile", "ca.pem", "seq1.pem"]
    done = subprocess.run(verify, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("seq1.pem: OK\n", "")
