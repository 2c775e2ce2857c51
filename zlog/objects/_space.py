"""The logic of spaces: their creation, their transactions, and their past states."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from functools import partial
from typing import Any

from zlog.entry import Entry
from zlog.extension import LogPort, no_entry
from zlog.names import check_space_name
from zlog.objects._checkpoint import begin_space, cursor_name
from zlog.objects._decided import Outcome
from zlog.objects._machine import Machine, check_types
from zlog.objects._records import ID_BYTES_MAX, Tags, check_key
from zlog.objects._replica import HIDING, Replica, check_log
from zlog.objects._restore import oldest, restored
from zlog.objects._states import Replicated
from zlog.objects._transaction import Transaction, TransactionState, conflict
from zlog.objects._views import Views, bounds
from zlog.objects._watch import Filter, Watching
from zlog.objects.errors import AlreadyCommitted, Conflict, PastLost, SpaceNotFound, Stopped

ATTEMPTS = 20
"""The default number of attempts of a transaction."""


async def transact(
    replica: Replica, body: Callable[[Transaction], Any], attempts: int, id: str | None
) -> Any:
    """Run a function in a transaction; see :meth:`zlog.objects.Space.transact`."""
    if attempts < 1:
        raise ValueError(f"the number of attempts must be at least 1, not {attempts}")
    replica.check()
    attempt = 0
    fresh = id is not None
    if id is not None:
        attempt = await _known(replica, check_id(id))
    name = replica.new_id() if id is None else id
    failed: Conflict | None = None
    for tried in range(attempts):
        if tried:
            await replica.port.backoff(min(tried, 6))
            await replica.sync()
            fresh = True
        attempt += 1
        txn = TransactionState(replica, name, attempt)
        try:
            value = body(Transaction(txn))
            if value is not None and inspect.isawaitable(value):
                value = await value
            if txn.read_only:
                await _confirm(replica, txn, fresh=fresh)
                return value
            txn.validate()
        except Conflict as error:
            failed = error
            continue
        except Exception:
            try:  # the function may have read an old state
                await _confirm(replica, txn, fresh=fresh)
            except Conflict as error:
                failed = error
                continue
            raise
        outcome = await txn.commit()
        if outcome.code == "committed" or (outcome.committed and id is None):
            return value
        if outcome.code == "repeated":  # another transaction may have used the id
            attempt = await _known(replica, name)
        failed = refused(outcome)
    assert failed is not None
    raise failed


async def _known(replica: Replica, id: str) -> int:
    """Return the number of the last attempt at a transaction, or 0 if no attempt was decided yet.

    Raises:
        AlreadyCommitted: one of the attempts was committed.
    """
    await replica.sync()
    known = replica.machine.decided.find(id)
    if known is not None and known.code == "committed":
        raise AlreadyCommitted(
            f"transaction {id!r} was already committed at position {known.position}",
            position=known.position,
        )
    return 0 if known is None else known.attempt


async def _confirm(replica: Replica, txn: TransactionState, *, fresh: bool) -> None:
    """Raise Conflict if a value that was read has changed in the log."""
    if not fresh:
        await replica.sync()
        txn.validate()


def refused(outcome: Outcome) -> Conflict:
    """Return why a transaction must be repeated; raise the error that refuses it for good."""
    if outcome.error is not None:
        raise outcome.error
    if outcome.code == "late":
        return Conflict("it began before the oldest outcome that the space still stores", items=())
    return conflict(outcome.items)


async def at(replica: Replica, when: int | datetime) -> Views:
    """Return a past state of a space; see :meth:`zlog.objects.Space.at`."""
    if not isinstance(replica.failed, Stopped):  # whose past is still readable
        replica.check()
    if isinstance(when, datetime):
        end = await replica.port.find_time(when)
    else:
        end = when + 1
        await replica.port.check_reached("look at", when)
    return Views(await _past(replica, end))


async def _past(replica: Replica, end: int) -> Replica:
    """Return a new replica that has applied exactly the entries below a position."""
    machine = await restored(replica.port, replica.name, replica.types, end)
    if machine is None:
        machine, first = await oldest(replica.port, replica.name, replica.types)
        if machine is None or (machine.position > end and not first):
            raise PastLost(
                f"space {replica.name!r} has no readable checkpoint from before {end}",
                resume=None if machine is None else machine.position,
            )
    past = Replica(replica.port, replica.name, machine, replica.types)
    await past.play_to(end)
    if past.overtaken:  # by a concurrent trim, so it has a later state
        return await _past(replica, end)
    return past


def watching(
    replica: Replica,
    object: str | None,
    key: str | None,
    prefix: str | None,
    start: int | None,
    events: int,
) -> Watching:
    """Watch one object, or all; see :meth:`zlog.objects.Space.watch`."""
    replica.check()
    if key is not None and prefix is not None:
        raise ValueError("give either a key or a prefix, not both")
    if events < 1:
        raise ValueError(f"the number of events must be at least 1, not {events}")
    one = None if key is None else (check_key(key), f"{key}\0")
    first, end = one or bounds(prefix, None, None)
    wanted = Filter(object, None if key is None and prefix is None else first, end)
    return Watching(replica, wanted, start, events, partial(_past, replica))


async def begin(
    port: LogPort, name: str, types: Iterable[type[Replicated]], *, create: bool
) -> Replica:
    """Return an up-to-date replica; see :meth:`zlog.objects.Space.open`."""
    check_space_name(name)
    classes = check_types(types)
    check_log(port.options, port.log)
    machine = await _first_state(port, name, classes, create=create)
    replica = Replica(port, name, machine, classes)
    await replica.sync()
    return replica


async def _first_state(
    port: LogPort, name: str, types: Mapping[str, type[Replicated]], *, create: bool
) -> Machine:
    """Return the state of the newest checkpoint, or an empty state for a new space."""
    tail = await port.tail()
    machine = await restored(port, name, types)
    if machine is not None:
        return machine
    log = port.log
    no_checkpoint = PastLost(f"space {name!r} of log {log!r} has no readable checkpoint")
    cursor = await port.cursor(cursor_name(name))
    entries = port.newest(Tags.of(name).space)
    while (items := await entries.next()) is not None:
        for item in items:
            if isinstance(item, Entry):
                if machine := await restored(port, name, types):  # another client has just begun it
                    return machine
                raise no_checkpoint
            if cursor is not None and item.kind in HIDING:  # all entries of the space may be lost
                raise no_entry(item, log)
    if cursor is not None and cursor < port.trim_point:
        raise no_checkpoint
    if not create:
        raise SpaceNotFound(f"log {log!r} has no space {name!r}")
    await begin_space(port, name, tail)
    return Machine(types, tail)


def check_id(id: str) -> str:
    """Check a transaction's id, and return it. Raises ValueError if it is empty or too long."""
    if not isinstance(id, str) or not 0 < len(id.encode()) <= ID_BYTES_MAX:
        raise ValueError(f"an id must be text of 1 to {ID_BYTES_MAX} bytes in UTF-8, not {id!r}")
    return id
