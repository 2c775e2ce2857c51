"""What a forked child can do with its parent's handles, while other threads are in calls: nothing.

The public API is enumerated, so that a new method is covered without being named here.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import signal
import sys
import threading
import traceback
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import zlog
from zlog import aio, objects
from zlog._base.process import ProcessBound
from zlog.objects import aio as aio_objects

from ..support.waiting import wait_until
from .faulty import FaultyStore

Call = Callable[[], Any]

pytestmark = pytest.mark.filterwarnings("ignore:.*fork")  # of a process with threads

MADE_BY_CALLS = (
    *(zlog.Check, zlog.Cursor, zlog.Log, zlog.Stream, zlog.Writer),
    *(aio.Check, aio.Cursor, aio.Log, aio.Stream, aio.Writer),
    *(
        getattr(module, name)
        for module in (objects, aio_objects)
        for name in module.__all__
        if name not in ("Replicated", "aio") and not name.isupper()
    ),
)
"""Classes that programs get from a call."""

ARGUMENTS: dict[str, Any] = {
    "bytes": b"x",
    "Iterable[bytes]": [b"x"],
    "Iterable[Collection[str]]": [["x"]],
    "int": 0,
    "Retention": zlog.Retention(),
    "type[R]": objects.Replicated,
    "Mapping[str, Any]": {},
}
"""Values for parameters without a default, by annotation; "x" and functions for others."""


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    opened = threading.Event()
    opened.set()
    yield opened
    opened.set()


@pytest.fixture
def store(tmp_path: Path, gate: threading.Event) -> Iterator[zlog.Store]:
    """A store that answers no call while the gate is closed."""

    def wait(_number: int, _method: str) -> None:
        gate.wait(60)

    with zlog.connect(tmp_path) as real:
        yield FaultyStore(real, wait)


def blocking_handles(store: zlog.Store) -> list[Any]:
    log = zlog.Log.create(store, "log")
    space = objects.Space.open(log, "space", types=[Own])
    locked = space.lock("lock")
    txn = space.transaction()
    held = locked.acquire(keep=False)
    return [
        *(log, log.stream("tag"), log.cursor("cursor", create=0), log.check(), space, locked, held),
        *(space.map("map"), space.set("set"), space.counter("counter"), space.queue("queue")),
        *(space.register("register"), space.election("election"), space.object(Own, "own")),
        *(space.watch(), txn, *views(space.local), *transaction(txn.__enter__())),
        zlog.Log.create(store, "exclusive").writer(),
    ]


async def asyncio_handles(store: zlog.Store) -> list[Any]:
    log = await aio.Log.create(store, "log2")
    space = await aio_objects.Space.open(log, "space", types=[Own])
    locked = space.lock("lock")
    txn = space.transaction()
    held = await locked.acquire(keep=False)
    cursor = await log.cursor("cursor", create=0)
    return [
        *(log, log.stream("tag"), cursor, log.check(), space, locked, held, space.watch(), txn),
        *(space.map("map"), space.set("set"), space.counter("counter"), space.queue("queue")),
        *(space.register("register"), space.election("election"), space.object(Own, "own")),
        await (await aio.Log.create(store, "exclusive2")).writer(),
    ]


class Own(objects.Replicated):
    kind = "own"

    def apply(self, command: Any) -> None:
        pass

    def snapshot(self) -> Any:
        return None

    def restore(self, snapshot: Any) -> None:
        pass


def views(local: objects.Views) -> list[Any]:
    return [
        *(local, local.map("map"), local.set("set"), local.counter("counter"), local.lock("lock")),
        *(local.queue("queue"), local.register("register"), local.object(Own, "own")),
    ]


def transaction(txn: objects.Transaction) -> list[Any]:
    return [
        *(txn, txn.map("map"), txn.set("set"), txn.counter("counter"), txn.queue("queue")),
        *(txn.register("register"), txn.object(Own, "own")),
    ]


def calls_of(handle: Any) -> Iterator[tuple[str, Call]]:
    """The public methods of a handle, bound, with arguments that they take."""
    for name, found in inspect.getmembers(type(handle), inspect.isfunction):
        harmless = isinstance(handle, ProcessBound) and name in handle._harmless
        if harmless or (name.startswith("_") and name not in ("__next__", "__anext__", "__len__")):
            continue
        if isinstance(inspect.getattr_static(handle, name), staticmethod):
            continue
        parameters = [*inspect.signature(found).parameters.values()][1:]
        needed = [each for each in parameters if each.default is each.empty]
        args = [argument(each) for each in needed if each.kind is each.POSITIONAL_OR_KEYWORD]
        named = {each.name: argument(each) for each in needed if each.kind is each.KEYWORD_ONLY}
        where = f"{type(handle).__module__}.{type(handle).__qualname__}.{name}"
        yield where, partial(getattr(handle, name), *args, **named)


def names_in(handle: ProcessBound) -> set[str]:
    """The public methods that are found in a handle only after the fork."""
    found = inspect.getmembers(type(handle), inspect.isfunction)
    return {name for name, _ in found if not name.startswith("_")} - handle._harmless


def argument(parameter: inspect.Parameter) -> Any:
    annotation = str(parameter.annotation)
    return (lambda *_: None) if "Callable" in annotation else ARGUMENTS.get(annotation, "x")


def in_child(check: Callable[[], list[str]]) -> str:
    """Run something in a forked child, which may take 30 seconds; returns what it complains of."""
    told, tell = os.pipe()
    child = os.fork()
    if not child:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(30)
        try:
            complaints = "\n".join(check())
        except BaseException:  # noqa: BLE001
            complaints = traceback.format_exc()
        os.write(tell, complaints.encode()[:60000])
        os._exit(0)
    os.close(tell)
    with os.fdopen(told) as answer:
        complaints = answer.read()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0, "a call hangs"
    return complaints


def outcome(call: Call) -> str:
    """What a call ends with, in words; empty for what it should end with."""
    try:
        result = call()
        if isinstance(result, AsyncIterator):
            result = anext(result)
        if inspect.isawaitable(result):
            next(result.__await__())
        elif isinstance(result, ProcessBound):  # what the call returns fails
            return ""
    except zlog.StoreUnavailable as error:
        return "" if "before a fork" in str(error) and not error.retryable else f"raises {error!r}"
    except BaseException as error:  # noqa: BLE001
        return f"raises {error!r}"
    return "does not fail"


def refused(calls: dict[str, Call]) -> list[str]:
    outcomes = {name: outcome(call) for name, call in calls.items()}
    return [f"{name} {said}" for name, said in outcomes.items() if said]


def test_forked_child_needs_new_connection(
    store: zlog.Store, tmp_path: Path, gate: threading.Event
) -> None:
    handles = blocking_handles(store)
    asking = asyncio.new_event_loop()
    handles += asking.run_until_complete(asyncio_handles(store))
    made = {type(handle) for handle in handles}
    assert {each for each in MADE_BY_CALLS if is_handle(each)} <= made
    calls = dict(call for handle in handles for call in calls_of(handle))
    (log,) = (each for each in handles if type(each) is zlog.Log)
    (space,) = (each for each in handles if type(each) is objects.Space)
    (writer,) = (each for each in handles if type(each) is zlog.Writer)
    log.append_many([b"x"] * 10)
    for each in (log.read_range(), log.read_columns(), log.follow()):
        next(each)
        calls[f"next of {each}"] = each.__next__

    def check() -> list[str]:
        complaints = refused(calls)
        for handle, names in methods.items():
            complaints += refused({name: partial(getattr, handle, name) for name in names})
        with zlog.connect(tmp_path) as own, zlog.Log.open(own, "log") as opened:
            opened.append(b"of the child")
        with pytest.raises(SystemExit), log, space, writer:
            sys.exit()  # which is not replaced
        assert (log.name, space.name, log.view.log) == ("log", "space", "log")
        return complaints

    bound = (each for each in handles if isinstance(each, ProcessBound))
    methods = {each: {*names_in(each), "no_such_name"} for each in bound}
    gate.clear()
    at_work = [
        threading.Thread(target=call)
        for call in (
            lambda: log.append(b"x"),
            lambda: log.append(b"x"),
            lambda: space.map("map").get("x"),
            lambda: space.map("map").put("x", 1),
            lambda: writer.append(b"x"),
        )
    ]
    before = store.operations  # type: ignore[attr-defined]
    for thread in at_work:
        thread.start()
    wait_until(lambda: store.operations > before + 2)  # type: ignore[attr-defined]
    future = writer.submit(b"x")
    try:
        assert in_child(check) == ""
    finally:
        gate.set()
        for thread in at_work:
            thread.join()
    assert future.result(10) == 1
    asking.close()


def is_handle(made: Any) -> bool:
    return inspect.isclass(made) and (
        issubclass(made, ProcessBound) or made.__module__.endswith(("_views", "_transaction"))
    )
