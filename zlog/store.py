"""Stores: the one door to storage, and how a URL becomes one.

A store runs class methods on named objects and knows nothing of logs. Everything above it is the
same on every host; everything below it moves bytes.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias, cast, get_args, runtime_checkable
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
"""An encoded request: small ones are ``bytes``, which a store copies; writes come in memory that it
shares."""

ObjectClassUse: TypeAlias = Literal["auto", "require", "never"]
"""Whether the object class in the OSDs runs the methods of a store on Ceph, or this process."""

Start: TypeAlias = Callable[[CompletionQueue, int], UnderWay | None]
"""Starts operations of a store, whose replies go to a queue under this token and those after it."""


@runtime_checkable
class Store(Protocol):
    """Where logs live. Thread-safe; not usable in a forked child (open it there again)."""

    @property
    def url(self) -> str:
        """The store's URL in its shortest form, without secrets."""
        ...

    @property
    def pool(self) -> str:
        """The pool on Ceph; empty elsewhere."""
        ...

    @property
    def namespace(self) -> str:
        """The namespace in the pool on Ceph; empty elsewhere, and for the default one."""
        ...

    @property
    def read_only(self) -> bool:
        """Whether it refuses every method that writes (EROFS)."""
        ...

    @property
    def identity(self) -> str:
        """What tells it from a copy: on Ceph the cluster's fsid, embedded its directory's inode.

        Empty in memory.
        """
        ...

    def execute(
        self, object: str, method: str, payload: RequestPayload, timeout: float | None = None
    ) -> tuple[int, bytes]:
        """Run one class method and wait for it.

        Args:
            object: name of the object.
            method: a method of the class ``zlog`` (docs/formats/wire.md).
            payload: the encoded request.
            timeout: seconds to wait; None waits for ever.

        Returns:
            ``(code, reply)``. A negative code is an errno of the store itself; -ETIMEDOUT leaves
            open whether the method took effect. Otherwise the code is the method's own:
            OK 0, STALE_EPOCH 1, READ_ONLY 2, NOT_WRITTEN 3, INVALIDATED 4, INVALID_EPOCH 5.
        """
        ...

    def submit(
        self, queue: CompletionQueue, token: int, calls: Sequence[tuple[str, str, RequestPayload]]
    ) -> UnderWay | None:
        """Start class methods, each ``(object, method, payload)``, which are independent.

        ``queue`` gets ``(token, code, reply)`` when one is done, with ``token`` for the first and
        ascending from there. An embedded store syncs once for all of them. A caller who does not
        wait for them to end says so (``give_up``), else they are kept for as long as it takes.
        """
        ...

    def list_objects(
        self, queue: CompletionQueue, token: int, prefix: str, after: bytes = b""
    ) -> UnderWay | None:
        """Start a listing of the objects whose names begin with ``prefix``, one page of it.

        ``queue`` gets ``(token, code, page)``. The page says where the next one begins, empty at
        the end, and then has each name behind a NUL. A page on Ceph goes through 1,024 objects of
        all names, so it may be short or empty before the end.

        Args:
            queue: see :meth:`submit`.
            token: see :meth:`submit`.
            prefix: how the names begin.
            after: where the page begins, as the one before it says; empty for the first.
        """
        ...

    def lock(
        self, queue: CompletionQueue, token: int, object: str, method: str, request: bytes
    ) -> UnderWay | None:
        """Start a method of Ceph's own class ``lock``; EOPNOTSUPP where the store is not on Ceph.

        ``RadosLock`` of the sequencer makes the requests and reads the replies.

        Args:
            queue: see :meth:`submit`.
            token: see :meth:`submit`.
            object: that carries the lock.
            method: ``lock``, ``unlock``, ``break_lock`` or ``get_info``.
            request: encoded as the class has it.
        """
        ...

    def ask_copy(
        self, queue: CompletionQueue, token: int, object: str, method: str, request: bytes
    ) -> UnderWay | None:
        """Start a method that only reads at a copy of the object, which is chosen at random.

        Every other call goes to the primary copy. EOPNOTSUPP without a reply where the store keeps
        one copy only, which is everywhere but on Ceph, and for methods that write. Else the reply,
        a failure's too, begins with the number of the OSD's process that answered, 8 bytes,
        little-endian: 0 where it is not known.

        Args:
            queue: see :meth:`submit`.
            token: see :meth:`submit`.
            object: name of the object.
            method: of the class ``zlog``.
            request: encoded.
        """
        ...

    def ask_monitor(self, queue: CompletionQueue, token: int, command: str) -> UnderWay | None:
        """Have Ceph's monitors run a command; EOPNOTSUPP where the store is not on Ceph.

        ``queue`` gets ``(token, code, reply)``. The reply is JSON if the command asks for that; a
        failure's is the monitors' own words. One command at a time: another one gets EBUSY.

        Args:
            queue: see :meth:`submit`.
            token: see :meth:`submit`.
            command: in JSON, as ``ceph -f json`` sends it.
        """
        ...

    def notify(self, object: str) -> None:
        """Wake all clients that :meth:`watch` an object. Returns at once.

        A hint: it may be lost, and does nothing where the store has no means or may not use them.
        On Ceph an object's notifications leave together, up to forty times a second, and about once
        a second while no client watches it.

        Args:
            object: its name.
        """
        ...

    def watch(
        self, queue: CompletionQueue, token: int, object: str, seen: int = 0
    ) -> UnderWay | None:
        """Start a wait for :meth:`notify`. On Ceph it makes the object, empty, where there is none.

        ``queue`` gets ``(token, 0, number)``: 8 bytes, little-endian. Each notification changes the
        object's number; a caller that passes the last one as ``seen`` misses none. EOPNOTSUPP
        where the store has no means, EPERM where this client may not watch, ENOTCONN where the
        watch was lost.

        Args:
            queue: see :meth:`submit`.
            token: see :meth:`submit`.
            object: its name.
            seen: the number to which it answers only once there is another; 0 is none.
        """
        ...

    def remove_watched(self, queue: CompletionQueue, token: int, object: str) -> UnderWay | None:
        """Start the removal of the object that :meth:`watch` has made, if it has.

        ``queue`` gets ``(token, 0, b"")``, also where there is none. EPERM where this client may
        not. Waits under way may fail.

        Args:
            queue: see :meth:`submit`.
            token: see :meth:`submit`.
            object: its name.
        """
        ...

    def sequencer(self) -> SharedSequencer | None:
        """The sequencer that processes share through this store, where it has one."""
        ...

    def compact(self) -> int:
        """Give the space of an embedded store's free pages back to its disk.

        A copy without them takes the place of the database. It may die at any moment. Other users
        of the store in this process wait meanwhile; the disk needs room for the copy.

        Returns:
            By how many bytes the file has become smaller.

        Raises:
            StoreUnavailable: other processes have the store open, or the disk has no room.
            StoreReadOnly: it was opened to be read only.
            ZlogError: it is no embedded store.
        """
        ...

    def close(self) -> None:
        """Close the store; safe to call twice."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...


def default_url() -> str:
    """The store that is used when none is named: ``$ZLOG_STORE``, else the user's own directory."""
    url = os.environ.get(STORE_VARIABLE, "")
    if url:
        return url
    return Path(platformdirs.user_data_dir("zlog")).as_uri()


