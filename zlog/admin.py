"""What operators ask of a store, of its cluster and of its sequencers.

Programs that only use logs need none of it; ``zlog doctor`` and ``zlog seqr`` are made of it. Every
call blocks, for ``timeout`` seconds at most; None: for as long as it takes.
"""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Iterable
from typing import Any, NamedTuple

from zlog._audit import versions
from zlog._audit.versions import NO_METHOD, ClassVersion, Format, Osds, own_version
from zlog._base import monitor
from zlog._base.deadline import Deadline
from zlog._base.io import deadline_of
from zlog._base.names import DIRECTORY_OBJECT
from zlog._base.refusals import from_errno
from zlog._base.sequencer import OtherProtocol, parse_given_address, parse_host_port, reachable_at
from zlog._catalog.directory import Directory
from zlog._catalog.head import Head
from zlog._io import BlockingIo, drive
from zlog._layout.views import release
from zlog._native import local, messages
from zlog._native.local import EmbeddedStore
from zlog._sequencer import BlockingSequencer, Credentials
from zlog._sequencer.link import LinkLost
from zlog._trim.retention import DOUBT_HINT
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
    "is_plain",
    "librados_file",
    "osd_versions",
    "own_version",
    "parse_host_port",
    "reachable_at",
    "retention_doubts",
    "room_inside",
    "sequencer_status",
    "stored_formats",
    "unfinished_removals",
    "views_of",
]

RETENTION_DOUBT_HINT = DOUBT_HINT
"""What to do where nothing is trimmed by age, because clocks disagree."""


class ClassRefusal(NamedTuple):
    """Why a method of the object class did not run.

    Attributes:
        purpose: ``read`` or ``write``: what the method does.
        object: that it was called on.
        code: the store's answer, a negative errno.
        loaded: whether the OSD has the class, and so refuses this client or this object.
    """

    purpose: str
    object: str
    code: int
    loaded: bool

    @property
    def error(self) -> ZlogError:
        """What a log would raise."""
        return from_errno(self.code, f"calling the object class on {self.object}")


def check_class(store: Store, *, timeout: float | None = TIMEOUT_SECONDS) -> ClassRefusal | None:
    """Run a method that reads and, if the store can be written, one that does so in vain.

    Returns the first refusal; None where there is none.
    """
    calls = [("read", "sequencer_find", messages.sequencer_find())]
    if not store.read_only:  # withdraws an address that no sequencer has, from any object
        address = messages.sequencer_withdraw("tcp://nobody.invalid:1")
        calls.append(("write", "sequencer_withdraw", address))
    for purpose, method, request in calls:
        code, _ = store.execute(DIRECTORY_OBJECT, method, request, timeout=timeout)
        if code < 0 and code != -errno.ENOENT:
            answer, _ = store.execute(DIRECTORY_OBJECT, NO_METHOD, b"", timeout=timeout)
            loaded = answer == -errno.EOPNOTSUPP
            return ClassRefusal(purpose, DIRECTORY_OBJECT, code, loaded)
    return None


def osd_versions(store: Store, *, timeout: float | None = TIMEOUT_SECONDS) -> Osds:
    """Return what each OSD of a cluster has of the class.

    One object for each is made for a moment, in the store's pool and namespace; a process that is
    killed then leaves it, a ``zlog-probe.*`` that can be removed. Of a large cluster not every OSD
    is found. Clients whose caps allow no ``seal`` and ``remove`` learn nothing.

    Args:
        store: on Ceph, that leaves all methods to the OSDs (``class=require``).
        timeout: see above, for each step.

    Raises:
        StoreUnavailable: the monitors refuse to tell which OSD serves what.
    """
    return drive(versions.osd_versions(BlockingIo(store), timeout))


def stored_formats(
    store: Store, name: str, *, timeout: float | None = TIMEOUT_SECONDS
) -> dict[str, Format]:
    """Return in which versions the newest of a log's stored values are, by kind.

    Args:
        store: that holds the log.
        name: of the log.
        timeout: see above, for each step.

    Raises:
        LogNotFound: no such log.
        ClassNotLoaded: the caps do not allow to look (``salvage``).
    """
    with Log.open(store, name, timeout=timeout) as log:
        return drive(versions.stored_formats(BlockingIo(store), log.view, timeout))


def ask_monitors(
    store: Store, prefix: str, *, timeout: float | None = TIMEOUT_SECONDS, **arguments: str
) -> Any:
    """Return the answer of the cluster's monitors to a command, as JSON has it.

    Args:
        store: on Ceph.
        prefix: the command, such as ``osd pool ls``.
        timeout: see above.
        arguments: of the command.

    Raises:
        StoreTimeout: no answer came in time.
        StoreUnavailable: the monitors refuse, or the store has none.
    """
    io = BlockingIo(store)
    return drive(monitor.ask(io, deadline_of(io, timeout), prefix, **arguments))


def announced_sequencer(store: Store, *, timeout: float | None = TIMEOUT_SECONDS) -> str:
    """Return the address of the sequencer that offers itself in the store; empty if none does."""
    io = BlockingIo(store)
    return drive(Directory(io).sequencer(deadline_of(io, timeout)))


