"""Questions to Ceph's monitors, through the store's own connection."""

from __future__ import annotations

import errno
import functools
import json
import os
from typing import Any

from zlog._base.deadline import Deadline
from zlog._base.io import Io
from zlog.errors import StoreTimeout, StoreUnavailable


async def ask(io: Io, deadline: Deadline, prefix: str, **arguments: str) -> Any:
    """Return the monitors' answer to a command, parsed.

    Args:
        io: over a store on Ceph.
        deadline: for the answer.
        prefix: the command, as ``ceph`` takes it.
        arguments: of the command.

    Raises:
        StoreTimeout: no answer came in time.
        StoreUnavailable: the monitors refuse, or there are none, or it is no answer.
    """
    command = json.dumps({"prefix": prefix, **arguments, "format": "json"})
    reply = await io.run(functools.partial(io.store.ask_monitor, command=command), deadline)
    if reply.code == -errno.ETIMEDOUT:
        raise StoreTimeout(f"the monitors did not answer `{prefix}` in time")
    answer = bytes(reply.payload)
    if reply.code:
        why = answer.decode(errors="replace") or os.strerror(-reply.code)
        raise StoreUnavailable(f"the monitors refuse `{prefix}`: {why}")
    try:
        return json.loads(answer)
    except ValueError as error:
        raise StoreUnavailable(f"the monitors' answer to `{prefix}` is not JSON") from error
