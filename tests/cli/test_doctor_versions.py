"""doctor: which versions of the object class are at work, and of what is stored."""

from __future__ import annotations

import errno

import pytest

import zlog
from zlog.admin import Osds, own_version
from zlog.cli.commands.doctor import versions
from zlog.cli.commands.doctor.diagnosis import Level


def test_differing_classes_of_osds_are_reported() -> None:
    own = own_version()
    older = own._replace(release="0.0.9", protocol=own.protocol - 1)
    refusals = {4: -errno.EOPNOTSUPP, 5: -errno.EPERM, 6: -errno.EACCES, 7: -errno.ETIMEDOUT}
    osds = Osds({1: own, 2: older, 3: own, **dict.fromkeys(range(20, 40), own)}, refusals, [8, 9])
    told = [(each.level, each.text.partition(":")[0]) for each in versions.compare(osds)]
    others = "osd.20, osd.21, osd.22, osd.23, osd.24, osd.25, 14 more"
    assert told == [
        (Level.WARNING, "the object class may not be loaded by osd.5"),
        (Level.NOTE, "this client's caps don't allow it to ask osd.6"),
        (Level.WARNING, "no object class in osd.4"),
        (Level.WARNING, "no answer in time from osd.7"),
        (Level.WARNING, f"object class {older} in osd.2, older than on other OSDs"),
        (Level.OK, f"object class {own} in osd.1, osd.3, {others}"),
        (Level.NOTE, "not asked, because no object was found there"),
    ]
    (told_of,) = versions.compare(Osds({1: older}, {}, []))
    assert (told_of.level, f"older than this client ({own})" in told_of.text) == (Level.NOTE, True)
    assert not [*versions.compare(Osds({}, {1: -errno.EOPNOTSUPP}, []))]  # was told


def test_log_formats_are_reported(monkeypatch: pytest.MonkeyPatch, store: zlog.Store) -> None:
    with zlog.Log.create(store, "empty", width=1), zlog.Log.create(store, "used", width=2) as log:
        log.append_many([b"one", b"two"])
    names = ["empty", "gone", "used"]
    told = [each.text for each in versions.examine_formats(store, names, 5)]
    known = own_version()
    values = "head {head}, view {view}, header {header}".format_map(known.formats)
    assert told == [f"{values}: log empty", f"{values}, record 1: log used"]
    with zlog.Log.create(store, "taken", width=1) as log, log.writer():
        pass
    older = known._replace(formats={**known.formats, "view": 1})
    monkeypatch.setattr(versions, "own_version", lambda: older)
    warning, *_ = versions.examine_formats(store, [*names, "taken"], 5)
    assert (warning.level, warning.text) == (
        Level.WARNING,
        "log taken has a view of a later version than this client's",
    )
    older = known._replace(formats={**known.formats, "record": 0})
    monkeypatch.setattr(versions, "own_version", lambda: older)
    warning, *_ = versions.examine_formats(store, names, 5)
    assert (warning.level, warning.text) == (
        Level.WARNING,
        "log used has a record of a later version than this client's",
    )
