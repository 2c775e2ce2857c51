# cython: language_level=3, binding=True, embedsignature=False
"""Stores on a Ceph cluster. ``rados.pyi`` documents it, cls_zlog/host/rados/rados_host.cc does the work."""

from cpython.ref cimport PyObject
from cython.operator cimport dereference as deref
from libc.stdint cimport int64_t
from libcpp.map cimport map as cpp_map
from libcpp.memory cimport shared_ptr, unique_ptr
from libcpp.string cimport string
from posix.unistd cimport getpid

from zlog._native.core cimport AsyncHost, HostStore, Wait, raise_caught

import errno
import math
import os
from urllib.parse import quote, urlencode

from zlog._base.connecting import Attempt, refusal
from zlog._base.refusals import from_errno
from zlog.errors import StoreUnavailable


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


# How long a signal waits while a connection is made.
cdef enum:
    SLICE_MS = 100

# python-rados hands out no pointer to its I/O context, but keeps it at a fixed place in the object.
# Two layouts are known, told apart by the object's size (rados.pxd in Ceph's source): the pointer
# comes right after the object's head and method table, or, in newer releases, a reference to the
# Rados object stands before it.
_IOCTX_OFFSETS = {88: 24, 96: 32}


def find_librados():
    cdef string what
    cdef int error
    with nogil:
        error = load_librados(&what)
    words = os.fsdecode(what)
    if error == -errno.ENOENT:
        raise StoreUnavailable(
            f"there is no librados, which talks to Ceph: {words}",
            hint="Install Ceph's client library: `apt install librados2`, `dnf install librados2`.",
            retryable=False,
        )
    if error != 0:
        raise StoreUnavailable(
            f"librados is older than Ceph Octopus, it lacks {words}",
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
            " keeps librados' I/O context at a place that zlog does not know",
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
    cdef object ioctx  # kept alive while its copy is in use

    def __init__(
        self,
        pool,
        namespace="",
        *,
        conf=None,
        client_id=None,
        timeout=10.0,
        object_class="auto",
        url=None,
    ):
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
    def from_ioctx(ioctx, object_class="auto"):
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
    def plain(self):
        return (<RadosHost*> self.opened().get()).client_side()

    cdef int identify(self) except -1:
        cdef shared_ptr[AsyncHost] host = self.opened()
        cdef string fsid
        cdef int error = (<RadosHost*> host.get()).fsid(&fsid)
        if error != 0:
            raise from_errno(error, "find out which cluster it is")
        self.identity = fsid.decode()
        return 0

    def register_service(self, str service not None, str daemon not None, metadata):
        cdef shared_ptr[AsyncHost] host = self.opened()
        cdef string service_bytes = service.encode(), daemon_bytes = daemon.encode()
        cdef cpp_map[string, string] words = _strings(metadata)
        cdef int error
        with nogil:
            error = (<RadosHost*> host.get()).register_service(service_bytes, daemon_bytes, words)
        if error != 0:
            raise _service_error(error)

    def update_service(self, status):
        cdef shared_ptr[AsyncHost] host = self.opened()
        cdef cpp_map[string, string] words = _strings(status)
        cdef int error
        with nogil:
            error = (<RadosHost*> host.get()).update_service(words)
        if error != 0:
            raise _service_error(error)
