"""The command append: appends entries from stdin, files or JSON lines."""

from __future__ import annotations

import os
import shlex
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, closing, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import click

from zlog import Log, Spool, ZlogError
from zlog.cli import signals
from zlog.cli.batches import Batches, Limits, Splitter, from_json, tags_each
from zlog.cli.command import Command
from zlog.cli.conditions import AtomicAppends, Condition, check_atomic, condition_options
from zlog.cli.exclusive import ExclusiveAppends
from zlog.cli.input import BadInput, Input, check_readable, too_long
from zlog.cli.names import log_argument
from zlog.cli.output import Output, note, say
from zlog.cli.parameters import entry_size, number_option
from zlog.cli.progress import Progress
from zlog.cli.render import entries_of
from zlog.cli.session import Session, pass_session, usage_errors
from zlog.cli.tags import tag_option
from zlog.cli.tally import Tally
from zlog.cli.units import size
from zlog.limits import ENTRY_BYTES_MAX_DEFAULT
from zlog.spool import SPOOL_BYTES_DEFAULT

_BATCH_BYTES = 4 << 20
_SPOOL_DEFAULTS = (False, "error", SPOOL_BYTES_DEFAULT)

_FLUSH_SECONDS = 2.0
"""How long the command waits at its end until the log has the entries of a spool."""

_JSON_OVERHEAD = 8
"""The limit of a JSON line's length per byte of its entry. An escape has six bytes."""


