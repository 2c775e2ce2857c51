"""Changes who may append to a log: all clients, one exclusive writer, or none.

The view names the writer, so each change makes a new view. It takes an epoch, seals the objects,
which fences the previous writer, and finds the end of the confirmed entries
(:mod:`zlog._layout.views`). If the client dies during the change, the next client that needs the
log finishes it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import socket
from dataclasses import replace
from typing import NamedTuple

from zlog._base.codes import WRITER_NAME_BYTES_MAX
from zlog._base.deadline import Deadline
from zlog._base.refusals import from_code
from zlog._catalog.rights import check_change
from zlog._layout.layout import Layout
from zlog._layout.object_calls import prefix_end
from zlog._layout.reclaim import reclaim
from zlog._layout.views import Edit, sequencer_of, with_new_stripe
from zlog._positions.positions import check_takes_appends, describe
from zlog.errors import AppendRefused, Fenced, ZlogError
from zlog.view import ExclusiveWriter, View


class Ownership(NamedTuple):
    """The result of making a client the exclusive writer of a log.

    Attributes:
        writer: the exclusive writer.
        view: the view that names the writer.
        end: one past the last confirmed entry in this view.
    """

    writer: ExclusiveWriter
    view: View
    end: int


def _checked_name(name: str | None) -> str:
    """Return a valid name for a writer. None is replaced by a name made of host and process."""
    if name is None:
        return f"{socket.gethostname()}:{os.getpid()}"
    if not isinstance(name, str):
        raise TypeError(f"a writer's name must be a string, not {name!r}")
    if not name.isprintable() or not 1 <= len(name.encode()) <= WRITER_NAME_BYTES_MAX:
        raise ValueError(
            f"a writer's name must have 1 to {WRITER_NAME_BYTES_MAX} bytes and be printable, not"
            f" {name!r}"
        )
    return name


async def take(layout: Layout, name: str | None, deadline: Deadline) -> Ownership:
    """Make a new writer the only client that appends. The previous writer is fenced.

    Raises TypeError or ValueError if the name is invalid, and AppendRefused if the log is a mirror,
    read-only, or ordered by its object. Raises Fenced if another client takes the log at the same
    time, StoreReadOnly if the store is read-only, and KeyNeeded if the entries have MACs but this
    client has no key.
    """
    io = layout.io
    layout.macs.check_key()
    if io.store.read_only:
        raise from_code(-errno.EROFS, f"cannot write to log {layout.view.log!r}")
    name = _checked_name(name)
    writer = ExclusiveWriter(io.token(16).hex(), name, io.wall_clock_us() / 1_000_000)

    def edit(view: View) -> View:
        if view.writer is None:
            check_takes_appends(view)
        if view.ordered:
            raise AppendRefused(
                f"log {view.log!r} is ordered by its object, so it cannot have an exclusive writer",
                hint="First let a sequencer order it: `zlog reconfigure LOG --ordering sequencer`,"
                ' `log.reconfigure(ordering="sequencer")`.',
            )
        return replace(view, writer=writer, sequencer="")

    view = await _change(layout, edit, deadline)
    return Ownership(writer, *await end_in(layout, writer, view, 0, deadline))


async def end_in(
    layout: Layout, writer: ExclusiveWriter, view: View, start: int, deadline: Deadline
) -> tuple[View, int]:
    """Find out how far the entries of an exclusive log are confirmed.

    Returns ``view``, or a newer view if the layout has changed, and the position after the last
    confirmed entry. The writer must have no write in flight, and all positions below ``start`` must
    be confirmed. Raises Fenced if the view does not name the writer.
    """

    def known(view: View) -> int:
        _check_named(view, writer)
        return max(view.live_stripe.start, start)

    view, end = await prefix_end(layout, view, known, deadline)
    assert end is not None  # `known` never ends the search
    return view, end


async def keep(
    layout: Layout, writer: ExclusiveWriter, deadline: Deadline, *, full: int | None = None
) -> View:
    """Create a new view for the same writer, to fence its own delayed writes from earlier views.

    If the stripe with the id ``full`` is still the live stripe, the new view starts the next one.
    Raises Fenced if this writer no longer owns the log.
    """

    def edit(view: View) -> View:
        _check_named(view, writer)
        return with_new_stripe(view) if view.live_stripe.id == full else view

    return await layout.change(edit, deadline)


def _check_named(view: View, writer: ExclusiveWriter) -> None:
    """Raise Fenced if the view does not name this writer."""
    if view.writer is not None and view.writer.id == writer.id:
        return
    now = "it is read-only" if view.read_only else "any client may append to it"
    if view.writer is not None:
        now = f"{describe(view.writer)} writes it"
    raise Fenced(f"{writer.name} is no longer the writer of log {view.log!r}: {now}")


async def open_to_all(
    layout: Layout, deadline: Deadline, *, writer: ExclusiveWriter | None = None
) -> View:
    """Let any client append again. If ``writer`` is given, do this only if it owns the log."""

    def edit(view: View) -> View | None:
        if view.writer is None or (writer is not None and view.writer.id != writer.id):
            return None
        changed = replace(view, writer=None)
        return replace(changed, sequencer=sequencer_of(layout.io, changed))

    return await _change(layout, edit, deadline)


async def set_read_only(layout: Layout, read_only: bool, deadline: Deadline) -> View:
    """Let no client append, or let all clients append. Raises AppendRefused for a mirror."""

    def edit(view: View) -> View | None:
        if view.mirror:
            check_takes_appends(view)
        if view.read_only == read_only:
            return None
        changed = replace(view, read_only=read_only, writer=None)
        return replace(changed, sequencer=sequencer_of(layout.io, changed))

    return await _change(layout, edit, deadline)


async def _change(layout: Layout, edit: Edit, deadline: Deadline) -> View:
    """Change the view, then remove the objects of stripes that have no confirmed entries."""
    before = await layout.refresh(deadline)
    if edit(before) is None:
        return before
    await check_change(layout.io, before, deadline)
    view = await layout.change(edit, deadline)
    if view.live_stripe.id != before.live_stripe.id:
        with contextlib.suppress(ZlogError):  # a later call finds the objects again
            await reclaim(layout, deadline)
    return view
