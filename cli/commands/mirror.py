"""The command mirror: a copy of a log in another store, kept up to date."""

from __future__ import annotations

import time
from typing import Any

import click

import zlog
from zlog import CopyDiffers, Entry, StoreMissing, ZlogError
from zlog.cli.command import Command
from zlog.cli.names import LOG_NAME, log_argument
from zlog.cli.output import Output, note, say
from zlog.cli.parameters import FILE, width_option
from zlog.cli.session import Session, pass_session, read_key
from zlog.cli.signals import terminable

_RETRY_SECONDS = 1.0
_RETRY_SECONDS_MAX = 30.0


@click.command(
    cls=Command,
    examples="""
    zlog --store ceph://logs mirror orders --to ceph://logs?conf=/etc/ceph/other.conf --follow
    zlog mirror orders --to file:///backup/store
    zlog mirror orders --to ceph://logs --as orders-copy --follow --cursors
    """,
)
@log_argument
@click.option("--to", "target", metavar="URL", required=True, help="The mirror's store.")
@click.option(
    "--as",
    "name",
    type=LOG_NAME,
    metavar="NAME",
    help="The mirror's name.  [default: the name of the log]",
)
@click.option(
    "-f",
    "--follow",
    "on",
    is_flag=True,
    help="Copy new entries as they are appended, until stopped.",
)
@click.option("--cursors", is_flag=True, help="Copy the log's cursors too, repeatedly.")
@click.option(
    "--adopt",
    is_flag=True,
    help="Accept an imported log as the mirror, even if it cannot be compared with LOG.",
)
@click.option(
    "--missing", is_flag=True, help="List the positions that the mirror lacks, and copy nothing."
)
@click.option(
    "--target-mac-key-file",
    "target_key",
    type=FILE,
    metavar="FILE",
    help="The key of the mirror's MACs.  [default: the key of the log]",
)
@width_option("Width of a new mirror, as for `zlog create`.  [default: the width of the log]")
@pass_session
def mirror(
    session: Session,
    /,
    log: str,
    target: str,
    name: str | None,
    on: bool,
    missing: bool,
    target_key: str | None,
    **options: Any,
) -> None:
    """Copy a log to another store, position by position.

    The command creates the mirror, or continues an existing one at its end. Each entry keeps its
    position and time, and the mirror has no missing positions below its tail. It refuses appends
    until `zlog access promote` makes it an independent log. If the source trims entries that were
    already copied, they stay in the mirror.

    With --follow, it keeps copying. If either store fails, it reports this and tries again.

    After a fail-over, use --missing when the source is back. It lists the source's entries that
    were not mirrored when the mirror was promoted.
    """
    if missing:
        if on:
            raise click.UsageError("--missing and --follow cannot be combined")
        _list_missing(session, log, target, name or log)
        return
    failures = tail = 0
    copied = False
    with terminable():
        while True:
            try:
                with (
                    session.open_log(log) as source,
                    session.of(target).connect(create=not copied) as store,
                ):
                    for reached in zlog.mirror_log(
                        source,
                        store,
                        name,
                        follow=on,
                        timeout=session.timeout,
                        mac_key=session.mac_key if target_key is None else read_key(target_key),
                        **options,
                    ):
                        failures, tail, copied = 0, reached, True
                break
            except ZlogError as error:
                returns = error.retryable or (copied and isinstance(error, StoreMissing))
                if not (on and returns):
                    raise
                say(f"{error}; trying again")
                time.sleep(min(_RETRY_SECONDS * 2**failures, _RETRY_SECONDS_MAX))
                failures += 1
    note(f"mirrored log {log!r} up to position {tail}")


def _list_missing(session: Session, log: str, target: str, name: str) -> None:
    """Print the ranges of a log's positions whose entries its mirror lacks."""
    with (
        session.open_log(log) as source,
        session.of(target).connect() as store,
        zlog.Log.open(store, name, timeout=session.timeout) as copy,
    ):
        start = copy.view.common_end(source.view.log_id)
        if start is None:
            raise CopyDiffers(f"log {name!r} in {target} was never a mirror of log {log!r}")
        count = 0
        runs: list[list[int]] = []
        for item in source.read_range(start):
            if isinstance(item, Entry):
                count += 1
                if not runs or runs[-1][1] + 1 < item.position:
                    runs.append([item.position, item.position])
                runs[-1][1] = item.position
        with Output() as out:
            for first, last in runs:
                out.line(str(first) if first == last else f"{first}:{last + 1}")
        note(f"the mirror lacks {count:,} entries")
        if count:
            command = f"zlog --store '{source.store.url}'"
            say(f"to read them: {command} read {log} {start}:")
            say(f"to keep them: {command} export {log} --from {start} > {log}.zlog")
