"""Where a benchmark works: a part of the store of its own, removed with all in it at the end.

On Ceph that is a namespace in the pool, with a sequencer of its own; in an embedded store it is a
folder inside the store's, on the same disk.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit, urlunsplit

import click

import zlog
from zlog.admin import announce_sequencer, check_sequencer_address
from zlog.cli.ceph import Target
from zlog.cli.session import Session
from zlog.cli.signals import terminable
from zlog.cli.verbs.bench.limits import Limits
from zlog.cli.verbs.bench.processes import running_sequencer
from zlog.cli.verbs.bench.usage import Processes, connected_osds, own_cpu_seconds

_OWN = "own"
NO_SEQUENCER = "none"
SEQUENCER_HELP = (
    "Who hands out positions, on Ceph: a sequencer started for the benchmark, the one at an"
    " address, or none (writers find the tail themselves)."
)


@dataclass
class Testbed:
    """What one benchmark works with.

    Attributes:
        url: of the benchmark's own part of the store.
        store: that part, opened.
        limits: the program that measures what it can do at most.
        timeout: seconds for one call; None for no limit.
        osds: the OSDs on this machine that serve it.
        sequencer: the process of its sequencer, where it was started for it.
    """

    url: str
    store: zlog.Store
    limits: Limits
    timeout: float | None
    osds: Processes
    sequencer: Processes

    @property
    def kind(self) -> str:
        """``ceph``, ``file`` or ``mem``."""
        return urlsplit(self.url).scheme

    def cpu(self) -> dict[str, float]:
        """Return the CPU seconds used so far, by who used them."""
        used = {"client": own_cpu_seconds()}
        if self.osds:
            used["osd"] = self.osds.cpu_seconds()
        if self.sequencer:
            used["sequencer"] = self.sequencer.cpu_seconds()
        return used

    @contextmanager
    def new_log(self, width: int) -> Iterator[str]:
        """Make a log for the length of a ``with`` block; gives its name."""
        name = f"bench-{os.urandom(8).hex()}"
        try:
            zlog.Log.create(self.store, name, width=width, timeout=self.timeout).close()
            yield name
        finally:
            with suppress(zlog.LogNotFound):  # interrupted before it was made
                zlog.Log.remove(self.store, name, timeout=self.timeout)


def cpu_between(before: dict[str, float], after: dict[str, float]) -> dict[str, float]:
    """Return what was used between two moments."""
    return {who: seconds - before.get(who, 0.0) for who, seconds in after.items()}


@contextmanager
def new_testbed(session: Session, sequencer: str = _OWN) -> Iterator[Testbed]:
    """Make a testbed for the length of a ``with`` block.

    Args:
        session: says in which store.
        sequencer: ``own``, ``none`` or an address; only on Ceph.

    Raises:
        click.UsageError: one of these, or the store's URL, is invalid.
        ZlogError: the store is not usable, or the sequencer did not start.
    """
    name = f"bench-{os.urandom(8).hex()}"
    kind = urlsplit(session.url).scheme
    if kind != "ceph" and sequencer != _OWN:
        raise click.UsageError("--sequencer is for stores on Ceph: others have one built in")
    if sequencer not in (_OWN, NO_SEQUENCER):
        try:
            sequencer = check_sequencer_address(sequencer)
        except ValueError as error:
            raise click.UsageError(f"--sequencer: {error}") from error
    with ExitStack() as stack:
        stack.enter_context(terminable())
        if kind == "ceph":
            url, words = _in_namespace(session.url, name)
        elif kind == "mem":
            url, words = session.url, ("memory",)
        else:
            folder = stack.enter_context(_folder_in(_path_of(session.url), name))
            url, words = (folder / "store").as_uri(), ("directory", str(folder / "limits"))
        own = replace(session, store=url, pool=None, namespace=None, conf=None, name=None)
        store = stack.enter_context(own.connect(create=True))
        limits = stack.enter_context(Limits(words))
        if kind == "ceph":
            stack.callback(limits.measure, "clear")
        process = None
        if kind == "ceph" and sequencer == _OWN:
            process = stack.enter_context(running_sequencer(url))
        elif kind == "ceph" and sequencer != NO_SEQUENCER:
            announce_sequencer(store, sequencer, timeout=session.timeout)
        testbed = Testbed(
            store.url,
            store,
            limits,
            session.timeout,
            Processes(()),
            Processes(() if process is None else (process.pid,)),
        )
        with testbed.new_log(1):  # after which there are connections to look at
            limits.osds = testbed.osds = connected_osds()
        yield testbed


def _in_namespace(url: str, name: str) -> tuple[str, tuple[str, ...]]:
    target = Target.parse(url)
    namespace = f"{target.namespace}.{name}" if target.namespace else name
    path = f"/{quote(namespace, safe='')}"
    words = ("rados", target.conf or "-", target.client_id, target.pool, namespace)
    return urlunsplit(urlsplit(url)._replace(path=path)), words


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
