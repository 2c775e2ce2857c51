"""The object class, the logs, and the sequencers that the store names."""

from __future__ import annotations

import errno
import shlex
from collections.abc import Iterator
from contextlib import suppress
from urllib.parse import parse_qs, urlsplit

from zlog import (
    Log,
    SequencerRefused,
    SequencerUnavailable,
    Store,
    StoreTimeout,
    StoreUnavailable,
    View,
    ZlogError,
    connect,
)
from zlog.admin import (
    RETENTION_DOUBT_HINT,
    ClassRefusal,
    OtherProtocol,
    announced_sequencer,
    ask_monitors,
    check_class,
    is_plain,
    retention_doubts,
    sequencer_status,
    unfinished_removals,
    views_of,
)
from zlog.cli.ceph import Target, new_client, with_class
from zlog.cli.commands.doctor import offload, versions
from zlog.cli.commands.doctor.diagnosis import (
    FIND_OSD,
    Diagnosis,
    Level,
    failed,
    failure,
    note,
    ok,
    some,
    warning,
)
from zlog.cli.exit_codes import ExitCode

_LOGS_MAX = 200
"""Limit of the logs whose views are read."""

_SEQUENCER_SECONDS = 2.0
_ASK_SECONDS = 2.0

_LOAD_LIST = "osd_class_load_list"
_ALLOW_CLASS = (
    f'ceph config set osd {_LOAD_LIST} "$(ceph config get osd {_LOAD_LIST}) zlog"'
    " && ceph config set osd osd_class_default_list"
    ' "$(ceph config get osd osd_class_default_list) zlog"; then restart the OSDs. A ceph.conf on'
    " their hosts that sets these options takes precedence: append zlog there"
)
_ALLOWED_CLASS = (
    f"the monitors' {_LOAD_LIST} has zlog already, so restart the OSDs; if that does not help, a"
    " ceph.conf on their hosts takes precedence: append zlog to osd_class_load_list and"
    f" osd_class_default_list there. ceph tell osd.0 config get {_LOAD_LIST} prints an"
    " OSD's own setting"
)
_INSTALL_CLASS = (
    "install libcls_zlog.so in rados-classes on every OSD host; the OSDs look for it at each call"
)
_REBUILD_CLASS = (
    "build libcls_zlog.so for the release of the OSDs (ceph versions), and install it on"
    " every OSD host; an OSD's log says why: grep _load_class /var/log/ceph/ceph-osd.*.log"
)
_FIND_DAMAGE = "ceph health detail   # shows scrub errors; ceph pg repair PG repairs them"
_IN_CLIENT = (
    "its methods run in this client, which is safe but slower if writers compete, and every"
    " client that may write to the pool can overwrite logs"
)


def examine_class(store: Store, url: str, seconds: float) -> Iterator[Diagnosis]:
    """Run a method that reads and, if the store is writable, a method that would write."""
    refusal = check_class(store, timeout=seconds)
    if refusal is not None:
        yield _refused(store, refusal, url)
    elif never_asks(url):
        yield ok("object class", f"not requested: {_IN_CLIENT}")
    elif is_plain(store):
        yield _not_used(url, seconds)
    else:
        purposes = "reading" if store.read_only else "reading and for writing"
        yield ok("object class", f"answers, for {purposes}")


def never_asks(url: str) -> bool:
    """Return whether a URL excludes the use of the class."""
    return _class_use(url) == "never"


def _class_use(url: str) -> str:
    return parse_qs(urlsplit(url).query).get("class", ["auto"])[0]


def _not_used(url: str, seconds: float) -> Diagnosis:
    """Report why methods run in the client, and the consequences."""
    part = "object class"
    url = with_class(url, "require")
    with connect(url) as store:
        refusal = check_class(store, timeout=seconds)
        if refusal is None:  # it was installed just now
            return note(part, f"not used: {_IN_CLIENT}")
        why = _refused(store, refusal, url)
    return note(part, f"{why.text}, so {_IN_CLIENT}", why.fix)


def _how_to_allow(store: Store) -> str:
    """Return how to make the OSDs load the class, unless they are already configured to."""
    with suppress(StoreUnavailable):
        for option in ask_monitors(store, "config dump", timeout=_ASK_SECONDS):
            if option["name"] == _LOAD_LIST and {"zlog", "*"} & {*option["value"].split()}:
                return _ALLOWED_CLASS
    return _ALLOW_CLASS


def _refused(store: Store, refusal: ClassRefusal, url: str) -> Diagnosis:
    part = "object class"
    purpose, where, code, loaded = refusal
    if isinstance(refusal.error, StoreTimeout):
        return failed(part, refusal.error, FIND_OSD)
    if code == -errno.EIO and loaded:
        text = f"{where} or its disk is damaged (EIO)"
        return failure(part, text, _FIND_DAMAGE)
    if code == -errno.EPERM and never_asks(url):
        text = f"this client's caps don't allow it to {purpose} in the pool (EPERM)"
        fix = new_client(Target.parse(url), plain=True)
    elif code == -errno.EPERM and _class_use(url) == "auto":  # neither way works
        neither = "neither with the class nor without"
        text = f"this client's caps allow it to {purpose} {neither} (EPERM)"
        fix = new_client(Target.parse(url), plain=not loaded)
    elif code == -errno.EPERM and loaded:
        text = f"this client's caps don't allow it to {purpose} with the class (EPERM)"
        fix = new_client(Target.parse(url))
    elif code == -errno.EPERM:
        text, fix = "the OSDs are not allowed to load it (EPERM)", _how_to_allow(store)
    elif code == -errno.EOPNOTSUPP:
        text, fix = "the OSDs don't have it (EOPNOTSUPP)", _INSTALL_CLASS
    elif code == -errno.EIO:
        text, fix = "the OSDs have it but can't load it (EIO)", _REBUILD_CLASS
    else:
        return failed(part, refusal.error)
    return failure(part, text, fix, ExitCode.CLASS_NOT_LOADED)


