"""Offloaded stripes: whether this machine can read their files, and whether any stripe waits."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from itertools import chain
from typing import TypeVar

from zlog import CorruptEntry, Log, ReadOnlyStore, Store, View, ZlogError
from zlog.cli.commands.doctor.diagnosis import Diagnosis, failure, note, ok, some, warning
from zlog.distribution import how_to_install
from zlog.view import REMOVED

T = TypeVar("T")

_PART = "offload"
_OPTION = "offload_to"


def examine(store: Store, views: Mapping[str, View], seconds: float) -> list[Diagnosis]:
    """Examine all logs that have offloaded stripes, or the option to offload them."""
    names = [name for name, view in views.items() if view.offloads or _OPTION in view.options]
    if not names:
        return []
    try:
        import zlog.offload  # noqa: F401
    except ImportError:
        text = f"this machine can't read offloaded stripes of {some(names)}"
        return [warning(_PART, text, how_to_install("offload"))]
    found: dict[str, Diagnosis | None] = {}
    for name in names:
        try:
            with Log.open(ReadOnlyStore(store), name, timeout=seconds) as log:
                found[name] = _examine(log, seconds)
        except ZlogError as error:  # a client that only reads may lack the caps
            found[name] = note(_PART, f"log {name} was not examined: {error}")
    sound = [name for name, diagnosis in found.items() if diagnosis is None]
    told = [diagnosis for diagnosis in found.values() if diagnosis is not None]
    return [*([ok(_PART, f"{some(sound)}: the folder can be reached")] if sound else []), *told]


def _examine(log: Log, seconds: float) -> Diagnosis | None:
    """Examine the newest file, which stands for the others, and the stripes that have none."""
    from zlog.offload import Offloader, files

    name, known = log.name, log.stripe_files()

    def reach() -> Offloader | None:
        if known:
            files.check(known[-1])
        return Offloader(log) if _OPTION in log.view.options else None

    try:
        offloader = _within(seconds, reach)
    except (FileNotFoundError, CorruptEntry) as error:
        fix = f"restore the file; zlog check {name} reports all lost positions"
        return failure(_PART, f"log {name} has lost entries: {_words(error)}", fix)
    except Exception as error:  # noqa: BLE001 - PyArrow raises errors of many kinds
        fix = "check the option offload_to, and this user's access to the disk or object store"
        return warning(_PART, f"the folder of log {name} can't be used: {_words(error)}", fix)
    if offloader is not None:
        unfinished = (file.start for file in known if file.state < REMOVED)
        for start in chain(unfinished, (stripe.start for stripe in offloader.due())):
            text = f"log {name} has a stripe to offload, from position {start}"
            return note(_PART, text, f"zlog offload {name} --follow")
    return None


def _words(error: Exception) -> str:
    return (isinstance(error, OSError) and error.strerror) or str(error) or "no answer in time"


def _within(seconds: float, call: Callable[[], T]) -> T:
    """Run a call in a thread, because PyArrow's calls have no time limit."""
    result: Future[T] = Future()

    def run() -> None:
        try:
            result.set_result(call())
        except Exception as error:  # noqa: BLE001 - the caller handles it
            result.set_exception(error)

    threading.Thread(target=run, name="zlog.doctor", daemon=True).start()
    return result.result(seconds)
