"""The tally of an append: the entries of the input that are in the log."""

from __future__ import annotations

from collections.abc import Sequence

from zlog import StoreTimeout, ZlogError
from zlog.cli.output import say
from zlog.cli.render import entries_of


class Tally:
    """Counts appended entries. If its ``with`` block fails, it reports how many are in the log.

    It does so after any error or signal, so that the user knows where to continue.

    Attributes:
        count: how many entries, counted from the beginning of the input, are in the log.
        first: the lowest position of the first batch, if there was one.
        last: the highest position of the latest batch, if there was one.
    """

    def __init__(self, place: str = "in the log") -> None:
        self.count = 0
        self._place = place
        self.first: int | None = None
        self.last: int | None = None
        self._scattered = 0
        self._unknown = 0

    def sent(self, count: int) -> None:
        """Note that ``count`` entries are in flight."""
        self._unknown = count

    def acknowledged(self, positions: Sequence[int]) -> None:
        """Note that all entries in flight are in the log, at these positions."""
        if positions:
            self.first = min(positions) if self.first is None else self.first
            self.last = max(positions)
            self.count += len(positions)
        self._unknown = 0

    def stored(self) -> None:
        """Note that all entries in flight are durable, in the log or in a spool."""
        self.count, self._unknown = self.count + self._unknown, 0

    def failed(self, error: ZlogError) -> list[int]:
        """Count the entries of a failed batch that are in the log before the first missing one.

        Returns the positions of these entries. Entries after the missing one are reported
        separately at the end, as are those that may be in the log after a timeout.
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
        """Describe the appended entries."""
        if not self.count:
            return "nothing appended"
        if self.first is None:
            return f"appended {entries_of(self.count)}"
        return f"appended {entries_of(self.count)} from position {self.first} to {self.last}"

    def __enter__(self) -> Tally:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """After a failure, report the entries that are in the log."""
        if kind is None:
            return
        later = entries_of(self._scattered)
        if not self.count and self._scattered:
            text = f"the first entry of the input is not {self._place}, but {later} after it are"
        elif not self.count:
            text = f"no entry of the input is {self._place}"
        elif self.count == 1:
            text = f"the first entry of the input is {self._place}"
        else:
            text = f"the first {self.count:,} entries of the input are {self._place}"
        if self.count and self._scattered:
            text += f", and {later} after a missing one"
        if self._unknown:
            text += f"; up to {self._unknown:,} more may be"
        say(text)