def examine_logs(store: Store, url: str, seconds: float) -> Iterator[Diagnosis]:
    """Examine the logs, their retention, and each sequencer that they or the store name."""
    try:
        names = Log.list(store, timeout=seconds)
        views = views_of(store, names[:_LOGS_MAX], timeout=seconds)
        announced = announced_sequencer(store, timeout=seconds)
    except ZlogError as error:
        yield failed("logs", error)
        return
    looked = f"; examined {_LOGS_MAX} of them" if len(names) > _LOGS_MAX else ""
    yield ok("logs", f"{len(names)}{looked}")
    yield from versions.examine_formats(store, names[:_LOGS_MAX], seconds)
    unopened = [name for name in names[:_LOGS_MAX] if name not in views]
    if removals := unfinished_removals(store, unopened, timeout=seconds):
        hint = next(iter(removals.values())).hint
        yield warning("removal", f"the removal of {some([*removals])} is not finished", hint)
    yield from _writers(views)
    yield from _retention(store, names[:_LOGS_MAX], seconds)
    yield from offload.examine(store, views, seconds)
    led = False
    served: dict[str, list[str]] = {}
    for name, view in views.items():
        if view.sequencer not in ("", "store:"):
            served.setdefault(view.sequencer, []).append(name)
    if announced:
        found = _sequencer(announced, served.pop(announced, []), url, announced=True)
        led = found.level is Level.OK
        yield found
    for address, logs in sorted(served.items()):
        yield _sequencer(address, logs, url, led=led)
    if not (served or announced) and store.sequencer() is not None:
        yield ok("sequencer", "shared through the store; no process needs to run")
    elif names and len(names) <= _LOGS_MAX and all(view.ordered for view in views.values()):
        yield ok("sequencer", "none, and not needed: each log is ordered by its object")
    elif not (served or announced or store.read_only):
        yield note(
            "sequencer",
            "none: writers find the tail themselves, which is slower",
            f"zlog --store {shlex.quote(url)} seqr",
        )


def _writers(views: dict[str, View]) -> Iterator[Diagnosis]:
    """Report logs to which not all clients can append."""
    taken = [name for name, view in views.items() if view.writer is not None]
    if taken:
        yield ok("exclusive", f"{some(taken)}; `zlog access show LOG` shows who appends")
    ordered = [name for name, view in views.items() if view.ordered]
    if ordered:
        yield ok("ordering", f"{some(ordered)}; ordered by the log's object, without a sequencer")
    closed = [name for name, view in views.items() if view.read_only]
    if closed:
        yield ok("read-only", some(closed))


def _retention(store: Store, names: list[str], seconds: float) -> Iterator[Diagnosis]:
    try:
        doubts = retention_doubts(store, names, timeout=seconds)
    except ZlogError as error:  # a client that only reads may lack the caps
        yield note("retention", f"not examined: {error}")
        return
    for name, doubt in doubts.items():
        text = f"clocks disagree about log {name}: {doubt}"
        yield warning("retention", text, RETENTION_DOUBT_HINT)


def _sequencer(
    address: str, logs: list[str], url: str, *, announced: bool = False, led: bool = False
) -> Diagnosis:
    named = [f"named by {some(logs)}"] if logs else []
    whose = " and ".join(["announced in the store"] * announced + named)
    try:
        status = sequencer_status(address, url=url, timeout=_SEQUENCER_SECONDS)
    except SequencerRefused as error:
        return failed("sequencer", error)
    except OtherProtocol as error:
        text = f"{error}; this client appends without it, which is slow while other clients use it"
        return warning("sequencer", text, error.hint)
    except SequencerUnavailable as error:
        text = f"{address}, {whose}, does not answer: {error}"
        if led:  # no client had the log open when the sequencer was lost
            text += "; the announced sequencer takes over such a log when a client asks for it"
            return note("sequencer", text)
        port = address.rpartition(":")[2]
        fix = (
            f"start it again there (zlog seqr --listen HOST:{port}); or, if it no longer exists,"
            f" zlog --store {shlex.quote(url)} seqr forget {address}. Otherwise the next append to"
            " each log waits some seconds for it, and continues without it"
        )
        level = Level.FAILURE if announced else Level.WARNING  # an append to such a log resolves it
        return Diagnosis("sequencer", level, text, fix, ExitCode.UNREACHABLE)
    version, role = status.get("version"), status.get("role")
    return ok("sequencer", f"{address}, {whose}, answers (version {version}, {role})")
