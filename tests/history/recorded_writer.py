"""What an exclusive writer was asked and what it answered."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator, Sequence

from tests.history.operations import Action, Operation, Recording, Result, scan
from zlog._base.deadline import Timeout
from zlog._client import Tags
from zlog.aio import Log, Writer
from zlog.entry import Entry, Gap
from zlog.errors import Fenced


class RecordedWriter:
    """A :class:`zlog.aio.Writer` whose calls go into a history. Its methods are the writer's."""

    def __init__(self, writer: Writer, log: Log, history: Recording, process: str) -> None:
        self.writer = writer
        self.process = process
        self._log = log
        self._history = history
        self._submitted: list[tuple[Operation, int, asyncio.Future[int]]] = []

    async def append(self, data: bytes, *, tags: Tags = (), timeout: Timeout = ...) -> int:
        """See :meth:`zlog.Writer.append`."""
        operations, before = self._hand_in([data], tags)
        with self._failing(operations):
            position = await self.writer.append(data, tags=tags, timeout=timeout)
        self._confirmed(operations, position, before)
        return position

    async def append_many(
        self, entries: Sequence[bytes], *, tags: Tags = (), timeout: Timeout = ...
    ) -> range:
        """See :meth:`zlog.Writer.append_many`. Each entry is an operation of its own."""
        operations, before = self._hand_in(entries, tags)
        with self._failing(operations):
            positions = await self.writer.append_many(entries, tags=tags, timeout=timeout)
        self._confirmed(operations, positions.start, before)
        return positions

    async def submit(
        self, data: bytes, *, tags: Tags = (), timeout: Timeout = ...
    ) -> asyncio.Future[int]:
        """See :meth:`zlog.Writer.submit`. The operation ends when the future is done."""
        operations, before = self._hand_in([data], tags)
        with self._failing(operations):
            future = await self.writer.submit(data, tags=tags, timeout=timeout)
        self._submitted.append((operations[0], before, future))
        future.add_done_callback(lambda _: self._note_submitted())
        return future

    async def flush(self, *, timeout: Timeout = ...) -> None:
        """See :meth:`zlog.Writer.flush`."""
        with self._failing([]):
            await self.writer.flush(timeout=timeout)

    async def recover(self) -> AsyncIterator[Entry | Gap]:
        """See :meth:`zlog.Writer.recover`. Each position is an operation of its own."""
        items = self.writer.recover()
        async for item in scan(self._history, self.process, items, end=self.writer.start):
            yield item

    async def trim(self, position: int, *, timeout: Timeout = ...) -> None:
        """See :meth:`zlog.Writer.trim`."""
        operation = self._history.invoke(self.process, Action.TRIM_TO, position=position)
        with self._failing([operation]):
            await self.writer.trim(position, timeout=timeout)
        self._history.returns([operation], Result.OK)

    async def release(self, *, timeout: Timeout = ...) -> None:
        """See :meth:`zlog.Writer.release`."""
        operation = self._history.invoke(self.process, Action.RELEASE, writer=self.writer.id)
        with self._failing([operation]):
            await self.writer.release(timeout=timeout)
        self._note_submitted()
        self._history.returns([operation], Result.OK)

    async def close(self) -> None:
        """See :meth:`zlog.Writer.close`."""
        with self._failing([]):
            await self.writer.close()

    def _hand_in(self, entries: Sequence[bytes], tags: Tags) -> tuple[list[Operation], int]:
        self._note_submitted()
        began, writer = self._history.event(), self.writer.id
        return [
            self._history.invoke(
                self.process, Action.APPEND, entry=entry, tags=tags, writer=writer, invoked=began
            )
            for entry in entries
        ], self._log.view.epoch

    def _confirmed(self, operations: list[Operation], first: int, before: int) -> None:
        self._note_submitted()
        for position, operation in enumerate(operations, first):
            operation.position = position
            operation.epochs = before, self._log.view.epoch
        self._history.returns(operations, Result.OK)

    @contextlib.contextmanager
    def _failing(self, operations: list[Operation]) -> Iterator[None]:
        """Note that operations fail; what a caller gives up has failed, as far as it knows."""
        try:
            yield
        except (Exception, asyncio.CancelledError) as error:
            self._note_submitted()
            self._fail(operations, error)
            raise

    def _fail(self, operations: list[Operation], error: BaseException) -> None:
        result = Result.FENCED if isinstance(error, Fenced) else Result.FAILED
        self._history.returns(operations, result, f"{type(error).__name__}: {error}")

    def _note_submitted(self) -> None:
        """Note what became of entries that were submitted, in their order."""
        waiting = []
        for operation, before, future in self._submitted:
            if not future.done():
                waiting.append((operation, before, future))
            elif future.cancelled():
                self._fail([operation], asyncio.CancelledError())
            elif (error := future.exception()) is not None:
                self._fail([operation], error)
            else:
                operation.position = future.result()
                operation.epochs = before, self._log.view.epoch
                self._history.returns([operation], Result.OK)
        self._submitted = waiting
