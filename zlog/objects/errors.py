"""Errors of spaces and their objects."""

from __future__ import annotations

from collections.abc import Sequence

from zlog.errors import ZlogError


class SpaceNotFound(ZlogError, LookupError):
    """The log has no space of this name."""

    hint = "Make it: open it with `create=True`."


class UnsuitableLog(ZlogError):
    """The log can't carry a space: a setting of it removes entries that a space needs."""

    hint = "Take another log for it, or take the setting back: `zlog retention LOG`."


class PastLost(ZlogError):
    """The log was trimmed beyond what a replica needs, and no checkpoint has the rest.

    Attributes:
        resume: the position from which a later state is known; None: from none.
    """

    hint = (
        "Trims that go past cursors destroy what spaces need; restore the log from a copy, or make"
        " another space."
    )

    def __init__(self, message: str, *, resume: int | None = None, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.resume = resume


class Stopped(ZlogError):
    """A replica stopped at an entry, since to pass it could make it differ from other replicas.

    All calls of its space raise it from then on. Nothing was skipped.

    Attributes:
        position: of the entry.
    """

    hint = "See what wrote the entry; open the space again when that is put right."

    def __init__(self, message: str, *, position: int, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.position = position


class UnknownRecord(Stopped):
    """An entry with the space's tag is no record of a space."""

    hint = "Find out which program appends entries with the tag of the space."


class NewerRecord(Stopped):
    """A newer version of zlog, or of an object's class, has written an entry of the space."""

    hint = "Upgrade this program to what the others run."


class UnknownObjectType(Stopped):
    """An object of the space is of a type that this program has no class for."""

    hint = "Name the class when opening the space: `Space.open(…, types=[…])`."


class ApplyFailed(Stopped):
    """An object's ``apply`` or ``restore`` raised something other than ``Rejected``."""

    hint = (
        "Correct the class, so that it takes this command, or refuses it with `Rejected`; every"
        " replica stops at this entry until then."
    )


class Diverged(Stopped):
    """The state of an object here is not what another replica has written into a checkpoint.

    So its ``apply`` is not deterministic, or the replicas run different code.
    """

    hint = (
        "Have `apply` depend on nothing but the state and the command, `snapshot` on nothing but"
        " the state; then take the right state by opening the space anew."
    )


class Rejected(ZlogError):
    """An object has refused a command; it has changed nothing.

    Raise it in ``Replicated.apply`` to refuse one. It has to depend on state and command alone.
    """

    hint = "The message says why the object refuses it."


class WrongType(Rejected, TypeError):
    """The object of this name is of another type."""

    hint = "Take another name: an object keeps its type for as long as the space exists."


class Conflict(ZlogError):
    """A transaction has read what another one has changed since. None of it took effect.

    Attributes:
        items: what was changed: ``(object, key)``, ``(object, (start, end))`` for a range of
            keys, ``(object, None)`` for an object as a whole.
    """

    hint = "Run the transaction again; `transact` does that by itself."
    retryable = True

    def __init__(self, message: str, *, items: Sequence[tuple[str, object]]) -> None:
        super().__init__(message)
        self.items = tuple(items)


class AlreadyCommitted(ZlogError):
    """A transaction of this id was committed before; this one has done nothing.

    Attributes:
        position: of the entry that committed it.
    """

    hint = "It is done; read what it has written."

    def __init__(self, message: str, *, position: int) -> None:
        super().__init__(message)
        self.position = position


class OutcomeUnknown(ZlogError):
    """Whether a change took effect is not known: the log did not answer in time, twice.

    Attributes:
        id: of the change; of a transaction, run it again with this id: it takes effect once.
    """

    hint = "Run the transaction again with this `id`, which makes sure that it takes effect once."
    retryable = True

    def __init__(self, message: str, *, id: str) -> None:
        super().__init__(message)
        self.id = id


class ResultLost(ZlogError):
    """A command took effect, once, and its result is lost.

    A trim has overtaken this client between the command's entry and its result, and the checkpoint
    lacks the result: it keeps the newest ones only, and only if JSON can express them.

    Attributes:
        id: of the command.
        position: of the entry that carried it out.
    """

    hint = "Do not repeat the command; read the object, whose state has its effect."

    def __init__(self, message: str, *, id: str, position: int) -> None:
        super().__init__(message)
        self.id = id
        self.position = position


class LockLost(ZlogError):
    """A lock's holder has it no more: its lease ran out, or it gave it back."""

    hint = "Stop what the lock protects, and acquire it again."


class LockTimeout(ZlogError, TimeoutError):
    """A lock was not granted in time. The request for it was taken back."""

    hint = "Wait longer, or see who holds it (`lock.holder()`)."
    retryable = True
