"""Creates, lists and removes logs. If a client dies at any step, the next call finishes it."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from types import MappingProxyType

from zlog._base.deadline import Deadline
from zlog._base.io import Io
from zlog._base.log_options import LogOptions
from zlog._base.monitor import explain
from zlog._base.names import head_object, wake_object
from zlog._base.options import has_retention
from zlog._base.sequencer import SHARED_ADDRESS
from zlog._catalog.directory import Directory
from zlog._catalog.head import Head, HeadState
from zlog._catalog.rights import check_removal
from zlog._layout.offloaded import provider
from zlog._layout.stripe_objects import discard, make, remove, remove_all
from zlog._layout.views import Change, activate_shared, backoff, change_view, sequencer_of
from zlog._positions.notifications import remove_wake_object
from zlog._templates import with_template
from zlog.errors import (
    CorruptEntry,
    LogExists,
    LogNotFound,
    SequencerUnavailable,
    StoreTimeout,
    StoreUnavailable,
    ZlogError,
)
from zlog.limits import STRIPE_UNIT_DEFAULT, WIDTH_DEFAULT
from zlog.names import check_log_name
from zlog.store import Store, is_plain
from zlog.view import OPEN_END, Stripe, View

_REMOVED_MEANWHILE_MAX = 8
"""How many times to retry if a head exists when the log is created, but is gone when it is read,
because another client has removed the log in between."""


def default_stripe_unit(store: Store) -> int:
    """Return the default stripe unit of a new log.

    If clients run the methods themselves, concurrent appends to one object conflict. The default is
    then 1, so that consecutive appends go to different objects.
    """
    return 1 if is_plain(store) else STRIPE_UNIT_DEFAULT


async def create_log(io: Io, name: str, new: LogOptions, deadline: Deadline) -> View:
    """Create a log and return its first view.

    This creates the head object with the log's id, then the directory entry, the stripe objects,
    and finally the view. The head accepts only one first view, and the log exists from then on. The
    store's template for the name provides the options that ``new`` does not have.

    Raises:
        LogExists: the log exists, or another client created it first.
        CorruptEntry: the log exists, but its head is missing.
        SequencerUnavailable: the store's own sequencer is full.
        ValueError: the name is invalid.
    """
    check_log_name(name)
    try:
        if await _is_listed(io, name, deadline):
            with suppress(LogNotFound):  # another client has removed it from the directory
                await _look_up(io, name, deadline)
        new = await with_template(io, name, new, deadline)
        view = await _create_log(io, name, new, deadline)
    except StoreTimeout as error:
        await explain(io, error)
        raise
    if has_retention(view.options):
        with suppress(ZlogError):  # the listing is only a hint
            await Directory(io).retained.add_all([name], deadline)
    return view


async def _create_log(io: Io, name: str, new: LogOptions, deadline: Deadline) -> View:
    head = Head(io, name)
    removed = 0
    while not await head.create(log_id := int.from_bytes(io.token(8), "little"), deadline):
        try:
            state = await head.read(deadline)
        except LogNotFound:
            if removed == _REMOVED_MEANWHILE_MAX:
                raise CorruptEntry(
                    f"the object {head_object(name)} is not the head of a log"
                ) from None
            await backoff(io, removed)
            removed += 1
            continue
        if state.view is None:
            log_id = state.log_id
            break  # its creator died or is still working; the head accepts only one view
        if not state.view.removed:
            raise LogExists(f"log {name!r} already exists in {io.store.url}")
        await _finish_removal(io, state.view, deadline)
    await Directory(io).logs.add_all([name], deadline, log_id)
    return await _first_view(io, head, name, log_id, new, deadline)


async def _first_view(
    io: Io, head: Head, name: str, log_id: int, new: LogOptions, deadline: Deadline
) -> View:
    options = new.applied_to({})
    view = View(
        epoch=0,
        log=name,
        log_id=log_id,
        sequencer="",
        stripes=(),
        options=MappingProxyType(options),
        mac=new.mac,
        ordered=bool(new.ordered),
    )
    view = replace(view, sequencer=sequencer_of(io, view))
    tried, above = list[View](), 0
    width = new.width or (1 if view.ordered else WIDTH_DEFAULT)
    stripe_unit = default_stripe_unit(io.store) if new.stripe_unit is None else new.stripe_unit
    accepted: bool | None = None
    try:
        while accepted is None:
            epoch, tail_floor = await head.epoch_next(deadline, width=width, above=above)
            stripe = Stripe(epoch, 0, OPEN_END, width, stripe_unit)
            tried.append(replace(view, epoch=epoch, stripes=(stripe,), tail_floor=tail_floor))
            above = await make(io, tried[-1].objects(), epoch, deadline, start=0)
            if not above:
                accepted = await head.propose(0, tried[-1], deadline)
    except LogNotFound:
        # Remove these objects now: without the head, nothing names them.
        with suppress(ZlogError):
            for each in tried:
                await remove(io, each.objects(), each.epoch, deadline)
        raise
    if accepted:
        view = tried.pop()
    with suppress(ZlogError):  # a later call finds the remaining objects
        for each in tried:
            await discard(io, each, each.live_stripe, deadline, made=True)
    if not accepted:
        raise LogExists(f"another client created log {name!r} at the same time")
    if view.sequencer == SHARED_ADDRESS:
        try:
            activate_shared(io, view, 0)
        except SequencerUnavailable:  # the sequencer is full, so no client could append to the log
            await remove_log(io, name, deadline)
            raise
    return view


async def find_log(io: Io, name: str, deadline: Deadline) -> View:
    """Return the newest view of a log. This reads only its head object.

    Raises:
        LogNotFound: the log does not exist.
        CorruptEntry: the log exists, but its head is missing.
    """
    view = (await _look_up(io, check_log_name(name), deadline)).view
    if view is not None and view.removed:
        error = LogNotFound(
            f"log {name!r} in {io.store.url} was removed, but its removal is not finished",
            hint=f"If no other client is removing it, run `zlog rm {name}` to finish this. On"
            " Ceph, run it as a client that may call all methods of the class in the whole pool"
            " (docs/operating.md, Users and caps).",
        )
        error.removing = True
        raise error
    if view is None:
        raise LogNotFound(f"there is no log {name!r} in {io.store.url}")
    return view


async def _look_up(io: Io, name: str, deadline: Deadline) -> HeadState:
    """Read the head of a log.

    A log's name is in the directory only while its head exists: it is added after the head is
    created, and deleted before the head is removed. If a listed log has no head, its head is lost.

    Raises:
        LogNotFound: the log does not exist.
        CorruptEntry: the log exists, but its head is missing.
    """
    for _ in range(2):  # another client may create the log between the two requests
        try:
            return await Head(io, name).read(deadline)
        except LogNotFound:
            if not await _is_listed(io, name, deadline):
                raise
    raise CorruptEntry(
        f"the head of log {name!r} is missing: {io.store.url} lists the log, but has no object"
        f" {head_object(name)}",
        hint="Restore the object from a copy of the pool, because it alone has the log's"
        f" layout. To give up the log and free its name, use `zlog rm {name}`.",
    )


async def _is_listed(io: Io, name: str, deadline: Deadline) -> bool:
    try:
        return await Directory(io).logs.has(name, deadline)
    except (CorruptEntry, StoreUnavailable):  # the client's caps may allow only this log
        return False


async def find_or_create_log(io: Io, name: str, new: LogOptions, deadline: Deadline) -> View:
    """Return the newest view of a log. Create the log if it does not exist.

    If several clients do this at the same time, one of them creates the log and the others find it.
    """
    while True:
        try:
            return await find_log(io, name, deadline)
        except LogNotFound:
            pass
        try:
            return await create_log(io, name, new, deadline)
        except LogExists:
            if deadline.expired:
                raise


async def list_logs(
    io: Io, deadline: Deadline, *, after: str = "", count: int | None = None
) -> list[str]:
    """Return the names of the store's logs, in order; see :meth:`zlog.Log.list`."""
    if after:
        check_log_name(after)
    if count is not None and count < 1:
        raise ValueError(f"count must be at least 1, not {count!r}")
    names: list[str] = []
    async for page in Directory(io).logs.pages(deadline, after=after):
        names += page
        if count is not None and len(names) >= count:
            return names[:count]
    return names


