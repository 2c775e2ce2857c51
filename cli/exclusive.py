"""Appends of an exclusive writer: batches in order, several of them in flight."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress

from zlog import Log, ZlogError
from zlog.cli.batches import tags_each
from zlog.cli.output import OutputClosed, OutputFailed, note, say
from zlog.cli.session import usage_errors
from zlog.cli.signals import Terminated
from zlog.cli.tally import Tally

_ENTRIES_MAX = 32_768
_BYTES_MAX = 16 << 20
"""Limits of entries in flight, except for a single batch."""


class ExclusiveAppends:
    """A context manager that takes a log, appends batches, and releases the log.

    If the ``with`` block fails, the manager still waits until the log has confirmed or refused the
    entries that were sent. A second signal ends this wait.

    Args:
        name: the name of the writer; None for the library's default.
        keep: whether the log stays exclusive at the end, so that no other client can append.
        tally: counts the entries that are in the log.
        show: a function that prints the positions of each batch, or None.
    """

    def __init__(
        self,
        log: Log,
        name: str | None,
        tags: tuple[str, ...],
        tally: Tally,
        show: Callable[[Sequence[int]], None] | None,
        *,
        keep: bool,
    ) -> None:
        before = log.view.writer
        with usage_errors():
            self._writer = log.writer(name)
        if before is not None:
            note(f"took the log from {before.name or before.id}")
        self._log = log.name
        self._opening = f"`zlog access fence {log.name}` opens it to all"
        self._keep = keep
        self._tags = tags
        self._tally = tally
        self._show = show
        self._under_way: deque[tuple[Future[range], int, int]] = deque()
        self._entries = 0
        self._bytes = 0

    def append(self, batch: Sequence[bytes]) -> None:
        """Send a batch without waiting for its confirmation.

        If too many entries or bytes are unconfirmed, the call first waits for earlier batches.

        Raises:
            ZlogError: an earlier batch has failed, or the log refuses this one.
        """
        size = sum(map(len, batch))
        while self._under_way and self._is_full(len(batch), size):
            self._finish_one()
        self._count(len(batch), size)
        try:
            future = self._writer.submit_many(batch, tags_each=tags_each(batch, self._tags))
        except ZlogError:  # none of it was sent
            self._count(-len(batch), -size)
            raise
        self._under_way.append((future, len(batch), size))
        while self._under_way and self._under_way[0][0].done():
            self._finish_one()

    def settle(self) -> None:
        """Wait until all submitted entries are confirmed. Raises ZlogError if one has failed."""
        while self._under_way:
            self._finish_one()

    def _is_full(self, entries: int, size: int) -> bool:
        return self._entries + entries > _ENTRIES_MAX or self._bytes + size > _BYTES_MAX

    def _finish_one(self) -> None:
        future, entries, size = self._under_way[0]
        positions = future.result()  # failed ones stay here: they may be in the log
        self._under_way.popleft()
        self._tally.acknowledged(positions)
        self._count(-entries, -size)
        if self._show is not None:
            self._show(positions)

    def _count(self, entries: int, size: int) -> None:
        self._entries += entries
        self._bytes += size
        self._tally.sent(self._entries)

    def __enter__(self) -> ExclusiveAppends:
        return self

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, (OutputClosed, OutputFailed)):
            self._show = None
        try:
            if error is not None:
                with suppress(ZlogError, OutputClosed, OutputFailed):
                    self.settle()
                with suppress(ZlogError):
                    self._writer.flush()  # which raises the failure once
            self._leave(failed=error is not None)
        except (KeyboardInterrupt, Terminated):
            self._tell_kept()
            raise

    def _leave(self, *, failed: bool) -> None:
        """Release the log, unless ``keep`` is set or another client has taken it."""
        writer = self._writer
        try:
            if not self._keep and writer.fenced is None:
                writer.release()
            writer.close()
        except ZlogError as error:
            self._tell_kept()
            if not failed:
                raise
            say(f"log {self._log!r} was not released: {error}")
        if self._keep:
            note(f"log {self._log!r} stays exclusive: {self._opening}")

    def _tell_kept(self) -> None:
        if not self._keep and self._writer.fenced is None:
            say(f"log {self._log!r} is still exclusive: {self._opening}")
