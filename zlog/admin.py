"""Functions for operators, to inspect and change a store, its cluster and its sequencers.

``zlog doctor`` and ``zlog seqr`` use them. All calls block. ``timeout`` is the time limit of a call
in seconds; None means no limit.
"""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeVar

from zlog._audit.versions import (
    NO_METHOD,
    ClassVersion,
    Format,
    Osds,
    osd_versions,
    own_version,
    stored_formats,
)
from zlog._base import monitor
from zlog._base.cephx import librados_version as librados_version
from zlog._base.deadline import Deadline
from zlog._base.io import deadline_of
from zlog._base.names import DIRECTORY_OBJECT
from zlog._base.refusals import from_code
from zlog._base.sequencer import OtherProtocol, is_loopback, parse_host_port, reachable_at
from zlog._base.sequencer import parse_given_address as check_sequencer_address
from zlog._catalog.directory import Directory
from zlog._catalog.head import Head
from zlog._io import BlockingIo, drive
from zlog._layout.views import release
from zlog._native import local, messages
from zlog._native.local import EmbeddedStore
from zlog._sequencer import BlockingSequencer, Credentials
from zlog._sequencer.link import LinkLost
from zlog._trim.retention import DOUBT_HINT as RETENTION_DOUBT_HINT
from zlog.distribution import how_to_install
from zlog.errors import LogNotFound, SequencerRefused, SequencerUnavailable, ZlogError
from zlog.limits import TIMEOUT_SECONDS
from zlog.store import Store, is_plain
from zlog.sync.log import Log
from zlog.view import View

__all__ = [
    "RETENTION_DOUBT_HINT",
    "ClassRefusal",
    "ClassVersion",
    "Credentials",
    "Forgotten",
    "Format",
    "Osds",
    "OtherProtocol",
    "announce_sequencer",
    "announced_sequencer",
    "ask_monitors",
    "check_class",
    "check_sequencer_address",
    "extension_file",
    "forget_sequencer",
    "how_to_install",
    "is_loopback",
    "is_plain",
    "librados_file",
    "librados_version",
    "osd_versions",
    "own_version",
    "parse_host_port",
    "reachable_at",
    "retention_doubts",
    "sequencer_status",
    "space_inside",
    "stored_formats",
    "unfinished_removals",
    "views_of",
]

T = TypeVar("T")


class ClassRefusal(NamedTuple):
    """Why a method of the object class did not run.

    Attributes:
        purpose: what the method does, ``read`` or ``write``.
        object: the object on which the method was called.
        code: the store's answer, a negative errno.
        loaded: whether the OSD has the class. If so, it refuses only this client or this object.
    """

    purpose: str
    object: str
    code: int
    loaded: bool

    @property
    def error(self) -> ZlogError:
        """Return the error that a call on a log would raise."""
        return from_code(self.code, f"cannot call the object class on {self.object}")


def check_class(store: Store, *, timeout: float | None = TIMEOUT_SECONDS) -> ClassRefusal | None:
    """Check that the object class works, by calling methods that have no effect.

    This calls a method that reads and, if the store is writable, one that writes. Returns the first
    refusal, or None if there is none.
    """
    calls = [("read", "sequencer_find", messages.sequencer_find())]
    if not store.read_only:  # no sequencer has this address, so nothing is withdrawn
        address = messages.sequencer_withdraw("tcp://nobody.invalid:1")
        calls.append(("write", "sequencer_withdraw", address))
    for purpose, method, request in calls:
        code, _ = store.execute(DIRECTORY_OBJECT, method, request, timeout=timeout)
        if code < 0 and code != -errno.ENOENT:
            answer, _ = store.execute(DIRECTORY_OBJECT, NO_METHOD, b"", timeout=timeout)
            loaded = answer == -errno.EOPNOTSUPP
            return ClassRefusal(purpose, DIRECTORY_OBJECT, code, loaded)
    return None


def ask_monitors(
    store: Store, prefix: str, *, timeout: float | None = TIMEOUT_SECONDS, **arguments: str
) -> Any:
    """Send a command to the cluster's monitors and return its output as parsed JSON.

    Args:
        store: a store on Ceph.
        prefix: the command, such as ``osd pool ls``.
        arguments: the arguments of the command.

    Raises:
        StoreTimeout: the monitors did not answer in time.
        StoreUnavailable: the monitors refuse the command, or the store is not on Ceph.
    """
    io = BlockingIo(store)
    return drive(monitor.ask(io, deadline_of(io, timeout), prefix, **arguments))


def announced_sequencer(store: Store, *, timeout: float | None = TIMEOUT_SECONDS) -> str:
    """Return the address of the sequencer that the store announces, or an empty string."""
    io = BlockingIo(store)
    return drive(Directory(io).sequencer(deadline_of(io, timeout)))


def announce_sequencer(
    store: Store, address: str, *, timeout: float | None = TIMEOUT_SECONDS
) -> None:
    """Announce a sequencer to the store's writers, as the sequencer itself does when it starts.

    Args:
        store: the store in which to announce it.
        address: ``[tls://]HOST:PORT``.

    Raises:
        ValueError: the address is invalid.
    """
    io = BlockingIo(store)
    drive(Directory(io).announce(check_sequencer_address(address), deadline_of(io, timeout)))


def _ask_logs(
    store: Store, names: Iterable[str], timeout: float | None, ask: Callable[[Log], T]
) -> dict[str, T]:
    found: dict[str, T] = {}
    for name in names:
        with contextlib.suppress(LogNotFound), Log.open(store, name, timeout=timeout) as log:
            found[name] = ask(log)
    return found


