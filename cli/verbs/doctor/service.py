"""Whether the store runs the object class, and whether the sequencers that it names answer."""

from __future__ import annotations

import errno
import shlex
from collections.abc import Iterator

from zlog import (
    Log,
    LogNotFound,
    SequencerRefused,
    SequencerUnavailable,
    Store,
    StoreTimeout,
    ZlogError,
)
from zlog._base.names import DIRECTORY_OBJECT
from zlog._base.sequencer import is_remote
from zlog._native import core
from zlog.cli.ceph import Target, new_client
from zlog.cli.exit_codes import ExitCode
from zlog.cli.sequencers import announced, idle_call, status_of
from zlog.cli.verbs.doctor.diagnosis import Diagnosis, Level, failed, ok
from zlog.errors import from_errno

_LOGS_MAX = 200
"""Logs whose views are looked at."""

_SEQUENCER_SECONDS = 2.0

_NO_METHOD = "doctor"
"""A method that the class does not have. An OSD that can load the class says that to every client:
it looks for the method before it looks at caps and at the object."""

_ALLOW_CLASS = (
    'ceph config set osd osd_class_load_list "$(ceph config get osd osd_class_load_list) zlog"'
    " && ceph config set osd osd_class_default_list"
    ' "$(ceph config get osd osd_class_default_list) zlog"; then restart the OSDs'
)
_INSTALL_CLASS = (
    "install libcls_zlog.so in rados-classes on every OSD host; the OSDs look for it at each call"
)
_REBUILD_CLASS = (
    "build libcls_zlog.so for the release that the OSDs are of (ceph versions), and install it on"
    " every OSD host; an OSD's log says why: grep _load_class /var/log/ceph/ceph-osd.*.log"
)
_FIND_DAMAGE = "ceph health detail   # shows scrub errors; ceph pg repair PG mends them"
_FIND_OSD = "ceph health detail && ceph osd tree   # shows which OSDs are down"


def examine_class(store: Store, url: str, seconds: float) -> Iterator[Diagnosis]:
    """Run one method that reads and, if the store may be written, one that does so, in vain.

    Args:
        store: that runs them.
        url: of the store, as its user names it.
        seconds: how long each answer may take.
    """
    calls = [("read", "sequencer_find", core.encode_empty())]
    if not store.read_only:
        calls.append(("write", *idle_call()))
    for what, method, request in calls:
        code, _ = store.execute(DIRECTORY_OBJECT, method, request, timeout=seconds)
        if code < 0 and code != -errno.ENOENT:
            error = from_errno(code, f"{method} on {DIRECTORY_OBJECT}")
            probe, _ = store.execute(DIRECTORY_OBJECT, _NO_METHOD, b"", timeout=seconds)
            yield _refused(what, code, error, url, loaded=probe == -errno.EOPNOTSUPP)
            return
    purposes = "reading" if store.read_only else "reading and for writing"
    yield ok("object class", f"answers, for {purposes}")


def _refused(what: str, code: int, error: ZlogError, url: str, *, loaded: bool) -> Diagnosis:
    part = "object class"
    if isinstance(error, StoreTimeout):
        return failed(part, error, _FIND_OSD)
    if code == -errno.EIO and loaded:
        text = f"{DIRECTORY_OBJECT} is damaged, or the disk that it is on (EIO)"
        return Diagnosis(part, Level.FAILURE, text, _FIND_DAMAGE)
    if code == -errno.EPERM and loaded:
        text = f"this client's caps don't allow it to {what} with the class (EPERM)"
        mend = new_client(Target.parse(url))
    elif code == -errno.EPERM:
        text, mend = "the OSDs are not allowed to load it (EPERM)", _ALLOW_CLASS
    elif code == -errno.EOPNOTSUPP:
        text, mend = "the OSDs don't have it (EOPNOTSUPP)", _INSTALL_CLASS
    elif code == -errno.EIO:
        text, mend = "the OSDs have it and can't load it (EIO)", _REBUILD_CLASS
    else:
        return failed(part, error)
    return Diagnosis(part, Level.FAILURE, text, mend, ExitCode.CLASS_NOT_LOADED)


def examine_logs(store: Store, url: str, seconds: float) -> Iterator[Diagnosis]:
    """Count the logs, and ask every sequencer that they or the store name.

    Args:
        store: that holds them.
        url: of the store, as its user names it.
        seconds: how long each answer may take.
    """
    try:
        names = Log.list(store, timeout=seconds)
        served = _sequencers(store, names[:_LOGS_MAX], seconds)
        offered = announced(store, seconds)
    except ZlogError as error:
        yield failed("logs", error)
        return
    some = f"; looked at {_LOGS_MAX} of them" if len(names) > _LOGS_MAX else ""
    yield ok("logs", f"{len(names)}{some}")
    if offered:
        served.setdefault(offered, [])
    for address, logs in sorted(served.items()):
        yield _sequencer(address, logs, url, offered=address == offered)
    if not served and store.sequencer() is not None:
        yield ok("sequencer", "shared through the store; none needs to run")
    elif not served and not store.read_only:
        yield Diagnosis(
            "sequencer",
            Level.NOTE,
            "none: writers find the tail themselves, which is slower",
            f"zlog --store {shlex.quote(url)} seqr",
        )


def _sequencers(store: Store, names: list[str], seconds: float) -> dict[str, list[str]]:
    """Return the sequencers that logs' views name, each with its logs."""
    served: dict[str, list[str]] = {}
    for name in names:
        try:
            with Log.open(store, name, timeout=seconds) as log:
                address = log.view.sequencer
        except LogNotFound:
            continue  # removed since it was listed
        if is_remote(address):
            served.setdefault(address, []).append(name)
    return served


def _sequencer(address: str, logs: list[str], url: str, *, offered: bool) -> Diagnosis:
    whose = " and ".join(
        part
        for part in (
            "announced in the store" if offered else "",
            f"named by {_some(logs)}" if logs else "",
        )
        if part
    )
    try:
        status = status_of(address, _SEQUENCER_SECONDS, url)
    except SequencerRefused as error:
        return failed("sequencer", error)
    except SequencerUnavailable as error:
        port = address.rpartition(":")[2]
        return Diagnosis(
            "sequencer",
            Level.FAILURE,
            f"{address}, {whose}, does not answer: {error}",
            f"start it again there (zlog seqr --listen HOST:{port}); without it appends wait some"
            " seconds once, and then go on more slowly",
            ExitCode.UNREACHABLE,
        )
    version, role = status.get("version"), status.get("role")
    return ok("sequencer", f"{address}, {whose}, answers (version {version}, {role})")


def _some(logs: list[str]) -> str:
    if len(logs) == 1:
        return f"log {logs[0]}"
    shown = ", ".join(logs[:3])
    return f"{len(logs)} logs ({shown}{', …' if len(logs) > 3 else ''})"