def connect(
    target: str | os.PathLike[str] | rados.Ioctx | None = None,
    *,
    create: bool = True,
    object_class: ObjectClassUse = "auto",
) -> Store:
    """Open a store.

    Args:
        target: one of

            - ``ceph://POOL[/NAMESPACE][?conf=PATH&id=NAME&timeout=SECONDS&class=USE]``; it may also
              name what sequencers are shown and trusted by: ``sequencer_ca``, ``sequencer_cert``,
              ``sequencer_key`` and ``sequencer_token_file``, each the path of a file. USE is
              ``auto``, ``require`` or ``never``: see ``object_class``.
            - ``file:///PATH``, or a path that is a ``PathLike`` or has a ``/``: an embedded store.
              ``file:///PATH?mode=ro`` reads one that can't or shall not be written: on a read-only
              file system, a backup, another user's. No file is made or changed.
            - ``mem://``: a store of its own that only this process has, gone when it is closed
            - an open ``rados.Ioctx``: its pool and namespace. The caller's ``Rados`` has to stay
              connected until the store is closed: librados ends the process otherwise.
            - None: :func:`default_url`

        create: make an embedded store where there is none. Other stores are never made.
        object_class: of a ``rados.Ioctx``, as ``class=`` is of a URL: where its logs' rules run.
            ``require``: in the OSDs, which need zlog's object class. ``never``: in this process,
            over operations that every cluster has. ``auto``: in the OSDs, unless their first
            answer is that they have no such class, or that this client may not use it; where that
            is the answer of single OSDs only, in this process for their objects.

    Raises:
        ValueError: the URL is invalid.
        StoreUnavailable: no such pool, cluster out of reach, no librados installed, an
            embedded store that is damaged, or none there without ``create``.
    """
    if target is None:
        target = default_url()
    if isinstance(target, os.PathLike):
        return EmbeddedStore(os.fspath(target), create=create)
    if not isinstance(target, str):
        return _from_ioctx(target, object_class)
    parts = urlsplit(target)
    if parts.scheme == "mem":
        if parts.netloc or parts.path or parts.query:
            raise ValueError(
                f"a store in memory has no name or settings, as in {target!r}: use mem://"
            )
        return MemoryStore()
    if parts.scheme == "file":
        path = _directory_of(target, parts)
        return EmbeddedStore(path, create=create, read_only=bool(parts.query))
    if parts.scheme == "ceph":
        return _open_ceph(target, unquote(parts.netloc), unquote(parts.path), parts.query)
    if not parts.scheme and ("/" in target or target in (".", "..")):
        return EmbeddedStore(target, create=create)
    if not parts.scheme and target:  # not a directory: it may be a pool, or `mem` for mem://
        raise ValueError(
            f"{target!r} is no store URL: write file:///ABSOLUTE/PATH or ./{target} for a"
            f" directory, ceph://{target} for a pool"
        )
    raise ValueError(
        f"can't understand the store URL {target!r}: use ceph://POOL[/NAMESPACE][?conf=PATH&id=NAME],"
        " file:///PATH or mem://"
    )


