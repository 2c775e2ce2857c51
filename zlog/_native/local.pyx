"""Stores on this machine, in memory and over LMDB, and the sequencer that their processes share.

The host for LMDB has state that must exist only once in a process, such as the table of open
databases (cls_zlog/host/lmdb/env.cc), so no other module links it.
"""

from cython.operator cimport dereference as deref
from libc.stdint cimport uint64_t
from libcpp cimport bool as cbool
from libcpp.map cimport map as cpp_map
from libcpp.memory cimport shared_ptr, unique_ptr
from libcpp.string cimport string

from zlog._native.completions cimport SLICE_MS, Wait
from zlog._native.host cimport AsyncHost, raise_caught
from zlog._native.stores cimport HostStore

import os
from errno import (
    EACCES, EAGAIN, EBUSY, EDQUOT, EIO, EMFILE, ENFILE, ENOMEM, ENOSPC, EOVERFLOW, EPERM, EPROTO,
    EROFS, ESTALE, ETIMEDOUT, EUCLEAN
)
from pathlib import Path

from zlog._base.refusals import from_code
from zlog.errors import LogExhausted, SequencerTimeout, SequencerUnavailable, StoreMissing, StoreUnavailable

cdef extern from "cls_zlog/host/lmdb/shared_sequencer.h" namespace "zlog" nogil:
    cdef cppclass CppSharedSequencer "zlog::SharedSequencer":
        @staticmethod
        int open(const string& directory, shared_ptr[CppSharedSequencer]* sequencer) except +raise_caught
        @staticmethod
        int open_anonymous(shared_ptr[CppSharedSequencer]* sequencer) except +raise_caught
        int activate(uint64_t log_id, uint64_t epoch, uint64_t tail)
        int next(uint64_t log_id, uint64_t epoch, uint64_t count, uint64_t* first)
        int tail(uint64_t log_id, uint64_t epoch, uint64_t* tail)
        int wait(uint64_t log_id, uint64_t epoch, uint64_t position, int timeout_ms, uint64_t* tail)
        int release(uint64_t log_id)

cdef extern from "cls_zlog/host/memory/memory_host.h" namespace "zlog" nogil:
    cdef cppclass MemoryObject:
        cpp_map[string, string] attrs
        cpp_map[string, string] omap
        string stream

    cdef cppclass MemoryHost(AsyncHost):
        cbool peek(const string& object, MemoryObject* out) except +raise_caught
        void poke(const string& object, MemoryObject content) except +raise_caught

cdef extern from "cls_zlog/host/lmdb/embedded_host.h" namespace "zlog" nogil:
    cdef cppclass EmbeddedHost(AsyncHost):
        @staticmethod
        int open(
            const string& directory,
            size_t map_bytes,
            cbool read_only,
            unique_ptr[EmbeddedHost]* host,
            string* reason,
        ) except +raise_caught
        int compact(string* reason)
        int space_inside(uint64_t* bytes)

cdef extern from "cls_zlog/host/lmdb/restore.h" namespace "zlog" nogil:
    int restore_store(const string& directory, const string& backup, string* reason) except +raise_caught


DIRECTORY_HINT = "`zlog doctor` examines the store's directory."
DIRECTORY_HINTS = {-ENOSPC: "Free space on its disk."} | {
    -code: from_code(-code, "").hint for code in (EMFILE, ENFILE, ENOMEM)
}


# Returns whether the log is active in the epoch of a call.
cdef bint granted(int error) except -1:
    if error == 0:
        return True
    if error == -ESTALE:
        return False
    if error == -ETIMEDOUT:
        raise SequencerTimeout(
            "a stopped process holds the shared sequencer",
            hint="Resume that process (`kill -CONT`), or end it.",
        )
    if error == -ENOSPC:
        raise SequencerUnavailable(
            "the shared sequencer serves 1024 logs and has no space for another",
            hint="Remove logs, or store some of them in another directory.",
        )
    if error == -EOVERFLOW:
        raise LogExhausted("the log has no position left below 2^63")
    raise SequencerUnavailable(
        f"the shared sequencer failed: {os.strerror(-error)}", hint=DIRECTORY_HINT
    )


