"""Which versions are at work: of the object class in each OSD, and of what logs have stored."""

from __future__ import annotations

import errno
from collections.abc import Iterable, Iterator

from zlog import LogNotFound, Store, StoreUnavailable, ZlogError, connect
from zlog.admin import ClassVersion, Osds, osd_versions, own_version, stored_formats
from zlog.cli.ceph import with_class
from zlog.cli.commands.doctor.diagnosis import FIND_OSD, Diagnosis, Level, ok, some

_PART = "versions"
_INSTALL = "install libcls_zlog.so on their hosts, and restart them: docs/upgrading.md"
_OSDS_SHOWN = 8
_REFUSALS = {
    -errno.EOPNOTSUPP: "no object class in",
    -errno.EPERM: "the object class may not be loaded by",
    -errno.EIO: "an object class that does not load in",
}


def examine_osds(url: str, seconds: float) -> Iterator[Diagnosis]:
    """Ask each OSD which class it has.

    Args:
        url: of a store on Ceph.
        seconds: how long each answer may take.
    """
    try:
        with connect(with_class(url, "require")) as store:
            osds = osd_versions(store, timeout=seconds)
    except StoreUnavailable as error:
        yield Diagnosis(_PART, Level.NOTE, f"which class the OSDs have can't be told: {error}")
        return
    yield from compare(osds)


def compare(osds: Osds) -> Iterator[Diagnosis]:
    """Tell which OSDs lack the class, or have an older one than others or than this client.

    Args:
        osds: what they have answered.
    """
    own = own_version()
    for code in sorted({*osds.refusals.values()}, reverse=True):
        those = _named(osd for osd, each in osds.refusals.items() if each == code)
        if code == -errno.EACCES:
            text = f"this client's caps don't allow to ask {those}"
            yield Diagnosis(_PART, Level.NOTE, text)
            continue
        if code == -errno.ETIMEDOUT:
            yield Diagnosis(_PART, Level.WARNING, f"no answer in time from {those}", FIND_OSD)
            continue
        if code in _REFUSALS and not osds.versions:
            continue  # none has it, which was told
        what = _REFUSALS.get(code, f"{errno.errorcode.get(-code, code)} from")
        text = f"{what} {those}: clients run the methods on their objects themselves, or fail there"
        yield Diagnosis(_PART, Level.WARNING, text, _INSTALL)
    newest = max((each.protocol for each in osds.versions.values()), default=0)
    for version in sorted({*map(_key, osds.versions.values())}):
        those = _named(osd for osd, each in osds.versions.items() if _key(each) == version)
        text = f"object class {version[1]} in {those}"
        if version[0] < newest:
            yield Diagnosis(_PART, Level.WARNING, f"{text}, older than in others", _INSTALL)
        elif version[0] < own.protocol:
            text += f", older than this client ({own})"
            yield Diagnosis(_PART, Level.NOTE, text, _INSTALL)
        else:
            yield ok(_PART, text)
    if osds.silent:
        text = f"not asked, since no object was found there: {_named(osds.silent)}"
        yield Diagnosis(_PART, Level.NOTE, text)


def _key(version: ClassVersion) -> tuple[int, str]:
    return version.protocol, str(version)


def _named(osds: Iterable[int]) -> str:
    names = [f"osd.{number}" for number in sorted(osds)]
    if len(names) > _OSDS_SHOWN:
        names[_OSDS_SHOWN:] = [f"{len(names) - _OSDS_SHOWN} more"]
    return ", ".join(names)


def examine_formats(store: Store, names: Iterable[str], seconds: float) -> Iterator[Diagnosis]:
    """Tell in which versions logs are stored, and which of them this client can't read.

    Args:
        store: that holds them.
        names: of the logs.
        seconds: how long each answer may take.
    """
    part, known = "formats", own_version().formats
    logs: dict[str, list[str]] = {}
    try:
        for name in names:
            try:
                formats = stored_formats(store, name, timeout=seconds)
            except LogNotFound:
                continue
            told = ", ".join(f"{kind} {each.version}" for kind, each in formats.items())
            logs.setdefault(told, []).append(name)
            new = [kind for kind, each in formats.items() if each.compat > known[kind]]
            if new:
                text = (
                    f"log {name} has a {' and a '.join(new)} of a later version than this client's"
                )
                yield Diagnosis(part, Level.WARNING, text, "upgrade zlog on this machine")
    except ZlogError as error:  # who only reads need not be allowed to
        yield Diagnosis(part, Level.NOTE, f"not looked at: {error}")
        return
    for told, those in logs.items():
        yield ok(part, f"{told}: {some(those)}")
