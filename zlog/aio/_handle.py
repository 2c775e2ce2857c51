"""The attributes of a log that need no request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn

from zlog._base.process import ProcessBound
from zlog._client import LogClient
from zlog._trim.retention import Retention
from zlog.store import Store
from zlog.view import View


class LogHandle(ProcessBound):
    """Base class of handles on logs."""

    def __init__(self, client: LogClient) -> None:
        """Wrap a client; programs call :meth:`open` or :meth:`create`."""
        self._client = client
        self._deadline = client.deadline

    @property
    def name(self) -> str:
        """The log's name."""
        return self._client.layout.view.log

    @property
    def store(self) -> Store:
        """The store that holds the log."""
        return self._client.io.store

    @property
    def writer_id(self) -> str:
        """The id of this handle's appends and fills, 32 hex digits, which no other handle has."""
        return self._client.writer.hex()

    @property
    def view(self) -> View:
        """The newest layout that this handle has seen."""
        return self._client.layout.view

    @property
    def replica_reads(self) -> Mapping[str, int]:
        """The number of replies that came from another copy than the damaged primary, by object.

        Each took longer, and would otherwise have been an error or a gap. :meth:`check` with
        ``repair`` repairs such damage.
        """
        return dict(self._client.io.replica_reads)

    @property
    def retention(self) -> Retention:
        """The log's retention in this handle's newest :attr:`view`."""
        return Retention.of(self.view.options)

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            f"a log can't be pickled or copied: open {self.name!r} in the other process"
        )
