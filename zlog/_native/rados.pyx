"""Stores on a Ceph cluster (cls_zlog/host/rados/rados_host.cc).

librados is loaded when the first store is opened.
"""

from cpython.ref cimport PyObject
from cython.operator cimport dereference as deref
from libc.stdint cimport int64_t
from libcpp.map cimport map as cpp_map
from libcpp.memory cimport shared_ptr, unique_ptr
from libcpp.string cimport string

from zlog._native.completions cimport SLICE_MS, Wait
from zlog._native.host cimport AsyncHost, raise_caught
from zlog._native.stores cimport HostStore

import errno
import math
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

from zlog._base.connecting import Attempt, refusal
from zlog._base.refusals import from_code
from zlog.errors import StoreUnavailable

if TYPE_CHECKING:
    import rados

    from zlog.store import ObjectClassUse


cdef extern from "cls_zlog/host/rados/librados.h" namespace "zlog" nogil:
    ctypedef void* rados_ioctx_t
    struct Librados:
        int64_t (*ioctx_get_id)(rados_ioctx_t io)
    int load_librados(string* what) except +raise_caught
    const Librados& librados()

cdef extern from "cls_zlog/host/rados/rados_host.h" namespace "zlog" nogil:
    enum class ClassUse:
        kAuto
        kRequire
        kNever

    cdef cppclass RadosTarget:
        string conf
        string client
        string pool
        string nspace
        unsigned timeout_s
        ClassUse class_use

    cdef cppclass RadosHost(AsyncHost):
        @staticmethod
        int share(
            rados_ioctx_t ioctx, ClassUse class_use, unique_ptr[RadosHost]* host
        ) except +raise_caught
        bint client_side()
        int fsid(string* out) except +raise_caught
        int register_service(
            const string& service, const string& daemon, const cpp_map[string, string]& metadata
        ) except +raise_caught
        int update_service(const cpp_map[string, string]& status) except +raise_caught

    cdef cppclass RadosConnecting:
        @staticmethod
        shared_ptr[RadosConnecting] start(const RadosTarget& target) except +raise_caught
        bint wait(int timeout_ms)
        int error()
        string failed_step()
        string keyring()
        string monitors()
        unique_ptr[RadosHost] take()


# python-rados has no function that returns the pointer to its I/O context, but keeps it at a fixed
# offset in the object. The object's size tells which of two known layouts it has (rados.pxd in
# Ceph's source). The pointer follows the object's head and method table. In newer releases, a
# reference to the Rados object is in between.
_IOCTX_OFFSETS = {88: 24, 96: 32}


def find_librados() -> str:
    """Load librados if it is not loaded yet. Returns the path of its file.

    Raises:
        StoreUnavailable: librados is not installed, or is too old.
    """
    cdef string what
    cdef int error
    with nogil:
        error = load_librados(&what)
    words = os.fsdecode(what)
    if error == -errno.ENOENT:
        raise StoreUnavailable(
            f"librados, the client library of Ceph, was not found: {words}",
            hint="Install Ceph's client library: `apt install librados2`, `dnf install librados2`.",
            retryable=False,
        )
    if error != 0:
        raise StoreUnavailable(
            f"librados is older than Ceph Octopus and lacks {words}",
            hint="Install a newer librados2.",
            retryable=False,
        )
    return words


def _service_error(int error):
    return StoreUnavailable(f"can't register with Ceph's manager: {os.strerror(-error)}")


cdef ClassUse _class_use(object_class) except *:
    if object_class == "require":
        return ClassUse.kRequire
    return ClassUse.kNever if object_class == "never" else ClassUse.kAuto


def _url_of(pool, namespace, conf, client_id, object_class):
    path = quote(pool, safe="") + ("/" + quote(namespace, safe="") if namespace else "")
    query = {
        "conf": conf,
        "id": client_id,
        "class": object_class if object_class != "auto" else None,
    }
    text = urlencode({key: value for key, value in query.items() if value}, safe="/")
    return f"ceph://{path}" + (f"?{text}" if text else "")


cdef cpp_map[string, string] _strings(words) except *:
    cdef cpp_map[string, string] out
    for key, value in words.items():
        out[key.encode()] = value.encode()
    return out


cdef rados_ioctx_t _pointer_in(ioctx) except NULL:
    kind = type(ioctx)
    if kind.__module__ != "rados" or kind.__name__ != "Ioctx":
        raise TypeError(f"expected a rados.Ioctx, not {kind.__module__}.{kind.__qualname__}")
    offset = _IOCTX_OFFSETS.get(kind.__basicsize__)
    if offset is None:
        raise StoreUnavailable(
            f"can't use a rados.Ioctx of {kind.__basicsize__} bytes: this release of python-rados"
            " stores librados' I/O context at an offset unknown to zlog",
            hint="Pass a URL instead: ceph://POOL[/NAMESPACE][?conf=PATH&id=NAME].",
            retryable=False,
        )
    if ioctx.state != "open":
        raise StoreUnavailable(
            "the rados.Ioctx is closed", hint="Open a new one, or pass a URL.", retryable=False
        )
    cdef int64_t pool_id = ioctx.get_pool_id()
    cdef rados_ioctx_t io = (<rados_ioctx_t*> (<char*> <PyObject*> ioctx + <Py_ssize_t> offset))[0]
    if io == NULL or librados().ioctx_get_id(io) != pool_id:
        raise StoreUnavailable(
            "can't find librados' I/O context inside this rados.Ioctx",
            hint="Pass a URL instead: ceph://POOL[/NAMESPACE][?conf=PATH&id=NAME].",
            retryable=False,
        )
    return io


