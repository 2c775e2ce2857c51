# The store whose objects live in a directory of this machine, and what can be wrong with one.

from libc.errno cimport EACCES, EBUSY, EDQUOT, EIO, ENOSPC, EPERM, EPROTO, EROFS

import os
from pathlib import Path

from zlog._base.refusals import from_errno


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
        int room_inside(uint64_t* bytes)

cdef extern from "cls_zlog/host/lmdb/restore.h" namespace "zlog" nogil:
    int restore_store(const string& directory, const string& backup, string* reason) except +raise_caught

cdef extern from "<errno.h>" nogil:
    int EUCLEAN  # Linux's own, which Cython does not have


MAP_BYTES = 1 << 40  # address space, not memory or disk: the file grows as it fills


def check_holds_store(path):
    data, sequencer = os.path.join(path, "data.mdb"), os.path.join(path, "sequencer")
    try:
        if os.stat(data).st_size > 0:
            return
    except FileNotFoundError:
        pass
    except NotADirectoryError:
        raise not_a_directory(path) from None
    except OSError:
        return  # opening it tells what is wrong
    if not os.path.exists(sequencer):  # with it, opening tells that the database was lost
        failure = StoreUnavailable(
            f"there is no store in {os.path.abspath(path)}",
            hint="`zlog create` makes one; check the URL and $ZLOG_STORE.",
        )
        failure.retryable = False
        raise failure


def size_of(file):
    try:
        return os.stat(file).st_size
    except OSError as failed:
        raise from_errno(-failed.errno, f"can't look at {file}") from failed


def not_a_directory(path):
    failure = StoreUnavailable(
        f"{os.path.abspath(path)} is not a directory, as an embedded store is",
        hint="Choose another path; check the URL and $ZLOG_STORE.",
    )
    failure.retryable = False
    return failure


def make_directory(path):
    try:
        os.makedirs(path, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise not_a_directory(path) from None
    except OSError as failed:
        raise StoreUnavailable(
            f"can't make the store's directory {os.fspath(path)}: {failed.strerror}",
            hint="Choose a directory that this user may write to.",
        ) from failed


READ_ONLY_URL = "?mode=ro"
NOT_OPENED = {
    # What happened, what to do, and whether it may be otherwise later.
    -EPROTO: (
        "{folder} holds something else, or a store of another version of zlog{more}",
        "Choose another directory, or use the version that made it.",
        False,
    ),
    -EIO: ("can't open the store in {folder}: {reason}", "Restore it from a backup.", False),
    -EBUSY: ("can't open the store in {folder}: {reason}", "Try again when that is over.", True),
    -EUCLEAN: (
        "{folder} holds another database than the one that was written there, or an earlier state"
        " of it: data.mdb was put back from a backup, or overwritten",
        "To go on with what it holds now, end all processes that use the store and run"
        " `zlog store restore`.",
        False,
    ),
    -EACCES: (
        "can't open the store in {folder}: {reason}",
        "To write, this user needs the right to read and write the directory and its files. To read,"
        f" it is enough to put {READ_ONLY_URL} at the end of the URL.",
        False,
    ),
}
NOT_OPENED[-EPERM] = NOT_OPENED[-EROFS] = NOT_OPENED[-EACCES]


def not_opened(str folder, int error, str reason, bint read_only):
    more = f" ({reason})" if reason else ""
    if error not in NOT_OPENED:
        return from_errno(error, f"can't open the store in {folder}{more}")
    text, hint, retryable = NOT_OPENED[error]
    if read_only and error == -EACCES:
        hint = "Ask its owner for permission to read data.mdb."
    reason = reason or os.strerror(-error)
    failure = StoreUnavailable(text.format(folder=folder, more=more, reason=reason), hint=hint)
    failure.retryable = retryable
    return failure


def restore(path, backup):
    folder, file = os.path.realpath(path), os.fspath(backup)
    cdef string directory = os.fsencode(folder), source = os.fsencode(file), reason
    cdef int error
    with nogil:
        error = restore_store(directory, source, &reason)
    if error != 0:
        raise not_restored(folder, file, error, reason.decode())


def not_restored(str folder, str backup, int error, str reason):
    if error == -EBUSY:
        return StoreUnavailable(
            f"can't restore the store in {folder}: {reason}",
            hint=f"End those who use it (`fuser -v {folder}/data.mdb` lists them), then try again.",
        )
    if error in (-EPROTO, -EIO):
        more = f" ({reason})" if reason else ""
        return StoreUnavailable(
            f"{backup} is no embedded store of this version of zlog, or is damaged{more}",
            hint="Take another backup.",
            retryable=False,
        )
    return from_errno(error, f"restore the store in {folder} from {backup}")


cdef class EmbeddedStore(HostStore):
    cdef EmbeddedHost* embedded  # owned by the host
    cdef readonly str path
    cdef SharedSequencer shared

    def __init__(
        self, path, *, size_t map_bytes=MAP_BYTES, create=True, bint read_only=False
    ):
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

    def sequencer(self):
        self.opened()
        if self.shared is None and not self.read_only:
            self.shared = SharedSequencer(self.path)
        return self.shared

    def compact(self):
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
                hint=f"End them (`fuser -v {file}` lists them), then try again.",
            )
        if error in (-ENOSPC, -EDQUOT):
            raise StoreUnavailable(
                f"can't compact {file}: its disk has no room for the copy that takes its place",
                hint="Free space on the disk by other means, or move the store to a larger one."
                f" The copy takes {before:,} bytes less what is free in the file, which appends"
                " use without it.",
            )
        if error != 0:
            more = f" ({reason.decode()})" if reason.size() else ""
            raise from_errno(error, f"can't compact {file}{more}")
        return before - size_of(file)

    def room_inside(self):
        cdef shared_ptr[AsyncHost] host = self.opened()
        cdef uint64_t room = 0
        cdef int error
        with nogil:
            error = self.embedded.room_inside(&room)
        if error != 0:
            raise from_errno(error, f"can't find out how much of {self.path} is free")
        return room
