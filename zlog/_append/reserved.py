"""Positions that are granted now and written later.

A sequencer's grant is valid only in its epoch, because the next sequencer may grant unwritten
positions again. A reservation therefore raises the log's tail floor above its positions, as a
checked tail does. After that, they are never granted to another client, and they stay in their
stripe, even if the sequencer or the layout changes. If a client fills a position while it is
written, the object decides which of them was first.

The append id of such a write is computed from its position and content, so that any process can
repeat the write.
"""

from __future__ import annotations

from zlog._append.append import Appender
from zlog._append.same_id import digest
from zlog._base.codes import Code
from zlog._base.deadline import Deadline
from zlog._base.monitor import explain
from zlog._base.options import compression_of
from zlog._layout.object_calls import change_positions
from zlog._native.new_entries import NewEntry, entries_owned, with_tags
from zlog._native.writes import encode_write
from zlog._positions.positions import check_takes_appends
from zlog._read.items import no_entry
from zlog._read.read import Reader
from zlog.entry import Entry
from zlog.errors import AlreadyWritten, StoreTimeout
from zlog.limits import GRANT_COUNT_MAX
from zlog.view import ObjectRef, View


class Reserved:
    """Reserves positions of one log, and writes to them."""

    def __init__(self, reader: Reader, appender: Appender) -> None:
        self._reader = reader
        self._appender = appender

    async def reserve(self, count: int, deadline: Deadline) -> range:
        """Return ``count`` positions that are never granted again."""
        if not hasattr(count, "__index__"):
            raise TypeError(f"the number of positions must be an int, not {count!r}")
        if not 1 <= count <= GRANT_COUNT_MAX:
            raise ValueError(f"the number of positions must be 1 to {GRANT_COUNT_MAX}, not {count}")
        if self._appender.rolls.alert:
            await self._appender.rolls.act(deadline)
        return await self._reader.positions.reserve(count, deadline)

    async def write(self, position: int, data: NewEntry, deadline: Deadline) -> None:
        """Write an entry at a position. Do nothing if the position already holds this entry."""
        layout = self._reader.layout
        layout.macs.check_key()
        self._appender.check([data])
        await self._reader.positions.check_handed_out("write at", position, deadline)
        (entry,) = entries_owned([data])
        now = layout.io.wall_clock_us()
        writer = digest(entry, b"zlog write", b"%d %d " % (layout.address.log_id, position))

        def request(view: View, ref: ObjectRef, group: list[int]) -> bytes:
            check_takes_appends(view)
            head = (view.epoch, now, writer, ref.striping.packed)
            compression = compression_of(view.options)
            return encode_write(*head, group, [0], [entry], compression, layout.macs.key)

        refusals = (Code.READ_ONLY, Code.SAME_ID)
        try:
            replies = await change_positions(
                layout, "write", request, [position], deadline, *refusals
            )
        except StoreTimeout as error:
            await explain(layout.io, error)
            raise
        if not any(reply.code == Code.OK for _, reply in replies):
            # The id is made from the content, so an equal entry with this id is this write.
            same_id = any(reply.code == Code.SAME_ID for _, reply in replies)
            await self._refuse(position, deadline, entry if same_id else None)
        view = layout.view
        if position >= view.live_stripe.start:
            self._appender.rolls.note(view, [reply for _, reply in replies], position + 1)

    async def _refuse(self, position: int, deadline: Deadline, own: NewEntry | None) -> None:
        log = self._reader.layout.view.log
        found = (await self._reader.read([position], deadline))[position]
        if isinstance(found, Entry) and with_tags(found.data, found.tags) == own:
            return
        if isinstance(found, Entry):
            raise AlreadyWritten(f"position {position} of log {log!r} holds another entry")
        raise no_entry(found, log)
