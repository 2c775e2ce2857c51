"""--format delta: whether delta-spark is for this PySpark is said before Spark starts."""

from __future__ import annotations

import importlib
import importlib.util
from importlib import metadata
from typing import Any

import click
import pytest

from zlog.cli.commands.spark import session

REQUIRED = ["pyspark<=4.2.0,>=4.0.1", "importlib_metadata<=8.7.1,>=1.0.0"]
"""As delta-spark 4.4 has it."""


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Versions of what seems to be installed; delta-spark is among it, with its requirements."""
    versions = {"delta-spark": "4.4.0", "pyspark": "4.2.0"}
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    find = importlib.util.find_spec

    def find_spec(name: str, *others: Any) -> Any:
        return find("json" if name == "delta" else name, *others)

    monkeypatch.setattr(importlib.util, "find_spec", find_spec)
    monkeypatch.setattr(metadata, "version", versions.__getitem__)
    monkeypatch.setattr(metadata, "requires", lambda _name: REQUIRED)
    return versions


@pytest.mark.parametrize("version", ["4.0.1", "4.2.0", "4.2.7"])
def test_supported_pyspark_is_accepted(installed: dict[str, str], version: str) -> None:
    installed["pyspark"] = version
    session.check_delta()


@pytest.mark.parametrize("version", ["4.3.0", "5.0.0.dev1", "4.10.0"])
def test_newer_pyspark_is_refused(installed: dict[str, str], version: str) -> None:
    installed["pyspark"] = version
    with pytest.raises(click.ClickException, match=rf"up to 4.2.0, and this is {version}") as error:
        session.check_delta()
    assert "pyspark==4.2.0" in error.value.message


def test_missing_delta_error_has_install_hint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    with pytest.raises(click.ClickException, match="pip install 'delta-spark==") as error:
        session.check_delta()
    assert "'pyspark~=" in error.value.message


def test_spark_submit_packages_are_not_checked(
    installed: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    installed["pyspark"] = "4.3.0"
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    session.check_delta()
