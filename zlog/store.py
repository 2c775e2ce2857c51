"""Stores, through which zlog accesses all storage, and functions that open a store by its URL.

A store runs the object class's methods on named objects. It knows nothing about logs.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Any,
    Literal,
    Protocol,
    TypeAlias,
    cast,
    get_args,
    runtime_checkable,
)
from urllib.parse import SplitResult, parse_qsl, quote, unquote, unquote_to_bytes, urlsplit

import platformdirs

from zlog._base.sequencer import CREDENTIAL_OPTIONS
from zlog._native import local
from zlog._native.completions import CompletionQueue
from zlog._native.local import EmbeddedStore, MemoryStore, SharedSequencer
from zlog._native.stores import UnderWay
from zlog._native.writes import Request
from zlog.errors import StoreUnavailable
from zlog.limits import CONNECT_TIMEOUT_SECONDS

if TYPE_CHECKING:
    import rados
    from typing_extensions import Self


__all__ = [
    "CompletionQueue",
    "Request",
    "RequestPayload",
    "SharedSequencer",
    "Start",
    "Store",
    "UnderWay",
    "connect",
    "default_url",
    "restore",
]

STORE_VARIABLE = "ZLOG_STORE"
"""Environment variable that names the default store."""

_CONNECT_SECONDS_MAX = 86400.0


RequestPayload: TypeAlias = bytes | Request
"""An encoded request. A store copies ``bytes``, but shares the memory of a ``Request``."""

ObjectClassUse: TypeAlias = Literal["auto", "require", "never"]
"""Where the methods of a store on Ceph run: in the OSDs' object class, or in this process."""

Start: TypeAlias = Callable[[CompletionQueue, int], UnderWay | None]
"""A function that starts operations of a store. It takes the queue for their replies and the token
of the first reply; each further reply has the next token."""


@runtime_checkable
class Store(Protocol):
    """A place where logs are stored. It is thread-safe, but a forked child must open its own store.

    A method that starts work takes a ``queue`` and a ``token``, and puts the outcome into the queue
    as ``(token, code, reply)``. A caller that no longer waits for the outcome must call ``give_up``
    on the returned object, which otherwise stays in memory until the work ends.
    """

    @property
    def url(self) -> str:
        """The store's URL in its shortest form, without secrets."""

    @property
    def pool(self) -> str:
        """The name of the pool on Ceph; empty for other stores."""

    @property
    def namespace(self) -> str:
        """The namespace in the pool; empty for the default namespace, and if not on Ceph."""

    @property
    def read_only(self) -> bool:
        """Whether the store refuses every method that writes (EROFS)."""

    @property
    def identity(self) -> str:
        """Return an id that distinguishes a store from its copies.

        It is a cluster's fsid or a directory's inode, and empty for a store in memory.
        """

    def execute(
        self, object: str, method: str, payload: RequestPayload, timeout: float | None = None
    ) -> tuple[int, bytes]:
        """Run one class method and wait for it.

        Args:
            object: the name of the object.
            method: the name of a method of the class ``zlog`` (docs/formats/wire.md).
            payload: the encoded request.
            timeout: seconds to wait; None means no limit.

        Returns:
            ``(code, reply)``. A negative code is an errno of the store. After -ETIMEDOUT the method
            may or may not have taken effect. Other codes come from the method:
            OK 0, STALE_EPOCH 1, READ_ONLY 2, NOT_WRITTEN 3, INVALIDATED 4, INVALID_EPOCH 5.
        """

    def submit(
        self, queue: CompletionQueue, token: int, calls: Sequence[tuple[str, str, RequestPayload]]
    ) -> UnderWay | None:
        """Start independent class methods, each given as ``(object, method, payload)``.

        The calls' outcomes get consecutive tokens, starting with ``token``. An embedded store syncs
        its disk once for all of the calls.
        """

    def list_objects(
        self, queue: CompletionQueue, token: int, prefix: str, after: bytes = b""
    ) -> UnderWay | None:
        """Start listing one page of the objects whose names begin with ``prefix``.

        The reply starts with the value of ``after`` for the next page, which is empty after the
        last page. The names follow, each after a NUL. On Ceph, a page scans 1,024 objects, whatever
        their names, so it may contain few names or none.
        """

    def lock(
        self, queue: CompletionQueue, token: int, object: str, method: str, request: bytes
    ) -> UnderWay | None:
        """Call a method of Ceph's ``lock`` class. Stores that are not on Ceph return EOPNOTSUPP.

        Args:
            object: the name of the locked object.
            method: ``lock``, ``unlock``, ``break_lock`` or ``get_info``.
            request: the request, in that class's encoding.
        """

    def ask_replica(
        self, queue: CompletionQueue, token: int, object: str, method: str, request: bytes
    ) -> UnderWay | None:
        """Start a method that reads, on a randomly chosen replica of the object.

        Any other call goes to the primary replica. The code is EOPNOTSUPP if the method writes or
        the store is not on Ceph. Otherwise the reply begins, even after a failure, with 8 bytes
        that identify the OSD process: a little-endian number, or 0 if the process is unknown.
        """

    def ask_monitor(self, queue: CompletionQueue, token: int, command: str) -> UnderWay | None:
        """Send a command to Ceph's monitors. Stores that are not on Ceph return EOPNOTSUPP.

        The reply is JSON if the command asks for JSON, or else the monitors' error message. Only
        one command runs at a time; a second one fails with EBUSY.

        Args:
            command: the command in JSON, as ``ceph -f json`` sends it.
        """

    def notify(self, object: str) -> None:
        """Wake all clients that :meth:`watch` an object. This returns at once.

        A notification may be lost. Nothing happens if the store does not support notifications or
        this client may not send them. On Ceph, an object's notifications are combined and sent up
        to forty times a second, or about once a second while no client watches.
        """

    def watch(
        self, queue: CompletionQueue, token: int, object: str, seen: int = 0
    ) -> UnderWay | None:
        """Start waiting for the next :meth:`notify` of an object.

        On Ceph, this creates an empty object if needed. The reply is a number (8 bytes,
        little-endian) that each notification changes. A caller that passes the last number as
        ``seen`` misses no notification. If ``seen`` is 0, the reply comes at once. The code is
        EOPNOTSUPP if the store does not support watching, EPERM if this client may not watch, and
        ENOTCONN if the watch was lost.
        """

    def remove_watched(self, queue: CompletionQueue, token: int, object: str) -> UnderWay | None:
        """Start removing the object that :meth:`watch` created, if it exists.

        The reply is empty. The code is EPERM if this client may not remove the object. Clients that
        still wait on the object may get an error.
        """

    def sequencer(self) -> SharedSequencer | None:
        """Return the sequencer that processes share through this store, or None if it has none."""

    def compact(self) -> int:
        """Shrink an embedded store's file, by returning its free pages to the file system.

        This replaces the database by a compacted copy, for which the disk needs space. Other calls
        on the store wait meanwhile. The store stays intact even if the process dies.

        Returns:
            The number of bytes by which the file has shrunk.

        Raises:
            StoreUnavailable: other processes have the store open, or the disk is full.
            StoreReadOnly: the store is read-only.
            ZlogError: the store is not an embedded one.
        """

    def close(self) -> None:
        """Close the store. It is safe to call this twice."""

    def __enter__(self) -> Self: ...

    def __exit__(self, kind: Any, error: Any, trace: Any, /) -> None: ...  # noqa: PYI036


