"""What was asked of a log and what it answered, kept for :func:`check`."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Sequence
from hashlib import sha256

from tests.history.operations import (
    Action,
    Operation,
    Recording,
    Result,
    note_passed,
    note_read,
    scan,
    scan_selected,
)
from tests.history.recorded_writer import RecordedWriter
from zlog._append.conditions import Condition
from zlog._base.deadline import Timeout
from zlog._base.wanted import Match, Wanted
from zlog._client import Tags
from zlog._trim.retention import Retention
from zlog.aio import Log
from zlog.entry import Entry, Gap, GapKind
from zlog.errors import (
    AlreadyWritten,
    AppendRefused,
    BeyondTail,
    Conflict,
    EntryTooLarge,
    Fenced,
    Invalidated,
    NotWritten,
    SequenceSuperseded,
)
from zlog.view import View


class History(Recording):
    """All operations on one log, with the order in which they began and ended.

    Every append needs an entry that no other append has: it is what tells them apart. So does every
    entry of an exactly-once append, which has it in each attempt.

    Args:
        clock: tells the seconds that messages show; None shows 0.
    """

    def watch(self, log: Log, process: str) -> RecordedLog:
        """Return ``log`` with everything that goes through it noted here."""
        return RecordedLog(log, self, process)

    def digest(self) -> str:
        """Return a number for all that happened: equal histories have equal ones."""
        content = "\n".join(map(str, self.operations))
        return sha256(content.encode()).hexdigest()[:16]


def _kind_of(error: NotWritten | Invalidated) -> GapKind:
    if isinstance(error, NotWritten):
        return GapKind.UNWRITTEN
    return error.gap.kind if error.gap else GapKind.TRIMMED


_NO_EFFECT = (AppendRefused, BeyondTail, Conflict, EntryTooLarge, TypeError, ValueError)


class RecordedLog:
    """A :class:`zlog.aio.Log` whose calls go into a history. Its methods are the log's."""

    def __init__(self, log: Log, history: History, process: str) -> None:
        self.log = log
        self.process = process
        self._history = history
        self._reserved: dict[int, tuple[int, tuple[int, int]]] = {}
        """When each position was asked for, and the epochs before and after."""
        self._tail = 0
        """The highest that this handle was told: ranges up to the tail go at least so far."""

    async def append(self, data: bytes, *, tags: Tags = (), timeout: Timeout = ...) -> int:
        """See :meth:`zlog.Log.append`."""
        with self._operation(Action.APPEND, entry=data, tags=tags) as operation:
            before = self.log.view.epoch
            operation.position = await self.log.append(data, tags=tags, timeout=timeout)
            operation.epochs = before, self.log.view.epoch
        return operation.position

    async def append_many(
        self,
        entries: Sequence[bytes],
        *,
        tags: Tags = (),
        condition: Condition | None = None,
        timeout: Timeout = ...,
    ) -> list[int]:
        """See :meth:`zlog.Log.append_many`. Each entry is an operation of its own."""
        began = self._history.event()
        operations = [
            self._history.invoke(self.process, Action.APPEND, entry=entry, tags=tags, invoked=began)
            for entry in entries
        ]
        before = self.log.view.epoch
        for operation in operations:
            operation.condition = condition
            operation.batch = operations[0].number if self.log.view.ordered else None
        expect, unless, start = condition or Condition()
        after = start - 1 if start else None
        positions: Sequence[int | None]
        try:
            positions = await self.log.append_many(
                entries, tags=tags, expect=expect, unless=unless, after=after, timeout=timeout
            )
        except Exception as error:
            for operation in operations if isinstance(error, Conflict) else ():
                operation.conflict = error.position
            positions = getattr(error, "positions", None) or [None] * len(entries)
            self._acknowledge(operations, positions, before)
            missing = [each for each in operations if each.position is None]
            self._failed(missing, error)
            raise
        self._acknowledge(operations, positions, before)
        return [position for position in positions if position is not None]

    async def reserve(self, count: int = 1, *, timeout: Timeout = ...) -> range:
        """See :meth:`zlog.Log.reserve`."""
        began, before = self._history.event(), self.log.view.epoch
        reserved = await self.log.reserve(count, timeout=timeout)
        self._reserved.update(dict.fromkeys(reserved, (began, (before, self.log.view.epoch))))
        return reserved

    async def write(
        self, position: int, data: bytes, *, tags: Tags = (), timeout: Timeout = ...
    ) -> None:
        """See :meth:`zlog.Log.write`. An append, which began when its position was reserved."""
        began, epochs = self._reserved.pop(position, (None, None))
        with self._operation(Action.APPEND, entry=data, tags=tags, invoked=began) as operation:
            try:
                await self.log.write(position, data, tags=tags, timeout=timeout)
            except (AlreadyWritten, Invalidated) as error:
                # What was trimmed may have been there before.
                if isinstance(error, AlreadyWritten) or _kind_of(error) is GapKind.FILLED:
                    self._history.returns([operation], Result.REFUSED, type(error).__name__)
                raise
            operation.position, operation.epochs = position, epochs

    async def append_once(
        self,
        entries: Iterable[bytes],
        *,
        producer: str,
        sequence: int,
        part: int = 0,
        tags: Tags = (),
        timeout: Timeout = ...,
    ) -> int:
        """See :meth:`zlog.Log.append_once`. Each entry is an operation of its own.

        The entries are taken all at once, in the beginning.
        """
        entries = list(entries)
        began = self._history.event()
        operations = [
            self._history.invoke(
                self.process,
                Action.APPEND_ONCE,
                entry=entry,
                tags=tags,
                part=(producer, sequence, part),
                invoked=began,
            )
            for entry in entries
        ]
        try:
            appended = await self.log.append_once(
                entries, producer=producer, sequence=sequence, part=part, tags=tags, timeout=timeout
            )
        except SequenceSuperseded as error:
            self._history.returns(operations, Result.SUPERSEDED, str(error))
            raise
        except Exception as error:  # any error: some may be in the log
            self._history.returns(operations, Result.FAILED, f"{type(error).__name__}: {error}")
            raise
        self._history.returns(operations, Result.OK)
        return appended

    async def read(self, position: int, *, timeout: Timeout = ...) -> Entry:
        """See :meth:`zlog.Log.read`."""
        with self._operation(Action.READ, position=position) as operation:
            try:
                entry = await self.log.read(position, timeout=timeout)
            except (NotWritten, Invalidated) as error:
                operation.found = _kind_of(error)
                self._history.returns([operation], Result.OK)
                raise
            operation.tell(entry.data, entry.tags)
        return entry

    async def read_range(
        self,
        start: int = 0,
        end: int | None = None,
        *,
        tags: Collection[str] | None = None,
        match: Match = "any",
        reverse: bool = False,
        hole_timeout: Timeout = ...,
    ) -> AsyncIterator[Entry | Gap]:
        """See :meth:`zlog.Log.read_range`. Each position is an operation of its own.

        Of a reader by tags each row of positions is one that it passes and tells nothing of.
        """
        items = self.log.read_range(
            start, end, tags=tags, match=match, reverse=reverse, hole_timeout=hole_timeout
        )
        async for item in self._scan(items, tags, match, start, end, reverse=reverse):
            yield item

    async def follow(
        self,
        start: int = 0,
        *,
        tags: Collection[str] | None = None,
        match: Match = "any",
        hole_timeout: Timeout = ...,
    ) -> AsyncIterator[Entry | Gap]:
        """See :meth:`zlog.Log.follow`. It is noted as that of ``read_range``."""
        items = self.log.follow(start, tags=tags, match=match, hole_timeout=hole_timeout)
        async for item in self._scan(items, tags, match, start, None):
            yield item

    async def last(self, *tags: str, match: Match = "any", timeout: Timeout = ...) -> Entry | None:
        """See :meth:`zlog.Log.last`. It is noted as what a reader backwards begins with."""
        tail, began = self._tail, self._history.event()
        entry = await self.log.last(*tags, match=match, timeout=timeout)
        wanted = Wanted.of(tags, match) if tags else None
        if wanted is not None:
            start = 0 if entry is None else entry.end
            note_passed(self._history, self.process, wanted, start, tail, began)
        if entry is not None:
            note_read(self._history, self.process, entry, began, wanted)
        return entry

    def _scan(
        self,
        items: AsyncIterator[Entry | Gap],
        tags: Collection[str] | None,
        match: Match,
        start: int,
        end: int | None,
        *,
        reverse: bool = False,
    ) -> AsyncIterator[Entry | Gap]:
        if not tags and not reverse:
            return scan(self._history, self.process, items, start)
        wanted = Wanted.of(tags, match) if tags else None
        # A follower never ends, and a range at a tail that is no lower than those before.
        known = self._tail if end is None else min(end, self._tail)
        return scan_selected(
            self._history, self.process, items, wanted, start, known, reverse=reverse
        )

    async def tail(self, *, timeout: Timeout = ...) -> int:
        """See :meth:`zlog.Log.tail`: the checked one."""
        with self._operation(Action.TAIL) as operation:
            operation.position = await self.log.tail(timeout=timeout)
        self._tail = max(self._tail, operation.position)
        return operation.position

    async def fill(self, position: int, *, timeout: Timeout = ...) -> None:
        """See :meth:`zlog.Log.fill`."""
        with self._operation(Action.FILL, position=position) as operation:
            try:
                await self.log.fill(position, timeout=timeout)
            except AlreadyWritten:
                self._history.returns([operation], Result.WRITTEN)
                raise

    async def trim(self, position: int, *, timeout: Timeout = ...) -> None:
        """See :meth:`zlog.Log.trim`."""
        with self._operation(Action.TRIM, position=position):
            await self.log.trim(position, timeout=timeout)

    async def trim_to(self, position: int, *, timeout: Timeout = ...) -> None:
        """See :meth:`zlog.Log.trim_to`."""
        with self._operation(Action.TRIM_TO, position=position):
            await self.log.trim_to(position, timeout=timeout)

    async def set_retention(self, retention: Retention, *, timeout: Timeout = ...) -> None:
        """See :meth:`zlog.Log.set_retention`. The checkers know ``compact_after`` only."""
        if retention.compact_after is None:
            await self.log.set_retention(retention, timeout=timeout)
        else:
            with self._operation(Action.COMPACT):
                await self.log.set_retention(retention, timeout=timeout)

    async def writer(self, name: str | None = None, *, timeout: Timeout = ...) -> RecordedWriter:
        """See :meth:`zlog.Log.writer`. What the writer does is noted, too."""
        with self._operation(Action.TAKE) as operation:
            writer = await self.log.writer(name, timeout=timeout)
            operation.position, operation.writer = writer.start, writer.id
        return RecordedWriter(writer, self.log, self._history, self.process)

    async def fence(self, *, timeout: Timeout = ...) -> View:
        """See :meth:`zlog.Log.fence`."""
        with self._operation(Action.RELEASE):
            return await self.log.fence(timeout=timeout)

    @contextlib.contextmanager
    def _operation(
        self,
        action: Action,
        *,
        position: int | None = None,
        entry: bytes | None = None,
        tags: Tags = (),
        invoked: float | None = None,
    ) -> Iterator[Operation]:
        """Note an operation's beginning and its end, unless that is noted inside."""
        operation = self._history.invoke(
            self.process, action, position=position, entry=entry, tags=tags, invoked=invoked
        )
        try:
            yield operation
        except Exception as error:
            if operation.result is Result.PENDING:
                self._failed([operation], error)
            raise
        self._history.returns([operation], Result.OK)

    def _acknowledge(
        self, operations: Sequence[Operation], positions: Sequence[int | None], epoch: int
    ) -> None:
        for operation, position in zip(operations, positions, strict=True):
            operation.position = position
            operation.epochs = epoch, self.log.view.epoch
        done = [each for each in operations if each.position is not None]
        self._history.returns(done, Result.OK)

    def _failed(self, operations: Sequence[Operation], error: Exception) -> None:
        result = Result.REFUSED if isinstance(error, _NO_EFFECT) else Result.FAILED
        if isinstance(error, Fenced):  # a writer that was not even told that it had the log
            result = Result.FENCED
        self._history.returns(operations, result, f"{type(error).__name__}: {error}")
