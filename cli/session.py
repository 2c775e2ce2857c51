"""The global options of the command: the store, the timeout, the key; and opening a log."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

import click

import zlog
from zlog.cli.output import note
from zlog.limits import MAC_KEY_BYTES_MAX, MAC_KEY_BYTES_MIN, TIMEOUT_SECONDS

MAC_KEY_FILE_VARIABLE = "ZLOG_MAC_KEY_FILE"


@dataclass
class Session:
    """The global options of one run of the command.

    Attributes:
        store: the store's URL; None means the default store.
        pool, namespace, conf, name: Ceph's own options (``-p POOL -N NAMESPACE -c CONF -n
            client.ID``), which users can give instead of a URL.
        timeout: the seconds that each call to the store or the sequencer may take; None means no
            limit.
        debug: whether to show the traceback of errors.
        mac_key_file: the path of the file with the log's MAC key; None means the path in
            ``ZLOG_MAC_KEY_FILE``, if the environment has this variable.
        log: the name of the command's log, if it has exactly one.
        shared: the open store that all calls of :meth:`connect` return; None if each opens its own.
    """

    store: str | None = None
    pool: str | None = None
    namespace: str | None = None
    conf: str | None = None
    name: str | None = None
    timeout: float | None = TIMEOUT_SECONDS
    debug: bool = False
    mac_key_file: str | None = None
    log: str | None = None
    shared: zlog.Store | None = None

    @property
    def url(self) -> str:
        """The store's URL. Raises click.UsageError if the options contradict each other."""
        if self.pool is None:
            if self.namespace or self.conf or self.name:
                raise click.UsageError("-N, -c and -n need a pool: name it with -p")
            return zlog.default_url() if self.store is None else self.store
        if self.store is not None:
            raise click.UsageError("--store and -p cannot be combined")
        path = quote(self.pool, safe="")
        if self.namespace:
            path += f"/{quote(self.namespace, safe='')}"
        query = {"conf": self.conf, "id": self.name and self.name.removeprefix("client.")}
        given = {key: value for key, value in query.items() if value}
        return f"ceph://{path}" + (f"?{urlencode(given, safe='/')}" if given else "")

    @cached_property
    def mac_key(self) -> bytes | None:
        """Return the log's MAC key, or None if the user named no file.

        The file is read only once, because it may be a pipe. Raises the errors of :func:`read_key`.
        """
        return None if self.mac_key_path is None else read_key(self.mac_key_path)

    @property
    def mac_key_path(self) -> str | None:
        """The file with the key, if one is named."""
        return self.mac_key_file or os.environ.get(MAC_KEY_FILE_VARIABLE) or None

    def of(self, url: str) -> Session:
        """Return the same options with another store."""
        return replace(self, store=url, pool=None, namespace=None, conf=None, name=None)

    @contextmanager
    def connect(self, *, create: bool = False) -> Iterator[zlog.Store]:
        """Open the store, and close it at the end of the ``with`` block, unless it is shared.

        Args:
            create: whether to create an embedded store if it does not exist. Only commands that
                create logs set this, so that a mistyped path does not create a store.

        Raises:
            click.UsageError: the URL is invalid.
            StoreUnavailable: the store is unreachable, or does not exist.
        """
        if self.shared is not None:
            yield self.shared
            return
        with usage_errors():
            store = zlog.connect(_bounded(self.url, self.timeout), create=create)
        if urlsplit(self.url).scheme == "mem":
            note("a mem:// store is deleted when this command ends, and no other command sees it")
        with store:
            yield store

    @contextmanager
    def sharing(self, store: zlog.Store) -> Iterator[None]:
        """Let all commands in the ``with`` block use this store."""
        self.shared = store
        try:
            yield
        finally:
            self.shared = None

    @contextmanager
    def open_log(
        self,
        name: str,
        *,
        hole_timeout: zlog.Timeout = ...,
        entry_bytes_max: int | None = None,
    ) -> Iterator[zlog.Log]:
        """Open a log for a ``with`` block. Raises LogNotFound if it does not exist."""
        with (
            self.connect() as store,
            zlog.Log.open(
                store,
                name,
                timeout=self.timeout,
                hole_timeout=hole_timeout,
                entry_bytes_max=entry_bytes_max,
                mac_key=self.mac_key,
            ) as log,
        ):
            yield log


def _bounded(url: str, timeout: float | None) -> str:
    """Add the timeout to a cluster's URL, unless it has one. Raises ValueError if it is invalid."""
    parts = urlsplit(url)
    query = parse_qsl(parts.query, keep_blank_values=True)
    chosen = timeout not in (None, TIMEOUT_SECONDS)
    if parts.scheme != "ceph" or not chosen or "timeout" in dict(query):
        return url
    query.append(("timeout", str(timeout)))
    return urlunsplit(parts._replace(query=urlencode(query, safe="/", quote_via=quote)))


def read_key(path: str) -> bytes:
    """Read a key from a file.

    Raises:
        click.UsageError: the key is too short or too long.
        OSError: the file cannot be read.
    """
    with Path(path).open("rb") as file:
        key = file.read(MAC_KEY_BYTES_MAX + 1)
    if not MAC_KEY_BYTES_MIN <= len(key) <= MAC_KEY_BYTES_MAX:
        size = len(key) if len(key) <= MAC_KEY_BYTES_MAX else f"more than {MAC_KEY_BYTES_MAX}"
        limits = f"{MAC_KEY_BYTES_MIN} to {MAC_KEY_BYTES_MAX}"
        raise click.UsageError(f"{path}: a key has {limits} bytes, not {size}")
    return key


@contextmanager
def usage_errors() -> Iterator[None]:
    """Turn the library's errors about invalid arguments into usage errors."""
    try:
        yield
    except UnicodeEncodeError as error:
        raise click.UsageError(f"{error.object!r} is not valid UTF-8") from error
    except ValueError as error:
        raise click.UsageError(str(error)) from error


pass_session = click.make_pass_decorator(Session, ensure=True)
