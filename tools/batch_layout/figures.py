"""The figures: writes through the class, and reads of what they have left."""

from __future__ import annotations

from dataclasses import dataclass

from batch_layout.osd import Osd

_OBJECTS = 8
_IN_FLIGHT = 2
"""Rounds under way, each an operation on every object: 16 operations."""
_OPERATIONS_MAX = 4096
_READ_BYTES_MAX = 48 << 20
_READ_WINDOW = 256
"""Entries that one reading operation asks for."""


@dataclass(frozen=True)
class Figure:
    """One turn: of one layout on one store, at one operation size.

    `rate` is entries per second, `osd_us` the OSD's CPU time per entry in microseconds, and
    `wal_bytes` what BlueStore wrote ahead, per entry (None on memstore, and for reads).
    """

    store: str
    layout: str
    size: int
    batch: int
    what: str
    rate: float
    osd_us: float
    wal_bytes: float | None = None


def written(store: str, osd: Osd, size: int, batch: int, seconds: float) -> Figure:
    """Measure writes of `batch` entries per operation."""
    before = osd.wal_bytes()
    together = batch * _OBJECTS
    found = osd.limits.measure(
        "class_writes",
        together,
        objects=_OBJECTS,
        size=size,
        batch=together,
        in_flight=_IN_FLIGHT,
        seconds=seconds,
    )
    after = osd.wal_bytes()
    wal = None if before is None or after is None else (after - before) / found.entries
    osd_us = 1e6 * found.cpu["osd"] / found.entries
    return Figure(store, osd.layout, size, batch, "write", found.rate, osd_us, wal)


def read(store: str, osd: Osd, size: int, batch: int, seconds: float) -> Figure:
    """Measure range reads of what such writes have left."""
    together = batch * _OBJECTS
    window = _READ_WINDOW * _OBJECTS
    entries = min(_OPERATIONS_MAX * batch, _READ_BYTES_MAX // size)
    found = osd.limits.measure(
        "class_reads",
        window,
        objects=_OBJECTS,
        size=size,
        batch=together,
        entries=max(entries, window, together),
        window=window,
        in_flight=_IN_FLIGHT,
        seconds=seconds,
    )
    osd_us = 1e6 * found.cpu["osd"] / found.entries
    return Figure(store, osd.layout, size, batch, "read", found.rate, osd_us)
