"""Extreme values, in all options of all commands, end with a documented exit code."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click
import pytest

import zlog
from zlog.cli.exit_codes import ExitCode
from zlog.cli.main import command

from .conftest import Inside, all_commands

_NINES = ["9" * count for count in (17, 20, 400, 5000)]
NUMBERS = [
    *("0", "-0", "-1", "1", "nan", "inf", "-inf", "1e-400", "1e300", "1e999", "\u0661", "1_0"),
    *(str(2**bits - less) for bits in (31, 32, 53, 63, 64) for less in (0, 1)),
    *(nines + stripe_unit for nines in _NINES for stripe_unit in ("", "d", "G", "TB")),
]
TIMES = [
    *("@800000d", "@today:@800000d", "@52000w", "0.0000001s", "@0000-01-01", "@99:99", ":", "::"),
    *("@0001-01-01T00:00+23:59", "@9999-12-31T23:59:59.999999-23:59", "@1969-12-31", "5:-5"),
    *(f"@{nines}w" for nines in _NINES),
    *(f"-{2**63}:", f"-{2**64}", f":{2**63 - 1}"),
]
TEXTS = ["", "_" * 128, "\udc80", "a=\udc80", "\n\u2028", "-", "[" * 100_000]
PLACES = [
    *("[::1", ":99999", "host:-1", "http://[", "bogus://x", "ceph://", "file://host/x"),
    *("file:///tmp/%00", "ceph://p?conf=%00", "ceph://p?timeout=nan&conf=/none", "/proc/self/mem"),
]
WORDS = [*NUMBERS, *TIMES, *TEXTS, *PLACES, "never", "off", "none"]

_GIVEN = "log=orders log_names=spare name=x names=c producers=s key=k value=1 position=1"
_GIVEN += " positions=1 words=true address=127.0.0.1:1 shell=bash target=mem:// table=t pattern=w*"
_GIVEN += " directory=spool query=table to=5"
GIVEN = dict(word.split("=") for word in _GIVEN.split(" "))
"""What an argument or option that is needed gets while another one is extreme."""

ENDLESS = ("top", "console", "http", "exporter", "spark", "table", "objects watch", "work")
"""Commands that run until they are stopped; they get a store that does not exist, to read only."""

ROOT = click.Context(command, info_name="zlog")
LEAVES = {
    name.removeprefix("zlog "): found
    for name, found in all_commands()
    if not isinstance(found, click.Group) or found.invoke_without_command
}


def accepted(path: str, command: click.Command) -> Iterator[tuple[click.Parameter, str]]:
    """Go through the words that the type of a parameter takes, each value once.

    Of the words that are not numbers or times, only some are worth a run.
    """
    for param in command.params:
        ctx = click.Context(command, parent=ROOT, info_name=path)
        seen: set[str] = set()
        for word in () if getattr(param, "is_flag", False) else WORDS:
            try:
                many = param.multiple or param.nargs == -1
                value = param.process_value(ctx, (word,) if many else word)
            except (click.UsageError, OSError):  # OSError: `-` reads stdin, which pytest has
                continue
            place = any(part in (param.metavar or "") for part in ("URL", "PORT", "FILE"))
            if value in (word, (word,)) and word not in (PLACES if place else TEXTS):
                continue
            if repr(value) not in seen:
                seen.add(repr(value))
                yield param, word


def words_of(path: str, command: click.Command, extreme: click.Parameter, word: str) -> list[str]:
    """Return a command line in which one parameter has an extreme value."""
    options, arguments = [], []
    for param in command.params:
        given = word if param is extreme else GIVEN.get(str(param.name))
        if param is not extreme and not param.required:
            continue
        assert given is not None, f"{path}: GIVEN has no {param.name}"
        if isinstance(param, click.Argument):
            arguments.append(given)
        elif len(param.opts[-1]) == 2:
            options.append(f"{param.opts[-1]}{given}")
        else:
            options.append(f"{param.opts[-1]}={given}")
    return [*path.split(), *options, "--", *arguments]


def check(inside: Inside, words: list[str], stdin: bytes = b"x\n") -> None:
    code, _, err = inside("--timeout", "5", *words, stdin=stdin)
    shown = [word[:60] for word in words]
    assert code in set(ExitCode), shown
    assert "internal error" not in err, (shown, err[:300])
    assert len(err) < 3000, shown


@pytest.mark.parametrize("path", LEAVES)
def test_extreme_values_exit_with_documented_code(
    path: str, inside: Inside, ten: zlog.Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ten.cursor("c", create=0)
    if path.startswith(ENDLESS):
        inside = Inside((tmp_path / "none").as_uri() + "?mode=ro")
    for param, word in accepted(path, LEAVES[path]):
        if path.startswith("bench"):  # it measures for seconds
            continue
        check(inside, words_of(path, LEAVES[path], param, word))


def test_extreme_global_options_exit_with_documented_code(inside: Inside) -> None:
    for param, word in accepted("zlog", command):
        name = param.opts[-1]
        check(inside, [f"{name}={word}", "append", "orders", "-m", "x"])


@pytest.mark.parametrize(
    "line",
    [
        b"[" * 100_000,
        b'{"data": "x", "more": ' + b"[" * 100_000,
        b'{"data": "\\ud800"}',
        b'{"data": "x", "tags": ["\\ud800"]}',
        b'{"data": ' + b"9" * 5000 + b"}",
        b'{"data": "\xff"}',
    ],
)
def test_extreme_input_exits_with_documented_code(inside: Inside, line: bytes) -> None:
    check(inside, ["append", "orders", "--json"], stdin=line + b"\n")
    check(inside, ["objects", "put", "orders", "m", "k", "-"], stdin=line)
    check(inside, ["import", "new"], stdin=line)
