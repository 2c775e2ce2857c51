"""Checks whether this client may take all steps of a change before it takes the first one.

A client whose caps allow only the first steps would leave the change unfinished: for example, it
would remove a log but could not free its name. So each check calls a method in a way that changes
nothing, which an OSD refuses if the caps do not allow the method. In a client that runs the methods
itself, the check cannot show whether the client may write.
"""

from __future__ import annotations

import errno
from collections.abc import Sequence

from zlog._base.codes import EPOCH_MAX
from zlog._base.deadline import Deadline
from zlog._base.io import Call, Io
from zlog._base.names import DIRECTORY_OBJECT, head_object
from zlog._base.refusals import refused_call
from zlog._catalog.directory import Directory
from zlog._native import messages
from zlog.view import View


async def check_removal(io: Io, view: View, deadline: Deadline) -> None:
    """Raise ClassNotLoaded if this client may not remove all objects of a log, and its name."""
    head = head_object(view.log)
    another = messages.directory_remove(view.log, view.log_id ^ 1)
    calls = [
        _propose(view),
        Call(head, "head_remove", messages.head_remove(0)),
        Call(head, "stripe_forget", messages.stripe_forget(view.log_id, EPOCH_MAX)),
        Call(next(iter(view.objects())).name, "remove", messages.remove(0)),
        *(
            Call(each, "directory_remove", another)
            for each in Directory(io).logs.objects_of(view.log)
        ),
    ]
    await _check(io, calls, deadline)


async def check_change(io: Io, view: View, deadline: Deadline, *, trims: bool = False) -> None:
    """Raise ClassNotLoaded if this client may not change the log's view, or trim if ``trims``."""
    calls = [_propose(view)]
    if trims:
        ref = next(iter(view.objects(view.live_stripe)))
        first = ref.striping.first_at(view.live_stripe.start, ref.number)
        calls.append(Call(ref.name, "trim", messages.trim(0, ref.striping.packed, [first])))
    await _check(io, calls, deadline)


async def check_offload(io: Io, view: View, deadline: Deadline) -> None:
    """Raise ClassNotLoaded if this client may not take all steps that offload a stripe."""
    ref = next(iter(view.objects(view.live_stripe)))
    calls = [
        _propose(view),
        Call(ref.name, "freeze", messages.freeze(0)),
        Call(head_object(view.log), "offload_put", b""),
        Call(ref.name, "remove", messages.remove(0)),
    ]
    await _check(io, calls, deadline)


async def check_announcement(io: Io, deadline: Deadline) -> None:
    """Raise ClassNotLoaded if this client may not announce a sequencer in the store."""
    empty = messages.sequencer_announce("")
    await _check(io, [Call(DIRECTORY_OBJECT, "sequencer_announce", empty)], deadline)


def _propose(view: View) -> Call:
    """Return the call that proposes a view again that the log already has or had."""
    again = messages.view_propose(view.epoch, view.encode())
    return Call(head_object(view.log), "view_propose", again)


async def _check(io: Io, calls: Sequence[Call], deadline: Deadline) -> None:
    for call, reply in zip(calls, await io.execute(calls, deadline), strict=True):
        if reply.code in (-errno.EPERM, -errno.EACCES):
            error = refused_call(reply.code, call.method, call.object)
            error.args = (f"{error}. Nothing was changed",)
            raise error
