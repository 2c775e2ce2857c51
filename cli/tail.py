"""The verb tail: the end of a log, and what comes after it."""

from __future__ import annotations

import asyncio
import os
import stat
import sys

import click

from zlog import aio
from zlog.cli.exits import ExitCode
from zlog.cli.output import Output, OutputClosed, say
from zlog.cli.parameters import hole_timeout_option, log_argument, or_none
from zlog.cli.render import Renderer, Style, show, style_options
from zlog.cli.session import Session, pass_session
from zlog.cli.verb import Verb

_COUNT_DEFAULT = 10


@click.command(
    cls=Verb,
    examples=r"""
    zlog tail orders                      # the last ten
    zlog tail orders -n 100 --json
    zlog tail orders --follow             # and what is appended from now on
    zlog tail orders --since-start -f --format '%p %s\n'
    """,
)
@log_argument
@click.option(
    "-n",
    "count",
    type=click.IntRange(min=0),
    metavar="N",
    help=f"How many positions before the tail to print.  [default: {_COUNT_DEFAULT}]",
)
@click.option("-f", "-F", "--follow", is_flag=True, help="Go on with new entries, until stopped.")
@click.option("--since-start", is_flag=True, help="Begin with the oldest entry.")
@style_options(("--format",))
@hole_timeout_option
@pass_session
def tail(
    session: Session,
    log: str,
    count: int | None,
    follow: bool,
    since_start: bool,
    style: Style,
    hole_timeout: float,
) -> int:
    """Print the last entries, and new ones.

    Each is followed by a newline. Positions that hold no entry are told on stderr, or as {"gap":
    ...} with --json. A reader that follows passes no position before it is known what becomes of
    it.
    """
    hole_seconds = or_none(hole_timeout)
    if since_start and count is not None:
        raise click.UsageError("-n and --since-start exclude each other")
    before = None if since_start else _COUNT_DEFAULT if count is None else count
    with Output() as out:
        renderer = style.renderer(out)
        if follow:
            asyncio.run(_follow(session, log, before, hole_seconds, renderer, out))
        with session.open_log(log, hole_timeout=hole_seconds) as opened:
            end = opened.tail()
            intact = True
            for item in opened.read_range(_begin(end, before), end):
                intact = show(renderer, item) and intact
    if not intact:
        say(f"some entries are lost; `zlog check {log}` shows which")
    return ExitCode.OK if intact else ExitCode.FAILURE


def _begin(end: int, before: int | None) -> int:
    """Return where to begin: so many positions before the tail, or at the start (None)."""
    return 0 if before is None else max(0, end - before)


async def _follow(
    session: Session,
    log: str,
    before: int | None,
    hole_timeout: float | None,
    renderer: Renderer,
    out: Output,
) -> None:
    """Print entries until the user has enough, or whoever reads stdout."""
    with session.connect() as store:
        opened = await aio.Log.open(store, log, timeout=session.timeout, hole_timeout=hole_timeout)
        async with opened:
            live = _LiveOutput(out)
            printing = asyncio.ensure_future(_print(opened, before, renderer, live))
            try:
                await asyncio.wait({printing, live.ended}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                live.close()
                printing.cancel()
                results = await asyncio.gather(printing, live.ended, return_exceptions=True)
            for result in results:
                if isinstance(result, Exception):
                    raise result


async def _print(log: aio.Log, before: int | None, renderer: Renderer, live: _LiveOutput) -> None:
    async for item in log.follow(_begin(await log.tail(), before)):
        show(renderer, item)
        live.flush_soon()


class _LiveOutput:
    """Hands out what was printed as soon as nothing more is there, and sees the reader leave.

    Attributes:
        ended: fails when nothing can be printed any more; cancelled by ``close``.
    """

    def __init__(self, out: Output) -> None:
        self._out = out
        self._loop = asyncio.get_running_loop()
        self._scheduled = False
        self._watched: int | None = None
        self.ended: asyncio.Future[None] = self._loop.create_future()
        self._watch()

    def flush_soon(self) -> None:
        """Flush when the follower waits for the store or for new entries."""
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._flush)

    def close(self) -> None:
        """Stop watching."""
        if self._watched is not None:
            self._loop.remove_reader(self._watched)
        self.ended.cancel()

    def _flush(self) -> None:
        self._scheduled = False
        try:
            self._out.flush()
        except (OutputClosed, OSError) as error:
            self._end(error)

    def _watch(self) -> None:
        """Ask to be told when the other end of a pipe is closed, for else only a write tells."""
        try:
            if sys.stdout is None:
                return
            descriptor = sys.stdout.fileno()
            if not stat.S_ISFIFO(os.fstat(descriptor).st_mode):
                return
        except OSError:  # also io.UnsupportedOperation: stdout is no file
            return
        # A pipe's writing end never gets readable; what comes is its error.
        self._loop.add_reader(descriptor, self._end, OutputClosed())
        self._watched = descriptor

    def _end(self, error: Exception) -> None:
        if not self.ended.done():
            self.ended.set_exception(error)
