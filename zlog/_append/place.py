"""Who may append: all clients, one exclusive writer, or none. Each change is a new view.

The view names the writer. Its change takes an epoch and seals, which fences the writer before it,
and finds where the confirmed entries end (:mod:`zlog._layout.views`). It may die at any step: what
it sealed is taken further by the next client that needs it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import socket
from dataclasses import replace

from zlog._base.codes import WRITER_NAME_BYTES_MAX
from zlog._base.deadline import Deadline
from zlog._base.refusals import from_errno
from zlog._catalog.rights import check_change
from zlog._layout.layout import Layout
from zlog._layout.prefix import prefix_end
from zlog._layout.reclaim import reclaim
from zlog._layout.views import Edit, with_new_stripe
from zlog._lifecycle import sequencer_of
from zlog._positions.positions import describe, refusal
from zlog.errors import Fenced, ZlogError
from zlog.view import ExclusiveWriter, View


def default_name() -> str:
    """Return how a writer is named that was not given a name: its host and process."""
    return f"{socket.gethostname()}:{os.getpid()}"


def check_name(name: str) -> str:
    """Return a writer's name. Raises TypeError or ValueError where it is none."""
    if not isinstance(name, str):
        raise TypeError(f"the name of a writer is text, not {name!r}")
    if not name.isprintable() or not 1 <= len(name.encode()) <= WRITER_NAME_BYTES_MAX:
        raise ValueError(
            f"the name of a writer has 1 to {WRITER_NAME_BYTES_MAX} bytes and is printable,"
            f" not {name!r}"
        )
    return name


async def take(
    layout: Layout, name: str | None, deadline: Deadline
) -> tuple[ExclusiveWriter, View, int]:
    """Make a new writer the only one that appends; the one before it is fenced.

    Returns:
        The writer, the view that names it, and where the confirmed entries end in that.

    Raises:
        AppendRefused: the log is a mirror, or read-only.
        Fenced: another one was faster.
        KeyNeeded: the log's entries have MACs, and this client can make none.
        StoreReadOnly: nothing can be written in this store.
    """
    io = layout.io
    layout.macs.check_key()
    if io.store.read_only:
        raise from_errno(-errno.EROFS, f"write log {layout.view.log!r}")
    name = default_name() if name is None else check_name(name)
    writer = ExclusiveWriter(io.token(16).hex(), name, io.wall_clock_us() / 1_000_000)

    def edit(view: View) -> View:
        if view.writer is None and (refused := refusal(view)) is not None:
            raise refused
        return replace(view, writer=writer, sequencer="")

    view = await _change(layout, edit, deadline)
    return writer, *await end_in(layout, writer, view, 0, deadline)


async def end_in(
    layout: Layout, writer: ExclusiveWriter, view: View, start: int, deadline: Deadline
) -> tuple[View, int]:
    """Return where the confirmed entries end in a view of this writer's, or in a newer one.

    Args:
        layout: of the log.
        writer: who.
        view: in which it does not write at the moment.
        start: positions below it are confirmed.
        deadline: budget of the call.

    Raises:
        Fenced: the view names another one, or none.
    """

    def known(view: View) -> int:
        check_place(view, writer)
        return max(view.live_stripe.start, start)

    view, end = await prefix_end(layout, view, known, deadline)
    assert end is not None  # `known` does not end the search
    return view, end


async def keep(
    layout: Layout, writer: ExclusiveWriter, deadline: Deadline, *, full: int | None = None
) -> View:
    """Bring in a view in which the writer goes on: nothing it sent in earlier ones is stored now.

    Args:
        layout: of the log.
        writer: who.
        deadline: budget of the call.
        full: the stripe, by id, that is to be ended if it is still the live one.

    Raises:
        Fenced: it is not the writer any more.
    """

    def edit(view: View) -> View:
        check_place(view, writer)
        return with_new_stripe(view) if view.live_stripe.id == full else view

    return await layout.change(edit, deadline)


def check_place(view: View, writer: ExclusiveWriter) -> None:
    """Raise Fenced unless the view names this writer."""
    if view.writer is not None and view.writer.id == writer.id:
        return
    now = "it is read-only" if view.read_only else "any client may append to it"
    if view.writer is not None:
        now = f"{describe(view.writer)} writes it"
    raise Fenced(f"{writer.name} is not the writer of log {view.log!r} any more: {now}")


async def open_to_all(
    layout: Layout, deadline: Deadline, *, writer: ExclusiveWriter | None = None
) -> View:
    """Let any client append again.

    Args:
        layout: of the log.
        deadline: budget of the call.
        writer: only from this one is the log taken; None: from any.
    """

    def edit(view: View) -> View | None:
        if view.writer is None or (writer is not None and view.writer.id != writer.id):
            return None
        return replace(view, writer=None, sequencer=sequencer_of(layout.io, view.options))

    return await _change(layout, edit, deadline)


async def set_read_only(layout: Layout, read_only: bool, deadline: Deadline) -> View:
    """Let no client append, or any again. An exclusive writer is fenced.

    Raises:
        AppendRefused: the log is a mirror.
    """

    def edit(view: View) -> View | None:
        if view.mirror and (refused := refusal(view)) is not None:
            raise refused
        if view.read_only == read_only:
            return None
        sequencer = "" if read_only else sequencer_of(layout.io, view.options)
        return replace(view, read_only=read_only, writer=None, sequencer=sequencer)

    return await _change(layout, edit, deadline)


async def _change(layout: Layout, edit: Edit, deadline: Deadline) -> View:
    """Change the view, and remove objects of stripes in which nothing was confirmed."""
    before = await layout.refresh(deadline)
    if edit(before) is None:
        return before
    await check_change(layout.io, before, deadline)
    view = await layout.change(edit, deadline)
    if view.live_stripe.id != before.live_stripe.id:
        with contextlib.suppress(ZlogError):  # they are found again
            await reclaim(layout, deadline)
    return view