async def remove_log(io: Io, name: str, deadline: Deadline) -> None:
    """Remove a log with all its entries.

    First, a view marks the log as removed, and its seals stop all writers. Then the stripe objects,
    the object on which readers wait, the directory entry and the head are removed, in this order.
    If the client's caps do not allow all of these steps, nothing is changed.

    No client can bring the log back, because the names of stripe objects contain the log's id and a
    fresh epoch. A reader that starts to wait during the removal may recreate the empty object on
    which readers wait, but no other object.

    A log that has lost its head or was never completely created is first created again.

    Raises:
        LogNotFound: the log does not exist.
        ClassNotLoaded: the client's caps do not allow all of the steps.
    """
    head = Head(io, check_log_name(name))
    try:
        view = (await head.read(deadline)).view
    except LogNotFound:
        if not await _is_listed(io, name, deadline):
            raise
        view = None
    if view is None:
        view = await _create_log(io, name, LogOptions(width=1), deadline)
    if not view.removed:
        await check_removal(io, view, deadline)
        if view.offloads and await head.offload_list(view.log_id, 0, deadline):
            provider()  # before anything is removed
        view = await _mark_removed(io, name, deadline)
    try:
        await _finish_removal(io, view, deadline)
    except ZlogError as error:
        error.args = (
            f"the entries of log {name!r} were removed, but some objects remain: {error}",
        )
        error.hint = f"`zlog rm {name}` removes the rest. {error.hint}"
        raise


async def _mark_removed(io: Io, name: str, deadline: Deadline) -> View:
    def edit(view: View) -> View:
        return replace(view, removed=True, sequencer="")

    changed = await change_view(io, name, edit, deadline, removing=True)
    assert isinstance(changed, Change)  # the edit always requests a change
    return changed.view


async def _finish_removal(io: Io, view: View, deadline: Deadline) -> None:
    shared = io.store.sequencer()
    if shared is not None:
        shared.release(view.log_id)
    await remove_all(io, view, deadline)
    await remove_wake_object(io, wake_object(view.log), deadline)
    await Directory(io).logs.remove_all([view.log], deadline, view.log_id)
    await Head(io, view.log).remove(view.epoch, deadline)
