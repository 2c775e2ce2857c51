"""The command offload: moves old stripes of a log into Parquet files."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import click

from zlog.cli.command import Command
from zlog.cli.names import log_argument
from zlog.cli.output import note, say
from zlog.cli.parameters import interval_option
from zlog.cli.session import Session, pass_session, usage_errors
from zlog.cli.signals import terminable
from zlog.cli.units import human_bytes
from zlog.distribution import how_to_install
from zlog.errors import StoreMissing, ZlogError

if TYPE_CHECKING:
    from zlog.offload import Offloader

_PRIORITY = 10
"""The nice value of the process, so that writers on the same host are not slowed down."""


@click.command(
    cls=Command,
    examples="""
    zlog offload orders --to /mnt/archive
    zlog offload orders --to 's3://zlog?endpoint_override=rgw.example:7480' --after 7d --follow
    zlog reconfigure orders --option offload_to=s3://zlog --option offload_after=100GiB
    zlog offload orders --follow
    """,
)
@log_argument
@click.option(
    "--to",
    metavar="URL",
    help="Where the log's folder is: a directory, or a URL of S3, GCS or HDFS.  [default: the log"
    " option offload_to]",
)
@click.option(
    "--after",
    metavar="AGE|SIZE",
    help="Keep this much in objects: an age, such as 7d, or a size, such as 100GiB.  [default: the"
    " log option offload_after, or nothing]",
)
@click.option("--keep-lost", is_flag=True, help="Offload lost positions as gaps.")
@click.option(
    "--pause",
    type=click.FloatRange(0, 100),
    default=1.0,
    show_default=True,
    metavar="SECONDS",
    help="How long to sleep for each second of work, so that other clients are slowed down less.",
)
@click.option("-f", "--follow", is_flag=True, help="Offload stripes as they end, until stopped.")
@interval_option(60.0, "With --follow, seconds between two searches for ended stripes.")
@pass_session
def offload(
    session: Session,
    /,
    log: str,
    to: str | None,
    after: str | None,
    keep_lost: bool,
    pause: float,
    follow: bool,
    interval: float,
) -> None:
    """Move ended stripes of a log into Parquet files. They remain part of the log.

    Readers find the same entries at the same positions. They need the extra `offload`, and access
    to the files. The live stripe is not offloaded; `zlog reconfigure LOG --roll` ends it.

    The command runs with a low priority (nice 10). It can be stopped at any time, and several can
    run at once. With --follow, it reports errors and tries again. Credentials come from the
    environment, as PyArrow reads them (AWS_ACCESS_KEY_ID and so on).
    """
    try:
        from zlog.offload import Offloader
    except ImportError:
        raise click.ClickException(
            f"this needs the extra `offload` ({how_to_install('offload')})"
        ) from None
    os.setpriority(os.PRIO_PROCESS, 0, max(_PRIORITY, os.getpriority(os.PRIO_PROCESS, 0)))
    with terminable(), session.open_log(log) as opened:
        with usage_errors():
            offloader = Offloader(opened, to, after=after, keep_lost=keep_lost, pause=pause)
        while True:
            try:
                _run(offloader, log)
            except ZlogError as error:
                if not (follow and (error.retryable and not isinstance(error, StoreMissing))):
                    raise
                say(f"{error}; trying again")
            if not follow:
                break
            time.sleep(interval)


def _run(offloader: Offloader, log: str) -> None:
    count = 0
    for done in offloader.run():
        count += 1
        note(
            f"positions {done.start} to {done.end - 1}: {done.entries} entries,"
            f" {human_bytes(done.bytes)} of data, {human_bytes(done.size)} in {done.url}"
        )
    if not count:
        note(f"log {log!r} has no stripe to offload")
