"""Help, global options, usage errors."""

from __future__ import annotations

import shlex

import click
import pytest
from click.testing import CliRunner

import zlog
from zlog.cli.main import command

from .conftest import Cli, Inside

COMMANDS = [
    *("create", "ls", "info", "views", "reconfigure", "template", "access", "rm"),
    *("append", "forward", "read", "tail", "fill", "trim", "retention", "offload"),
    *("cursor", "producer", "group", "work", "objects", "spark", "sql", "table"),
    *("export", "import", "mirror"),
    *("seqr", "http", "console", "exporter"),
    *("store", "check", "doctor", "top", "bench"),
    *("completion", "help"),
]
GROUPS = [
    "access",
    "cursor",
    "producer",
    "group",
    "objects",
    "spark",
    "table",
    "seqr",
    "store",
    "bench",
]


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
        (["trial"], "No such command 'trial'. Did you mean trim or tail or table?"),
        (["cursor", "st"], "No such command 'st'. Did you mean set?"),
        (["fence"], "No such command 'fence'. It is now `zlog access fence`."),
        (["restore"], "No such command 'restore'. It is now `zlog store restore`."),
        (["delete", "orders"], "No such command 'delete'. Did you mean rm or trim?"),
        (["objects", "set"], "No such command 'set'. Did you mean put?"),
        (["tail", "--since", "1h"], "No such option '--since'. Did you mean --from?"),
        (["read", "--limit=9"], "No such option '--limit'. Did you mean a RANGE such as @5m:"),
        (["read", "-f", "%s"], "No such option '-f'. Did you mean --format?"),
        (["--timeout", "5"], "Missing command."),
        (["cursor", "--timeout", "5"], "Missing command."),
        (["--frob"], "No such option"),
        (["help", "cursor", "st"], "No such command 'st'. Did you mean set?"),
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


def test_help_of_unknown_command_is_refused() -> None:
    result = CliRunner().invoke(command, ["help", "read", "orders"])
    assert (result.exit_code, result.stdout) == (2, "")
    assert "Error: 'zlog read' has no commands of its own." in result.stderr


