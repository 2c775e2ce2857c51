"""objects: what clients of a log share, shown and changed; and commands that run under a lock."""

from __future__ import annotations

import json
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import zlog
from zlog.objects import Space

from ..objects.test_objects import Account
from .conftest import Cli, Inside, Running, end
from .test_help import complete


def lines(out: bytes) -> list[Any]:
    return [json.loads(line) for line in out.splitlines()]


def refused(result: Any, code: int, *words: str) -> None:
    assert (result.code, result.out) == (code, b"")
    for word in words:
        assert word in result.err, result.err


def test_map_entries_are_put_and_read(inside: Inside) -> None:
    for key, value in (("b", '{"x": [1, null]}'), ("a", '"red"'), ("c/1", "true"), ("c/2", "1.5")):
        inside.ok("objects", "put", "orders", "limits", key, value)
    inside.ok("objects", "put", "orders", "limits", "n", "--", "-5")
    inside.ok("objects", "put", "orders", "limits", "in", "-", stdin=b"[\n1]\n")
    get = ("objects", "get", "orders", "limits")
    assert inside.ok(*get, "b") == b'{"x": [1, null]}\n'
    assert inside.ok(*get, "a") == b'"red"\n'
    assert inside.ok(*get, "--prefix", "c/") == b"c/1  true\nc/2  1.5\n"
    found = lines(inside.ok(*get, "--json"))
    assert {each["key"]: each["value"] for each in found} == {
        "a": "red",
        "b": {"x": [1, None]},
        "c/1": True,
        "c/2": 1.5,
        "n": -5,
        "in": [1],
    }
    inside.ok("objects", "put", "orders", "limits", "a", "--delete")
    refused(inside(*get, "a"), 4, "has no key 'a'", "`zlog objects get orders limits`")
    refused(inside("objects", "get", "orders", "other"), 4, "`zlog objects ls orders`")


def test_put_with_version_is_conditional(inside: Inside, orders: zlog.Log) -> None:
    put = ("objects", "put", "orders", "limits", "a")
    inside.ok(*put, "1", "--if-version", "none")
    refused(inside(*put, "2", "--if-version", "none"), 11, "has version", "limits a --json`")
    (found,) = lines(inside.ok("objects", "get", "orders", "limits", "a", "--json"))
    refused(inside(*put, "2", "--if-version", f"{found['version'] + 1}"), 11)
    refused(inside(*put, "--delete", "--if-version", f"{found['version'] + 1}"), 11)
    inside.ok(*put, "2", "--if-version", f"{found['version']}")
    with Space.open(orders, "default", create=False) as space:
        assert space.local.map("limits").get("a") == 2
        assert space.local.map("limits").version("a") > found["version"]


def test_objects_of_every_type_are_shown(inside: Inside, orders: zlog.Log) -> None:
    with Space.open(orders, "shop") as space:
        space.map("map").put_many({"a": 1, "b": 2})
        space.set("set").add("x", "y")
        space.counter("counter").add(3)
        space.register("register").set("r")
        space.queue("queue").push(1, "two")
        held = space.lock("lock").acquire("me", lease=60, keep=False)

        def shown(*words: str) -> bytes:
            return inside.ok("objects", words[0], "orders", *words[1:], "--space", "shop")

        assert lines(shown("ls", "--json")) == [
            {"object": "counter", "type": "counter", "items": None},
            {"object": "lock", "type": "lock", "items": None},
            {"object": "map", "type": "map", "items": 2},
            {"object": "queue", "type": "queue", "items": 2},
            {"object": "register", "type": "register", "items": None},
            {"object": "set", "type": "set", "items": 2},
        ]
        assert shown("ls").splitlines()[:2] == [b"counter   counter   -", b"lock      lock      -"]
        assert shown("get", "set") == b"x\ny\n"
        assert shown("get", "set", "y", "--json") == b'{"member": "y"}\n'
        assert shown("get", "counter") == b"3\n"
        assert shown("get", "register", "--json") == b'{"value": "r"}\n'
        assert shown("get", "queue") == b'1\n"two"\n'
        (found,) = lines(shown("get", "lock"))
        assert (found["holder"]["owner"], found["holder"]["token"]) == ("me", held.token)
        assert found["waiting"] == []
        refused(inside("objects", "get", "orders", "set", "z", "--space", "shop"), 4)
        refused(inside("objects", "get", "orders", "queue", "z", "--space", "shop"), 2)
        put = inside("objects", "put", "orders", "queue", "k", "1", "--space", "shop")
        refused(put, 1, "queue", "`zlog objects ls orders`")


def test_names_are_escaped_on_one_line(inside: Inside) -> None:
    inside.ok("objects", "put", "orders", "a\nb\x1b[1m", "k\u2028", "1")
    assert inside.ok("objects", "ls", "orders") == b"a\\nb\\x1b[1m  map  1\n"
    assert inside.ok("objects", "get", "orders", "a\nb\x1b[1m") == b"k\\u2028  1\n"


def test_missing_space_is_reported(inside: Inside, orders: zlog.Log) -> None:
    for words in (["ls"], ["get", "limits"], ["watch", "limits"], ["checkpoint"]):
        command, *others = words
        refused(inside("objects", command, "orders", *others), 3, "no space", "hint: ")
    assert orders.cursors() == []


def test_custom_types_are_refused_with_hint(inside: Inside, orders: zlog.Log) -> None:
    with Space.open(orders, "default", types=[Account]) as space:
        space.object(Account, "own").call(1)
    refused(inside("objects", "ls", "orders"), 1, "hint: This command knows only zlog's own types.")


