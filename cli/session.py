"""What every verb needs: which store, how long to wait, and the log opened in it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

import click

import zlog

TIMEOUT_SECONDS = 30.0
HOLE_TIMEOUT_SECONDS = 1.0
ENTRY_BYTES_MAX = 1 << 20


@dataclass
class Session:
    """The global options of one run of the command.

    Attributes:
        store: the store's URL; None for the default one.
        timeout: seconds for each call to the store or the sequencer; None for no limit.
        debug: show the traceback of errors.
    """

    store: str | None = None
    timeout: float | None = TIMEOUT_SECONDS
    debug: bool = False

    @property
    def url(self) -> str:
        """The store's URL, with the time that connecting may take put in where it has none.

        Raises:
            click.UsageError: it is no URL of a store.
        """
        url = zlog.default_url() if self.store is None else self.store
        try:
            parts = urlsplit(url)
        except ValueError as error:
            raise click.UsageError(f"can't understand the store URL {url!r}: {error}") from error
        given = self.timeout not in (None, TIMEOUT_SECONDS)
        query = parse_qsl(parts.query, keep_blank_values=True)
        if parts.scheme == "ceph" and given and "timeout" not in dict(query):
            query.append(("timeout", str(self.timeout)))
            return urlunsplit(parts._replace(query=urlencode(query, safe="/", quote_via=quote)))
        return url

    @contextmanager
    def connect(self) -> Iterator[zlog.Store]:
        """Open the store for the length of a ``with`` block.

        Raises:
            click.UsageError: the URL can't be understood.
            StoreUnavailable: it can't be reached.
        """
        try:
            store = zlog.connect(self.url)
        except ValueError as error:
            raise click.UsageError(str(error)) from error
        with store:
            yield store

    @contextmanager
    def open_log(
        self,
        name: str,
        *,
        hole_timeout: float | None = HOLE_TIMEOUT_SECONDS,
        entry_bytes_max: int = ENTRY_BYTES_MAX,
    ) -> Iterator[zlog.Log]:
        """Open a log for the length of a ``with`` block.

        Raises:
            LogNotFound: there is no such log.
        """
        with (
            self.connect() as store,
            zlog.Log.open(
                store,
                name,
                timeout=self.timeout,
                hole_timeout=hole_timeout,
                entry_bytes_max=entry_bytes_max,
            ) as log,
        ):
            yield log


pass_session = click.make_pass_decorator(Session, ensure=True)
