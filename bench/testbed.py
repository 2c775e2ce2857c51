"""A benchmark's own part of a store, which is removed with its contents at the end.

On Ceph it is a namespace in the pool, with its own sequencer. In an embedded store it is a folder
inside the store's folder, on the same disk.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote, unquote, urlsplit, urlunsplit

import zlog
from bench.limits import Limit
from bench.measure import Candidate, Ratio, Slice
from bench.servers import start_sequencer
from bench.usage import (
    Processes,
    connected_osds,
    own_cpu_seconds,
    own_memory_peak,
)
from zlog.admin import check_class, is_plain
from zlog.cli.ceph import Target, with_class
from zlog.cli.session import Session
from zlog.cli.signals import terminable
from zlog.limits import STRIPE_UNIT_DEFAULT

T = TypeVar("T")

Run = Callable[[float], Slice]


@dataclass
class Testbed:
    """The environment of a benchmark.

    Attributes:
        url: the URL of the benchmark's own part of the store.
        store: this part, opened.
        timeout: the limit of one call in seconds; None means no limit.
        servers: the processes of this machine that serve it: ``osd``, and ``sequencer`` if one was
            started for it.
        has_class: whether methods can run where the objects are, which needs the class on OSDs.
        with_class: the same part for clients that use the object class, if those of ``store`` could
            use it but do not; otherwise None.
    """

    url: str
    store: zlog.Store
    timeout: float | None
    servers: dict[str, Processes]
    _limit_options: Mapping[str, object]
    _stack: ExitStack
    has_class: bool = True
    with_class: Testbed | None = None

    @property
    def kind(self) -> str:
        """The kind of store: ``ceph``, ``file`` or ``mem``."""
        return urlsplit(self.url).scheme

    @contextmanager
    def new_log(
        self,
        width: int,
        stripe_unit: int = STRIPE_UNIT_DEFAULT,
        compression: str = "none",
        ordering: str = "sequencer",
    ) -> Iterator[str]:
        """Create a log for a ``with`` block, and return its name."""
        name = f"bench-{os.urandom(8).hex()}"
        try:
            zlog.Log.create(
                self.store,
                name,
                width=width,
                stripe_unit=stripe_unit,
                compression=compression,
                ordering=ordering,
                timeout=self.timeout,
            ).close()
            yield name
        finally:
            with suppress(zlog.LogNotFound):  # interrupted before it was created
                zlog.Log.remove(self.store, name, timeout=self.timeout)

    def enter(self, context: AbstractContextManager[T]) -> T:
        """Enter a context, such as :meth:`new_log`'s, until the testbed ends."""
        return self._stack.enter_context(context)

    def load(self, name: str, how: str, run: Run, compare: Ratio = Ratio.RATE) -> Candidate:
        """Return a load of this testbed that includes the CPU time of its servers."""
        return Candidate(name, how, watched(self.servers, run), compare)

    def limit(
        self,
        name: str,
        how: str,
        kind: str,
        entries_per_call: float = 1,
        compare: Ratio = Ratio.RATE,
        servers: Mapping[str, Processes] | None = None,
        **options: object,
    ) -> Candidate:
        """Prepare a limit, until the testbed ends, to measure it in turns with a load."""
        limit = self.enter(Limit(kind, {**self._limit_options, **options}))

        def run(seconds: float) -> Slice:
            return limit.measure(seconds, entries_per_call)

        if servers is None:
            servers = {"osd": self.servers["osd"]}
        return Candidate(name, how, watched(servers, run), compare)


def watched(servers: Mapping[str, Processes], run: Run) -> Run:
    """Add the CPU time of its servers and its client, by default this process, to a slice."""
    seen = {who: processes for who, processes in servers.items() if processes}

    def run_watched(seconds: float) -> Slice:
        before = {who: processes.cpu_seconds() for who, processes in seen.items()}
        own = own_cpu_seconds()
        done = run(seconds)
        done.cpu.setdefault("client", own_cpu_seconds() - own)
        done.memory = done.memory or own_memory_peak()
        for who, processes in seen.items():
            done.cpu[who] = processes.cpu_seconds() - before[who]
        return done

    return run_watched


@contextmanager
def new_testbed(session: Session, *, sequencer: bool = True) -> Iterator[Testbed]:
    """Create a testbed for a ``with`` block.

    Args:
        session: the session with the store.
        sequencer: whether a sequencer is started for it, on Ceph.

    Raises:
        click.UsageError: the store's URL is invalid.
        ZlogError: the store is not usable, or the sequencer did not start.
    """
    name = f"bench-{os.urandom(8).hex()}"
    kind = urlsplit(session.url).scheme
    options: dict[str, object] = {}
    with ExitStack() as stack:
        stack.enter_context(terminable())
        if kind == "ceph":
            url, options = _in_namespace(session.url, name)
        elif kind == "mem":
            url = session.url
        else:
            folder = stack.enter_context(_folder_in(_path_of(session.url), name))
            url, options = (folder / "store").as_uri(), {"directory": folder / "limits"}
        store = stack.enter_context(session.of(url).connect(create=True))
        servers = {"osd": Processes(()), "sequencer": Processes(())}
        if kind == "ceph":
            stack.callback(lambda: Limit("clear", options).close())
            if sequencer:
                process = stack.enter_context(start_sequencer(url))
                servers["sequencer"] = Processes((process.pid,))
        testbed = Testbed(store.url, store, session.timeout, servers, options, stack)
        with testbed.new_log(1):  # after this, there are connections to examine
            servers["osd"] = connected_osds()
        if is_plain(store):
            classed = stack.enter_context(zlog.connect(with_class(url, "require")))
            if check_class(classed, timeout=session.timeout) is None:
                testbed.with_class = replace(testbed, url=classed.url, store=classed)
            else:
                testbed.has_class = False
        yield testbed


def _in_namespace(url: str, name: str) -> tuple[str, dict[str, object]]:
    target = Target.parse(url)
    namespace = f"{target.namespace}.{name}" if target.namespace else name
    path = f"/{quote(namespace, safe='')}"
    options = {"pool": target.pool, "namespace": namespace, "client": target.client_id}
    conf = {"conf": target.conf} if target.conf else {}
    return urlunsplit(urlsplit(url)._replace(path=path)), {**options, **conf}


def _path_of(url: str) -> Path:
    parts = urlsplit(url)
    return Path(unquote(parts.path) if parts.scheme == "file" else url)


@contextmanager
def _folder_in(store: Path, name: str) -> Iterator[Path]:
    made = not store.exists()
    folder = store / name
    (folder / "limits").mkdir(parents=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)
        if made:
            store.rmdir()
