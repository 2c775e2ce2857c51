"""group, work, tail --group, and how the state of groups is shown."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import zlog
from zlog.groups import Group, GroupDiffers, Groups, GroupStat, Queue

from ..support.waiting import wait_until
from .conftest import Cli, Inside, Running, end
from .test_metrics import exporting, lint, scrape

TEN = [b"%d" % number for number in range(10)]
QUEUE = ("--group", "mail")


def stat(log: zlog.Log, name: str = "mail") -> GroupStat:
    return Groups(log).stat(name)


def shell(*words: str) -> list[str]:
    return ["--", "sh", "-c", *words]


@contextmanager
def stopped(log: zlog.Log, **settings: Any) -> Iterator[list[Any]]:
    """Have ten jobs with a worker that does nothing."""
    with Queue(log, "mail", **settings) as queue:
        yield queue.take(10, wait=5)


def test_groups_are_listed_and_shown(inside: Inside, ten: zlog.Log) -> None:
    assert inside.ok("group", "ls", "orders") == b""
    ten.cursor("group.none", create=3)  # a cursor, but no group
    with (
        Group(ten, "billing", slots=4).join("m1") as member,
        Queue(ten, "mail", worker="w1", attempts=1, dead_letters="dead") as queue,
    ):
        assert member.next(wait=5)
        jobs = queue.take(10, wait=5)
        jobs[0].nack(error="broken")
        jobs[1].ack()
        wait_until(lambda: stat(ten).lag == 8)  # the dead letter was moved
        ls = [line.split() for line in inside.ok("group", "ls", "orders").decode().splitlines()]
        found = [json.loads(e) for e in inside.ok("group", "ls", "orders", "--json").splitlines()]
        shown = inside.ok("group", "show", "orders", "mail").decode().split()
        ordered = inside.ok("group", "show", "orders", "billing").decode()
    assert [row[:3] for row in ls] == [["billing", "ordered", "10"], ["mail", "queue", "8"]]
    assert [row[5:] for row in ls] == [["1", "-", "-"], ["1", "0", "1"]]
    assert [each["name"] for each in found] == ["billing", "mail"]
    assert found[0]["members"][0]["share"] == found[0]["slots"] == 4
    assert found[1]["members"][0]["alive"] is True
    assert (found[1]["in_progress"], found[1]["dead"], found[1]["lag"]) == (8, 1, 8)
    assert found[1]["oldest"].endswith("Z")
    assert {"w1", "8", "30"} <= {*shown}
    assert ["slots", "4"] in [line.split() for line in ordered.splitlines()]
    assert inside("group", "show", "orders", "none").code == 1
    assert inside("group", "show", "orders", "x" * 65).code == 2


def test_dead_member_is_shown_as_such(inside: Inside, ten: zlog.Log) -> None:
    with stopped(ten, lease=1) as _:
        state = inside.ok("group", "show", "orders", "mail")
        assert b"expired" not in state
    child = os.fork()
    if not child:  # dies without leaving, as a killed worker does
        try:
            with zlog.connect(inside.url) as store, zlog.Log.open(store, "orders") as log:
                Queue(log, "mail", lease=1, worker="dead").open()
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    wait_until(lambda: b"expired" in inside.ok("group", "show", "orders", "mail"))
    (row,) = inside.ok("group", "ls", "orders").decode().splitlines()
    assert row.split()[-3] == "0"
    inside.ok("group", "rm", "orders", "mail")  # its members are dead: nothing is asked


def test_reset_moves_group(inside: Inside, ten: zlog.Log) -> None:
    inside.ok("tail", "orders", *QUEUE)
    for to, position in (("4", 4), ("-1", 9), ("earliest", 0), ("@1h", 0), ("latest", 10)):
        inside.ok("group", "reset", "orders", "mail", "--to", to)
        assert (stat(ten).position, stat(ten).lag) == (position, 10 - position)
    beyond = inside("group", "reset", "orders", "mail", "--to", "11")
    assert (beyond.code, "hint: Use a lower position" in beyond.err) == (1, True)
    assert inside("group", "reset", "orders", "nix", "--to", "0").code == 1


def test_group_with_members_is_removed_only_on_request(inside: Inside, ten: zlog.Log) -> None:
    with stopped(ten):
        refused = inside("group", "rm", "orders", "mail")
        assert refused.code == 2
        assert "has 1 members; stop them, or give --yes" in refused.err
        assert Groups(ten).list() == ["mail"]
    inside.ok("group", "rm", "orders", "mail")
    assert (Groups(ten).list(), ten.cursors()) == ([], [])
    again = inside("group", "rm", "orders", "mail")
    assert (again.code, "zlog group ls orders" in again.err) == (1, True)


def test_dead_letters_are_redriven(inside: Inside, cli: Cli, ten: zlog.Log) -> None:
    settings = ["--attempts", "2", "--dead-letters", "dead", "--delay", "0", "-e"]
    done = cli("work", "orders", *QUEUE, *settings, *shell("test $ZLOG_POSITION != 3 && cat"))
    assert sorted(done.out) == sorted(b"012456789")
    assert "position 3, attempt 2: exit code 1" in done.err
    (letter,) = inside.ok("read", "dead", "--json").splitlines()
    assert "dead-error:exit code 1" in json.loads(letter)["tags"]
    for _ in range(2):
        inside.ok("group", "redrive", "orders", "mail")
    assert ten.read(10).data == b"3"
    with Queue(ten, "mail", dead_letters="unused"):
        inside.ok("group", "redrive", "orders", "mail")
    assert ten.tail() == 11
    inside.ok("tail", "orders", "--group", "other")
    without = inside("group", "redrive", "orders", "other")
    assert (without.code, "no log of dead letters" in without.err) == (2, True)


@pytest.mark.parametrize("ordered", [False, True])
def test_tail_acknowledges_what_it_printed(inside: Inside, ten: zlog.Log, ordered: bool) -> None:
    if ordered:
        Group(ten, "mail").join().close()
    lines = inside.ok("tail", "orders", *QUEUE, "--count", "3", "--json").splitlines()
    assert [json.loads(line)["position"] for line in lines] == [0, 1, 2]
    assert (stat(ten).position, stat(ten).mode) == (3, "ordered" if ordered else "queue")
    assert inside.ok("tail", "orders", *QUEUE, "-z") == b"".join(b"%d\0" % n for n in range(3, 10))
    assert (stat(ten).lag, stat(ten).redeliveries) == (0, 0)
    assert inside.ok("tail", "orders", *QUEUE) == b""


def test_new_queue_starts_at_given_position(inside: Inside, ten: zlog.Log) -> None:
    assert inside.ok("tail", "orders", *QUEUE, "--from", "-2") == b"8\n9\n"
    work = ["work", "orders", "--group", "other", "--from", "latest", "-e"]
    assert inside.ok(*work, "--", "false") == b""
    assert stat(ten, "other").position == 10


@pytest.mark.parametrize("words", [["-n", "1"], ["--cursor", "a"], ["--since-start"], ["--tag=a"]])
def test_tail_refuses_other_starts_of_a_group(inside: Inside, words: list[str]) -> None:
    refused = inside("tail", "orders", *QUEUE, *words)
    assert (refused.code, "--group needs a single log" in refused.err) == (2, True)
    assert inside("tail", "orders,other", *QUEUE).code == 2


def test_tail_does_not_join_group_of_a_program(inside: Inside, ten: zlog.Log) -> None:
    """It would divide the entries differently."""
    Group(ten, "mail", by=lambda entry: entry.data).join().close()
    with pytest.raises(GroupDiffers, match="by='key'"):
        Group(ten, "mail").join()
    refused = inside("tail", "orders", *QUEUE)
    assert (refused.code, "a function of its program" in refused.err) == (1, True)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_follower_shares_entries_until_signal(
    cli: Cli, ten: zlog.Log, number: int, code: int
) -> None:
    with Queue(ten, "mail"):
        pass
    words = ["tail", "orders", *QUEUE, "--follow"]
    with cli.start(*words) as one, cli.start(*words) as two:
        wait_until(lambda: stat(ten).lag == 0 and len(stat(ten).members) == 2)
        ten.append_many(TEN)
        wait_until(lambda: stat(ten).lag == 0)
        assert end(one, number) == end(two, number) == (code, b"")
        lines = [*one.stdout.read().split(), *two.stdout.read().split()]
    assert sorted(lines) == sorted(2 * TEN)
    assert stat(ten).members == ()


def test_entries_that_were_not_printed_are_given_back(cli: Cli, orders: zlog.Log) -> None:
    """The reader of the pipe is gone: nothing that it has not got is acknowledged or counted."""
    orders.append_many([bytes(1000)] * 2000)
    with Queue(orders, "mail", attempts=1, dead_letters="dead"):
        pass
    with cli.start("tail", "orders", *QUEUE, "--raw", "--follow") as process:
        process.stdout.read(1000)
        process.stdout.close()
        assert process.wait(20) == 141
    assert (stat(orders).lag > 1000, stat(orders).dead) == (True, 0)


def started(process: Running, folder: Path, name: str) -> None:
    """Wait until a command of a worker has created a file."""
    wait_until(lambda: (folder / name).exists() or process.poll() is not None)


def test_command_gets_entry_and_environment(cli: Cli, orders: zlog.Log) -> None:
    orders.append(b"x" * 1_000_000, tags=["b,c", "a"])
    code = "import os, sys; e = os.environ; print(len(sys.stdin.read()), *(e['ZLOG_' + n] for n in"
    code += " 'STORE LOG GROUP POSITION ATTEMPT TAGS'.split()))"
    shown = cli.ok("work", "orders", *QUEUE, "-e", "--", sys.executable, "-c", code).decode()
    assert shown == f'1000000 {cli.url} orders mail 0 1 ["a", "b,c"]\n'
    orders.append(b"x" * 1_000_000)
    cli.ok("work", "orders", *QUEUE, "-e", "--", "true")  # which does not read it
    assert stat(orders).lag == 0


def test_lease_is_extended_while_command_runs(cli: Cli, ten: zlog.Log, tmp_path: Path) -> None:
    work = ["work", "orders", *QUEUE, "--lease", "1"]
    with cli.start(*work, *shell(f"touch {tmp_path}/began; sleep 3")) as process:
        started(process, tmp_path, "began")
        with Queue(ten, "mail", lease=1) as other:
            given = [job.position for job in other.take(9, wait=5)]
            time.sleep(2)
            assert not {0} & {job.position for job in other.take(9, wait=0)}
        assert end(process, signal.SIGTERM)[0] == 143
    assert given == [*range(1, 10)]
    assert (stat(ten).position, stat(ten).members) == (1, ())


@pytest.mark.parametrize("signals", [1, 2])
def test_worker_stops_after_its_command(
    cli: Cli, ten: zlog.Log, tmp_path: Path, signals: int
) -> None:
    """A second signal ends the command too, and its attempt does not count."""
    with Queue(ten, "mail", attempts=1, dead_letters="dead"):
        pass
    script = f"touch {tmp_path}/began; while ! test -e {tmp_path}/go; do sleep 0.1; done"
    with cli.start("work", "orders", *QUEUE, *shell(script)) as process:
        started(process, tmp_path, "began")
        process.send_signal(signal.SIGTERM)
        time.sleep(0.5)
        assert process.poll() is None
        if signals == 1:
            (tmp_path / "go").touch()
        else:
            process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 143
    assert (stat(ten).position, stat(ten).dead) == (2 - signals, 0)


def test_commands_run_in_parallel(cli: Cli, ten: zlog.Log, tmp_path: Path) -> None:
    script = f"mkdir {tmp_path}/$ZLOG_POSITION; until test -e {tmp_path}/0 -a -e {tmp_path}/1"
    cli.ok("work", "orders", *QUEUE, "--jobs", "2", "-e", *shell(f"{script}; do sleep 0.1; done"))
    assert stat(ten).lag == 0


def test_worker_refuses_what_it_cannot_do(inside: Inside, ten: zlog.Log) -> None:
    Group(ten, "billing").join().close()
    work = ["work", "orders", "--group"]
    for words, code, message in (
        (["billing", "--", "cat"], 1, "not a queue, but ordered"),
        (["mail", "--", "no-such-command"], 2, "no such command: 'no-such-command'"),
        (["mail", "--attempts", "3", "--", "cat"], 2, "--attempts needs --dead-letters"),
        (["mail", "--dead-letters", "orders", "--", "cat"], 2, "log of their own"),
        (["mail", "--lease", "0.5", "--", "cat"], 2, "0.5"),
        (["-x", "--", "cat"], 2, "'-x'"),
        (["x" * 65, "--", "cat"], 2, "is too long"),
    ):
        result = inside(*work, *words)
        assert (result.code, message in result.err) == (code, True), result.err
    assert Groups(ten).list() == ["billing"]


def test_exporter_and_top_show_groups(cli: Cli, ten: zlog.Log) -> None:
    ten.cursor("group." + "x" * 100, create=0)  # too long for a group
    with stopped(ten, attempts=1, dead_letters="dead") as jobs:
        jobs[0].nack(flush=True)
        jobs[1].ack()
        wait_until(lambda: stat(ten).lag == 8)  # the dead letter was moved
        names = zlog.Log.list(ten.store)
        with exporting(cli) as where:
            text, found = scrape(where)
        seen = json.loads(cli.ok("top", "--once", "--json", "--match", "orders"))
    lint(text)
    labels = (("group", "mail"), ("log", "orders"))
    assert found["zlog_group_lag", labels] == 8
    assert found["zlog_group_members", labels] == 1
    assert found["zlog_group_in_progress", labels] == 8
    assert found["zlog_group_dead_letters_total", labels] == 1
    assert found["zlog_group_oldest_seconds", labels] > 0
    assert found["zlog_store_group_errors", ()] == 0
    (group,) = seen["logs"][0]["groups"]
    assert (group["name"], group["lag"]) == ("mail", 8)
    assert zlog.Log.list(ten.store) == names  # nothing was created
