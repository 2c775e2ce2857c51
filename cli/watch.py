"""Polling the logs of a store, for the exporter and the console."""

from __future__ import annotations

import fnmatch
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import zlog
from zlog.cli.groups import Seen, see_groups
from zlog.cli.session import Session
from zlog.overview import LogContent, LogOverview, log_names, see_store


@dataclass(frozen=True)
class Look:
    """The result of one poll.

    Attributes:
        logs: the state of each log, by name.
        contents: maps the names of some logs to a time, in seconds since 1970, and to the contents
            that this or an earlier poll read then.
        groups: maps the names of logs to their groups, which were read together with the contents.
        left_out: how many logs were not polled because there are too many.
        sequencer: the leading sequencer's answer to STATUS, if it answered.
        sequencer_error: why the leading sequencer did not answer.
        at: the time at which the poll ended, in seconds since 1970; 0 before the first poll.
        seconds: the duration of the poll.
    """

    logs: Mapping[str, LogOverview] = field(default_factory=dict)
    contents: Mapping[str, tuple[float, LogContent]] = field(default_factory=dict)
    groups: Mapping[str, Seen] = field(default_factory=dict)
    left_out: int = 0
    sequencer: dict[str, Any] | None = None
    sequencer_error: str = ""
    at: float = 0.0
    seconds: float = 0.0


class Watch:
    """Polls the logs of a store, up to a maximum number.

    Attributes:
        last: the result of the last poll. Other threads may read it, since polls replace it but
            never change it.

    Args:
        match: a pattern; only logs whose names match it are polled.
        logs_max: the maximum number of logs, in name order.
        contents: the number of logs whose contents each poll reads. Successive polls cover all
            logs.
        session: if given, the groups of these logs are read too, with its key.
    """

    def __init__(
        self,
        store: zlog.Store,
        match: str,
        logs_max: int,
        contents: int,
        timeout: float | None,
        session: Session | None = None,
    ) -> None:
        self.last = Look()
        self._store = store
        self._match = match
        self._logs_max = logs_max
        self._contents = contents
        self._timeout = timeout
        self._session = session
        self._turns: deque[str] = deque()

    async def look(self) -> Look:
        """Poll all logs once. Raises ZlogError if the names cannot be read."""
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
        groups: dict[str, Seen] = {}
        if self._session is not None:
            groups = await see_groups(self._session, self._store, seen.logs)
        before = self.last
        for name in before.groups.keys() & rest & logs.keys():
            if logs[name].id == before.logs[name].id:
                groups[name] = before.groups[name]
        for name, content in before.contents.items():
            if name in logs and name not in contents and logs[name].id == before.logs[name].id:
                contents[name] = content
        self.last = Look(
            logs,
            contents,
            groups,
            len(found) - len(names),
            seen.sequencer,
            seen.sequencer_error,
            time.time(),
            time.monotonic() - began,
        )
        return self.last