def test_global_options_precede_or_follow_command(cli: Cli, url: str) -> None:
    del cli.environment["ZLOG_STORE"]
    assert cli.ok("--store", url, "ls") == b"orders\n"
    assert cli.ok("ls", "--timeout", "5", "--store", url) == b"orders\n"


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("read", ""),
        ("read orders 1-2", ""),
        ("read orders --json --raw", ""),
        ("read orders 3 --tag t0", "--tag selects entries of a range"),
        ("read orders --match all", "--match needs --tag"),
        ("read orders --reverse --cursor c", "cannot be combined"),
        ("read orders 5 --cursor c", ""),
        ("read orders --commit", ""),
        ("read orders --tag ''", "1 to 128"),
        ("read orders --format json", "use --json"),
        ("read a/b", ""),
        ("create orders --width 0", ""),
        ("create orders --option novalue", ""),
        ("reconfigure orders", ""),
        ("reconfigure orders --width 0", ""),
        ("reconfigure orders --width 2000", ""),
        ("reconfigure orders --stripe-bytes 0", ""),
        ("reconfigure orders --stripe-records 0", ""),
        ("reconfigure orders --option stripe_bytes=many", ""),
        ("reconfigure orders --option nothing", ""),
        ("ls --timeout=0.0", "'--timeout': 0 leaves no time"),
        ("--timeout 0 tail orders", "'never'"),
        ("tail orders --hole-timeout -1", ""),
        ("tail orders -n 3 --since-start", ""),
        ("tail orders -n 3 --from 3", ""),
        ("tail orders -n 3 --cursor c", ""),
        ("--store ceph://pool?timeout=nan ls", ""),
        ("trim orders", ""),
        ("trim orders 1 --to 2", ""),
        ("trim orders 1 --past-cursors", ""),
        ("trim orders -5", "-5 is not in the range"),
        ("fill orders -5", "-5 is not in the range"),
        ("append orders --json --null", ""),
        ("append orders --whole --null", ""),
        ("append orders --max-bytes 0", "1 byte to 16M"),
        ("append orders --max-bytes 16777217", "1 byte to 16M"),
        ("append orders -m x orders.txt", "--message"),
        ("append orders -m x --json", "--message"),
        ("append orders -m x --whole", "--message"),
        ("append orders -m x -z", "--message"),
        ("append orders -m x -k", "--message"),
        ("append orders --keep", "--name and --keep need --exclusive"),
        ("append orders --name ann", "--name and --keep need --exclusive"),
        (f"append orders --exclusive --name {'x' * 129}", "1 to 128 bytes"),
        ("append orders --exclusive --name ''", "1 to 128 bytes"),
        (f"append orders --tag {'x' * 129}", "129 bytes in UTF-8; it must have 1 to 128"),
        ("cursor set orders 'a b' 5", ""),
        ("cursor set orders billing soon", ""),
        ("producer rm orders 'a b'", ""),
        ("retention orders --entries 0", ""),
        ("retention orders --bytes 0", ""),
        ("retention orders --age 0s", ""),
        ("retention orders --skew 99999999999999w", ""),
        ("retention orders --off --age 7d", ""),
        ("mirror orders", ""),
        ("mirror orders --to logs", ""),
        ("top --json", "--json needs --once"),
        ("-N billing ls", ""),
        ("-p pool ls", ""),
        ("--store gopher://x ls", ""),
        ("--store ceph://pool?frob=1 ls", ""),
        ("--store logs ls", "./logs"),
        ("seqr --listen nowhere", ""),
        ("seqr status nowhere", ""),
        ("--store ceph://nothere seqr --listen 0.0.0.0:0", "--advertise"),
        ("--store ceph://nothere seqr --lease 0.1", "--lease"),
        ("--store ceph://nothere seqr --lease 3600", "--lease"),
        ("--store mem:// seqr", "mem:// needs no sequencer"),
        ("--store mem:// seqr status", "mem:// needs no sequencer"),
        ("objects put orders m k", ""),
        ("objects put orders m k red", ""),
        ("objects put orders m k 1 --delete", ""),
        ("objects put orders m k 1 --if-version x", ""),
        ("objects put orders m k 1e999", ""),
        ("objects put orders m k -", ""),
        (f"objects put orders m k {'[' * 150}{']' * 150}", ""),
        (f"objects put orders m k {'[' * 5000}{']' * 5000}", ""),
        ("objects put orders m \udcff 1", ""),
        ("objects ls orders --space a/b", ""),
        ("objects get orders m k --prefix x", ""),
        ("objects watch orders m k --prefix x", ""),
        ("objects lock orders l", ""),
        ("objects lock orders l -- no-such-command", ""),
        ("objects lock orders l --lease 0 -- true", ""),
        ("objects lock orders l --lease never -- true", ""),
    ],
)
def test_usage_errors_exit_with_2(
    inside: Inside, orders: zlog.Log, line: str, complaint: str
) -> None:
    epoch = orders.view.epoch
    result = inside(*shlex.split(line))
    assert (result.code, result.out) == (2, b"")
    assert "Error: " in result.err
    assert complaint in result.err
    with zlog.Log.open(orders.store, "orders") as log:
        assert log.view.epoch == epoch
        assert log.tail() == 0 or line.startswith("objects")


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
    assert complete(cli, "zlog t") == ["template", "tail", "trim", "table", "top"]
    assert "--since-start" in complete(cli, "zlog tail --s")
    assert complete(cli, "zlog read o") == ["orders", "others"]
    assert complete(cli, "zlog rm orders ot") == ["others"]
    assert complete(cli, "zlog help c") == [*("create", "cursor", "console", "check", "completion")]
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
        "zlog producer rm orders b",
    ],
)
def test_cursors_and_producers_are_completed(cli: Cli, orders: zlog.Log, line: str) -> None:
    for name in ("billing", "nightly", "backup"):
        if "producer" in line:
            orders.append_once([b"x"], producer=name, sequence=0)
        else:
            orders.cursor(name, create="latest")
    assert complete(cli, line) == ["backup", "billing"]


def test_names_without_log_or_store_are_not_completed(cli: Cli) -> None:
    for line in ("zlog tail --cursor b", "zlog tail nolog --cursor b", "zlog producer rm nolog s"):
        assert complete(cli, line) == []
    cli.environment["ZLOG_STORE"] = "ceph://pool?conf=/nowhere"
    assert complete(cli, "zlog read o") == []