def default_url() -> str:
    """Return the URL of the default store: ``$ZLOG_STORE``, or the user's data directory."""
    return os.environ.get(STORE_VARIABLE) or Path(platformdirs.user_data_dir("zlog")).as_uri()


def connect(
    target: str | os.PathLike[str] | rados.Ioctx | None = None,
    *,
    create: bool = True,
    object_class: ObjectClassUse = "auto",
) -> Store:
    """Open a store.

    Args:
        target: one of these:

            - ``ceph://POOL[/NAMESPACE][?conf=PATH&id=NAME&timeout=SECONDS&class=USE]``. USE is a
              value of ``object_class``. The parameters ``sequencer_ca``, ``sequencer_cert``,
              ``sequencer_key`` and ``sequencer_token_file`` name files with credentials for
              sequencers.
            - ``file:///PATH``, or a path that is a ``PathLike`` or contains ``/``: an embedded
              store. ``file:///PATH?mode=ro`` opens a store that cannot or must not be written, such
              as a backup or another user's store. It creates and changes no file.
            - ``mem://``: a new store in this process's memory, which is lost when it is closed.
            - an open ``rados.Ioctx``: its pool and namespace. The caller's ``Rados`` must stay
              connected until the store is closed; otherwise librados aborts the process.
            - None, which means :func:`default_url`.

        create: whether to create an embedded store that does not exist. Others are never created.
        object_class: for a ``rados.Ioctx``, where the methods of logs run. ``require`` means in the
            OSDs, which need zlog's object class. ``never`` means in this process, with only the
            operations that every cluster has. ``auto`` means in the OSDs if they have the class and
            this client may use it, and otherwise in this process.

    Raises:
        ValueError: the URL is invalid.
        StoreUnavailable: the pool does not exist, the cluster is unreachable, librados is not
            installed, an embedded store is damaged, or it does not exist and ``create`` is False.
    """
    if target is None:
        target = default_url()
    if isinstance(target, os.PathLike):
        return EmbeddedStore(os.fspath(target), create=create)
    if not isinstance(target, str):
        if type(target).__name__ != "Ioctx" or type(target).__module__ != "rados":
            raise TypeError(f"expected a store URL, a path or a rados.Ioctx, not {type(target)!r}")
        from zlog._native.rados import CephStore

        return CephStore.from_ioctx(target, _object_class(object_class, "object_class"))
    parts = urlsplit(target)
    if parts.scheme == "mem":
        if parts.netloc or parts.path or parts.query:
            raise ValueError(f"a store in memory has no settings, unlike {target!r}: use mem://")
        return MemoryStore()
    if parts.scheme == "file":
        path = _directory_of(target, parts)
        return EmbeddedStore(path, create=create, read_only=bool(parts.query))
    if parts.scheme == "ceph":
        return _open_ceph(target, unquote(parts.netloc), unquote(parts.path), parts.query)
    if not parts.scheme and ("/" in target or target in (".", "..")):
        return EmbeddedStore(target, create=create)
    if not parts.scheme and target:  # it may be a pool's name, or `mem` for mem://
        raise ValueError(
            f"{target!r} is not a store URL: write file:///ABSOLUTE/PATH or ./{target} for a"
            f" directory, ceph://{target} for a pool"
        )
    raise ValueError(
        f"can't understand the store URL {target!r}: use ceph://POOL[/NAMESPACE][?conf=PATH&id=NAME],"
        " file:///PATH or mem://"
    )


