"""A client of the cluster on librados' C API, through ctypes.

A request to the monitor takes a millisecond this way, and half a second with the `ceph` command.
librados is always installed, since `ceph-mon` depends on it.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import json
import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from . import ClusterError

_LIBRARY = "librados.so.2"


class RadosError(ClusterError):
    """librados refused a call; `.errno` is the positive error number."""

    def __init__(self, what: str, code: int, detail: str = "") -> None:
        reason = detail or os.strerror(-code)
        super().__init__(f"{what}: {reason}")
        self.errno = -code


def _load() -> ctypes.CDLL:
    try:
        return ctypes.CDLL(_LIBRARY)
    except OSError as error:
        raise ClusterError(f"{error}: install librados2") from error


@contextlib.contextmanager
def connect(conf: Path, timeout: float) -> Iterator[Monitor]:
    """Open a connection to the cluster for a `with` block; see Monitor."""
    monitor = Monitor(conf, timeout)
    try:
        yield monitor
    finally:
        monitor.close()


class Monitor:
    """A connection to the cluster as client.admin, to be used in one thread."""

    def __init__(self, conf: Path, timeout: float) -> None:
        """Connect within `timeout` seconds, which is also the limit of later calls.

        librados counts in whole seconds, so fractions are rounded up.

        Raises RadosError if the monitor does not answer.
        """
        self._library = _load()
        self._handle = ctypes.c_void_p()
        create = self._library.rados_create(ctypes.byref(self._handle), b"admin")
        self._check(create, "librados")
        try:
            self._call("rados_conf_read_file", str(conf).encode(), what=f"read {conf}")
            for option in ("client_mount_timeout", "rados_mon_op_timeout", "rados_osd_op_timeout"):
                value = str(math.ceil(timeout)).encode()
                self._call("rados_conf_set", option.encode(), value, what=option)
            self._call("rados_connect", what="connect to the monitor")
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Leave the cluster. Idempotent."""
        if self._handle:
            self._library.rados_shutdown(self._handle)
            self._handle = ctypes.c_void_p()

    def command(self, prefix: str, **arguments: object) -> Any:
        """Send one monitor command and return its JSON reply, or None if it has none.

        Raises RadosError with the monitor's error message.
        """
        text = json.dumps({"prefix": prefix, "format": "json", **arguments}).encode()
        commands = (ctypes.c_char_p * 1)(text)
        out, status = ctypes.c_void_p(), ctypes.c_void_p()
        out_bytes, status_bytes = ctypes.c_size_t(), ctypes.c_size_t()
        code = self._library.rados_mon_command(
            self._handle,
            commands,
            ctypes.c_size_t(1),
            None,
            ctypes.c_size_t(0),
            ctypes.byref(out),
            ctypes.byref(out_bytes),
            ctypes.byref(status),
            ctypes.byref(status_bytes),
        )
        reply = self._take(out, out_bytes.value)
        words = self._take(status, status_bytes.value).decode(errors="replace").strip()
        self._check(code, prefix, words)
        return json.loads(reply) if reply.strip() else None

    def touch_every_pg(self, pool: str) -> None:
        """Wait until every placement group of `pool` serves requests.

        A listing visits all groups and waits until each is active. The monitor does not know their
        states, because a manager would report them and there may be none. Raises RadosError after
        the timeout.
        """
        with self._pool(pool) as pool_handle:
            listing, name = ctypes.c_void_p(), ctypes.c_char_p()
            code = self._library.rados_nobjects_list_open(pool_handle, ctypes.byref(listing))
            self._check(code, f"list pool {pool}")
            try:
                while code == 0:
                    code = self._library.rados_nobjects_list_next(
                        listing, ctypes.byref(name), None, None
                    )
            finally:
                self._library.rados_nobjects_list_close(listing)
            if code != -errno.ENOENT:
                self._check(code, f"list pool {pool}")

    def class_call_code(self, pool: str, name: str, class_name: str, method: str) -> int:
        """Call a read-only class method on the object `name`; returns its code, or -errno."""
        with self._pool(pool) as pool_handle:
            reply = ctypes.create_string_buffer(4096)
            code: int = self._library.rados_exec(
                pool_handle,
                name.encode(),
                class_name.encode(),
                method.encode(),
                b"\x01",
                ctypes.c_size_t(1),
                reply,
                ctypes.c_size_t(len(reply)),
            )
        return code

    @contextlib.contextmanager
    def _pool(self, name: str) -> Iterator[ctypes.c_void_p]:
        """Return an I/O context of librados for a pool."""
        handle = ctypes.c_void_p()
        code = self._library.rados_ioctx_create(self._handle, name.encode(), ctypes.byref(handle))
        self._check(code, f"open pool {name}")
        try:
            yield handle
        finally:
            self._library.rados_ioctx_destroy(handle)

    def _take(self, pointer: ctypes.c_void_p, length: int) -> bytes:
        if not pointer:
            return b""
        data = ctypes.string_at(pointer, length)
        self._library.rados_buffer_free(pointer)
        return data

    def _call(self, function: str, *arguments: bytes, what: str) -> None:
        self._check(getattr(self._library, function)(self._handle, *arguments), what)

    @staticmethod
    def _check(code: int, what: str, detail: str = "") -> None:
        if code < 0:
            raise RadosError(what, code, detail)