cdef class SharedSequencer:
    """A sequencer that the processes that use one directory share through memory (`mmap`).

    Like every sequencer it is a hint: its grants are valid only in the epoch that the objects have.
    It serves up to 1024 logs. Methods raise `zlog.SequencerUnavailable`, or `zlog.SequencerTimeout`
    if a stopped process has locked it.
    """

    cdef shared_ptr[CppSharedSequencer] shared

    def __cinit__(self, directory: str | os.PathLike[str] | None = None):
        """Use the sequencer in ``directory``. None makes one for this process and its children."""
        cdef string folder = b"" if directory is None else os.fsencode(directory)
        cdef int error
        with nogil:
            if folder.empty():
                error = CppSharedSequencer.open_anonymous(&self.shared)
            else:
                error = CppSharedSequencer.open(folder, &self.shared)
        if error != 0:
            raise SequencerUnavailable(
                f"can't share a sequencer in {directory}: {os.strerror(-error)}",
                hint=DIRECTORY_HINTS.get(error, DIRECTORY_HINT),
            )

    def activate(self, uint64_t log_id, uint64_t epoch, uint64_t tail) -> bool:
        """Grant from ``tail`` on. Returns False if ``epoch`` is not above the last one."""
        cdef int error
        with nogil:
            error = deref(self.shared).activate(log_id, epoch, tail)
        return granted(error)

    def next(self, uint64_t log_id, uint64_t epoch, uint64_t count) -> int | None:
        """Grant ``count`` positions. Returns the first, or None if not active in ``epoch``."""
        cdef uint64_t first = 0
        cdef int error
        with nogil:
            error = deref(self.shared).next(log_id, epoch, count, &first)
        return first if granted(error) else None

    def tail(self, uint64_t log_id, uint64_t epoch) -> int | None:
        """Return the next position to be granted, or None if the log is not active in ``epoch``."""
        cdef uint64_t tail = 0
        cdef int error
        with nogil:
            error = deref(self.shared).tail(log_id, epoch, &tail)
        return tail if granted(error) else None

    def wait(
        self, uint64_t log_id, uint64_t epoch, uint64_t position, timeout: float | None = None
    ) -> int | None:
        """Block until the tail is above ``position``, and return the tail.

        Returns None after ``timeout`` seconds or once another epoch is active. Ctrl-C interrupts
        it.
        """
        cdef Wait budget = Wait(timeout)
        cdef uint64_t tail = 0
        cdef int error, slice_ms
        while True:
            slice_ms = budget.slice_ms(SLICE_MS)
            with nogil:
                error = deref(self.shared).wait(log_id, epoch, position, slice_ms, &tail)
            if error != -EAGAIN:
                return tail if granted(error) else None
            if budget.over():
                return None

    def release(self, uint64_t log_id) -> None:
        """Forget a log that was removed."""
        cdef int error
        with nogil:
            error = deref(self.shared).release(log_id)
        granted(error)


cdef class MemoryStore(HostStore):
    """Objects in this process's memory, for tests and simulation."""

    cdef MemoryHost* memory  # the host owns it
    cdef SharedSequencer shared

    def __cinit__(self):
        self.memory = new MemoryHost()
        self.attach(shared_ptr[AsyncHost](self.memory), "mem://")
        self.shared = SharedSequencer()

    def sequencer(self) -> SharedSequencer:
        self.opened()
        return self.shared

    def peek(
        self, str object not None
    ) -> tuple[dict[bytes, bytes], dict[bytes, bytes], bytes] | None:
        """Return a copy of an object: attributes, keys, bytestream. None if it does not exist."""
        cdef shared_ptr[AsyncHost] host = self.opened()
        cdef MemoryObject content
        if not self.memory.peek(<bytes> object.encode(), &content):
            return None
        return dict(content.attrs), dict(content.omap), content.stream

    def poke(
        self,
        str object not None,
        attrs: dict[bytes, bytes],
        omap: dict[bytes, bytes],
        bytes stream not None,
    ) -> None:
        """Store an object without checks. Tests use this to store damaged objects."""
        cdef shared_ptr[AsyncHost] host = self.opened()
        cdef MemoryObject content
        content.attrs, content.omap, content.stream = attrs, omap, stream
        self.memory.poke(<bytes> object.encode(), content)


