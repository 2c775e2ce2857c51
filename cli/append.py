"""The verb append: entries from stdin, files or JSON lines into a log."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing

import click

from zlog import Log, ZlogError
from zlog._append import ENTRY_BYTES_MAX_DEFAULT
from zlog.cli.entries import Batches, Limits, Splitter, as_is, from_json
from zlog.cli.output import Output, note, say
from zlog.cli.parameters import log_argument, size
from zlog.cli.progress import Progress
from zlog.cli.session import Session, pass_session
from zlog.cli.source import BadInput, Source
from zlog.cli.verb import Verb

_BATCH_BYTES = 4 << 20
_JSON_OVERHEAD = 8
"""A line of JSON may be so many times as long as its entry: an escape takes six bytes for one."""


@click.command(
    cls=Verb,
    examples=r"""
    echo first | zlog append orders
    zlog append orders orders.txt more.txt       # one entry per line
    zlog append photos --whole *.jpg             # one entry per file
    tail -F app.log | zlog append app --positions
    zlog read old --json | zlog append new --json
    """,
)
@log_argument
@click.argument("files", metavar="[FILE]...", nargs=-1, type=click.Path(allow_dash=True))
@click.option("-z", "--null", is_flag=True, help="Entries end with NUL, not newline.")
@click.option("-k", "--keep-newline", is_flag=True, help="Leave the newline (or NUL) in the entry.")
@click.option("--whole", is_flag=True, help="Each file is one entry.")
@click.option("--json", "as_json", is_flag=True, help='Lines are {"data": …} or {"data_b64": …}.')
@click.option("--positions", is_flag=True, help="Print the position of each entry.")
@click.option(
    "--batch",
    type=click.IntRange(1, 16384),
    default=4096,
    show_default=True,
    metavar="N",
    help="Append up to so many entries in one go; with 1 they never change places.",
)
@click.option(
    "--max-bytes",
    type=size,
    default=ENTRY_BYTES_MAX_DEFAULT,
    show_default="1M",
    metavar="SIZE",
    help="How large one entry may be.",
)
@pass_session
def append(
    session: Session,
    log: str,
    files: tuple[str, ...],
    null: bool,
    keep_newline: bool,
    whole: bool,
    as_json: bool,
    positions: bool,
    batch: int,
    max_bytes: int,
) -> None:
    """Append entries from files or stdin.

    Each line is an entry, without its newline unless --keep-newline is given. What is acknowledged
    is durable. Lines of a slow pipe are appended as they come, those of a fast one in batches. With
    --json, gaps among the lines are passed over, so that what `read --json` prints can be appended.

    When it fails, it tells how many entries from the beginning of the input are in the log.
    """
    if whole and (null or keep_newline or as_json):
        raise click.UsageError("--whole goes with none of --null, --keep-newline and --json")
    if as_json and (null or keep_newline):
        raise click.UsageError("--json goes with neither --null nor --keep-newline")
    limits = Limits(
        entries=batch,
        bytes=_BATCH_BYTES,
        entry_bytes=max_bytes,
        line_bytes=_JSON_OVERHEAD * max_bytes + 4096 if as_json else max_bytes,
    )

    def batches_of(source: Source) -> Batches:
        splitter = Splitter(b"\0" if null else b"\n", keep=keep_newline)
        return Batches(source, splitter, from_json if as_json else as_is, limits)

    with Output() as out, session.open_log(log, entry_bytes_max=max_bytes) as opened:
        appending = _Appending(opened, out if positions else None)
        for path in files or ("-",):
            with closing(Source(path)) as source:
                if source.is_terminal:
                    note("type entries, one per line, and Ctrl-D at the end")
                if whole:
                    appending.append([source.read_all(max_bytes)])
                else:
                    appending.append_all(source, batches_of, hidden=positions and out.is_terminal)
        note(appending.summary())


class _Appending:
    """Appends batches, and keeps the account of them.

    Args:
        log: where to.
        out: where positions are printed; None to print none.
    """

    def __init__(self, log: Log, out: Output | None) -> None:
        self._log = log
        self._out = out
        self._count = 0
        self._first: int | None = None
        self._last: int | None = None

    def append_all(
        self, source: Source, batches_of: Callable[[Source], Batches], *, hidden: bool
    ) -> None:
        """Append all entries of a source."""
        batches = batches_of(source)
        shown = 0
        try:
            with Progress(source.size, f"appending {source.name}", hidden=hidden) as progress:
                for batch in batches:
                    self.append(batch)
                    progress.advance(batches.consumed - shown)
                    shown = batches.consumed
        except BadInput:
            self._tell()
            raise
        except KeyboardInterrupt:
            note(self.summary())
            raise

    def append(self, batch: Sequence[bytes]) -> None:
        """Append some entries in one go.

        Raises:
            ZlogError: as the log does; what is in the log all the same was told.
        """
        try:
            positions = self._log.append_many(batch)
        except ZlogError as error:
            acknowledged = list(_until_none(error.positions))
            self._account(acknowledged)
            self._tell(sum(each is not None for each in error.positions) - len(acknowledged))
            raise
        self._account(positions)

    def summary(self) -> str:
        """Say what was appended."""
        if not self._count:
            return "nothing appended"
        entries = "1 entry" if self._count == 1 else f"{self._count:,} entries"
        return f"appended {entries} from position {self._first} to {self._last}"

    def _account(self, positions: Sequence[int]) -> None:
        if not positions:
            return
        for offset, ahead in moved_back(positions):
            say(
                f"entry {self._count + offset + 1} changed places: it is at position"
                f" {positions[offset]}, behind {ahead} later ones (--batch 1 avoids this)"
            )
        self._first = min(positions) if self._first is None else self._first
        self._last = max(positions)
        self._count += len(positions)
        if self._out is not None:
            for position in positions:
                self._out.line(str(position))
            self._out.flush()

    def _tell(self, scattered: int = 0) -> None:
        """Say, before the error, what is in the log."""
        say(f"the first {self._count:,} entries of the input are in the log")
        if scattered:
            say(f"and {scattered:,} of the entries after the first one that is not")


def _until_none(positions: Sequence[int | None]) -> Iterator[int]:
    for position in positions:
        if position is None:
            return
        yield position


def moved_back(positions: Sequence[int]) -> list[tuple[int, int]]:
    """Return the index of each entry that stands behind later ones, and behind how many.

    This happens when a reader filled the entry's first position, so that it got another.
    """
    moved: list[tuple[int, int]] = []
    lowest: list[int] = []
    least = positions[-1] if positions else 0
    for position in reversed(positions):
        least = min(least, position)
        lowest.append(least)
    lowest.reverse()
    for index, position in enumerate(positions):
        if position > lowest[index]:
            behind = sum(1 for later in positions[index + 1 :] if later < position)
            moved.append((index, behind))
    return moved
