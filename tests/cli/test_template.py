"""The command template."""

from __future__ import annotations

import json

import pytest

import zlog
from zlog.cli.exit_codes import ExitCode

from .conftest import Inside


def test_template_is_set_and_used_by_create(inside: Inside, orders: zlog.Log) -> None:
    given = ["--width", "1", "--compression", "zstd", "--entry-bytes-max", "2M"]
    given += ["--hole-timeout", "never", "--retention-age", "7d", "--retention-bytes", "off"]
    inside.ok("template", "set", "web-*", *given, "--option", "team=a b")
    options = {"compression": "zstd", "entry_bytes_max": "2097152", "hole_timeout": "never"}
    options |= {"retention_age_s": "604800", "team": "a b"}
    assert json.loads(inside.ok("template", "ls", "--json")) == {
        "pattern": "web-*",
        "settings": {**options, "width": "1"},
    }
    assert b" width=1\n" in inside.ok("template", "ls")
    inside.ok("create", "web-1", "--width", "3")
    rows = [line.split("  ", 1) for line in inside.ok("info", "web-1").decode().splitlines()]
    shown = {label: value.strip() for label, value in rows}
    assert shown["width"] == "3 (log)"
    assert shown["option compression"] == "zstd (template 'web-*')"
    assert shown["defaults"].startswith("stripe_unit 256, ordering sequencer, stripe_bytes ")
    settings = json.loads(inside.ok("info", "web-1", "--json"))["settings"]
    assert settings["team"] == {"value": "a b", "origin": "template", "pattern": "web-*"}
    inside.ok("template", "rm", "web-*")
    again = inside("template", "rm", "web-*")
    assert (again.code, again.err.splitlines()[0]) == (1, "zlog: there is no template 'web-*'")
    assert inside("template", "set", "*").code == ExitCode.USAGE
    assert inside.ok("template", "ls") == b""
    assert orders.view.options == {}


def test_templates_are_applied_to_logs(inside: Inside, orders: zlog.Log) -> None:
    zlog.Log.create(orders.store, "web-1", compression="lz4").close()
    inside.ok("template", "set", "web-*", "--compression", "zstd")
    expected = b"orders: no template matches\nweb-1: template 'web-*': compression lz4 -> zstd\n"
    assert inside.ok("template", "apply", "--match", "*", "--dry-run") == expected
    assert inside.ok("template", "apply", "--match", "*") == expected
    done = b"template 'web-*': nothing to change\n"
    assert inside.ok("template", "apply", "web-1") == done


@pytest.mark.parametrize(
    ("option", "value"),
    [("--stripe-unit", "3"), ("--entry-bytes-max", "17M"), ("--option", "hole_timeout=none")],
)
@pytest.mark.usefixtures("orders")
def test_values_are_checked_as_by_create(inside: Inside, option: str, value: str) -> None:
    created = inside("create", "new", option, value)
    template = inside("template", "set", "*", option, value)
    assert created.code == template.code == ExitCode.USAGE
    assert created.err.splitlines()[-1] == template.err.splitlines()[-1]
    assert inside.ok("template", "ls") == b""
