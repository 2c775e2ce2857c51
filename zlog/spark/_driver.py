"""Plans reads in Spark's driver: the range of a batch in each log, and the part of each task."""

from __future__ import annotations

import functools
import logging
import os
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from typing import TypeVar

from zlog.errors import LogNotFound
from zlog.spark._handles import names_like
from zlog.spark._log_planner import LogPlanner
from zlog.spark._offset import LogOffset, Selection, Settings
from zlog.spark._options import SourceOptions
from zlog.spark._plan import JOINED_BYTES_MAX, JOINED_POSITIONS_MAX, Range, Shares, Sizes, split

T = TypeVar("T")

_logger = logging.getLogger(__name__)

_SAMPLED_STRIPES = 8
"""The number of a log's stripes whose objects report their entries' size before some are joined."""

_SAMPLED_LOGS = 8
"""The number of logs that do so, the ones with the most positions in a batch."""

_LOGS_AT_ONCE = 16
"""The number of logs that are asked at the same time."""

WITHOUT_IT = "To continue without removed logs, set the option failOnDataLoss to false."


class Planner:
    """Plans reads of the logs that the options name, or whose names match a pattern."""

    def __init__(self, options: SourceOptions) -> None:
        self.options = options
        self._planners: dict[str, LogPlanner] = {}

    def plan_batch(self) -> list[Shares]:
        """Return the tasks of a batch read."""
        self._find()
        found = self._each(lambda planner: planner.batch(), skip=self.options.pattern is not None)
        batches = {name: batch for name, batch in found.items() if batch[0] < batch[1]}
        offsets = self._offsets(batches)
        return self._plan(offsets, self._settings(offsets).sizes)

    @property
    def selection(self) -> Selection:
        """The options that decide which positions become rows."""
        options = self.options
        tags = None if options.tags is None else sorted(options.tags)
        match = options.match if tags and len(tags) > 1 else "any"
        return {"includeGaps": options.include_gaps, "tags": tags, "match": match}

    def _find(self) -> None:
        """Find the logs that the options select now."""
        options = self.options
        names: Iterable[str] = options.logs
        if options.pattern is not None:
            names = names_like(options.store, options.pattern)
            if not names:
                _logger.warning("no log of %s matches %r", options.store, options.pattern)
        self._planners = {
            name: self._planners.get(name) or LogPlanner(options, name) for name in sorted(names)
        }

    def _each(
        self,
        action: Callable[[LogPlanner], T],
        names: Iterable[str] | None = None,
        *,
        skip: bool | None = None,
    ) -> dict[str, T]:
        """Run an action for several logs at once, and return the results by name.

        Args:
            action: the action.
            names: the names of the logs; None means all.
            skip: whether to leave out logs that were removed, or else raise LogNotFound; None means
                as the options say.
        """
        skip = self.options.skip_removed if skip is None else skip
        wanted = self._planners if names is None else names
        planners = [self._planners[name] for name in wanted if name in self._planners]

        def run(planner: LogPlanner) -> tuple[str, T] | None:
            try:
                return planner.name, action(planner)
            except LogNotFound as error:
                if not skip:
                    if self.options.several:
                        error.hint = WITHOUT_IT
                    raise
                _logger.warning("log %r is left out: %s", planner.name, error)
                return None

        if len(planners) > 1:
            parts = [planners[first::_LOGS_AT_ONCE] for first in range(_LOGS_AT_ONCE)]
            done = _pool(os.getpid()).map(lambda part: [*map(run, part)], parts)
            found = dict(filter(None, chain(*done)))
        else:
            found = dict(filter(None, map(run, planners)))
        for planner in planners:
            if planner.name not in found:
                del self._planners[planner.name]
        return {planner.name: found[planner.name] for planner in planners if planner.name in found}

    def _offsets(self, batches: Mapping[str, tuple[int, int]]) -> dict[str, LogOffset]:
        """Return offsets that end a batch, from the start and the end of the range in each log."""

        def offset(planner: LogPlanner) -> LogOffset:
            start, end = batches[planner.name]
            return LogOffset(end, start, planner.log_id, planner.stripes(start, end))

        return self._each(offset, batches)

    def _settings(self, offsets: Mapping[str, LogOffset]) -> Settings:
        options = self.options
        sizes = Sizes(self._joined_max(offsets), options.tasks_min, options.tasks_max)
        return Settings(sizes, self.selection)

    def _joined_max(self, offsets: Mapping[str, LogOffset]) -> int:
        """Return the largest task, in positions, to which stripes are joined, by entry size."""
        if sum(len(each.stripes or ()) for each in offsets.values()) < 2:
            return JOINED_POSITIONS_MAX
        largest = sorted(offsets, key=lambda name: -offsets[name].count)[:_SAMPLED_LOGS]

        def size_in(planner: LogPlanner) -> float:
            stripes = offsets[planner.name].stripes or ()
            return planner.entry_bytes(stripes[-_SAMPLED_STRIPES:])

        sizes = self._each(size_in, [name for name in largest if offsets[name].stripes])
        data = sum(size * offsets[name].count for name, size in sizes.items())
        if not data:
            return JOINED_POSITIONS_MAX
        positions = sum(offsets[name].count for name in sizes)
        return min(JOINED_POSITIONS_MAX, int(JOINED_BYTES_MAX * positions / data))

    def _plan(self, offsets: Mapping[str, LogOffset], sizes: Sizes) -> list[Shares]:
        """Return the tasks of a batch. The same offsets lead to the same tasks."""

        def range_of(planner: LogPlanner) -> Range:
            offset = offsets[planner.name]
            stripes = offset.stripes
            if stripes is None:  # the offset is from an older version of zlog
                stripes = planner.stripes(offset.since, offset.position)
            return planner.range(offset.since, offset.position, stripes)

        ranges = self._each(range_of, sorted(offsets))
        return split(ranges.values(), sizes)


@functools.cache
def _pool(process: int) -> ThreadPoolExecutor:  # noqa: ARG001 - its threads end at a fork
    return ThreadPoolExecutor(_LOGS_AT_ONCE, "zlog-spark")
