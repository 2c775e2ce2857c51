"""Positions that are handed out now and written later.

A sequencer's grant is good in its epoch only: a successor may hand out again what was not written.
So a reservation raises the tail floor above its positions, as a checked tail does. From then on
they are handed out to no one else, whatever becomes of the sequencer and the layout, and lie in the
stripe in which they were granted. The object decides who is first there, writer or filler.

A write carries an append id that says what is written where, not by which handle. So it may be
repeated, in another process too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from zlog._append.append import Appender
from zlog._append.content import digest
from zlog._append.roll import RollWatch
from zlog._base.codes import Code
from zlog._base.deadline import Deadline
from zlog._base.pool_full import explain
from zlog._base.refusals import refused_call
from zlog._layout.object_calls import change_positions
from zlog._native.new_entries import entries_owned, with_tags
from zlog._native.writes import encode_write
from zlog._positions.positions import refusal
from zlog._read.items import no_entry
from zlog._read.read import Reader
from zlog.entry import Entry
from zlog.errors import AlreadyWritten, StoreTimeout
from zlog.limits import GRANT_COUNT_MAX
from zlog.view import ObjectRef, View

if TYPE_CHECKING:
    from zlog._native.new_entries import NewEntry


class Reserved:
    """Reserves positions of one log, and writes at them.

    Args:
        reader: of the log; tells what stands at positions that are taken.
        appender: knows how large an entry may be, and how it is compressed.
    """

    def __init__(self, reader: Reader, appender: Appender) -> None:
        self._reader = reader
        self._appender = appender
        self._rolls = RollWatch(reader.layout)

    async def reserve(self, count: int, deadline: Deadline) -> range:
        """Return ``count`` positions, which are not handed out again."""
        if not hasattr(count, "__index__"):
            raise TypeError(f"a number of positions is an int, not {count!r}")
        if not 1 <= count <= GRANT_COUNT_MAX:
            raise ValueError(
                f"1 to {GRANT_COUNT_MAX} positions can be reserved at once, not {count}"
            )
        if self._rolls.alert:
            await self._rolls.act(deadline)
        return await self._reader.positions.reserve(count, deadline)

    async def write(self, position: int, data: NewEntry, deadline: Deadline) -> None:
        """Write an entry at a position, or find that this very entry is there."""
        layout = self._reader.layout
        layout.macs.check_key()
        self._appender.check([data])
        await self._reader.positions.check_handed_out("write at", position, deadline)
        (entry,) = entries_owned([data])
        now = layout.io.wall_clock_us()
        writer = digest(entry, b"zlog write", b"%d %d " % (layout.address.log_id, position))

        compression = self._appender.compression
        sent_in, sent = layout.view, "none"

        def request(view: View, ref: ObjectRef, group: list[int]) -> bytes:
            nonlocal sent_in, sent
            if (refused := refusal(view)) is not None:
                raise refused
            sent_in, sent = view, compression.of(view)
            head = (view.epoch, now, writer, ref.spacing.packed)
            return encode_write(*head, group, [0], [entry], sent, layout.macs.key)

        refusals = (Code.READ_ONLY, Code.ALIKE, Code.REQUEST_TOO_NEW)
        try:
            replies = await change_positions(
                layout, "write", request, [position], deadline, *refusals
            )
        except StoreTimeout as error:
            await explain(layout.io, error)
            raise
        for ref, reply in replies:
            if reply.code == Code.REQUEST_TOO_NEW:
                if not compression.refused(sent_in, ref.name, reply.code, sent):
                    raise refused_call(reply.code, "write", ref.name)
                await self.write(position, data, deadline)
                return
        if not any(reply.code == Code.OK for _, reply in replies):
            # The writer's id is made of the content: what is alike and has the same is this write.
            alike = any(reply.code == Code.ALIKE for _, reply in replies)
            await self._refuse(position, deadline, entry if alike else None)
        view = layout.view
        if position >= view.live_stripe.start:
            self._rolls.note(view, [reply for _, reply in replies], position + 1)

    async def _refuse(self, position: int, deadline: Deadline, own: NewEntry | None) -> None:
        log = self._reader.layout.view.log
        found = (await self._reader.read([position], deadline))[position]
        if isinstance(found, Entry) and with_tags(found.data, found.tags) == own:
            return
        if isinstance(found, Entry):
            raise AlreadyWritten(f"position {position} of log {log!r} holds another entry")
        raise no_entry(found, log)
