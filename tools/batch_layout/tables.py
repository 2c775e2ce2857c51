"""The figures as Markdown."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Iterator

from batch_layout.classes import LAYOUTS
from batch_layout.figures import Figure


def tables(figures: Iterable[Figure]) -> Iterator[str]:
    """Give a Markdown table for each store: medians of all turns, layouts side by side."""
    groups: dict[tuple[object, ...], list[Figure]] = defaultdict(list)
    for one in figures:
        groups[one.store, one.size, one.batch, one.what, one.layout].append(one)
    names = " / ".join(LAYOUTS)
    for store in dict.fromkeys(key[0] for key in groups):
        yield f"\n{store}, {names}:\n"
        yield "| entry × batch | writes/s | OSD µs | WAL bytes | reads/s | OSD µs |"
        yield "| --- | --- | --- | --- | --- | --- |"
        for size, batch in dict.fromkeys(key[1:3] for key in groups if key[0] == store):
            of = {
                (what, name): groups[store, size, batch, what, name]
                for what in ("write", "read")
                for name in LAYOUTS
            }
            yield (
                f"| {size} × {batch} | {_side_by_side(of, 'write', 'rate')} "
                f"| {_side_by_side(of, 'write', 'osd_us')} "
                f"| {_side_by_side(of, 'write', 'wal_bytes')} "
                f"| {_side_by_side(of, 'read', 'rate')} "
                f"| {_side_by_side(of, 'read', 'osd_us')} |"
            )


def _side_by_side(of: dict[tuple[str, str], list[Figure]], what: str, field: str) -> str:
    """Return the median of a figure for each layout."""
    shown = []
    for name in LAYOUTS:
        values = [getattr(one, field) for one in of[what, name]]
        known = [value for value in values if value is not None]
        shown.append(_human(statistics.median(known)) if known else "")
    return " / ".join(shown) if any(shown) else ""


def _human(value: float) -> str:
    """Return a figure with three digits: 1.23 M, 45.6 K, 0.78."""
    for unit, name in ((1e6, " M"), (1e3, " K")):
        if value >= unit:
            return f"{value / unit:.3g}{name}"
    return f"{value:.3g}"
