"""The versions in use: of the object class in each OSD, and of a log's stored values."""

from __future__ import annotations

import errno
from collections.abc import Mapping
from typing import NamedTuple

from zlog._base.codes import Code
from zlog._base.io import Call, deadline_of
from zlog._base.monitor import ask, placement
from zlog._base.names import head_object
from zlog._io import BlockingIo, drive
from zlog._lifecycle import find_log
from zlog._native import messages
from zlog._native.local import MemoryStore
from zlog.limits import TIMEOUT_SECONDS
from zlog.store import Store

_NAMES_MAX = 256
"""How many object names to try in order to reach every OSD. Each is a request to the monitors."""

NO_METHOD = "doctor"
"""A method that the class does not have. If an OSD can load the class, a call of this method
returns EOPNOTSUPP to every client, because the OSD looks up the method before it checks caps."""


class ClassVersion(NamedTuple):
    """The version of an object class.

    Attributes:
        release: the release of zlog.
        protocol: a number that grows with each new method and each new field of a message.
        formats: the newest version of each kind of stored value that the class can read.
    """

    release: str
    protocol: int
    formats: Mapping[str, int]

    def __str__(self) -> str:
        return f"{self.release} (protocol {self.protocol})"


class Osds(NamedTuple):
    """The object class's versions in a cluster's OSDs, which are identified by their numbers.

    Attributes:
        versions: the class versions of the OSDs that answered.
        refusals: a negative errno for each OSD that cannot run the class or does not answer.
        silent: the OSDs that were not asked, because none of the objects tried was on them.
    """

    versions: dict[int, ClassVersion]
    refusals: dict[int, int]
    silent: list[int]


class Format(NamedTuple):
    """The version of a stored value, and the oldest version whose readers can read it."""

    version: int
    compat: int


def own_version() -> ClassVersion:
    """Return the version of this package's methods, for stores whose clients run them."""
    with MemoryStore() as store:
        store.execute("any", "seal", messages.seal(1, 1, 0, True))
        return _decode(store.execute("any", "version", messages.version())[1])


def _decode(reply: bytes) -> ClassVersion:
    found = messages.version_reply(reply)
    return ClassVersion(found.release, found.protocol, dict(found.formats))


def osd_versions(store: Store, *, timeout: float | None = TIMEOUT_SECONDS) -> Osds:
    """Return the version of the class in each OSD of a cluster.

    To reach an OSD, this creates an object in the store's pool and namespace and removes it again.
    If the process is killed in between, remove the object ``zlog-probe.*`` by hand. In a large
    cluster, some OSDs may not be reached. The caps must allow ``seal`` and ``remove``.

    Args:
        store: a store on Ceph whose OSDs run all methods (``class=require``).
        timeout: the budget of each step, in seconds.

    Raises:
        StoreUnavailable: the monitors refuse to say which OSD serves which object.
    """
    io = BlockingIo(store)
    versions: dict[int, ClassVersion] = {}
    refusals: dict[int, int] = {}
    left = {int(number) for number in drive(ask(io, deadline_of(io, timeout), "osd ls"))}
    prefix = f"zlog-probe.{io.token(4).hex()}"
    for number in range(_NAMES_MAX):
        name = f"{prefix}.{number}"
        osd = drive(placement(io, name, deadline_of(io, timeout))).primary
        if osd in left:
            left.remove(osd)
            version = _probe(store, name, timeout)
            if isinstance(version, ClassVersion):
                versions[osd] = version
            else:
                refusals[osd] = version
        if not left:
            break
    return Osds(versions, refusals, sorted(left))


def _probe(store: Store, name: str, timeout: float | None) -> ClassVersion | int:
    """Return the class version of the OSD that serves an object name, or its negative errno."""
    code, _ = store.execute(name, "seal", messages.seal(1, 1, 0, True), timeout)
    if code == -errno.EPERM:
        answer, _ = store.execute(name, NO_METHOD, b"", timeout)
        return -errno.EACCES if answer == -errno.EOPNOTSUPP else code
    if code != Code.OK:
        return code
    try:
        code, reply = store.execute(name, "version", messages.version(), timeout)
    finally:
        store.execute(name, "remove", messages.remove(1), timeout)
    return _decode(reply) if code == Code.OK else code


_VIEW_BEGIN = 14
"""Where a stored view begins: after the 10 bytes of the envelope's head and the view's length."""


def stored_formats(
    store: Store, name: str, *, timeout: float | None = TIMEOUT_SECONDS
) -> dict[str, Format]:
    """Return the format versions of a log's newest stored values, by kind of value.

    Args:
        store: the store that holds the log.

    Raises:
        LogNotFound: the log does not exist.
        ClassNotLoaded: the caps do not allow the method ``salvage``.
    """
    io = BlockingIo(store)
    deadline = deadline_of(io, timeout)
    view = drive(find_log(io, name, deadline))
    head, stripe = head_object(view.log), next(view.objects(view.live_stripe)).name
    asked: dict[str, tuple[str, bytes, int | None]] = {
        "head": (head, b"zlog.head", None),
        "view": (head, b"v.%016x" % view.epoch, None),
        "header": (stripe, b"zlog.header", None),
    }
    top = Call(stripe, "max_position", messages.max_position(view.epoch))
    (reply,) = drive(io.execute([top], deadline))
    if reply.code == Code.OK:
        highest = messages.max_position_reply(reply.payload).highest
        asked |= {} if highest is None else {"record": (stripe, b"", highest)}
    calls = [
        Call(owner, "salvage", messages.salvage(key, position))
        for owner, key, position in asked.values()
    ]
    found = {}
    for kind, reply in zip(asked, drive(io.execute(calls, deadline)), strict=True):
        if reply.code == -errno.EPERM:
            reply.check(f"cannot read the stored formats of log {view.log!r}")
        if reply.code == Code.OK:  # other codes mean that the value is trimmed or damaged
            value = messages.salvage_reply(reply.payload).value
            begin = _VIEW_BEGIN if kind == "view" else 0
            found[kind] = Format(*value[begin : begin + 2])
    return found