@click.command(
    cls=Command,
    examples=r"""
    zlog append orders -m 'first' -m 'second'
    echo third | zlog append orders
    zlog append orders orders.txt more.txt       # one entry per line
    zlog append photos --whole *.jpg             # one entry per file
    tail -F app.log | zlog append app --positions
    zlog read old --json | zlog append new --json
    zlog append orders --tag eu --tag paid -m 'fourth'
    zlog append ledger --exclusive < moves.txt   # as its exclusive writer
    zlog append seats --tag seat.7 --unless-tag seat.7 -m 'Ada'   # only once
    tail -F app.log | zlog append app --spool /var/spool/app
    """,
)
@log_argument
@click.argument("files", metavar="[FILE]...", nargs=-1, type=click.Path(allow_dash=True))
@click.option(
    "-m",
    "--message",
    "messages",
    multiple=True,
    metavar="TEXT",
    help="Append this text as an entry, instead of reading input; may be repeated.",
)
@click.option("-z", "--null", is_flag=True, help="Split the input at NUL instead of newline.")
@click.option("-k", "--keep-newline", is_flag=True, help="Keep the newline (or NUL) in the entry.")
@click.option("--whole", is_flag=True, help="Append each file as one entry.")
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help='Read lines of JSON: {"data": …} or {"data_b64": …}, and optionally "tags": […].',
)
@tag_option("Give each entry this tag; may be repeated.")
@click.option("--positions", is_flag=True, help="Print the position of each entry.")
@number_option(
    "--batch",
    4096,
    1,
    16384,
    "Append up to N entries per call. With 1, the order of entries never changes.",
)
@condition_options
@click.option(
    "--exclusive",
    is_flag=True,
    help="Become the log's exclusive writer, and release the log at the end.",
)
@click.option(
    "--name",
    metavar="NAME",
    help="Name of the exclusive writer, shown to other clients.  [default: host and process]",
)
@click.option(
    "--keep", is_flag=True, help="Do not release the log. It stays exclusive to this writer."
)
@click.option(
    "--max-bytes",
    type=entry_size,
    metavar="SIZE",
    help="Size limit of an entry, up to 16M.  [default: the log's; 1M with --spool]",
)
@click.option(
    "--spool",
    metavar="DIR",
    type=click.Path(),
    help="Store entries in this local directory while the log is unavailable or slow.",
)
@click.option(
    "--spool-bytes",
    type=size,
    default=SPOOL_BYTES_DEFAULT,
    metavar="SIZE",
    help="Maximum size of the entries in the spool.  [default: 1G]",
)
@click.option(
    "--spool-full",
    type=click.Choice(["error", "drop-oldest"]),
    default="error",
    show_default=True,
    help="Fail, or drop the oldest entries, if the spool is full.",
)
@click.option("--spool-always", is_flag=True, help="Store every entry in the spool first.")
@pass_session
def append(
    session: Session,
    log: str,
    files: tuple[str, ...],
    messages: tuple[str, ...],
    null: bool,
    keep_newline: bool,
    whole: bool,
    as_json: bool,
    tags: tuple[str, ...],
    positions: bool,
    batch: int,
    max_bytes: int | None,
    atomic: bool,
    expect: int | None,
    unless: tuple[str, ...],
    after: int | None,
    result_json: bool,
    exclusive: bool,
    name: str | None,
    keep: bool,
    spool: str | None,
    spool_bytes: int,
    spool_full: str,
    spool_always: bool,
) -> None:
    """Append the lines of files or stdin, or messages (-m), as entries.

    Each line becomes one entry, without its newline unless --keep-newline is given. An acknowledged
    entry is durable. Lines from a slow pipe are appended as they arrive, and lines from a fast pipe
    in batches. With --json, the command accepts the output of `read --json` and skips the gaps in
    it. It adds the tags given by --tag to the tags of each line.

    With --exclusive, the command fences the log's previous writer, and is its only writer until it
    ends. The entries keep the order of the input, even though each batch is sent before the
    previous one is confirmed.

    With --atomic, --expect or --unless-tag, all entries of the input are appended together, or none
    of them. The log must be ordered by its object (`zlog create --ordering object`). If the
    condition does not hold, nothing is appended, and the exit code is 11. --result-json prints
    {"positions": [...]} or {"conflict": {"position": ..., "tags": [...]}}.

    With --spool, an entry is acknowledged once it is in the log or in the directory. At its end,
    the command reports the entries that are still in the directory, and `zlog forward` delivers
    them.

    If the command fails or is stopped, it reports how many entries, counted from the beginning of
    the input, are in the log, and how many others may be in it.
    """
    if not exclusive and (name is not None or keep):
        raise click.UsageError("--name and --keep need --exclusive")
    if spool is None and (spool_always, spool_full, spool_bytes) != _SPOOL_DEFAULTS:
        raise click.UsageError("--spool-always, --spool-full and --spool-bytes need --spool")
    atomic = atomic or result_json or expect is not None or bool(unless)
    if after is not None and not unless:
        raise click.UsageError("--after needs --unless-tag")
    if atomic and (exclusive or spool is not None):
        raise click.UsageError(
            "--atomic, --expect, --unless-tag and --result-json cannot be combined with"
            " --exclusive or --spool"
        )
    if result_json and positions:
        raise click.UsageError("--result-json cannot be combined with --positions")
    if spool is not None and (exclusive or positions):
        raise click.UsageError("--spool cannot be combined with --exclusive or --positions")
    if whole and (null or keep_newline or as_json):
        raise click.UsageError("--whole cannot be combined with --null, --keep-newline or --json")
    if as_json and (null or keep_newline):
        raise click.UsageError("--json cannot be combined with --null or --keep-newline")
    if messages and (files or whole or null or keep_newline or as_json):
        raise click.UsageError("--message cannot be combined with files or their options")

    def batches_of(stream: Input, entry_bytes: int) -> Batches:
        line_bytes = _JSON_OVERHEAD * entry_bytes + 4096 if as_json else entry_bytes
        limits = Limits(batch, _BATCH_BYTES, entry_bytes, line_bytes)
        splitter = Splitter(b"\0" if null else b"\n", keep=keep_newline)
        return Batches(stream, splitter, from_json if as_json else bytes, limits)

    spool_entry_bytes = ENTRY_BYTES_MAX_DEFAULT if max_bytes is None else max_bytes
    # The log is opened first: a tally is only reported for an open log.
    with (
        signals.terminable(),
        Output() as out,
        session.open_log(log, entry_bytes_max=max_bytes)
        if spool is None
        else _spool_of(
            session,
            log,
            directory=spool,
            always=spool_always,
            bytes_max=spool_bytes,
            when_full="raise" if spool_full == "error" else "drop",
            entry_bytes_max=spool_entry_bytes,
        ) as opened,
        Tally("in the log" if spool is None else "in the log or in the spool") as tally,
    ):
        entry_bytes = spool_entry_bytes if isinstance(opened, Spool) else opened.entry_bytes_max
        if atomic and isinstance(opened, Log):
            check_atomic(opened)
        texts = _texts(messages, entry_bytes)
        if positions or result_json:
            out.check()
        paths = () if texts else files or ("-",)
        _check_readable(paths, log)
        show = partial(_print, out) if positions else None
        condition: Condition = {
            "expect": expect,
            "unless": [(tag,) for tag in unless],
            "after": after,
        }
        with (
            _Spooled(opened, tags, tally)
            if isinstance(opened, Spool)
            else ExclusiveAppends(opened, name, tags, tally, show, keep=keep)
            if exclusive
            else AtomicAppends(opened, tags, condition, tally, show, out if result_json else None)
            if atomic
            else _Appends(opened, tags, tally, show)
        ) as appends:
            for start in range(0, len(texts), batch):
                appends.append(texts[start : start + batch])
            for path in paths:
                with closing(Input(path)) as stream:
                    if stream.is_terminal:
                        note("type entries, one per line; Ctrl-D ends the input")
                    if whole:
                        appends.append([stream.read_all(entry_bytes)])
                    else:
                        hidden = positions and out.is_terminal
                        _append_all(stream, batches_of(stream, entry_bytes), appends, hidden=hidden)
            appends.settle()
        note(tally.summary())
        if isinstance(opened, Spool):
            _report_waiting(opened)


def _spool_of(session: Session, log: str, **options: Any) -> Spool:
    with usage_errors():
        return Spool(
            store=session.url, log=log, timeout=session.timeout, mac_key=session.mac_key, **options
        )


def _report_waiting(spool: Spool) -> None:
    """Wait a moment for the log, and report the entries that are still in the spool."""
    with suppress(ZlogError):
        spool.flush(timeout=_FLUSH_SECONDS)
    stat = spool.stat()
    if stat.entries:
        why = f" ({stat.error})" if stat.error else ""
        command = f"zlog forward {shlex.quote(stat.directory)}"
        say(f"{entries_of(stat.entries)} in the spool{why}; `{command}` delivers them")


