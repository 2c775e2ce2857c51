"""Groups whose members process slots of a log in order."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING, Any

from zlog.aio.log import Log
from zlog.aio.opening import Opening
from zlog.entry import Entry
from zlog.extension import AsyncioPort, PositionSpec, ProcessBound
from zlog.extension import drive_aio as drive
from zlog.groups._member import check_group, check_lease, cursor_name
from zlog.groups._ordered import OrderedMember
from zlog.groups._slots import Batch, Key, Output
from zlog.groups.aio.own_log import open_own

if TYPE_CHECKING:
    from typing_extensions import Self

LEASE_SECONDS = 10.0

ENTRIES_MAX = 1000


class Member(ProcessBound):
    """A member of a group. It gets the entries of its slots in batches, in order.

    The batches of a member come one by one, so iterate in one thread. An error of the log ends
    the iteration; a new one continues with the next batch. A member that was paused for longer than
    its lease joins again, and then gets entries again that it has not committed.
    """

    def __init__(self, inner: OrderedMember, own: Log) -> None:
        """Wrap a member; programs call :meth:`Group.join`."""
        self._inner = inner
        self._own = own

    @property
    def name(self) -> str:
        """The member's name; empty if it has none."""
        return self._inner.name

    @property
    def slots(self) -> dict[int, int]:
        """The member's slots with their fencing tokens."""
        return self._inner.slots

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Batch:
        batch = await self.next()
        assert batch is not None  # without a limit of time
        return batch

    async def next(self, *, wait: float | None = None) -> Batch | None:
        """Return the next batch. Returns None if there is none for ``wait`` seconds.

        Raises:
            Fenced: another client has joined with this member's name.
        """
        return await drive(self._inner.next(wait))

    async def commit(self, batch: Batch) -> None:
        """Record that a batch is processed, and so are the earlier batches of the same slots.

        The commit is durable when the call returns. It is safe to repeat.

        Raises:
            SlotsLost: this member has lost slots of the batch, which were not committed.
        """
        await drive(self._inner.commit(batch))

    async def transform(
        self,
        function: Callable[[Entry], Iterable[Output]],
        *,
        into: Log,
        wait: float | None = None,
    ) -> int:
        """Append a function's output for each entry to another log, exactly once.

        An output is an entry's data, or a pair of data and tags. For one slot, the outputs are in
        the order of the entries. Commit nothing yourself, and use the same function in all members
        and after a restart: if a member dies, another one calls the function again, and appends
        only what is not in the log yet.

        Args:
            function: a function that always returns the same output for the same entry.
                It may be a coroutine function.
            into: the log of the outputs. Each slot is a producer of it, and a log has up to 1,024
                producers. Removing the group with :meth:`Groups.remove` forgets them.
            wait: return if there are no entries for this number of seconds; None means never.

        Returns:
            The number of entries that were appended.

        Raises:
            SequenceDiffers: the function has returned another output for the same entry.
            CorruptEntry: an entry is lost. To continue after it, :meth:`seek`.
            ValueError: ``into`` is the log that the group reads.
        """
        if into.view.log_id == self._inner.data.view.log_id:
            raise ValueError("a group's outputs need another log, or they would never end")
        return await drive(self._inner.transform(function, AsyncioPort(into), wait))

    async def seek(self, position: PositionSpec, *, slots: Collection[int] | None = None) -> None:
        """Continue at a position: a number, ``"earliest"`` or ``"latest"``.

        Batches that were delivered before can no longer be committed.

        Args:
            slots: the slots to move, which this member must own; None means all that it owns.

        Raises:
            BeyondTail: the position is above the tail.
            SlotsLost: the member does not own one of the slots.
        """
        await drive(self._inner.seek(position, slots))

    def pause(self, slots: Collection[int] | None = None) -> None:
        """Deliver no more entries of these slots, which stay with this member; None means all."""
        self._inner.pause(slots, paused=True)

    def resume(self, slots: Collection[int] | None = None) -> None:
        """Deliver entries of these slots again; None means all."""
        self._inner.pause(slots, paused=False)

    async def lag(self) -> dict[int, int]:
        """Return for each slot of this member the number of positions that it has not committed.

        They include positions whose entries belong to other slots.
        """
        return await drive(self._inner.lag())

    async def close(self, *, leave: bool | None = None) -> None:
        """End the membership. It is safe to call this twice.

        Args:
            leave: whether others get the slots at once. Otherwise they get them after the lease,
                unless a member with this name joins before. None means yes for a member without a
                name.
        """
        await drive(self._inner.close(leave=not self.name if leave is None else leave))
        await self._own.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"<zlog.groups.aio.Member {self.name!r} of {self._inner.group!r}>"


class Group:
    """A group that processes a log in order, with the entries divided into slots.

    Each slot belongs to one member at a time. If members join or leave, as few slots as possible
    move. A member gets the entries of a slot in order, and each entry at least once.
    """

    def __init__(
        self,
        log: Log,
        name: str,
        *,
        by: str | Key | None = None,
        slots: int | None = None,
        start: PositionSpec = "earliest",
        lease: float = LEASE_SECONDS,
        entries_max: int = ENTRIES_MAX,
    ) -> None:
        """Describe a group. The first member that joins creates it.

        Args:
            log: the log, which must stay open.
            name: 1 to 64 letters, digits, ``_``, ``.`` or ``-``.
            by: what decides an entry's slot: ``"tag"``, its tag that is first in alphabetical
                order; ``"object"``, the number of its stripe object; or a function that returns a
                key. None means as the group was created, or else ``"tag"``.
            slots: the number of slots, 1 to 1024, which does not change. None means as the group
                was created, or else 64.
            start: where a new group begins: a position, ``"earliest"`` or ``"latest"``.
            lease: after how many seconds without a renewal other members take over. It must be
                longer than any pause of the process.
            entries_max: the maximum number of entries in a batch.

        Raises:
            ValueError, TypeError: an argument is invalid.
        """
        check_group(log.name, name)
        check_lease(lease)
        if not (by in (None, "tag", "object") or callable(by)):
            raise ValueError(f"by must be 'tag', 'object' or a function, not {by!r}")
        if slots is not None and not (type(slots) is int and 1 <= slots <= 1024):
            raise ValueError(f"a group has 1 to 1024 slots, not {slots!r}")
        if entries_max < 1:
            raise ValueError(f"a batch must have at least 1 entry, not {entries_max}")
        self.log = log
        self.name = name
        self._key = None if by is None or isinstance(by, str) else by
        self._config: dict[str, Any] = {"by": "key" if callable(by) else by, "slots": slots}
        self._start = start
        self._lease = lease
        self._entries_max = entries_max

    def join(self, name: str = "") -> Opening[Member]:
        """Join the group.

        Args:
            name: a name that the member keeps when it restarts. If it joins again under this name
                within its lease, it keeps its slots. Another member with the name is fenced.

        Raises:
            GroupDiffers: the group was created in another mode, or with other ``by`` or ``slots``.
            Fenced: another client has joined with the name at the same time.
        """
        return Opening(self._join(name), Member.close)

    async def _join(self, name: str) -> Member:
        log = self.log
        own, replica = await open_own(log, self.name, self._lease)
        try:
            cursor = await log.cursor(cursor_name(self.name), create=self._start)
            inner = OrderedMember(
                AsyncioPort(log),
                replica,
                self.name,
                name,
                self._lease,
                self._key,
                self._entries_max,
            )
            await drive(inner.begin({"start": cursor.position, **self._config}, {}))
        except BaseException:
            await own.close()
            raise
        return Member(inner, own)