MAP_BYTES = 1 << 40  # address space, not memory or disk: the file grows as it fills


cdef check_holds_store(path):
    data, sequencer = os.path.join(path, "data.mdb"), os.path.join(path, "sequencer")
    try:
        if os.stat(data).st_size > 0:
            return
    except FileNotFoundError:
        pass
    except NotADirectoryError:
        raise not_a_directory(path) from None
    except OSError:
        return  # opening the store reports the error
    if not os.path.exists(sequencer):  # otherwise opening reports that the database was lost
        raise StoreMissing(
            f"there is no store in {os.path.abspath(path)}",
            hint="Check the URL, $ZLOG_STORE, and whether the disk is mounted. `zlog create` creates"
            " a store.",
        )


cdef size_of(file):
    try:
        return os.stat(file).st_size
    except OSError as failed:
        raise from_code(-failed.errno, f"can't examine {file}") from failed


cdef not_a_directory(path):
    return StoreUnavailable(
        f"{os.path.abspath(path)} is not a directory, but an embedded store must be one",
        hint="Choose another path. Check the URL and $ZLOG_STORE.",
        retryable=False,
    )


cdef make_directory(path):
    try:
        os.makedirs(path, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise not_a_directory(path) from None
    except OSError as failed:
        raise StoreUnavailable(
            f"can't create the store's directory {os.fspath(path)}: {failed.strerror}",
            hint="Choose a directory that this user may write to.",
        ) from failed


READ_ONLY_URL = "?mode=ro"

NOT_OPENED = {
    # What happened, what to do, and whether the call may work later.
    -EPROTO: (
        "{folder} does not contain a store of this version of zlog{more}",
        "Choose another directory, or use the version of zlog that created the store.",
        False,
    ),
    -EIO: ("can't open the store in {folder}: {reason}", "Restore it from a backup.", False),
    -EBUSY: ("can't open the store in {folder}: {reason}", "Try again later.", True),
    -EUCLEAN: (
        "data.mdb in {folder} is not the database that was last written there: it was restored from a"
        " backup, or overwritten",
        "To continue with its entries, end all processes that use the store and run"
        " `zlog store restore`.",
        False,
    ),
    -EACCES: (
        "can't open the store in {folder}: {reason}",
        "To write, this user needs read and write access to the directory and its files. To only"
        f" read, add {READ_ONLY_URL} to the URL.",
        False,
    ),
}
NOT_OPENED[-EPERM] = NOT_OPENED[-EROFS] = NOT_OPENED[-EACCES]


cdef not_opened(str folder, int error, str reason, bint read_only):
    more = f" ({reason})" if reason else ""
    if error not in NOT_OPENED:
        return from_code(error, f"can't open the store in {folder}{more}")
    text, hint, retryable = NOT_OPENED[error]
    if read_only and error == -EACCES:
        hint = "Ask its owner for permission to read data.mdb."
    reason = reason or os.strerror(-error)
    text = text.format(folder=folder, more=more, reason=reason)
    return StoreUnavailable(text, hint=hint, retryable=retryable)


def restore(path: str | os.PathLike[str], backup: str | os.PathLike[str]) -> None:
    """Restore the store in a directory from a database file; see `zlog.store.restore`."""
    folder, file = os.path.realpath(path), os.fspath(backup)
    cdef string directory = os.fsencode(folder), source = os.fsencode(file), reason
    cdef int error
    with nogil:
        error = restore_store(directory, source, &reason)
    if error != 0:
        raise not_restored(folder, file, error, reason.decode())


cdef not_restored(str folder, str backup, int error, str reason):
    if error == -EBUSY:
        return StoreUnavailable(
            f"can't restore the store in {folder}: {reason}",
            hint=f"End the processes that use it (`fuser -v {folder}/data.mdb`), then try again.",
        )
    if error in (-EPROTO, -EIO):
        more = f" ({reason})" if reason else ""
        return StoreUnavailable(
            f"{backup} is not an embedded store of this version of zlog, or is damaged{more}",
            hint="Use another backup.",
            retryable=False,
        )
    return from_code(error, f"can't restore the store in {folder} from {backup}")


cdef class EmbeddedStore(HostStore):
    """Objects in a local directory (LMDB), for any number of processes at once.

    A write is on disk when its reply arrives. Writes of all threads share transactions and syncs.
    """

    cdef EmbeddedHost* embedded  # the host owns it
    cdef readonly str path
    cdef SharedSequencer shared

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        size_t map_bytes=MAP_BYTES,
        create: bool = True,
        bint read_only=False,
    ):
        """Open the store in a directory.

        Args:
            path: the directory, which must be on a local file system.
            create: whether to create the directory and the store if they are missing.
            map_bytes: the maximum size of the store; writes beyond it fail with ENOSPC. It takes
                address space, not memory or disk. It is less if the process may not have that much.
            read_only: change nothing. Permission to read is enough, and writing methods fail with
                EROFS. While other processes write, this one must be able to write lock.mdb, in
                which LMDB lists readers. Otherwise the store does not open, or methods fail with
                ETXTBSY once such a process has opened it.

        Raises:
            StoreUnavailable: the store is missing or damaged, cannot be opened, or is not a store.
        """
        cdef unique_ptr[EmbeddedHost] host
        cdef string directory, reason
        cdef size_t bytes_wanted = map_bytes
        cdef int error
        if read_only or not create:
            check_holds_store(path)
        if not read_only:
            make_directory(path)
        folder = os.path.realpath(path)
        directory = os.fsencode(folder)
        with nogil:
            error = EmbeddedHost.open(directory, bytes_wanted, read_only, &host, &reason)
        if error != 0:
            raise not_opened(folder, error, reason.decode(), read_only)
        url = Path(folder).as_uri() + (READ_ONLY_URL if read_only else "")
        self.embedded = host.get()
        self.attach(shared_ptr[AsyncHost](host.release()), url)
        self.path, self.read_only = folder, read_only
        status = os.stat(folder)
        self.identity = f"{status.st_dev:x}.{status.st_ino:x}"

    def sequencer(self) -> SharedSequencer | None:
        self.opened()
        if self.shared is None and not self.read_only:
            self.shared = SharedSequencer(self.path)
        return self.shared

    def compact(self) -> int:
        cdef shared_ptr[AsyncHost] host = self.opened()
        cdef string reason
        cdef int error
        file = os.path.join(self.path, "data.mdb")
        before = size_of(file)
        with nogil:
            error = self.embedded.compact(&reason)
        if error == -EBUSY:
            raise StoreUnavailable(
                f"can't compact {file}: {reason.decode()}",
                hint=f"End the processes that use it (`fuser -v {file}`), then try again.",
            )
        if error in (-ENOSPC, -EDQUOT):
            raise StoreUnavailable(
                f"can't compact {file}: its disk has no space for the copy that replaces it",
                hint="Free space on the disk by other means, or move the store to a larger one."
                f" The copy takes {before:,} bytes less the free space in the file, which appends"
                " use anyway.",
            )
        if error != 0:
            more = f" ({reason.decode()})" if reason.size() else ""
            raise from_code(error, f"can't compact {file}{more}")
        return before - size_of(file)

    def space_inside(self) -> int:
        """Return how many bytes of data fit into the file's free pages, even if the disk is full.

        Raises:
            StoreUnavailable: the store is closed, or cannot be read.
        """
        cdef shared_ptr[AsyncHost] host = self.opened()
        cdef uint64_t space = 0
        cdef int error
        with nogil:
            error = self.embedded.space_inside(&space)
        if error != 0:
            raise from_code(error, f"can't find out how much of {self.path} is free")
        return space
