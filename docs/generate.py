"""Write the tables of metrics.md from the metrics that Prometheus gets.

Run it after a metric changed. Text outside the marks is written by hand and does not change.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import zlog
import zlog.metrics
from zlog.cli.commands.exporter import Exporter
from zlog.cli.watch import Watch
from zlog.seqr.metrics import Lag, metrics_of
from zlog.web import Access, Limits, Service

PAGE = Path(__file__).with_name("metrics.md")

_MARKED = re.compile(r"<!-- begin (?P<name>[a-z -]+) -->\n.*?<!-- end -->", re.DOTALL)


def metrics() -> dict[str, list[Any]]:
    """Return the families of metrics of a sequencer, of the exporter and of a client."""
    status: dict[str, Any] = {
        "version": "",
        "address": "",
        "closed": {},
        "namespaces": (),
        "logs": (),
    }
    with zlog.connect("mem://") as store:
        exporter = Exporter(Watch(store, "*", 1, 1, None))
        http = Service(store, Access(None), Limits())
    return {
        "sequencer": [*metrics_of(defaultdict[str, Any](int, status)), *Lag().collect()],
        "exporter": [*exporter.collect()],
        "http": [*http.collect()],
        "client": [*zlog.metrics._Tallies().collect()],
    }


def render(text: str) -> str:
    """Return the page of metrics with its tables written again.

    Raises:
        KeyError: a mark names no table.
    """
    known = metrics()
    return _MARKED.sub(
        lambda mark: "\n".join(
            [f"<!-- begin {mark['name']} -->", *_rows(known[mark["name"]]), "<!-- end -->"]
        ),
        text,
    )


def _rows(families: Iterable[Any]) -> Iterator[str]:
    yield "| metric | type | labels | meaning |"
    yield "| --- | --- | --- | --- |"
    endings = {"counter": "_total", "info": "_info"}
    for family in families:
        labels = family._labelnames
        if family.type == "info":
            labels = family.samples[0].labels
        name = f"`{family.name}{endings.get(family.type, '')}`"
        yield f"| {name} | {family.type} | {', '.join(labels)} | {family.documentation} |"


def main() -> None:
    """Write the page."""
    PAGE.write_text(render(PAGE.read_text()))


if __name__ == "__main__":
    main()
