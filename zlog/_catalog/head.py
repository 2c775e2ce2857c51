"""A log's head object: the durable epoch counter, the views, the tail floor, the trim point."""

from __future__ import annotations

import contextlib
import errno
from typing import NamedTuple

from zlog._base.codes import END_OPEN, OFFLOADS_PAGE_MAX, Code
from zlog._base.deadline import Deadline
from zlog._base.io import Call, Io, Reply
from zlog._base.names import head_object, wake_object
from zlog._native import messages
from zlog._replica.repair import answers
from zlog.errors import LogNotFound, ZlogError
from zlog.view import FileSegment, Stripe, StripeFile, View

_VIEWS_PER_READ = 64
_STRIPES_PER_READ = 1024


class HeadState(NamedTuple):
    """The state of a head object.

    Attributes:
        counter: the last epoch that was taken.
        tail_floor: a lower bound of the tail in every new epoch.
        trim_point: all positions below it are trimmed.
        log_id: the log's id. A log that is removed and created again gets another id.
        view: the newest view; None if the log was not completely created.
    """

    counter: int
    tail_floor: int
    trim_point: int
    log_id: int
    view: View | None


async def execute_one(io: Io, call: Call, deadline: Deadline, *refusals: int) -> Reply:
    """Run one call. Raises if its code is not OK, ENOENT or one of ``refusals``."""
    (reply,) = await answers(io, [call], await io.execute([call], deadline), deadline)
    reply.check_call(call.method, call.object, -errno.ENOENT, *refusals)
    return reply


