"""What every part of a frozen store has."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import zlog


class Part(ABC):
    """A log, or more.

    Attributes:
        since: the first release that has it.
        name: of the log.
    """

    since = (0, 1)
    name = ""

    @abstractmethod
    def make(self, store: zlog.Store) -> None:
        """Store it."""

    @abstractmethod
    def reads(self, store: zlog.Store) -> None:
        """Fail unless all of it is there, by every way to read it."""

    @abstractmethod
    def goes_on(self, store: zlog.Store) -> None:
        """Write on, and fail unless that is there with what was before."""

    def open(self, store: zlog.Store, **options: Any) -> zlog.Log:
        """Open its log. The sequencer that its view names ended long ago."""
        return zlog.Log.open(store, self.name, hole_timeout=0.05, sequencer_timeout=0.2, **options)


def sound(log: zlog.Log) -> None:
    """Fail where an audit finds damage."""
    assert [finding for finding in log.check() if finding.serious] == []
