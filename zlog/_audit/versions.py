"""Which versions are at work: of the object class in each OSD, and of what a log has stored."""

from __future__ import annotations

import errno
from collections.abc import Mapping
from typing import NamedTuple

from zlog._base.codes import Code
from zlog._base.io import Call, Io, Reply, deadline_of
from zlog._base.monitor import ask, placement
from zlog._base.names import head_object
from zlog._native import messages
from zlog._native.local import MemoryStore
from zlog.view import View

_NAMES_MAX = 256
"""How many names are tried to find one for each OSD: each is a question to the monitors."""

NO_METHOD = "doctor"
"""A method that the class does not have. An OSD that can load the class says that to every client:
it looks for the method before it looks at caps and at the object."""


class ClassVersion(NamedTuple):
    """What runs the methods of the class.

    Attributes:
        release: of zlog; empty for a class from before it could tell.
        protocol: grows with each method, and with each field of a message.
        formats: the newest versions of what is stored that it understands, by kind.
    """

    release: str = ""
    protocol: int = 0
    formats: Mapping[str, int] = {}

    def __str__(self) -> str:
        return f"{self.release or 'before 0.1.0'} (protocol {self.protocol})"


class Osds(NamedTuple):
    """The OSDs of a cluster, by number.

    Attributes:
        versions: of their classes.
        refusals: of those that lack the class, may not load it, or do not answer: a negative errno.
        silent: those that were not asked, since no object was found that they serve.
    """

    versions: dict[int, ClassVersion]
    refusals: dict[int, int]
    silent: list[int]


class Format(NamedTuple):
    """With which version a value is stored, and the oldest one that can read it."""

    version: int
    compat: int


def own_version() -> ClassVersion:
    """Return what this package has, for where it runs methods itself."""
    with MemoryStore() as store:
        store.execute("any", "seal", messages.seal(1, 1, 0, True))
        return _told(store.execute("any", "version", messages.version())[1])


def _told(reply: bytes) -> ClassVersion:
    told = messages.version_reply(reply)
    return ClassVersion(told.release, told.protocol, dict(told.formats))


async def osd_versions(io: Io, timeout: float | None) -> Osds:
    """Ask each OSD that serves objects of the store, by an object that is there for a moment.

    Args:
        io: over a store on Ceph that leaves all methods to the OSDs.
        timeout: of each step, in seconds.
    """
    found = Osds({}, {}, [])
    osds = {int(number) for number in await ask(io, deadline_of(io, timeout), "osd ls")}
    prefix = f"zlog-probe.{io.token(4).hex()}"
    for number in range(_NAMES_MAX):
        name = f"{prefix}.{number}"
        osd = (await placement(io, name, deadline_of(io, timeout))).primary
        if osd not in osds:
            continue
        osds.remove(osd)
        version = await _probe(io, name, timeout)
        if isinstance(version, ClassVersion):
            found.versions[osd] = version
        else:
            found.refusals[osd] = version
        if not osds:
            break
    return found._replace(silent=sorted(osds))


async def _probe(io: Io, name: str, timeout: float | None) -> ClassVersion | int:
    """Return which class the OSD has that serves an object of that name, or its refusal's errno."""

    async def call(method: str, request: bytes) -> Reply:
        return (await io.execute([Call(name, method, request)], deadline_of(io, timeout)))[0]

    made = await call("seal", messages.seal(1, 1, 0, True))
    if made.code == -errno.EPERM and (await call(NO_METHOD, b"")).code == -errno.EOPNOTSUPP:
        return -errno.EACCES
    if made.code != Code.OK:
        return made.code
    try:
        reply = await call("version", messages.version())
    finally:
        await call("remove", messages.remove(1))
    if reply.code == -errno.EOPNOTSUPP:
        return ClassVersion()
    return _told(bytes(reply.payload)) if reply.code == Code.OK else reply.code


_VIEW_BEGIN = 14
"""Where a stored view begins: behind the envelope's head of 10 bytes, and the view's length."""


async def stored_formats(io: Io, view: View, timeout: float | None) -> dict[str, Format]:
    """Return in which versions the newest of a log's stored values are, by kind.

    Args:
        io: the world.
        view: of the log.
        timeout: of each step, in seconds.

    Raises:
        ClassNotLoaded: the caps do not allow to look.
    """
    head, stripe = head_object(view.log), next(view.objects(view.live_stripe)).name
    asked: dict[str, tuple[str, bytes, int | None]] = {
        "head": (head, b"zlog.head", None),
        "view": (head, b"v.%016x" % view.epoch, None),
        "header": (stripe, b"zlog.header", None),
    }
    top = Call(stripe, "max_position", messages.max_position(view.epoch))
    (reply,) = await io.execute([top], deadline_of(io, timeout))
    if reply.code == Code.OK:
        highest = messages.max_position_reply(reply.payload).highest
        asked |= {} if highest is None else {"record": (stripe, b"", highest)}
    calls = [
        Call(name, "salvage", messages.salvage(key, position))
        for name, key, position in asked.values()
    ]
    found = {}
    for kind, reply in zip(asked, await io.execute(calls, deadline_of(io, timeout)), strict=True):
        if reply.code == -errno.EPERM:
            reply.check(f"salvage on the objects of log {view.log!r}")
        if reply.code == Code.OK:  # what was trimmed or is damaged tells nothing
            value = messages.salvage_reply(reply.payload).value
            begin = _VIEW_BEGIN if kind == "view" else 0
            found[kind] = Format(*value[begin : begin + 2])
    return found