def check_sequencer_address(address: str) -> str:
    """Return a sequencer's address in full: ``tcp://HOST:PORT`` where ``HOST:PORT`` was given.

    Raises:
        ValueError: it is none.
    """
    return parse_given_address(address)


def announce_sequencer(
    store: Store, address: str, *, timeout: float | None = TIMEOUT_SECONDS
) -> None:
    """Offer a sequencer to the store's writers, as it does itself when it starts.

    Args:
        store: see there.
        address: ``[tls://]HOST:PORT``.
        timeout: see above.

    Raises:
        ValueError: it is no address.
    """
    io = BlockingIo(store)
    drive(Directory(io).announce(parse_given_address(address), deadline_of(io, timeout)))


def views_of(
    store: Store, names: Iterable[str], *, timeout: float | None = TIMEOUT_SECONDS
) -> dict[str, View]:
    """Return the newest views of logs, by name.

    Args:
        store: that holds the logs.
        names: of the logs; one that is not there is left out.
        timeout: for each of them.
    """
    found: dict[str, View] = {}
    for name in names:
        with (
            contextlib.suppress(LogNotFound),
            Log.open(store, name, timeout=timeout) as log,
        ):
            found[name] = log.view
    return found


def room_inside(store: Store) -> int:
    """Return how many bytes of data fit into an embedded store's file without making it larger.

    Other stores have no such file: 0.
    """
    return store.room_inside() if isinstance(store, EmbeddedStore) else 0


def unfinished_removals(
    store: Store, names: Iterable[str], *, timeout: float | None = TIMEOUT_SECONDS
) -> dict[str, LogNotFound]:
    """Return what opening logs raises that were removed and of which objects are left, by name.

    Args:
        store: that holds the logs.
        names: of the logs, as the store lists them.
        timeout: for each of them.
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
    """Return the logs that are trimmed by age of which clocks disagree, and how these do.

    Args:
        store: that holds the logs.
        names: of the logs; one that is not there is left out.
        timeout: for each of them.
    """
    found: dict[str, str] = {}
    for name in names:
        with (
            contextlib.suppress(LogNotFound),
            Log.open(store, name, timeout=timeout) as log,
        ):
            aged = (log.retention.age, log.retention.compact_after) != (None, None)
            doubt = log.retention_report().doubt if aged else ""
            if doubt:
                found[name] = doubt
    return found


def sequencer_status(
    address: str, *, url: str = "", timeout: float | None = TIMEOUT_SECONDS
) -> dict[str, Any]:
    """Return what a sequencer says of itself: its role, its logs, its rates.

    Args:
        address: ``[tcp://|tls://]HOST:PORT``.
        url: of a store, which may name what to show and to trust; else the environment does.
        timeout: see above.

    Raises:
        ValueError: it is no address.
        SequencerUnavailable: no sequencer answers there.
    """
    client = BlockingSequencer(parse_given_address(address), Credentials.of(url))
    try:
        return drive(client.status(Deadline(timeout)))
    except (SequencerRefused, LinkLost, OtherProtocol):  # it is there; the error says what is wrong
        raise
    except SequencerUnavailable as error:
        where = address.rpartition("://")[2]
        error.hint = f"Check the address; `zlog seqr --listen {where}` starts one there."
        raise
    finally:
        drive(client.close())


class Forgotten(NamedTuple):
    """What named a sequencer until it was forgotten.

    Attributes:
        offered: whether it was on offer in the store.
        logs: whose views named it, and that go on without it.
    """

    offered: bool
    logs: tuple[str, ...]


def forget_sequencer(
    store: Store, address: str, *, timeout: float | None = TIMEOUT_SECONDS
) -> Forgotten:
    """Take back the offer of a sequencer that is gone, and have its logs go on without it.

    One that lives all the same, out of reach of this client, loses nothing for long: it announces
    itself again, and takes logs up again when their writers ask.

    Args:
        store: that names it.
        address: ``[tcp://|tls://]HOST:PORT``.
        timeout: for each step, and for each log.

    Raises:
        ValueError: it is no address.
        ZlogError: it answers; or nothing names it; or the first failure with a log, which keeps it
            from no other.
    """
    address = parse_given_address(address)
    _check_gone(address, store.url, timeout)
    io = BlockingIo(store)
    directory = Directory(io)
    offered = drive(directory.sequencer(deadline_of(io, timeout))) == address
    if offered:
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
    if not (offered or released):
        raise ZlogError(
            f"{address} is not on offer in {store.url}, and no log names it",
            hint="`zlog doctor` names sequencers that do not answer.",
        )
    return Forgotten(offered, tuple(released))


def _check_gone(address: str, url: str, timeout: float | None) -> None:
    try:
        sequencer_status(address, url=url, timeout=timeout)
    except SequencerRefused:
        raise
    except SequencerUnavailable:
        return
    raise ZlogError(
        f"{address} answers: it is not gone",
        hint="Stop it with SIGTERM, and it takes its offer back by itself.",
    )


def extension_file() -> str:
    """Return where the compiled part of this package with the embedded store is."""
    return local.__file__


def librados_file() -> str:
    """Load librados, as stores on Ceph do; return where it is.

    Raises:
        StoreUnavailable: there is none on this machine, or it is too old.
    """
    from zlog._native.rados import find_librados

    return find_librados()
