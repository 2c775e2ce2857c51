"""What codes of the object class and of the store mean, as errors: the one place that knows."""

from __future__ import annotations

import errno
import os

from zlog._base.protocol import Code
from zlog.errors import (
    AlreadyWritten,
    BeyondTail,
    ClassNotLoaded,
    CorruptEntry,
    InvalidEpoch,
    LimitReached,
    StaleEpoch,
    StoreReadOnly,
    StoreTimeout,
    StoreUnavailable,
    UnsupportedVersion,
    ZlogError,
)

_REFUSALS: dict[int, tuple[type[ZlogError], str, str | None]] = {
    Code.STALE_EPOCH: (StaleEpoch, "the log's layout has changed", None),
    Code.READ_ONLY: (AlreadyWritten, "the position is taken", None),
    Code.INVALID_EPOCH: (InvalidEpoch, "another client has changed the log's layout", None),
    Code.LIMIT_REACHED: (LimitReached, "a limit is reached", None),
    Code.BEYOND_STRIPE: (
        LimitReached,
        "the live stripe takes no position that high",
        "Start a new stripe: `zlog reconfigure LOG --roll`.",
    ),
    Code.ALIKE: (AlreadyWritten, "an entry that may be this one is there", None),
    Code.BEYOND_TAIL: (BeyondTail, "no tail that high was recorded", None),
    Code.UNREADABLE: (
        UnsupportedVersion,
        "a newer version of zlog stored what is at this position",
        None,
    ),
    Code.LOST: (
        CorruptEntry,
        "what was stored at this position is lost",
        "`zlog check LOG --heal` puts back what another copy has (docs/operating.md).",
    ),
    Code.REQUEST_TOO_NEW: (
        UnsupportedVersion,
        (
            "the store's object class is older than this zlog, or than what the call makes use of,"
            " such as tags"
        ),
        "Upgrade libcls_zlog.so on every OSD host, or use the older zlog (docs/upgrading.md).",
    ),
    Code.STORED_TOO_NEW: (
        UnsupportedVersion,
        "a newer version of zlog stored what the object class would have to read",
        "Upgrade libcls_zlog.so on every OSD host; of an embedded store, this zlog.",
    ),
}
"""What a refusal means that no caller expects."""


def from_code(code: int, what: str) -> ZlogError:
    """Turn a method's answer other than OK into an exception.

    Args:
        code: a negative errno, or a code of the object class.
        what: which operation failed, on which object.
    """
    if code < 0:
        return from_errno(code, what)
    kind, why, hint = _REFUSALS.get(code, (ZlogError, f"refused with code {code}", None))
    return kind(f"{what}: {why}", hint=hint)


def from_errno(code: int, what: str) -> ZlogError:
    """Turn a store's outer error into an exception.

    Args:
        code: a negative errno, as librados and the embedded hosts return it.
        what: which operation failed, on which object.

    Source: errno(3), and what an OSD answers for classes (``ceph-osd``: EOPNOTSUPP when the class
    or method is missing, EPERM when the class is not in ``osd_class_load_list``).
    """
    number = -code
    text = f"{what}: {os.strerror(number)} ({errno.errorcode.get(number, number)})"
    if number == errno.ETIMEDOUT:
        return StoreTimeout(f"{what}: the store did not answer in time")
    if number == errno.EOPNOTSUPP:
        return ClassNotLoaded(
            f"{what}: the OSD that serves it lacks the object class, or has an older one without"
            " this method",
            hint="`zlog doctor` names such OSDs. Install libcls_zlog.so on their hosts"
            " (docs/operating.md).",
        )
    if number == errno.EPERM:
        return ClassNotLoaded(
            f"{what}: the OSD refused to run it for this client, whose caps do not allow it; or it"
            " may not load the object class",
            hint="Give this client caps for the pool: osd 'allow pool POOL class zlog', or, without"
            " the object class, 'allow rw pool=POOL'. `zlog doctor` tells whether it is the caps,"
            " or OSDs that may not load the class (docs/operating.md).",
        )
    if number == errno.EACCES:
        return StoreUnavailable(
            text,
            hint="Give this client caps such as: osd 'allow pool POOL class zlog'"
            " (docs/operating.md).",
            retryable=False,
        )
    if number == errno.EROFS:
        return StoreReadOnly(f"{what}: the store is read-only")
    if number == errno.ETXTBSY:
        return StoreUnavailable(
            f"{what}: another process has opened the store for writing, and this one may not write"
            " lock.mdb, in which readers are listed",
            hint="Let this user write lock.mdb (data.mdb need only be readable), or read a copy:"
            " docs/operating.md, Embedded stores.",
        )
    if number == errno.ESTALE:
        return StoreUnavailable(
            f"{what}: the files of the store were removed or replaced while this process had them"
            " open",
            hint="Close the store and connect again: its directory holds another one now, or none.",
            retryable=False,
        )
    if number == errno.EUCLEAN:
        return StoreUnavailable(
            f"{what}: data.mdb holds another database than the one that was written there, or an"
            " earlier state of it: it was put back from a backup, or overwritten",
            hint="To go on with what it holds now, end all processes that use the store and run"
            " `zlog restore`.",
            retryable=False,
        )
    if number in (errno.ENOSPC, errno.EDQUOT):
        return StoreUnavailable(
            f"{what}: the store is full", hint="Trim logs (`zlog trim --to`) or add space."
        )
    if number == errno.EIO:
        return CorruptEntry(
            f"{what}: stored bytes are damaged, or the object class can't be loaded (EIO)",
            hint="Run `zlog doctor`, which tells whether the OSDs can load libcls_zlog.so; and"
            " `zlog check LOG`, which tells what is damaged.",
        )
    if number == errno.EINVAL:
        return ZlogError(
            f"{what}: the object class refused the request as malformed",
            hint="Client and object class disagree; check that both are of the same version.",
        )
    return StoreUnavailable(text)
