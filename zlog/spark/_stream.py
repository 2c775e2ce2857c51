"""Plans the batches of a streaming query, in Spark's driver."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from datetime import datetime, timezone

from zlog.spark._driver import WITHOUT_IT, Planner
from zlog.spark._fair import count_in, fair_shares
from zlog.spark._offset import LogOffset, Offset, WrongCheckpoint
from zlog.spark._options import SourceOptions
from zlog.spark._plan import Shares

_logger = logging.getLogger(__name__)

_SLOW_SECONDS, _PAUSE_FACTOR, _PAUSE_SECONDS_MAX = 0.01, 10, 10.0
"""If a look at all logs takes longer, the next one begins after this many times its duration, but
not after more than the maximum, since a look during an outage takes minutes."""


class StreamPlanner(Planner):
    """Plans the batches of a streaming query.

    All results depend only on Spark's offsets and on the logs, so another process can continue the
    query at any point.
    """

    def __init__(self, options: SourceOptions) -> None:
        super().__init__(options)
        self._ids: dict[str, int] = {}
        self._firsts: dict[str, int] = {}  # where logs begin that are new to the query
        self._last: dict[str, int] | None = None  # the end of a query that has one
        self._tails: dict[str, int] = {}
        self._next_look = self._next_search = 0.0  # on the monotonic clock
        self._moved: set[str] = set()  # the mirrors for which it was logged that entries lack
        self._left: set[str] = set()  # why logs were left out, if this was logged
        self._served = ""  # the log that the last limited batch served last

    def initial(self) -> Offset:
        """Return where a new query begins, and set its cursors there, so that no trim overtakes it.

        Raises:
            ValueError: the options let the query begin at a time in the future.
        """
        starting = self.options.starting
        if isinstance(starting, datetime) and starting > datetime.now(timezone.utc):
            raise ValueError(
                f"startingTimestamp={starting.isoformat()} is in the future, but a stream would"
                " also contain entries appended before that time. Start the query later, or set"
                " startingPosition to latest and filter by timestamp"
            )
        self._search()
        found = self._each(lambda planner: planner.hold(starting), self._ids)
        return Offset({name: self._at(name, position) for name, position in found.items()})

    def end_now(self) -> None:
        """End the query at the current tails."""
        self._search()
        self._last = self._each(lambda planner: planner.tail(), self._ids)

    def latest(
        self, start: Offset, entries_max: int | None, bytes_max: int | None = None
    ) -> Offset:
        """Return the end of the batch that begins at ``start``, or ``start`` if nothing is new.

        Spark calls this when all earlier batches are done, so the cursors are moved to ``start``.
        The method ``commit`` could not do this after a query's last batch, because Spark does not
        call it then.
        """
        known = self._known(start)
        self._commit(known)
        begins = {name: each.position for name, each in known.items()}
        new = [name for name in self._ids if name not in begins and name not in self._firsts]
        self._firsts.update(self._each(lambda planner: planner.hold("earliest"), new, skip=True))
        begins = {**self._firsts, **begins}
        ends = self._limited(begins, self._ends(begins), entries_max, bytes_max)
        if not ends:
            return start
        batches = {name: (begins[name], end) for name, end in ends.items()}
        offsets = self._offsets(batches)
        settings = self._settings(offsets)
        unchanged = {name: self._at(name, begins[name]) for name in begins if name in self._ids}
        return Offset({**unchanged, **offsets}, settings)

    def tail(self) -> Offset:
        """Return the ends of the logs, for the query's progress."""
        self._look()
        return Offset(
            {name: self._at(name, tail) for name, tail in self._tails.items() if name in self._ids}
        )

    def plan(self, end: Offset) -> list[Shares]:
        """Return the tasks of the batch that ends at ``end``.

        An offset made by this or a newer version of zlog always leads to the same tasks, unless a
        log was removed.

        Raises:
            Invalidated: a part of the batch is trimmed, and ``failOnDataLoss`` is set.
        """
        offsets = {name: each for name, each in self._known(end).items() if each.count}
        if not offsets:
            return []
        settings = end.settings or self._settings(offsets)
        return self._plan(offsets, settings.sizes)

    def _commit(self, known: Mapping[str, LogOffset]) -> None:
        if self.options.cursor is None:
            return
        moved = [name for name in known if known[name].position > self._planners[name].committed]
        self._each(lambda p: p.commit(known[p.name].position), moved)

    def _search(self) -> None:
        """Find new and removed logs, and their ids."""
        self._next_search = time.monotonic() + self.options.discover
        self._find()
        new = [name for name in self._planners if name not in self._ids]
        skip = self.options.pattern is not None or None
        self._ids.update(self._each(lambda planner: planner.log_id, new, skip=skip))
        self._forget_removed()

    def _forget_removed(self) -> None:
        for kept in (self._ids, self._firsts):
            for name in kept.keys() - self._planners.keys():
                del kept[name]

    def _known(self, offset: Offset) -> dict[str, LogOffset]:
        """Return the offset's logs, without those that the query no longer reads.

        Raises:
            WrongCheckpoint: the query no longer reads a log of the offset, or all of them are other
                logs than the query reads, or other rows are selected.
        """
        offset.check(self.selection)
        self._forget_removed()
        again = self.options.pattern is not None and self._last is None
        if not self._next_search or (again and time.monotonic() >= self._next_search):
            self._search()
        known = {}
        for name, each in offset.logs.items():
            if self._ids.get(name) != each.log_id and (mirror := self._mirror(each.log_id)):
                if self._problem(mirror, offset.logs.get(mirror, each)):  # else it has a position
                    known[mirror] = self._on_mirror(name, each, mirror)
                continue
            problem = self._problem(name, each)
            if problem is None:
                known[name] = each
            elif not self.options.skip_removed or not any(map(self.options.selects, offset.logs)):
                raise WrongCheckpoint(problem, hint=WITHOUT_IT if self.options.several else None)
            elif problem not in self._left:
                self._left.add(problem)
                _logger.warning("%s; the query continues without it", problem)
        return known

    def _problem(self, name: str, offset: LogOffset) -> str | None:
        """Return why the query cannot continue in a log of an offset, or None."""
        if not self.options.selects(name):
            found = self.options.pattern or ",".join(self.options.logs)
            return f"the checkpoint belongs to log {name!r}, not to {found!r}"
        if name not in self._ids:
            return f"the checkpoint belongs to log {name!r}, which was removed"
        if self._ids[name] != offset.log_id:
            return (
                f"the checkpoint belongs to a removed log {name!r}, and another log now has its"
                " name"
            )
        return None

    def _mirror(self, log_id: int) -> str | None:
        """Return the name of a log of the query that is or was a mirror of the log with an id."""
        views = self._each(lambda planner: planner.view(), self._ids)
        return next((n for n, view in views.items() if view.common_end(log_id) is not None), None)

    def _on_mirror(self, name: str, offset: LogOffset, mirror: str) -> LogOffset:
        """Return the offset in a promoted mirror that corresponds to an offset in its source.

        A position above the common part becomes the end of this part, so that a repeated batch has
        no rows of the mirror's own entries. The stripes are those of the mirror.
        """
        view = self._planners[mirror].view()
        end = view.common_end(offset.log_id)
        assert end is not None
        problem = f"the checkpoint belongs to log {name!r}, of which log {mirror!r} is a mirror"
        if view.mirror:
            hint = f"If the log is lost, promote the mirror: `zlog access promote {mirror}`."
            raise WrongCheckpoint(f"{problem} that is not promoted", hint=hint)
        if not self.options.continue_on_mirror:
            raise WrongCheckpoint(
                f"{problem} that was promoted at position {end}",
                hint="To continue in the mirror, set the option continueOnMirror to true"
                " (`zlog spark tail --continue-on-mirror`).",
            )
        if offset.position > end and mirror not in self._moved:
            self._moved.add(mirror)
            _logger.warning(
                "log %r: the query had planned or read the positions [%d, %d) of log %r, which were"
                " not mirrored; it continues at %d, where the mirror's own entries begin",
                mirror,
                end,
                offset.position,
                name,
                end,
            )
        return LogOffset(min(offset.position, end), min(offset.since, end), self._ids[mirror])

    def _at(self, name: str, position: int) -> LogOffset:
        return LogOffset(position, position, self._ids[name])

    def _look(self) -> None:
        """Look for the logs' tails, unless this was done recently.

        Spark asks a hundred times a second, so the answer must be cheap if nothing is new.
        """
        began = time.monotonic()
        if began < self._next_look:
            return
        self._tails = self._each(lambda p: p.unchecked_tail(), self._ids)
        self._forget_removed()
        took = time.monotonic() - began
        if took > _SLOW_SECONDS:
            self._next_look = began + min(_PAUSE_FACTOR * took, _PAUSE_SECONDS_MAX)

    def _ends(self, begins: Mapping[str, int]) -> dict[str, int]:
        """Return the tails that are above the beginning of the batch."""
        if self._last is not None:
            tails = self._last
        else:
            self._look()
            higher = [n for n, tail in self._tails.items() if tail > begins.get(n, tail)]
            tails = self._each(lambda planner: planner.tail(), higher)
        return {n: tail for n, tail in tails.items() if n in begins and tail > begins[n]}

    def _limited(
        self,
        begins: Mapping[str, int],
        ends: dict[str, int],
        entries_max: int | None,
        bytes_max: int | None,
    ) -> dict[str, int]:
        """Return where the batch ends in each log, so that it is within the limits."""
        if not ends or entries_max is bytes_max is None:
            return ends
        firsts = {name: begins[name] for name in ends}
        if not self.options.include_gaps:  # trimmed positions are not rows and do not count
            trimmed = self._each(lambda planner: planner.trim_point(), ends)
            firsts = {name: max(first, trimmed.get(name, 0)) for name, first in firsts.items()}
        limited = {name: max(end, firsts[name]) for name, end in ends.items()}
        if entries_max is not None:
            counts = {name: float(end - firsts[name]) for name, end in limited.items()}
            shares = fair_shares(counts, dict.fromkeys(counts, 1.0), entries_max, self._served)
            limited = {name: firsts[name] + int(share) for name, share in shares.items()}
        if bytes_max is not None:
            sizes = self._each(
                lambda p: p.sizes(firsts[p.name], limited[p.name], bytes_max), limited
            )
            amounts = {name: sum(count * size for count, size in sizes[name]) for name in sizes}
            units = {name: sizes[name][0][1] if sizes[name] else 0.0 for name in sizes}
            shares = fair_shares(amounts, units, bytes_max, self._served)
            limited = {n: firsts[n] + count_in(sizes[n], share) for n, share in shares.items()}
        if len(limited) < len(ends):
            self._served = next(reversed(limited), "")
        return limited
