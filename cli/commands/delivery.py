"""The command delivery: the sources that deliver to a log exactly once."""

from __future__ import annotations

import click

from zlog import CorruptEntry, Log, ZlogError
from zlog.cli.command import CommandGroup
from zlog.cli.names import SOURCE_NAME, pass_log
from zlog.cli.output import note
from zlog.cli.parameters import json_option
from zlog.cli.tables import print_rows
from zlog.cli.template import iso


@click.group(
    cls=CommandGroup,
    examples="""
    zlog delivery ls orders
    zlog delivery rm orders crm
    """,
)
def delivery() -> None:
    """Show and remove the sources of exactly-once deliveries.

    For each source, a log stores which batches are complete, and the positions of the parts of
    other batches. A source is a program, or a streaming query of Spark, which is named by its id. A
    log can have 1,024 sources, so remove sources that no longer exist.
    """


@delivery.command(
    examples="""
    zlog delivery ls orders
    zlog delivery ls orders --json | jq -r 'select(.updated < "2026-01") | .name'
    """,
)
@pass_log
@json_option("Print a JSON object per source.")
def ls(log: Log, as_json: bool) -> None:
    """List a log's sources, each with its first incomplete batch.

    PARTS is the number of parts of this and later batches that the log stores. DELIVERED is the
    time at which the source last began a part, or completed a batch.
    """
    rows = [
        {
            "name": each.name,
            "batch": each.batch,
            "parts": each.parts,
            "created": iso(each.created),
            "updated": iso(each.updated),
        }
        for each in log.sources()
    ]
    head = {"name": "SOURCE", "batch": "BATCH", "parts": "PARTS", "updated": "DELIVERED"}
    print_rows(rows, head, as_json=as_json)


@delivery.command(
    examples="""
    zlog delivery rm orders crm
    """,
)
@pass_log
@click.argument("sources", metavar="SOURCE...", nargs=-1, type=SOURCE_NAME, required=True)
def rm(log: Log, sources: tuple[str, ...]) -> None:
    """Remove sources, so that the log forgets their deliveries.

    The entries stay. Remove a source only if it no longer exists. If it repeats a batch after this,
    the batch is appended a second time.
    """
    known = _names(log)
    for source in sources:
        if known is not None and source not in known:
            raise ZlogError(
                f"log {log.name!r} has no source of deliveries {source!r}",
                hint="`zlog delivery ls LOG` lists them.",
            )
        log.forget_source(source)
        note(f"removed source {source!r}")


def _names(log: Log) -> set[str] | None:
    """Return the names of a log's sources, or None if a damaged one cannot be read."""
    try:
        return {each.name for each in log.sources()}
    except CorruptEntry:
        return None
