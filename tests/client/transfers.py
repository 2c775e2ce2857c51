"""Logs that are copied, and how a copy is told from its source."""

from __future__ import annotations

import io

import zlog

from ..support.logs import leave_hole

SMALL = {"stripe_records": 20}
"""Stripes that are full soon, so that copies have many of them."""


def exported(log: zlog.Log, **options: object) -> bytes:
    """Return a log as an export."""
    file = io.BytesIO()
    zlog.export_log(log, file, **options)  # type: ignore[arg-type]
    return file.getvalue()


def imported(store: zlog.Store, name: str, export: bytes, **options: object) -> zlog.Copied:
    """Import an export."""
    return zlog.import_log(store, name, io.BytesIO(export), **options)  # type: ignore[arg-type]


def mirrored(log: zlog.Log, store: zlog.Store, name: str, **options: object) -> int:
    """Mirror a log up to its tail; returns the mirror's."""
    *_, tail = zlog.mirror_log(log, store, name, **options)  # type: ignore[arg-type]
    return tail


def varied(store: zlog.Store, name: str = "orders") -> zlog.Log:
    """Make a log with all that a log can have, in several stripes."""
    log = zlog.Log.create(store, name, width=3, options={"team": "a"}, hole_timeout=0.05, **SMALL)
    log.append_many([b"trimmed"] * 20)
    for number in range(30):
        log.append(b"one %d" % number)
    leave_hole(log, 2)
    log.append_many([b"", b"x" * 100_000, *(b"%d" % number for number in range(50))])
    zlog.Log.open(store, name).append(b"another writer's", tags=["a", "b"])
    log.append_once([b"delivered %d" % number for number in range(5)], producer="crm", sequence=1)
    log.reconfigure(width=5)
    leave_hole(log)
    log.append_many([bytes(1000)] * 10, tags_each=[["a", "c"], []] * 5)
    log.trim(30)
    log.trim(60)
    log.trim_to(15)
    log.cursor("billing", create=40)
    log.cursor("nightly", create="latest")
    return log
