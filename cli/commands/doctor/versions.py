"""The versions of the object class in each OSD, and of the stored formats of logs."""

from __future__ import annotations

import errno
from collections.abc import Iterable, Iterator

from zlog import LogNotFound, Store, StoreUnavailable, ZlogError, connect
from zlog.admin import ClassVersion, Osds, osd_versions, own_version, stored_formats
from zlog.cli.ceph import with_class
from zlog.cli.commands.doctor.diagnosis import FIND_OSD, Diagnosis, note, ok, some, warning

_PART = "versions"
_INSTALL = "install libcls_zlog.so on their hosts, and restart them: docs/upgrading.md"
_OSDS_SHOWN = 8
_REFUSALS = {
    -errno.EOPNOTSUPP: "no object class in",
    -errno.EPERM: "the object class may not be loaded by",
    -errno.EIO: "an object class that does not load in",
}


def examine_osds(url: str, seconds: float) -> Iterator[Diagnosis]:
    """Ask each OSD of a store on Ceph for its version of the class."""
    try:
        with connect(with_class(url, "require")) as store:
            osds = osd_versions(store, timeout=seconds)
    except StoreUnavailable as error:
        yield note(_PART, f"the classes of the OSDs are unknown: {error}")
        return
    yield from compare(osds)


def compare(osds: Osds) -> Iterator[Diagnosis]:
    """Report OSDs that lack the class, or have an older one than other OSDs or this client."""
    own = own_version()
    for code in sorted({*osds.refusals.values()}, reverse=True):
        those = _named(osd for osd, each in osds.refusals.items() if each == code)
        if code == -errno.EACCES:
            text = f"this client's caps don't allow it to ask {those}"
            yield note(_PART, text)
            continue
        if code == -errno.ETIMEDOUT:
            yield warning(_PART, f"no answer in time from {those}", FIND_OSD)
            continue
        if code in _REFUSALS and not osds.versions:
            continue  # no OSD has it, which was reported
        what = _REFUSALS.get(code, f"{errno.errorcode.get(-code, code)} from")
        text = f"{what} {those}: for their objects, clients run the methods themselves or fail"
        yield warning(_PART, text, _INSTALL)
    newest = max((each.protocol for each in osds.versions.values()), default=0)
    for version in sorted({*map(_key, osds.versions.values())}):
        those = _named(osd for osd, each in osds.versions.items() if _key(each) == version)
        text = f"object class {version[1]} in {those}"
        if version[0] < newest:
            yield warning(_PART, f"{text}, older than on other OSDs", _INSTALL)
        elif version[0] < own.protocol:
            text += f", older than this client ({own})"
            yield note(_PART, text, _INSTALL)
        else:
            yield ok(_PART, text)
    if osds.silent:
        text = f"not asked, because no object was found there: {_named(osds.silent)}"
        yield note(_PART, text)


def _key(version: ClassVersion) -> tuple[int, str]:
    return version.protocol, str(version)


def _named(osds: Iterable[int]) -> str:
    names = [f"osd.{number}" for number in sorted(osds)]
    if len(names) > _OSDS_SHOWN:
        names[_OSDS_SHOWN:] = [f"{len(names) - _OSDS_SHOWN} more"]
    return ", ".join(names)


def examine_formats(store: Store, names: Iterable[str], seconds: float) -> Iterator[Diagnosis]:
    """Report the versions in which logs are stored, and logs that this client cannot read."""
    part, known = "formats", own_version().formats
    logs: dict[str, list[str]] = {}
    try:
        for name in names:
            try:
                formats = stored_formats(store, name, timeout=seconds)
            except LogNotFound:
                continue
            shown = ", ".join(f"{kind} {each.version}" for kind, each in formats.items())
            logs.setdefault(shown, []).append(name)
            new = [kind for kind, each in formats.items() if each.compat > known[kind]]
            if new:
                text = (
                    f"log {name} has a {' and a '.join(new)} of a later version than this client's"
                )
                yield warning(part, text, "upgrade zlog on this machine")
    except ZlogError as error:  # a client that only reads may lack the caps
        yield note(part, f"not examined: {error}")
        return
    for shown, those in logs.items():
        yield ok(part, f"{shown}: {some(those)}")
