"""Looking at the logs of a store again and again: what the exporter and the console show."""

from __future__ import annotations

import fnmatch
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import zlog
from zlog.overview import LogContent, LogOverview, log_names, see_store


@dataclass(frozen=True)
class Look:
    """What was seen at one time.

    Attributes:
        logs: by name.
        contents: what objects of logs held, and when they were asked: seconds since 1970. Not of
            all logs, and of some by an earlier look.
        left_out: logs above the limit.
        sequencer: what the one that leads said of itself; None: there is none, or no answer.
        sequencer_error: why it did not answer.
        at: when it ended: seconds since 1970; 0 before the first one.
        seconds: that it took.
    """

    logs: Mapping[str, LogOverview] = field(default_factory=dict)
    contents: Mapping[str, tuple[float, LogContent]] = field(default_factory=dict)
    left_out: int = 0
    sequencer: dict[str, Any] | None = None
    sequencer_error: str = ""
    at: float = 0.0
    seconds: float = 0.0


class Watch:
    """Looks at the logs of a store, at a bounded number of them each time.

    Attributes:
        last: what was seen last; it is replaced as a whole, so that other threads may have it.

    Args:
        store: see there.
        match: a pattern of names.
        logs_max: logs that are looked at, by name.
        contents: logs whose objects are asked each time what they hold, by turns.
        timeout: for each log, in seconds.
    """

    def __init__(
        self,
        store: zlog.Store,
        match: str,
        logs_max: int,
        contents: int,
        timeout: float | None,
    ) -> None:
        self.last = Look()
        self._store = store
        self._match = match
        self._logs_max = logs_max
        self._contents = contents
        self._timeout = timeout
        self._turns: deque[str] = deque()

    async def look(self) -> Look:
        """Look at all logs once, and at the objects of those whose turn it is.

        Raises:
            ZlogError: the names could not be read.
        """
        began = time.monotonic()
        found = await log_names(self._store, timeout=self._timeout)
        found = [name for name in found if fnmatch.fnmatchcase(name, self._match)]
        names = found[: self._logs_max]
        known = set(names)
        turns = [*dict.fromkeys((*(n for n in self._turns if n in known), *names))]
        whole, self._turns = turns[: self._contents], deque(turns[self._contents :])
        rest = known.difference(whole)
        seen = await see_store(self._store, whole, content=True, timeout=self._timeout)
        other = await see_store(self._store, sorted(rest), timeout=self._timeout)
        logs = {
            log.name: log for log in sorted((*seen.logs, *other.logs), key=lambda log: log.name)
        }
        contents = {log.name: (log.at, log.content) for log in seen.logs if log.content is not None}
        before = self.last
        for name, content in before.contents.items():
            if name in logs and name not in contents and logs[name].id == before.logs[name].id:
                contents[name] = content
        self.last = Look(
            logs,
            contents,
            len(found) - len(names),
            seen.sequencer,
            seen.sequencer_error,
            time.time(),
            time.monotonic() - began,
        )
        return self.last