cdef class CephStore(HostStore):
    """Objects in a pool of a Ceph cluster, whose OSDs run the object class.

    An operation that is given up (`execute` after its timeout, `UnderWay.give_up`) is cancelled in
    librados, but takes effect if an OSD already has it. Starting an operation does not wait for
    others. The exception is a `rados.Ioctx`, for which librados has a limit
    (``objecter_inflight_ops``, 1024).
    """

    cdef object ioctx  # kept alive while its copy is in use

    def __init__(
        self,
        pool: str,
        namespace: str = "",
        *,
        conf: str | os.PathLike[str] | None = None,
        client_id: str | None = None,
        timeout: float = 10.0,
        object_class: ObjectClassUse = "auto",
        url: str | None = None,
    ):
        """Connect to a cluster.

        Args:
            pool: the name of the pool, which must exist.
            namespace: the namespace in the pool.
            conf: the path of ceph.conf; None means the paths that Ceph's tools use. ``CEPH_ARGS``
                applies.
            client_id: the ID in ``client.ID``; None means ``admin``.
            timeout: the limit for connecting and for each later reply of a monitor, in seconds.
            object_class: where methods run. ``require`` means in the OSDs, which then need the
                class; ``never`` means in this process. ``auto`` means in the OSDs, unless the first
                replies show that they lack the class or that the client may not use it.
            url: the value of the attribute `url`; None makes it from the other arguments.

        Raises:
            StoreTimeout: no monitor replied in time.
            StoreUnavailable: librados, the pool or the configuration is missing, the cluster
                refused the client, or its OSDs are older than Octopus.
        """
        cdef RadosTarget target
        cdef shared_ptr[RadosConnecting] connecting
        cdef Wait budget = Wait(None)
        cdef bint done = False
        find_librados()
        target.conf = os.fsencode(conf or "")
        target.client = (client_id or "").encode()
        target.pool, target.nspace = pool.encode(), namespace.encode()
        target.timeout_s = max(1, math.ceil(timeout))
        target.class_use = _class_use(object_class)
        connecting = RadosConnecting.start(target)
        while not done:
            with nogil:
                done = deref(connecting).wait(SLICE_MS)
            if not done:
                budget.over()
        if deref(connecting).error() != 0:
            raise refusal(
                Attempt(
                    deref(connecting).error(),
                    deref(connecting).failed_step().decode(),
                    pool,
                    client_id or "",
                    deref(connecting).keyring().decode(),
                    deref(connecting).monitors().decode(),
                )
            )
        self.attach(
            shared_ptr[AsyncHost](deref(connecting).take().release()),
            url or _url_of(pool, namespace, conf, client_id, object_class),
            pool,
            namespace,
        )
        self.identify()

    @staticmethod
    def from_ioctx(ioctx: rados.Ioctx, object_class: ObjectClassUse = "auto") -> CephStore:
        """Use an open `rados.Ioctx`, with its current cluster, pool and namespace.

        Its `rados.Rados` must stay connected until the store is closed.

        Raises:
            StoreUnavailable: zlog does not support this release of python-rados. Use a URL instead.
        """
        cdef CephStore store = CephStore.__new__(CephStore)
        cdef rados_ioctx_t io
        cdef unique_ptr[RadosHost] host
        cdef ClassUse class_use = _class_use(object_class)
        cdef int error
        find_librados()
        io = _pointer_in(ioctx)
        with nogil:
            error = RadosHost.share(io, class_use, &host)
        if error != 0:
            raise refusal(Attempt(error, "check the OSDs' release", ioctx.name))
        pool, namespace = ioctx.name, ioctx.nspace or ""
        url = _url_of(pool, namespace, None, None, object_class)
        store.attach(shared_ptr[AsyncHost](host.release()), url, pool, namespace)
        store.ioctx = ioctx
        store.identify()
        return store

    @property
    def plain(self) -> bool:
        """Whether methods run in this process and not in the OSDs. False until this is known."""
        return (<RadosHost*> self.opened().get()).client_side()

    cdef int identify(self) except -1:
        cdef shared_ptr[AsyncHost] host = self.opened()
        cdef string fsid
        cdef int error = (<RadosHost*> host.get()).fsid(&fsid)
        if error != 0:
            raise from_code(error, "can't identify the cluster")
        self.identity = fsid.decode()
        return 0

    def register_service(
        self, str service not None, str daemon not None, metadata: Mapping[str, str]
    ) -> None:
        """Register this process as a daemon of ``service``, which ``ceph -s`` shows.

        Ceph shows it while the store is open. If Ceph has no manager, this has no effect.

        Args:
            service: the name in ``ceph -s``.
            daemon: the name of this process among the daemons of the service.
            metadata: shown by ``ceph service dump``. It cannot change later.

        Raises:
            StoreUnavailable: this store is already registered.
        """
        cdef shared_ptr[AsyncHost] host = self.opened()
        cdef string service_bytes = service.encode(), daemon_bytes = daemon.encode()
        cdef cpp_map[string, string] words = _strings(metadata)
        cdef int error
        with nogil:
            error = (<RadosHost*> host.get()).register_service(service_bytes, daemon_bytes, words)
        if error != 0:
            raise _service_error(error)

    def update_service(self, status: Mapping[str, str]) -> None:
        """Set the status that ``ceph service status`` shows for the registered daemon.

        Raises:
            StoreUnavailable: librados refused the status.
        """
        cdef shared_ptr[AsyncHost] host = self.opened()
        cdef cpp_map[string, string] words = _strings(status)
        cdef int error
        with nogil:
            error = (<RadosHost*> host.get()).update_service(words)
        if error != 0:
            raise _service_error(error)