def test_watch_prints_changes(inside: Inside, cli: Cli, orders: zlog.Log) -> None:
    with Space.open(orders, "default") as space:
        limits = space.map("limits")
        first = limits.put("a", 1)
        limits.put("b/1", "x")
        limits.delete("a")
        space.counter("n").add(2)
        watch = ("objects", "watch", "orders")
        begin = ("--from", f"{first}")
        assert lines(inside.ok(*watch, "limits", *begin, "-c", "3", "--json")) == [
            {"position": first, "key": "a", "value": 1},
            {"position": first + 1, "key": "b/1", "value": "x"},
            {"position": first + 2, "key": "a", "deleted": True},
        ]
        shown = inside.ok(*watch, "limits", "a", *begin, "-c", "2").decode()
        assert shown == f"{first}  a  1\n{first + 2}  a  deleted\n"
        shown = inside.ok(*watch, "limits", "--prefix", "b/", *begin, "-c", "1").decode()
        assert shown == f'{first + 1}  b/1  "x"\n'
        assert inside.ok(*watch, "n", *begin, "-c", "1").split()[1] == b"2"
        with cli.start(*watch, "limits", "--from", f"{first + 2}") as process:
            assert process.stdout.readline().split() == [b"%d" % (first + 2), b"a", b"deleted"]
            limits.put("a", 3)
            assert process.stdout.readline().split()[1:] == [b"a", b"3"]
            assert end(process)[0] == 130


def test_checkpoint_prints_position_and_trims(inside: Inside, orders: zlog.Log) -> None:
    inside.ok("objects", "put", "orders", "limits", "a", "1")
    position = int(inside.ok("objects", "checkpoint", "orders"))
    assert lines(inside.ok("objects", "checkpoint", "orders", "--trim", "--json"))[0][
        "position"
    ] > (position)
    assert [each.position > position for each in orders.cursors()] == [True]
    with pytest.raises(zlog.Invalidated):
        orders.read(0)
    assert inside.ok("objects", "get", "orders", "limits", "a") == b"1\n"


def test_objects_are_completed(cli: Cli, orders: zlog.Log) -> None:
    with Space.open(orders, "default") as space, Space.open(orders, "shop") as shop:
        space.map("limits").put("a", 1)
        shop.map("labels").put("a", 1)
    assert complete(cli, "zlog objects get orders l") == ["limits"]
    assert complete(cli, "zlog objects get orders --space shop l") == ["labels"]


def lock(*words: str) -> list[str]:
    """A command line that holds a lock while Python code runs."""
    *options, code = words
    return ["objects", "lock", "orders", "nightly", *options, "--", sys.executable, "-uc", code]


WAITS = "import os, sys; print(os.environ['ZLOG_LOCK_TOKEN'], flush=True); sys.stdin.read()"


def started(cli: Cli, *words: str) -> tuple[Running, int]:
    """Start a command that has a lock; returns its token."""
    process = cli.start(*lock(*words))
    return process, int(process.stdout.readline())


def test_command_runs_under_lock(cli: Cli, orders: zlog.Log) -> None:
    process, token = started(cli, "--owner", "ann", WAITS + "; sys.exit(7)")
    with process, Space.open(orders, "default") as space:
        held = space.lock("nightly").holder()
        assert held is not None
        assert (held.owner, held.token) == ("ann", token)
        refused(cli(*lock("--wait", "0", "1")), 10, "is held by 'ann'", "--wait")
        process.stdin.close()
        assert process.wait(20) == 7
        assert space.lock("nightly").holder() is None
        assert int(cli.ok(*lock("-w", "9", WAITS))) > token


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_are_forwarded_to_command(
    cli: Cli, orders: zlog.Log, number: signal.Signals
) -> None:
    handle = f"import signal, sys; signal.signal({int(number)}, lambda *_: sys.exit(9)); "
    process, _ = started(cli, handle + WAITS)
    with process, Space.open(orders, "default") as space:
        assert end(process, number) == (9, b"")
        assert space.lock("nightly").holder() is None


def test_command_killed_by_signal_sets_exit_code(cli: Cli) -> None:
    assert cli(*lock("import os; os.kill(os.getpid(), 9)")).code == 137


def test_interrupted_wait_withdraws_lock_request(cli: Cli, orders: zlog.Log) -> None:
    with Space.open(orders, "default") as space:
        held = space.lock("nightly").acquire("me", lease=60)
        for number, code in ((signal.SIGTERM, 143), (signal.SIGINT, 130)):
            with cli.start(*lock("1")) as process:
                while not space.lock("nightly").waiting():
                    time.sleep(0.01)
                time.sleep(0.3)  # until it waits: an interrupt before that may close its space
                assert end(process, number)[0] == code
            assert space.lock("nightly").waiting() == []
        held.release()


STUBBORN = "import signal; signal.signal(signal.SIGTERM, lambda *_: print('asked', flush=True)); "


def test_command_ends_when_lock_is_lost(cli: Cli, orders: zlog.Log, tmp_path: Path) -> None:
    """The holder is paused beyond its lease; what it has started is not, so its token is stale."""
    write = f"open({str(tmp_path / 'token')!r}, 'w').write(os.environ['ZLOG_LOCK_TOKEN'])"
    waits = STUBBORN + WAITS.replace("sys.stdin.read()", f"{write}\nwhile 1: signal.pause()")
    process, token = started(cli, "--lease", "2", waits)
    # At once, and not in the commit of a renewal, for which the store's other users would wait.
    process.send_signal(signal.SIGSTOP)
    with process, Space.open(orders, "default") as space:
        try:
            held = space.lock("nightly").acquire("me", lease=60, timeout=60)
        finally:
            process.send_signal(signal.SIGCONT)
        assert process.wait(20) == 10
        assert process.stdout.read() == b"asked\n"
        assert b"lock 'nightly' was lost" in process.stderr.read()
        assert int((tmp_path / "token").read_text()) == token < held.token
        held.check()
