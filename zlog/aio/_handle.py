"""What a handle on a log answers without a request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn

from zlog._base.process import ProcessBound
from zlog._client import LogClient
from zlog._trim.retention import Retention
from zlog.store import Store
from zlog.view import View


class LogHandle(ProcessBound):
    """What handles on logs have in common."""

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
        """The id, 32 hex digits, that this handle's appends and fills carry, and no other's."""
        return self._client.writer.hex()

    @property
    def view(self) -> View:
        """The newest layout that this handle has seen; no request is made."""
        return self._client.layout.view

    @property
    def rescued(self) -> Mapping[str, int]:
        """How many replies another copy gave since the primary one was damaged, by object.

        Each of them took longer, and would else have been an error or a gap. The audit
        (``check``) with ``heal`` puts such damage right.
        """
        return dict(self._client.io.rescued)

    @property
    def retention(self) -> Retention:
        """What is kept of the log, as this handle's newest :attr:`view` has it."""
        return Retention.of(self.view.options)

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            f"a log can't be pickled or copied: open {self.name!r} in the other process"
        )