def views_of(
    store: Store, names: Iterable[str], *, timeout: float | None = TIMEOUT_SECONDS
) -> dict[str, View]:
    """Return the newest views of logs, by name.

    Args:
        names: the names of the logs. Logs that do not exist are skipped.
        timeout: the budget for each log.
    """
    return _ask_logs(store, names, timeout, lambda log: log.view)


def space_inside(store: Store) -> int:
    """Return how many more bytes of data an embedded store can hold before its file grows.

    Returns 0 for any other store.
    """
    return store.space_inside() if isinstance(store, EmbeddedStore) else 0


def unfinished_removals(
    store: Store, names: Iterable[str], *, timeout: float | None = TIMEOUT_SECONDS
) -> dict[str, LogNotFound]:
    """Find logs whose removal is not finished. Return the error of opening each one, by name.

    Args:
        names: the names of the logs, as the store lists them.
        timeout: the budget for each log.
    """
    found: dict[str, LogNotFound] = {}
    for name in names:
        try:
            Log.open(store, name, timeout=timeout).close()
        except LogNotFound as error:
            if error.removing:
                found[name] = error
    return found


def retention_doubts(
    store: Store, names: Iterable[str], *, timeout: float | None = TIMEOUT_SECONDS
) -> dict[str, str]:
    """Find logs with an age limit whose clocks disagree. Return an explanation for each, by name.

    Args:
        names: the names of the logs. Logs that do not exist are skipped.
        timeout: the budget for each log.
    """

    def doubt(log: Log) -> str:
        aged = (log.retention.age, log.retention.compact_after) != (None, None)
        return log.retention_report().doubt if aged else ""

    doubts = _ask_logs(store, names, timeout, doubt)
    return {name: found for name, found in doubts.items() if found}


def sequencer_status(
    address: str, *, url: str = "", timeout: float | None = TIMEOUT_SECONDS
) -> dict[str, Any]:
    """Return the status of a sequencer: its role, its logs and its rates.

    Args:
        address: ``[tcp://|tls://]HOST:PORT``.
        url: the URL of a store, for its credentials. By default they come from the environment.

    Raises:
        ValueError: the address is invalid.
        SequencerUnavailable: no sequencer answers at the address.
    """
    client = BlockingSequencer(check_sequencer_address(address), Credentials.of(url))
    try:
        return drive(client.status(Deadline(timeout)))
    except (SequencerRefused, LinkLost, OtherProtocol):  # it runs; the error says why it refused
        raise
    except SequencerUnavailable as error:
        where = address.rpartition("://")[2]
        error.hint = f"Check the address, or start a sequencer there: `zlog seqr --listen {where}`."
        raise
    finally:
        drive(client.close())


class Forgotten(NamedTuple):
    """The references to a sequencer that were removed.

    Attributes:
        announced: whether the store announced the sequencer.
        logs: the logs whose views named the sequencer. They continue without it.
    """

    announced: bool
    logs: tuple[str, ...]


def forget_sequencer(
    store: Store, address: str, *, timeout: float | None = TIMEOUT_SECONDS
) -> Forgotten:
    """Withdraw the announcement of a dead sequencer, and let its logs continue without it.

    It does no harm if the sequencer is alive and only this client cannot reach it: the sequencer
    announces itself again, and serves a log again when one of the log's writers asks.

    Args:
        store: the store whose directory and views name the sequencer.
        address: ``[tcp://|tls://]HOST:PORT``.
        timeout: the budget of each step and of each log.

    Raises:
        ValueError: the address is invalid.
        ZlogError: the sequencer answers, nothing refers to it, or some logs could not be changed.
            In the last case, the error is that of the first log that failed.
    """
    address = check_sequencer_address(address)
    try:
        sequencer_status(address, url=store.url, timeout=timeout)
    except SequencerRefused:
        raise
    except SequencerUnavailable:
        pass
    else:
        raise ZlogError(
            f"the sequencer {address} is still running",
            hint="Stop it with SIGTERM. It then withdraws its own announcement.",
        )
    io = BlockingIo(store)
    directory = Directory(io)
    announced = drive(directory.sequencer(deadline_of(io, timeout))) == address
    if announced:
        drive(directory.withdraw(address, deadline_of(io, timeout)))
    released, failures = list[str](), list[ZlogError]()
    for name in drive(directory.logs.names(deadline_of(io, timeout))):
        deadline = deadline_of(io, timeout)
        try:
            view = drive(Head(io, name).read(deadline)).view
            if view is not None and not view.removed and view.sequencer == address:
                drive(release(io, name, address, deadline))
                released.append(name)
        except LogNotFound:
            continue
        except ZlogError as error:
            failures.append(error)
    if failures:
        raise failures[0]
    if not (announced or released):
        raise ZlogError(
            f"{address} is not announced in {store.url}, and no log names it",
            hint="`zlog doctor` lists sequencers that do not answer.",
        )
    return Forgotten(announced, tuple(released))


def extension_file() -> str:
    """Return the path of the extension module that contains the embedded store."""
    return local.__file__


def librados_file() -> str:
    """Load librados as stores on Ceph do, and return its path.

    Raises:
        StoreUnavailable: librados is not installed on this machine, or is too old.
    """
    from zlog._native.rados import find_librados

    return find_librados()