def restore(
    target: str | os.PathLike[str] | None = None, backup: str | os.PathLike[str] | None = None
) -> None:
    """Restore an embedded store from a backup. Everything that was written since is lost.

    Positions above the backup's tail will be granted again, to other entries. If the process dies,
    the store is either unchanged or fully restored. The disk needs space for a copy.

    Args:
        target: a path or URL of the store, as for :func:`connect`.
        backup: the directory of another store, or a copy of its ``data.mdb``, which must not change
            during the call. None means that it was already copied to ``data.mdb`` in the store.

    Raises:
        ValueError: the store is not an embedded one.
        StoreUnavailable: a process has the store open, or the backup is damaged or not a store.
    """
    if target is None:
        target = default_url()
    if isinstance(target, str) and (parts := urlsplit(target)).scheme:
        if parts.scheme != "file" or parts.query:
            raise ValueError(f"only an embedded store can be restored, not {target!r}")
        target = _directory_of(target, parts)
    file = Path(target if backup is None else backup)
    if file.is_dir():
        file /= "data.mdb"
    if not file.exists():
        raise StoreUnavailable(
            f"{file} does not exist",
            hint="Give the path of a backup's directory or file.",
            retryable=False,
        )
    local.restore(target, file)


def _directory_of(url: str, parts: SplitResult) -> str:
    if parts.netloc not in ("", "localhost") or not parts.path.startswith("/"):
        raise ValueError(f"{url!r} is not a local directory: write file:///ABSOLUTE/PATH")
    if parts.query not in ("", "mode=ro") or parts.fragment:
        raise ValueError(
            f"{url!r} has an unknown setting: an embedded store accepts only ?mode=ro. In a"
            " path, write %3F for '?' and %23 for '#'"
        )
    path = os.fsdecode(unquote_to_bytes(parts.path))
    if "\0" in path:
        raise ValueError(f"{url!r} is not a local directory: a path can't contain %00")
    return path


def is_plain(store: Store) -> bool:
    """Return whether a Ceph store's methods run in this process and not in the OSDs.

    With ``class=auto`` this is known only after the first call.
    """
    rados = sys.modules.get("zlog._native.rados")  # imported with the first store on Ceph
    return rados is not None and isinstance(store, rados.CephStore) and store.plain


def _open_ceph(url: str, pool: str, path: str, query: str) -> Store:
    options = dict(parse_qsl(query, keep_blank_values=True))
    conf, client_id = options.pop("conf", None), options.pop("id", None)
    timeout = options.pop("timeout", None)
    object_class = _object_class(options.pop("class", "auto"), f"class in {url!r}")
    for option in CREDENTIAL_OPTIONS:
        options.pop(option, None)
    namespace = path.strip("/")
    if not pool or "/" in namespace or options:
        unknown = f" (unknown: {', '.join(sorted(options))})" if options else ""
        raise ValueError(
            f"can't understand {url!r}{unknown}: use"
            " ceph://POOL[/NAMESPACE][?conf=PATH&id=NAME&timeout=SECONDS&class=auto]"
        )
    try:
        seconds = CONNECT_TIMEOUT_SECONDS if timeout is None else float(timeout)
    except ValueError:
        seconds = math.nan
    if not seconds > 0:
        raise ValueError(f"timeout={timeout!r} in {url!r} is not a number of seconds above 0")
    seconds = min(seconds, _CONNECT_SECONDS_MAX)
    from zlog._native.rados import CephStore

    return CephStore(
        pool,
        namespace,
        conf=conf,
        client_id=client_id,
        timeout=seconds,
        object_class=object_class,
        url=_canonical(url),
    )


def _object_class(word: str, where: str) -> ObjectClassUse:
    if word not in get_args(ObjectClassUse):
        raise ValueError(f"{where}: {word!r} is not auto, require or never")
    return cast(ObjectClassUse, word)


def _canonical(url: str) -> str:
    parts = urlsplit(url)
    path = "/".join(quote(unquote(part)) for part in parts.path.strip("/").split("/"))
    query = f"?{parts.query}" if parts.query else ""
    return f"ceph://{parts.netloc}{'/' if path else ''}{path}{query}"
