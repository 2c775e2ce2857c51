"""Exceptions for the codes of the object class and of the store."""

from __future__ import annotations

import errno
import os
import re
from typing import NamedTuple

from zlog._base.codes import Code
from zlog._base.names import TEMPLATES_OBJECT, log_of
from zlog.errors import (
    AlreadyWritten,
    BeyondTail,
    ClassNotLoaded,
    CorruptEntry,
    InvalidEpoch,
    LimitReached,
    StaleEpoch,
    StoreMissing,
    StoreReadOnly,
    StoreTimeout,
    StoreUnavailable,
    UnsupportedVersion,
    ZlogError,
)


class _Meaning(NamedTuple):
    """How an error code is turned into an exception.

    Attributes:
        why: the explanation for the message; None means the system's message for the errno.
        hint: the hint; None means the class's hint.
        kind: the exception's class.
        retryable: whether a retry may succeed; None means the class's default.
    """

    why: str | None
    hint: str | None = None
    kind: type[ZlogError] = StoreUnavailable
    retryable: bool | None = None


_CAPS = "osd 'allow pool POOL class zlog'"
_FILES = "Close files that are not needed, or raise the limit (`ulimit -n`, `LimitNOFILE=`)."
_SPACE = "Trim logs (`zlog trim --to`) or add space."

_MEANINGS: dict[int, _Meaning] = {
    Code.STALE_EPOCH: _Meaning("the log's layout has changed", kind=StaleEpoch),
    Code.READ_ONLY: _Meaning("the position is already in use", kind=AlreadyWritten),
    Code.INVALID_EPOCH: _Meaning("another client has changed the layout", kind=InvalidEpoch),
    Code.LIMIT_REACHED: _Meaning("a limit of the log is reached (docs/api.md)", kind=LimitReached),
    Code.BEYOND_STRIPE: _Meaning(
        "the position is too high for the live stripe",
        "Start a new stripe: `zlog reconfigure LOG --roll`.",
        LimitReached,
    ),
    Code.SAME_ID: _Meaning(
        "an entry with this append id already exists, and it may be this entry", kind=AlreadyWritten
    ),
    Code.BEYOND_TAIL: _Meaning("the position is above the highest recorded tail", kind=BeyondTail),
    Code.UNREADABLE: _Meaning(
        "a newer version of zlog stored the record at this position", kind=UnsupportedVersion
    ),
    Code.LOST: _Meaning(
        "the record of this position is lost",
        "`zlog check LOG --repair` restores the record if another replica has it"
        " (docs/operating.md).",
        CorruptEntry,
    ),
    Code.FROZEN: _Meaning(
        "the stripe was frozen to offload it to a file",
        "Trim everything below a position instead (`zlog trim --to`).",
        ZlogError,
    ),
    Code.REQUEST_TOO_NEW: _Meaning(
        "the store's object class is older than this zlog",
        "Upgrade libcls_zlog.so on every OSD host, or use the older zlog (docs/upgrading.md).",
        UnsupportedVersion,
    ),
    Code.STORED_TOO_NEW: _Meaning(
        "the object class cannot read a value that a newer version of zlog stored",
        "Upgrade libcls_zlog.so on every OSD host. If the store is embedded, upgrade this zlog"
        " instead.",
        UnsupportedVersion,
    ),
    -errno.ETIMEDOUT: _Meaning("the store did not answer in time", kind=StoreTimeout),
    -errno.EOPNOTSUPP: _Meaning(
        "the OSD has no object class zlog, or an older version without this method",
        "Install libcls_zlog.so on the hosts of the OSDs that `zlog doctor` reports"
        " (docs/operating.md).",
        ClassNotLoaded,
    ),
    -errno.EPERM: _Meaning(
        "the OSD refused the call, because this client's caps do not allow it or because the"
        " OSD is not allowed to load the object class",
        "`zlog doctor` shows which of the two is the reason. Caps that suffice for the pool are"
        f" {_CAPS} or, without the object class, 'allow rw pool=POOL' (docs/operating.md).",
        ClassNotLoaded,
    ),
    -errno.EACCES: _Meaning(
        None, f"Give this client caps such as: {_CAPS} (docs/operating.md).", retryable=False
    ),
    -errno.EROFS: _Meaning("the store is read-only", kind=StoreReadOnly),
    -errno.ETXTBSY: _Meaning(
        "another process has the store open for writing, and this process is not allowed to"
        " write to lock.mdb, where readers must register",
        "Give this user write access to lock.mdb (data.mdb need only be readable), or read a"
        " copy of the store. See docs/operating.md, Embedded stores.",
    ),
    -errno.ESTALE: _Meaning(
        "the files of the store were removed or replaced while this process had them open",
        "Close the store and connect again. Its directory now contains a different store, or none.",
        StoreMissing,
    ),
    -errno.EUCLEAN: _Meaning(
        "data.mdb is not the database that was last written there: it was restored from"
        " a backup, or overwritten",
        "To continue with its present contents, end all processes that use the store and run"
        " `zlog store restore`.",
        retryable=False,
    ),
    -errno.ENOTRECOVERABLE: _Meaning(
        "an earlier write to data.mdb failed, so this process can't use the store any longer",
        "Look for disk errors (`dmesg`), then end the process and open the store again.",
        retryable=False,
    ),
    -errno.ENOSPC: _Meaning("the store is full", _SPACE),
    -errno.EDQUOT: _Meaning("the store is full", _SPACE),
    -errno.EIO: _Meaning(
        "stored bytes are damaged, or the object class can't be loaded (EIO)",
        "`zlog doctor` shows whether the OSDs can load libcls_zlog.so, and `zlog check LOG`"
        " shows the damage.",
        CorruptEntry,
    ),
    -errno.EINVAL: _Meaning(
        "the object class refused the request as malformed",
        "The client and the object class disagree about the format. Check that they have the"
        " same version.",
        ZlogError,
    ),
    -errno.EMFILE: _Meaning(None, _FILES),
    -errno.ENFILE: _Meaning(
        None, "The whole system has too many open files. Close some, or raise fs.file-max."
    ),
    -errno.ENOMEM: _Meaning(None, "Free memory, or raise the limit (`ulimit -v`, memory.max)."),
    -errno.EAGAIN: _Meaning(
        None,
        "Try again. The number of threads is limited by `ulimit -u` and the cgroup's pids.max.",
    ),
    -errno.E2BIG: _Meaning(
        "the change is too large for one transaction of the store",
        "Trim or remove fewer positions at a time.",
        retryable=False,
    ),
    -errno.EUSERS: _Meaning(
        "the processes that use this store already run 1024 reads at the same time, the maximum",
        "Try again. If the error persists, end some processes that read the store.",
    ),
    -errno.ECANCELED: _Meaning(
        "the store was closed during the call", "Connect again.", retryable=False
    ),
}
"""The meanings of refusals that the caller did not expect, and of a store's errnos.

Source: errno(3). An OSD answers EOPNOTSUPP if the class or method is missing, and EPERM if the
class is not in ``osd_class_load_list``.
"""

