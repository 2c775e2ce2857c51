"""The tally of an append: what of the input is in the log, told however the command ends."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType

from zlog import StoreTimeout, ZlogError
from zlog.cli.output import say
from zlog.cli.render import entries_of


class Tally:
    """Counts entries, and tells how many are in the log when the block that it guards fails.

    It is a context manager around everything that may fail while entries are on their way, and
    says nothing when all went well. All failures are alike to it: errors of the log, of the input
    and of the output, a reader of stdout that left, signals.

    Attributes:
        count: entries from the beginning of the input that are in the log.
        first: the lowest position of the first batch; None before it.
        last: the highest position of the latest batch; None before it.
    """

    def __init__(self) -> None:
        self.count = 0
        self.first: int | None = None
        self.last: int | None = None
        self._scattered = 0
        self._unknown = 0

    def sent(self, count: int) -> None:
        """Note that ``count`` entries are on their way; their outcome is unknown so far."""
        self._unknown = count

    def acknowledged(self, positions: Sequence[int]) -> None:
        """Note that all entries on their way are in the log, at these positions."""
        if positions:
            self.first = min(positions) if self.first is None else self.first
            self.last = max(positions)
            self.count += len(positions)
        self._unknown = 0

    def failed(self, error: ZlogError) -> list[int]:
        """Note what an append left behind; returns the positions from the beginning of the batch.

        Only a time-out of the store leaves entries open. Entries that a failed batch does not say
        a word about were refused before anything was sent.
        """
        known = list(error.positions)
        prefix = known.index(None) if None in known else len(known)
        done = [position for position in known[:prefix] if position is not None]
        rest = known[prefix:]
        self.acknowledged(done)
        self._scattered = sum(position is not None for position in rest)
        if isinstance(error, StoreTimeout):
            self._unknown = rest.count(None)
        return done

    def summary(self) -> str:
        """Say what was appended."""
        if not self.count:
            return "nothing appended"
        return f"appended {entries_of(self.count)} from position {self.first} to {self.last}"

    def __enter__(self) -> Tally:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is not None:
            self._tell()

    def _tell(self) -> None:
        """Say what is in the log, before the error itself."""
        later = entries_of(self._scattered)
        if not self.count and self._scattered:
            text = f"the first entry of the input is not in the log, but {later} after it"
        elif not self.count:
            text = "no entry of the input is in the log"
        elif self.count == 1:
            text = "the first entry of the input is in the log"
        else:
            text = f"the first {self.count:,} entries of the input are in the log"
        if self.count and self._scattered:
            text += f", and {later} after a missing one"
        if self._unknown:
            text += f"; up to {self._unknown:,} more may be"
        say(text)
