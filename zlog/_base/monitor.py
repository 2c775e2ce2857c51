"""Sends questions to Ceph's monitors over the store's own connection."""

from __future__ import annotations

import errno
import functools
import json
import os
from typing import Any, NamedTuple

from zlog._base.deadline import Deadline
from zlog._base.io import Io, deadline_of
from zlog.errors import StoreTimeout, StoreUnavailable

_BUSY_SECONDS = 0.01
"""The pause before the next attempt if the store is running another monitor command."""


_EXPLAIN_SECONDS = 1.0
"""How long the monitors may take to answer, after the caller's own timeout."""

_FULL_HINT = (
    "Add OSDs, or free space with `zlog trim` or `zlog rm`, which work on a full cluster. Ceph"
    " still holds the operation, which may take effect when there is space."
)


class Placement(NamedTuple):
    """The placement of an object's replicas.

    Attributes:
        epoch: the epoch of the cluster's map, which changes when an OSD goes up or down.
        pgid: the object's placement group.
        acting: the numbers of the OSDs that are up.
        primary: the number of the OSD that runs methods on the object; -1 if none is up.
    """

    epoch: int
    pgid: str
    acting: list[int]
    primary: int


async def ask(io: Io, deadline: Deadline, prefix: str, **arguments: str) -> Any:
    """Send a ``ceph`` command to the monitors, and return their answer as parsed JSON.

    Raises:
        StoreTimeout: no answer came in time.
        StoreUnavailable: the store has no monitors, they refuse, or the answer is not JSON.
    """
    command = json.dumps({"prefix": prefix, **arguments, "format": "json"})
    start = functools.partial(io.store.ask_monitor, command=command)
    while (reply := await io.run(start, deadline)).code == -errno.EBUSY and not deadline.expired:
        await io.sleep(_BUSY_SECONDS)
    if reply.code in (-errno.ETIMEDOUT, -errno.EBUSY):
        raise StoreTimeout(f"the monitors did not answer `{prefix}` in time")
    answer = bytes(reply.payload)
    if reply.code:
        why = answer.decode(errors="replace") or os.strerror(-reply.code)
        raise StoreUnavailable(f"the monitors refused `{prefix}`: {why}")
    try:
        return json.loads(answer)
    except ValueError as error:
        raise StoreUnavailable(f"the monitors' answer to `{prefix}` is not JSON") from error


async def placement(io: Io, object: str, deadline: Deadline) -> Placement:
    """Return where an object of the store is placed. Raises the errors of :func:`ask`."""
    store = io.store
    where = {"pool": store.pool, "object": object, "nspace": store.namespace}
    found = await ask(io, deadline, "osd map", **where)
    return Placement(found["epoch"], found["pgid"], found["acting"], found["acting_primary"])


async def pool_size(io: Io, deadline: Deadline) -> int:
    """Return the number of replicas in the store's pool. Raises the errors of :func:`ask`."""
    return int((await ask(io, deadline, "osd pool get", pool=io.store.pool, var="size"))["size"])


async def explain(io: Io, error: StoreTimeout) -> None:
    """If a write timed out because the store is full, add the monitors' message to its error.

    A full Ceph cluster delays writes until there is space, so it looks like a slow cluster.
    """
    try:
        health = await ask(io, deadline_of(io, _EXPLAIN_SECONDS), "health", detail="detail")
    except StoreUnavailable:
        return  # the store has no monitors, they do not answer, or it is closed
    if why := full_pool(health, io.store.pool):
        error.args = (f"{error}: {why}",)
        error.hint = _FULL_HINT


def full_pool(health: Any, pool: str) -> str:
    """Return Ceph's message that a pool is full, or an empty string.

    A full OSD causes POOL_FULL for every pool on it (Ceph's manual, "Health checks").
    """
    try:
        messages = [str(each["message"]) for each in health["checks"]["POOL_FULL"]["detail"]]
    except (KeyError, TypeError):
        return ""
    return next((message for message in messages if f"'{pool}'" in message), "")