class Head:
    """Calls on the head object of one log, or on another ``object`` of this form."""

    def __init__(self, io: Io, log: str, object: str = "") -> None:
        self._io = io
        self._log = log
        self._object = object or head_object(log)

    def announce(self) -> None:
        """Notify readers that wait for entries without a sequencer. This is only a hint."""
        with contextlib.suppress(ZlogError):
            self._io.store.notify(wake_object(self._log))

    async def create(self, log_id: int, deadline: Deadline) -> bool:
        """Create the head object. Returns False if it exists already."""
        request = messages.head_create(self._log, log_id)
        (reply,) = await self._io.execute([Call(self._object, "head_create", request)], deadline)
        reply.check_call("head_create", self._object, -errno.EEXIST)
        return reply.code == Code.OK

    async def read(self, deadline: Deadline) -> HeadState:
        """Return the counter and the newest view. Raises LogNotFound."""
        reply = await self.call("view_read", messages.view_read(0, 1, latest=True), deadline)
        head = messages.view_read_reply(reply.payload)
        view = self._view(head, head.views[0]) if head.views else None
        return HeadState(head.counter, head.tail_floor, head.trim_point, head.log_id, view)

    def _view(self, head: messages.ViewReadReply, data: bytes) -> View:
        return View.decode(self._log, data, trim_point=head.trim_point, tail_floor=head.tail_floor)

    async def views(self, deadline: Deadline) -> list[View]:
        """Return the views of the last 128 epochs, oldest first. Raises LogNotFound."""
        found: list[View] = []
        more = True
        while more:
            start = found[-1].epoch + 1 if found else 0
            request = messages.view_read(start, _VIEWS_PER_READ, latest=False)
            reply = await self.call("view_read", request, deadline)
            head = messages.view_read_reply(reply.payload)
            found += (self._view(head, each) for each in head.views)
            more = head.more
        return found

    async def epoch_next(
        self, deadline: Deadline, *, width: int = 0, above: int = 0
    ) -> tuple[int, int]:
        """Take a new epoch by incrementing a durable counter. Returns it and the tail floor.

        From then on, no tail of an earlier epoch can raise the floor. If ``width`` is not 0, the
        head also records a pending stripe of this width, so that its objects can be found and
        removed if the client dies. If possible, the new epoch is higher than ``above``.
        """
        reply = await self.call("epoch_next", messages.epoch_next(width, above), deadline)
        epoch, tail_floor = messages.epoch_next_reply(reply.payload)
        return epoch, tail_floor

    async def propose(self, base: int, view: View, deadline: Deadline) -> bool:
        """Make ``view`` the newest view if ``base`` is still the newest. Returns whether it did."""
        request = messages.view_propose(base, view.encode())
        reply = await self.call(
            "view_propose", request, deadline, Code.STALE_EPOCH, Code.INVALID_EPOCH
        )
        return reply.code == Code.OK

    async def tail_raise(self, log_id: int, epoch: int, tail: int, deadline: Deadline) -> Code:
        """Record that a client is about to see ``tail`` as the tail in ``epoch``.

        Returns OK if the tail was recorded, STALE_EPOCH if a higher epoch has been taken, or
        BEYOND_STRIPE if the live stripe must end before such a tail is possible. Raises LogNotFound
        if the log was removed, even if another log has its name now.
        """
        call = Call(self._object, "tail_raise", messages.tail_raise(log_id, epoch, tail))
        reply = await execute_one(self._io, call, deadline, Code.STALE_EPOCH, Code.BEYOND_STRIPE)
        if reply.code == -errno.ENOENT:
            raise LogNotFound(f"log {self._log!r} was removed from {self._io.store.url}")
        return Code(reply.code)

    async def trim_point_raise(
        self, log_id: int, position: int, deadline: Deadline, *, past_cursors: bool = False
    ) -> int | None:
        """Record that every position below ``position`` is trimmed. The trim point never decreases.

        Archived stripes that are now completely trimmed become pending, so that their objects will
        be removed. If a cursor is below ``position``, nothing is recorded and the lowest cursor's
        position is returned. If ``past_cursors`` is set, cursors are ignored.
        """
        request = messages.trim_point_raise(log_id, position, past_cursors)
        while True:
            reply = await self.call("trim_point_raise", request, deadline, Code.HELD_BY_CURSOR)
            if reply.code == Code.HELD_BY_CURSOR:
                return reply.number
            if not messages.trim_point_raise_reply(reply.payload).more:
                return None

    async def stripes(self, log_id: int, position: int, deadline: Deadline) -> list[Stripe]:
        """Return a page of archived stripes, ascending, starting at or after ``position``."""
        request = messages.stripes_read(log_id, position, _STRIPES_PER_READ)
        reply = await self.call("stripes_read", request, deadline)
        return [Stripe(*each) for each in messages.stripes_read_reply(reply.payload).stripes]

    async def retention_read(self, log_id: int, deadline: Deadline) -> tuple[int, bytes]:
        """Return the version and state of retention; 0 and empty if missing or damaged."""
        request = messages.retention_read(log_id)
        reply = await self.call("retention_read", request, deadline, -errno.EIO)
        if reply.code == -errno.EIO:
            return 0, b""
        version, state = messages.retention_read_reply(reply.payload)
        return version, state

    async def retention_write(
        self, log_id: int, version: int, state: bytes, deadline: Deadline
    ) -> None:
        """Store the next version of the retention state, unless that version exists."""
        request = messages.retention_write(log_id, version, state)
        await self.call("retention_write", request, deadline, Code.SUPERSEDED)

    async def pending_stripes(
        self, log_id: int, deadline: Deadline
    ) -> tuple[int, list[tuple[int, int]]]:
        """Return the newest view's epoch, and the id and width of each pending stripe.

        The stripes are in ascending order. A stripe whose id is above the epoch may belong to a
        view that another client is about to propose.
        """
        found: list[tuple[int, int]] = []
        newest, more = 0, True
        while more:
            after = found[-1][0] if found else 0
            request = messages.stripes_loose(log_id, after, _STRIPES_PER_READ)
            reply = await self.call("stripes_loose", request, deadline)
            last, more, stripes = messages.stripes_loose_reply(reply.payload)
            newest = newest or last  # stripes on later pages may have become pending later
            found += ((stripe.id, stripe.width) for stripe in stripes)
        return newest, found

    async def stripe_forget(self, log_id: int, id: int, deadline: Deadline) -> None:
        """Forget a pending stripe that has no objects, if its view can no longer be proposed."""
        request = messages.stripe_forget(log_id, id)
        await self.call("stripe_forget", request, deadline, Code.INVALID_EPOCH)

    async def offload_put(self, log_id: int, file: StripeFile, deadline: Deadline) -> Code:
        """Record the file of an ended stripe, or advance the state of its record.

        A new record must have the state WRITTEN. Returns OK, also if the record already has this
        state or a higher one, BELOW_TRIM_POINT if the stripe is completely trimmed, or EXISTS if it
        is recorded with another file.
        """
        segments = [messages.OffloadSegment(*each) for each in file.segments]
        fields = *file[:4], file.url.encode(), *file[5:10], segments
        request = messages.offload_put(log_id, *fields)
        refusals = (Code.BELOW_TRIM_POINT, Code.EXISTS)
        return Code((await self.call("offload_put", request, deadline, *refusals)).code)

    async def offload_list(
        self, log_id: int, position: int, deadline: Deadline, *, below: int = END_OPEN
    ) -> list[StripeFile]:
        """Return the files of offloaded stripes that end above ``position``, ascending.

        Files that start at or above ``below`` may be left out.
        """
        found: list[StripeFile] = []
        more = True
        while more and position < below:
            request = messages.offload_list(log_id, position, OFFLOADS_PAGE_MAX)
            reply = await self.call("offload_list", request, deadline)
            more, records = messages.offload_list_reply(reply.payload)
            found += map(_file_of, records)
            position = found[-1].end if found else position
        return found

    async def offload_forget(self, log_id: int, file: StripeFile, deadline: Deadline) -> Code:
        """Forget the removed file of a completely trimmed stripe, or one with the state WRITTEN.

        Returns OK, also if there is no record, or EXISTS if the stripe is recorded with another
        file.
        """
        request = messages.offload_forget(log_id, file.end, file.url.encode())
        return Code((await self.call("offload_forget", request, deadline, Code.EXISTS)).code)

    async def remove(self, epoch: int, deadline: Deadline) -> None:
        """Remove the head object if its newest view has this epoch and is marked as removed."""
        call = Call(self._object, "head_remove", messages.head_remove(epoch))
        await execute_one(self._io, call, deadline, Code.INVALID_EPOCH)

    async def call(self, method: str, request: bytes, deadline: Deadline, *refusals: int) -> Reply:
        """Run a method. Raises LogNotFound, or if its code is not OK or in ``refusals``."""
        call = Call(self._object, method, request)
        reply = await execute_one(self._io, call, deadline, *refusals)
        if reply.code == -errno.ENOENT:
            raise LogNotFound(f"there is no log {self._log!r} in {self._io.store.url}")
        return reply


def _file_of(record: messages.Offload) -> StripeFile:
    """Return a record, whose fields are in the same order, for users."""
    segments = tuple(FileSegment(*each) for each in record.segments)
    fields = *record[:4], record.url.decode(), *record[5:10], segments
    return StripeFile(*fields)
