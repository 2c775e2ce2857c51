"""The raw limits of a store: what it does at most, whatever the log's own cost.

Each is measured with as much in flight as the load had, right after it.
"""

from __future__ import annotations

import os
import threading
import time
from array import array
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import zlog
from zlog import _native
from zlog._native import CompletionQueue
from zlog.cli.bench.workload import Rate, Sample, Workload, rate_of
from zlog.cli.output import say
from zlog.cli.sequencers import idle_call
from zlog.errors import from_errno

_KEY_BYTES_MAX = 32 << 10
"""Below this an operation's bytes are written as a key, from it on as data: what RADOS does best,
and what the object class does."""

_KEYS_PER_OBJECT = 10_000


def measure(load: Workload, store: zlog.Store) -> Iterator[Rate]:
    """Measure the limits that this kind of store has."""
    yield class_calls(load, store)
    if isinstance(store, _native.EmbeddedStore):
        yield file_syncs(load, Path(store.path))
    if store.url.startswith("ceph:"):
        try:
            import rados
        except ImportError:
            say("plain librados writes were not measured: python-rados is not there")
            return
        try:
            yield librados_writes(load, rados)
        except rados.Error as error:
            say(f"plain librados writes were not measured: {error}")


def class_calls(load: Workload, store: zlog.Store) -> Rate:
    """Call a writing method of the object class that writes nothing, on the log's own objects."""
    with zlog.Log.open(store, load.log, timeout=load.timeout) as log:
        objects = [ref.name for ref in log.view.objects()]
    method, request = idle_call()
    queue = CompletionQueue()
    count = load.in_flight * load.operations_per_append
    started: dict[int, float] = {}
    latencies = array("d")

    def submit(token: int) -> None:
        started[token] = time.perf_counter()
        name = objects[token % len(objects)]
        store.submit(queue, token, name, method, request)

    began = time.perf_counter()
    now = began
    for token in range(count):
        submit(token)
    token = count
    while started:
        if not queue.wait(load.timeout):
            raise zlog.StoreTimeout("class calls that write nothing were not answered in time")
        now = time.perf_counter()
        for done, code, _ in queue.drain():
            if code < 0:
                raise from_errno(code, method)
            latencies.append(now - started.pop(done))
            if now < began + load.seconds:
                submit(token)
                token += 1
    sample = Sample(len(latencies), now - began, latencies)
    how = (
        f"a class method that writes nothing, {count} in flight, counted as"
        f" {load.entries_per_operation:g} entries each"
    )
    return rate_of("class calls", [sample], load.entries_per_operation, load.size, how)


def file_syncs(load: Workload, directory: Path) -> Rate:
    """Append to a plain file and sync it, with everything that is in flight in one write."""
    entries = load.batch * load.in_flight
    data = os.urandom(load.size * entries)
    latencies = array("d")
    path = directory / f"{load.log}.tmp"
    descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    try:
        now = began = time.perf_counter()
        while now < began + load.seconds:
            os.write(descriptor, data)
            os.fdatasync(descriptor)
            before, now = now, time.perf_counter()
            latencies.append(now - before)
    finally:
        os.close(descriptor)
        path.unlink()
    how = f"write and fdatasync on a plain file beside the store, {entries} entries at a time"
    sample = Sample(len(latencies), now - began, latencies)
    return rate_of("plain file", [sample], entries, load.size, how)


def librados_writes(load: Workload, rados: Any) -> Rate:
    """Write the same bytes with librados alone, to as many objects as the log has."""
    from zlog.cli.ceph import connected

    size = max(1, round(load.size * load.entries_per_operation))
    with connected(load.url, load.timeout) as (_, ioctx):
        writing = _LibradosWriter(load, rados, ioctx, size)
        try:
            sample = writing.run()
        finally:
            writing.clean_up()
    kind = "a new key" if size < _KEY_BYTES_MAX else "data at the end of an object"
    how = (
        f"{size} bytes as {kind}, {writing.in_flight} in flight, counted as"
        f" {load.entries_per_operation:g} entries each"
    )
    return rate_of("plain librados", [sample], load.entries_per_operation, load.size, how)


class _LibradosWriter:
    """Keeps a number of plain writes in flight, for a while."""

    def __init__(self, load: Workload, rados: Any, ioctx: Any, size: int) -> None:
        self._load = load
        self._rados = rados
        self._ioctx = ioctx
        self._data = os.urandom(size)
        self._written: set[str] = set()
        self._latencies = array("d")
        self._error: int = 0
        self.in_flight = load.in_flight * load.operations_per_append
        self._free = threading.Semaphore(self.in_flight)

    def run(self) -> Sample:
        """Write until the time is up, and wait for what is in flight."""
        write = self._write_key if len(self._data) < _KEY_BYTES_MAX else self._write_data
        began = time.perf_counter()
        number = 0
        while time.perf_counter() < began + self._load.seconds and not self._error:
            self._free.acquire()
            name = self._name(number)
            self._written.add(name)
            write(name, number, self._completion())
            number += 1
        for _ in range(self.in_flight):
            self._free.acquire()
        if self._error:
            raise from_errno(self._error, "a plain librados write")
        return Sample(number, time.perf_counter() - began, self._latencies)

    def clean_up(self) -> None:
        """Remove what was written."""
        for name in self._written:
            self._ioctx.remove_object(name)

    def _name(self, number: int) -> str:
        width = self._load.width
        return f"{self._load.log}.raw.{number % width}.{number // width // _KEYS_PER_OBJECT}"

    def _completion(self) -> Callable[[Any], None]:
        began = time.perf_counter()

        def done(completion: Any) -> None:
            self._latencies.append(time.perf_counter() - began)
            self._error = self._error or min(0, completion.get_return_value())
            self._free.release()

        return done

    def _write_key(self, name: str, number: int, done: Callable[[Any], None]) -> None:
        with self._rados.WriteOpCtx() as operation:
            self._ioctx.set_omap(operation, (f"{number:016x}",), (self._data,))
            self._ioctx.operate_aio_write_op(operation, name, oncomplete=done)

    def _write_data(self, name: str, _number: int, done: Callable[[Any], None]) -> None:
        self._ioctx.aio_append(name, self._data, oncomplete=done)