_PURPOSES = (
    ("head_create", "create"),
    ("view_read|stripes_read|stripes_loose", "read the layout of"),
    ("epoch_next|view_propose|stripe_forget|seal", "change the layout of"),
    ("tail_raise|max_position", "find the tail of"),
    ("trim.*", "trim"),
    ("(head_)?remove", "remove objects of"),
    ("cursor_.*", "use a cursor of"),
    ("delivery_.*", "append exactly once to"),
    ("producer_.*", "copy the producers of"),
    ("retention_.*", "read or store the retention state of"),
    ("freeze|offload_put|offload_forget", "offload a stripe of"),
    ("offload_list", "find the offloaded stripes of"),
    ("read|select|count", "read"),
    ("verify|stat|tags_check", "examine"),
    ("write|append", "append to"),
    ("fill", "fill positions of"),
    ("compact|tags_.*", "compact"),
    ("heal|salvage|damaged", "repair"),
    ("directory_list", "list the logs of"),
    ("directory_.*", "change the list of logs of"),
    ("sequencer_.*", "look up or announce the sequencer of"),
)
"""What each method of the object class is for."""


def refused_call(code: int, method: str, object: str) -> ZlogError:
    """Return the exception for a call's code other than OK. Its message has the call's purpose."""
    log = log_of(object)
    purpose = next((words for names, words in _PURPOSES if re.fullmatch(names, method)), "use")
    what = f"{purpose} {f'log {log!r}' if log else 'the store'}"
    if "://" in object:
        what = f"{purpose} an offloaded stripe"
    if object == TEMPLATES_OBJECT:
        what = "read or change the templates of the store"
    error = from_code(code, f"cannot {what}")
    error.call = f"{method} on {object}"
    return error


def from_code(code: int, what: str) -> ZlogError:
    """Return the exception for an operation that failed with a code.

    The code is a negative errno of the store, or a positive code of the object class. The message
    begins with ``what``, which names the operation, and the log, store or file.
    """
    meaning = _MEANINGS.get(code)
    if meaning is None and code > 0:
        meaning = _Meaning(f"the object class refused it with code {code}", kind=ZlogError)
    why, hint, kind, retryable = meaning or _Meaning(None)
    system = f"{os.strerror(abs(code))} ({errno.errorcode.get(-code, -code)})"
    error = kind(f"{what}: {why or system}", hint=hint)
    if retryable is not None:
        error.retryable = retryable
    return error