def _texts(messages: Sequence[str], bytes_max: int) -> list[bytes]:
    """Return the entries from the command line. Raises BadInput if one is too long."""
    texts = [os.fsencode(message) for message in messages]
    for number, text in enumerate(texts, start=1):
        if len(text) > bytes_max:
            raise BadInput(f"message {number}: entry of {len(text)} bytes {too_long(bytes_max)}")
    return texts


def _check_readable(paths: Iterable[str], log: str) -> None:
    """Raise an error if a file is not readable, before anything is appended."""
    for path in paths:
        try:
            check_readable(path)
        except FileNotFoundError as error:
            raise ZlogError(
                f"{path or repr(path)}: {error.strerror}",
                hint="FILE is a file whose lines are appended. To append text, use: zlog"
                f" append {log} -m {shlex.quote(path)}",
            ) from error


def _append_all(stream: Input, batches: Batches, appends: _AnyAppends, *, hidden: bool) -> None:
    """Append all entries of a stream."""
    shown = 0
    with Progress(stream.size, f"appending {stream.name}", hidden=hidden) as progress:
        for batch in batches:
            appends.append(batch)
            progress.advance(batches.consumed - shown)
            shown = batches.consumed
            if not stream.ready(0):  # there is time to report the positions
                appends.settle()


def _print(out: Output, positions: Sequence[int]) -> None:
    for position in positions:
        out.line(str(position))
    out.flush()


@dataclass(frozen=True)
class _Appends(AbstractContextManager["_Appends", None]):
    """Appends batches to a log to which other clients may append at the same time.

    Attributes:
        tally: counts the entries that are in the log.
        show: a function that prints the positions of each batch, or None.
    """

    log: Log
    tags: tuple[str, ...]
    tally: Tally
    show: Callable[[Sequence[int]], None] | None

    def __exit__(self, *_: object) -> None:
        """Do nothing: no batch is in flight."""

    def settle(self) -> None:
        """Do nothing: no batch is in flight."""

    def append(self, batch: Sequence[bytes]) -> None:
        """Append a batch. If it fails, the tally has the entries that are in the log."""
        self.tally.sent(len(batch))
        before = self.tally.count
        try:
            positions = self.log.append_many(batch, tags_each=tags_each(batch, self.tags))
        except ZlogError as error:
            self.tally.sent(0)
            self._tell(self.tally.failed(error))
            raise
        self.tally.acknowledged(positions)
        for run, ahead in moved_back(positions):
            say(_moved(positions, run, ahead, before + 1))
        self._tell(positions)

    def _tell(self, positions: Sequence[int]) -> None:
        if self.show is not None:
            self.show(positions)


@dataclass(frozen=True)
class _Spooled(AbstractContextManager["_Spooled", None]):
    """Appends batches through a spool."""

    spool: Spool
    tags: tuple[str, ...]
    tally: Tally

    def __exit__(self, *_: object) -> None:
        """Do nothing: no batch is in flight."""

    def settle(self) -> None:
        """Do nothing: no batch is in flight."""

    def append(self, batch: Sequence[bytes]) -> None:
        """Append a batch, and wait until it is durable."""
        self.tally.sent(len(batch))
        self.spool.append_many(batch, tags_each=tags_each(batch, self.tags))
        self.tally.stored()


_AnyAppends: TypeAlias = "_Appends | _Spooled | ExclusiveAppends | AtomicAppends"


def moved_back(positions: Sequence[int]) -> list[tuple[range, int]]:
    """Find the entries of a batch that are out of order in the log.

    An entry is out of order if it comes after later entries of the batch, because another client
    filled or took its position.

    Args:
        positions: the position of each entry, in the order of the batch.

    Returns:
        For each run of adjacent entries that are out of order: their indexes, and the largest
            number of later entries that come before one of them.
    """
    moved: list[tuple[range, int]] = []
    later: list[int] = []  # negated, so that ascending positions go to the end of this list
    for index in range(len(positions) - 1, -1, -1):
        place = bisect_left(later, -positions[index])
        if ahead := len(later) - place:
            run, most = moved.pop() if moved and moved[-1][0].start == index + 1 else (None, 0)
            moved.append((range(index, run.stop if run else index + 1), max(ahead, most)))
        later.insert(place, -positions[index])
    moved.reverse()
    return moved


def _moved(positions: Sequence[int], run: range, ahead: int, first: int) -> str:
    """Report the positions of a run; ``first`` is the number of the batch's first entry."""
    taken = positions[run.start : run.stop]
    entries, where = f"entry {first + run.start}", f"position {taken[0]}"
    if len(run) > 1:
        entries = f"entries {first + run.start} to {first + run.stop - 1}"
        where = f"positions {min(taken)} to {max(taken)}"
    later = "1 later entry" if ahead == 1 else f"{ahead:,} later entries"
    return f"{entries} moved to {where}, above {later} (--batch 1 avoids this)"
