"""The command delivery: the sources that deliver to a log exactly once."""

from __future__ import annotations

import click

from zlog import CorruptEntry, DeliverySource, Log, ZlogError
from zlog.cli.command import CommandGroup
from zlog.cli.names import SOURCE_NAME, log_argument
from zlog.cli.output import Output, note
from zlog.cli.parameters import json_option
from zlog.cli.render import to_json
from zlog.cli.session import Session, pass_session
from zlog.cli.tables import table
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

    For each source, a log remembers which batches are done, and where the parts of others were
    appended. A source is a streaming query of Spark, named by its id, or a program that delivers.
    A log takes 1,024 sources: remove those that are gone.
    """


@delivery.command(
    examples="""
    zlog delivery ls orders
    zlog delivery ls orders --json | jq -r 'select(.updated < "2026-01") | .name'
    """,
)
@log_argument
@json_option("Print a JSON object per source.")
@pass_session
def ls(session: Session, log: str, as_json: bool) -> None:
    """List a log's sources, each with its first batch that is not done.

    PARTS is the number of parts of this and later batches that the log keeps. DELIVERED is when the
    source last began a part, or reported a batch as done.
    """
    with session.open_log(log) as opened, Output() as out:
        sources = opened.sources()
        if as_json:
            for each in sources:
                out.line(to_json(_fields(each)))
            return
        rows = [
            (each.name, str(each.batch), str(each.parts), iso(each.updated)) for each in sources
        ]
        table(out, ("SOURCE", "BATCH", "PARTS", "DELIVERED"), rows)


def _fields(source: DeliverySource) -> dict[str, object]:
    return {
        "name": source.name,
        "batch": source.batch,
        "parts": source.parts,
        "created": iso(source.created),
        "updated": iso(source.updated),
    }


@delivery.command(
    examples="""
    zlog delivery rm orders crm
    """,
)
@log_argument
@click.argument("sources", metavar="SOURCE...", nargs=-1, type=SOURCE_NAME, required=True)
@pass_session
def rm(session: Session, log: str, sources: tuple[str, ...]) -> None:
    """Remove sources, so that the log forgets what they have delivered.

    Their entries stay. Remove only sources that are gone: a source that delivers a batch again
    after this appends its entries a second time.
    """
    with session.open_log(log) as opened:
        known = _names(opened)
        for source in sources:
            if known is not None and source not in known:
                raise ZlogError(
                    f"log {log!r} has no source of deliveries {source!r}",
                    hint="`zlog delivery ls LOG` lists them.",
                )
            opened.forget_source(source)
            note(f"removed source {source!r}")


def _names(log: Log) -> set[str] | None:
    """Return the names of a log's sources; None: a damaged one prevents that."""
    try:
        return {each.name for each in log.sources()}
    except CorruptEntry:
        return None
