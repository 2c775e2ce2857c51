"""Errors of spaces and their objects."""

from __future__ import annotations

from collections.abc import Sequence

from zlog.errors import ZlogError


class SpaceNotFound(ZlogError, LookupError):
    """The log has no space of this name."""

    hint = "Open it with `create=True` to create it."


class UnsuitableLog(ZlogError):
    """The log's retention removes entries that a space needs."""

    hint = "Use another log, or change the retention: `zlog retention LOG`."


class PastLost(ZlogError):
    """Entries that a replica needs were trimmed, and no checkpoint replaces them.

    Attributes:
        resume: the lowest position from which the state is known again, so that a watch can begin
            there; None if there is none.
    """

    hint = (
        "A trim past cursors has removed entries that the space needs. Restore the log from a"
        " copy, or create another space."
    )

    def __init__(self, message: str, *, resume: int | None = None, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.resume = resume


class Stopped(ZlogError):
    """This client's replica stopped at an entry that it can't apply.

    It does not skip the entry, because its state would then differ from that of other replicas. All
    later calls of the space raise this error.

    Attributes:
        position: the position of the entry.
    """

    hint = "Find out which program wrote the entry, correct the program, and open the space again."

    def __init__(self, message: str, *, position: int, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.position = position


class UnknownRecord(Stopped):
    """An entry with the space's tag is not a record of a space."""

    hint = "Find out which program appends entries with the space's tag."


class NewerRecord(Stopped):
    """A newer version of zlog, or of an object's class, has written an entry of the space."""

    hint = "Upgrade this program to the version that the other programs use."


class UnknownObjectType(Stopped):
    """An object has a type for which this program has no class."""

    hint = "Name the class when opening the space: `Space.open(…, types=[…])`."


class ApplyFailed(Stopped):
    """An object's ``apply`` or ``restore`` raised something other than ``Rejected``."""

    hint = (
        "Correct the class, so that it accepts this command or raises `Rejected`. Until then every"
        " replica stops at this entry."
    )


class Diverged(Stopped):
    """An object's state differs from its state in another replica's checkpoint.

    Either the object's ``apply`` is not deterministic, or the replicas run different code.
    """

    hint = (
        "Make `apply` depend only on the state and the command, and `snapshot` only on the state."
        " Then open the space again to load the right state."
    )


class Rejected(ZlogError):
    """An object has refused a command. Nothing was changed.

    ``Replicated.apply`` may raise this. The decision must depend only on the state and the command.
    """

    hint = "The message says why the object refuses it."


class WrongType(Rejected, TypeError):
    """The object of this name has another type."""

    hint = "Use another name: an object keeps its type as long as the space exists."


class Conflict(ZlogError):
    """Another transaction has changed a value that this one read. This one had no effect.

    Attributes:
        items: the changed items: ``(object, key)``, ``(object, (start, end))`` for a range of keys,
            ``(object, None)`` for a whole object.
    """

    hint = "Run the transaction again, as `transact` does."
    retryable = True

    def __init__(self, message: str, *, items: Sequence[tuple[str, object]]) -> None:
        super().__init__(message)
        self.items = tuple(items)


class AlreadyCommitted(ZlogError):
    """A transaction with the same id was committed before. This one had no effect.

    Attributes:
        position: the position of the entry that committed the transaction.
    """

    hint = "The work is done; read its result."

    def __init__(self, message: str, *, position: int) -> None:
        super().__init__(message)
        self.position = position


class OutcomeUnknown(ZlogError):
    """It is unknown whether a change took effect, because the log did not answer in time.

    Attributes:
        id: the id of the change. If you run a transaction again with this id, it takes effect once.
    """

    hint = "Run the transaction again with this `id`, so that it takes effect once."
    retryable = True

    def __init__(self, message: str, *, id: str) -> None:
        super().__init__(message)
        self.id = id


class ResultLost(ZlogError):
    """A command took effect once, but its result is lost.

    The command's entry was trimmed before this client applied it. The checkpoint that replaces it
    contains only the newest results, and only those that are JSON values.

    Attributes:
        id: the id of the command.
        position: the position of its entry.
    """

    hint = "Do not repeat the command; read the object, whose state has its effect."

    def __init__(self, message: str, *, id: str, position: int) -> None:
        super().__init__(message)
        self.id = id
        self.position = position


class LockLost(ZlogError):
    """A client no longer holds a lock: its lease has expired, or it was released."""

    hint = "Stop the work that the lock protects, and acquire it again."


class LockTimeout(ZlogError, TimeoutError):
    """A lock was not granted in time. The request was withdrawn."""

    hint = "Wait longer, or find out which client holds it (`lock.holder()`)."
    retryable = True