def restore(
    target: str | os.PathLike[str] | None = None, backup: str | os.PathLike[str] | None = None
) -> None:
    """Put an embedded store back to a backup. What was written since then is lost.

    It may die at any moment: then the store is as it was, or restored. The disk needs room for a
    copy. Positions behind the backup's tail are granted once more, for other entries.

    Args:
        target: the store: a path or URL, as :func:`connect` takes it.
        backup: another store's directory, or a copy of its ``data.mdb``, which nothing writes to.
            None: the ``data.mdb`` that was put into the store's directory by other means.

    Raises:
        ValueError: the store is no embedded one.
        StoreUnavailable: the store is open, in this process or another; or the backup holds
            something else, or is damaged.
    """
    if target is None:
        target = default_url()
    if isinstance(target, str) and (parts := urlsplit(target)).scheme:
        if parts.scheme != "file" or parts.query:
            raise ValueError(f"only an embedded store is restored, and {target!r} is none")
        target = _directory_of(target, parts)
    file = Path(target if backup is None else backup)
    if file.is_dir():
        file /= "data.mdb"
    if not file.exists():
        raise StoreUnavailable(
            f"there is no {file}", hint="Name a directory or file with a backup.", retryable=False
        )
    local.restore(target, file)


def _directory_of(url: str, parts: SplitResult) -> str:
    if parts.netloc not in ("", "localhost") or not parts.path.startswith("/"):
        raise ValueError(f"{url!r} names no local directory: write file:///ABSOLUTE/PATH")
    if parts.query not in ("", "mode=ro") or parts.fragment:
        raise ValueError(
            f"an embedded store's one setting is ?mode=ro, and not as in {url!r}: in a path write"
            " %3F for '?' and %23 for '#'"
        )
    path = os.fsdecode(unquote_to_bytes(parts.path))
    if "\0" in path:
        raise ValueError(f"{url!r} names no local directory: a path has no %00")
    return path


def is_plain(store: Store) -> bool:
    """Return whether the methods of a store on Ceph run in this process, and not in its OSDs.

    With ``class=auto`` that is known after the first call.
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
        raise ValueError(f"{where}: {word!r} is none of auto, require and never")
    return cast(ObjectClassUse, word)


def _canonical(url: str) -> str:
    parts = urlsplit(url)
    path = "/".join(quote(unquote(part)) for part in parts.path.strip("/").split("/"))
    query = f"?{parts.query}" if parts.query else ""
    return f"ceph://{parts.netloc}{'/' if path else ''}{path}{query}"


def _from_ioctx(ioctx: rados.Ioctx, object_class: ObjectClassUse) -> Store:
    if type(ioctx).__name__ != "Ioctx" or type(ioctx).__module__ != "rados":
        raise TypeError(f"expected a store URL, a path or a rados.Ioctx, not {type(ioctx)!r}")
    from zlog._native.rados import CephStore

    return CephStore.from_ioctx(ioctx, _object_class(object_class, "object_class"))
