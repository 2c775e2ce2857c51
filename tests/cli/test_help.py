"""Help, global options, usage errors."""

from __future__ import annotations

import click
import pytest
from click.testing import CliRunner

import zlog
from zlog.cli.main import command

from .conftest import Cli, Inside

COMMANDS = [
    *("create", "ls", "info", "views", "reconfigure", "access", "rm"),
    *("append", "read", "tail", "fill", "trim", "retention"),
    *("cursor", "producer", "objects", "spark"),
    *("export", "import", "mirror"),
    *("seqr", "store", "check", "doctor", "top", "console", "exporter", "bench"),
    *("completion", "help"),
]
GROUPS = ["access", "cursor", "producer", "objects", "spark", "seqr", "store", "bench"]


def test_command_list_is_complete() -> None:
    assert command.list_commands(click.Context(command)) == COMMANDS


@pytest.mark.parametrize(
    "words",
    [*([name] for name in COMMANDS), ["bench", "append"], ["seqr", "status"], ["objects", "lock"]],
)
def test_each_command_has_matching_example(words: list[str]) -> None:
    result = CliRunner().invoke(command, [*words, "--help"])
    assert result.exit_code == 0
    _, _, examples = result.stdout.partition("\nExamples:\n")
    assert f"zlog {' '.join(words)}" in examples


def test_short_help_fits_on_one_line() -> None:
    shown = CliRunner().invoke(command, ["--help"]).stdout
    lists = shown.partition("\nLogs:\n")[2].partition("\nExamples:\n")[0]
    lines = [line for line in lists.splitlines() if line.startswith("  ")]
    assert [line.split()[0] for line in lines] == COMMANDS
    assert "..." not in lists


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        (["frobnicate"], "No such command 'frobnicate'."),
        (["trial"], "No such command 'trial'. Did you mean trim or tail?"),
        (["cursor", "st"], "No such command 'st'. Did you mean set?"),
        (["fence"], "No such command 'fence'. Did you mean access?"),
        (["restore"], "No such command 'restore'. Did you mean store?"),
        (["delete", "orders"], "No such command 'delete'. Did you mean rm or trim?"),
        (["objects", "set"], "No such command 'set'. Did you mean put?"),
        (["tail", "--since", "1h"], "No such option '--since'. Did you mean --from?"),
        (["read", "--limit=9"], "No such option '--limit'. Did you mean a RANGE such as @5m:"),
        (["read", "-f", "%s"], "No such option '-f'. Did you mean --format?"),
        (["--timeout", "5"], "Missing command."),
        (["cursor", "--timeout", "5"], "Missing command."),
        (["--frob"], "No such option"),
    ],
)
def test_unknown_command_is_refused(words: list[str], answer: str) -> None:
    result = CliRunner().invoke(command, words)
    assert result.exit_code == 2
    assert f"Error: {answer}" in result.stderr


@pytest.mark.parametrize("name", GROUPS)
def test_command_help_is_not_truncated(name: str) -> None:
    shown = CliRunner().invoke(command, [name, "--help"]).stdout
    assert "..." not in shown.partition("\nCommands:\n")[2]


@pytest.mark.parametrize("words", [[], ["read"], ["cursor"], ["cursor", "set"], ["help"]])
def test_help_command_prints_help(words: list[str]) -> None:
    shown = CliRunner().invoke(command, ["help", *words])
    assert shown.exit_code == 0
    assert shown.stdout == CliRunner().invoke(command, [*words, "--help"]).stdout


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        (["trial"], "No such command 'trial'. Did you mean trim or tail?"),
        (["cursor", "st"], "No such command 'st'. Did you mean set?"),
        (["read", "orders"], "'zlog read' has no commands of its own."),
    ],
)
def test_help_of_unknown_command_is_refused(words: list[str], answer: str) -> None:
    result = CliRunner().invoke(command, ["help", *words])
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"Error: {answer}" in result.stderr


def test_global_options_precede_or_follow_command(cli: Cli, url: str) -> None:
    del cli.environment["ZLOG_STORE"]
    assert cli.ok("--store", url, "ls") == b"orders\n"
    assert cli.ok("ls", "--timeout", "5", "--store", url) == b"orders\n"


