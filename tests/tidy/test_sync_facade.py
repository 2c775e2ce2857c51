"""The API for threads follows from the API for asyncio; `tests/__init__.py` has it written."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tools import sync_facade

from .files import ROOT

SOURCES = "\n".join(
    file.read_text() for name in sync_facade.PACKAGES for file in (ROOT / name).glob("*.py")
)


@pytest.mark.parametrize("pattern", [pattern for pattern, _ in sync_facade.RULES])
def test_every_rule_is_needed(pattern: str) -> None:
    assert re.search(pattern, SOURCES)


@pytest.mark.parametrize("path", sync_facade.generated(), ids=str)
def test_generated_facade_is_free_of_asyncio(path: Path) -> None:
    text = path.read_text().partition("\n")[2]
    found = re.search(r".*\b(async|await|asyncio|aio|event loop|Opening)\b.*", text)
    assert not found, found[0]


def test_stale_files_are_regenerated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sync_facade, "ROOT", tmp_path)
    monkeypatch.setattr(sync_facade, "PACKAGES", ("aio",))
    source, target = tmp_path / "aio" / "log.py", tmp_path / "sync" / "log.py"
    source.parent.mkdir()
    source.write_text("async def read() -> None: ...\n")
    assert target in sync_facade.write()
    assert target.read_text().endswith("\ndef read() -> None: ...\n")
    assert sync_facade.write() == []
    source.rename(source.with_name("logs.py"))
    assert {*sync_facade.write()} == {target, target.with_name("logs.py")}
    assert not target.exists()
