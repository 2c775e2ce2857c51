"""Printing entries as a member of a group, for ``zlog tail --group``."""

from __future__ import annotations

import os
import socket

import zlog
from zlog.cli import ranges
from zlog.cli.exit_codes import ExitCode, Failure
from zlog.cli.groups import group_stat, groups_module
from zlog.cli.output import Output, say
from zlog.cli.ranges import PositionSpec
from zlog.cli.render import Renderer
from zlog.cli.session import usage_errors
from zlog.cli.signals import terminable

_BATCH = 256
"""How many entries are printed before they are acknowledged."""

_WAIT_SECONDS = 1.0
"""How long to wait for entries. A new member of an ordered group also waits for slots."""


def tail_group(
    log: zlog.Log,
    name: str,
    begin: PositionSpec | None,
    count: int | None,
    renderer: Renderer,
    out: Output,
    *,
    on: bool,
) -> bool:
    """Print entries as a member of a group, which is created as a queue if it does not exist.

    Entries are acknowledged after the output was flushed. If printing fails or is interrupted, they
    are given back. Returns False if an entry is lost.

    Args:
        begin: where a new group begins; None means at the oldest entry.
        count: stop after this number of entries; None means no limit.
        on: whether to wait for new entries.
    """
    groups = groups_module()
    stat = group_stat(log, name)
    ordered, intact = stat is not None and stat.mode == "ordered", True
    if stat is not None and stat.by == "key":
        message = f"group {name!r} divides the entries with a function of its program"
        raise Failure(message, ExitCode.FAILURE, "Join it with this program.")
    with usage_errors():
        start = "earliest" if begin is None else ranges.beginning(log, begin)
        queue = groups.Queue(log, name, start=start, worker=worker_name())
        # A batch is committed as a whole, so `count` needs batches of one entry.
        group = groups.Group(log, name, entries_max=_BATCH if count is None else 1)
    wait = _WAIT_SECONDS if on or ordered else 0
    with terminable(), group.join() if ordered else queue as member:
        while count is None or count > 0:  # a batch that ends an intent may be longer
            if ordered:
                taken = member.next(wait=wait) or ()
            else:
                taken = member.take(min(count or _BATCH, _BATCH), wait=wait)
            if not (taken or on):
                break
            try:
                for each in taken:
                    intact = renderer(each if ordered else each.item) and intact
                out.flush()
            except BaseException:
                for each in taken if not ordered else ():
                    each.release()
                raise
            if not ordered:
                for each in taken:
                    each.ack()
            elif taken:
                try:
                    member.commit(taken)
                except groups.SlotsLost as error:
                    say(f"some entries will be printed again: {error}")
            count = count and count - len(taken)
    return intact


def worker_name() -> str:
    """Return a name of this process for statistics."""
    return f"{socket.gethostname()}.{os.getpid()}"