@pytest.mark.parametrize(
    "words",
    [
        ["frobnicate"],
        ["read"],
        ["read", "orders", "--jsn"],
        ["read", "orders", "1-2"],
        ["read", "orders", "--json", "--raw"],
        ["read", "a/b"],
        ["create", "orders", "--width", "0"],
        ["create", "orders", "--option", "novalue"],
        ["ls", "--timeout", "soon"],
        ["ls", "--timeout", "-1"],
        ["ls", "--timeout", "nan"],
        ["tail", "orders", "--hole-timeout", "-1"],
        ["--store", "ceph://pool?timeout=nan", "ls"],
        ["trim", "orders"],
        ["trim", "orders", "1", "--to", "2"],
        ["append", "orders", "--json", "--null"],
        ["append", "orders", "--whole", "--null"],
        ["append", "orders", "--max-bytes", "many"],
        ["-N", "billing", "ls"],
        ["-p", "pool", "ls"],
        ["--store", "gopher://x", "ls"],
        ["--store", "ceph://pool?frob=1", "ls"],
        ["seqr", "--listen", "nowhere"],
        ["seqr", "status", "nowhere"],
    ],
)
def test_usage_errors_exit_with_2(inside: Inside, words: list[str]) -> None:
    result = inside(*words)
    assert (result.code, result.out) == (2, b"")
    assert "Error: " in result.err


def test_ceph_options_select_store() -> None:
    words = ["-p", "logs", "-N", "billing", "-c", "/nowhere/ceph.conf", "-n", "client.me", "ls"]
    result = CliRunner().invoke(command, words)
    assert result.exit_code == 6
    assert "/nowhere/ceph.conf" in result.stderr


def test_version(cli: Cli) -> None:
    assert cli.ok("--version").startswith(b"zlog ")


def test_completion_scripts_are_printed(cli: Cli) -> None:
    for shell in ("bash", "zsh", "fish"):
        assert b"_ZLOG_COMPLETE" in cli.ok("completion", shell)
    assert cli("completion", "tcsh").code == 2


def complete(cli: Cli, line: str) -> list[str]:
    """Return what bash is offered for the last word of a line."""
    words = line.split(" ")
    cli.environment |= {
        "_ZLOG_COMPLETE": "bash_complete",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(words) - 1),
    }
    return [each.partition(",")[2] for each in cli.ok().decode().split()]


def test_commands_options_and_logs_are_completed(cli: Cli) -> None:
    with zlog.connect(cli.url) as store:
        zlog.Log.create(store, "others").close()
    assert complete(cli, "zlog t") == ["tail", "trim", "top"]
    assert "--since-start" in complete(cli, "zlog tail --s")
    assert complete(cli, "zlog read o") == ["orders", "others"]
    assert complete(cli, "zlog rm orders ot") == ["others"]
    assert complete(cli, "zlog help c") == [*("create", "cursor", "check", "console", "completion")]
    assert complete(cli, "zlog help cursor s") == ["set"]
    assert complete(cli, "zlog help read s") == []


@pytest.mark.parametrize(
    "line",
    [
        "zlog read orders --cursor b",
        "zlog tail orders -f --cursor b",
        "zlog spark tail orders --cursor b",
        "zlog cursor set orders b",
        "zlog cursor rm orders nightly b",
    ],
)
def test_cursors_are_completed(cli: Cli, orders: zlog.Log, line: str) -> None:
    for name in ("billing", "nightly", "backup"):
        orders.cursor(name, create="latest")
    assert complete(cli, line) == ["backup", "billing"]


def test_producers_are_completed(cli: Cli, orders: zlog.Log) -> None:
    for name in ("crm", "shop"):
        orders.append_once([b"x"], producer=name, sequence=0)
    assert complete(cli, "zlog producer rm orders s") == ["shop"]


@pytest.mark.parametrize(
    "line", ["zlog tail --cursor b", "zlog tail nolog --cursor b", "zlog producer rm nolog s"]
)
def test_names_without_log_are_not_completed(cli: Cli, line: str) -> None:
    assert complete(cli, line) == []


def test_completion_without_store_is_empty(cli: Cli) -> None:
    cli.environment["ZLOG_STORE"] = "ceph://pool?conf=/nowhere"
    assert complete(cli, "zlog read o") == []
