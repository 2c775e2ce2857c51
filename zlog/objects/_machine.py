"""The state of a space: a pure machine that applies entries in the order of the log.

Its decisions depend only on the entries, so all replicas decide in the same way.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from zlog.objects._decided import Decided, Decision, Outcome
from zlog.objects._locks import LockState
from zlog.objects._records import (
    VERSION,
    Commit,
    DecodeError,
    Manifest,
    Mark,
    Op,
    Range,
    Read,
    Record,
    Write,
    digest,
    encode,
)
from zlog.objects._states import (
    NEVER,
    Change,
    CounterState,
    MapState,
    Parts,
    QueueState,
    RegisterState,
    Replicated,
    SetState,
    State,
    UserState,
    type_name,
    typed,
)
from zlog.objects.errors import (
    ApplyFailed,
    Diverged,
    NewerRecord,
    Rejected,
    UnknownObjectType,
    UnknownRecord,
)

BUILT_IN: Mapping[str, type[State]] = {
    each.kind: each
    for each in (MapState, SetState, CounterState, RegisterState, QueueState, LockState)
}
"""Types that every space has, by their names in the log."""

_MARKS_MAX = 8
"""The number of unfinished checkpoints whose states are kept for comparison."""


class Chunk(msgspec.Struct, array_like=True, forbid_unknown_fields=True, gc=False):
    """A part of a checkpoint. It contains one object's state, or some of it.

    If ``kind`` is empty, the chunk contains the decided transactions instead, and ``object``
    contains their results as JSON. Older versions of zlog ignore these results.
    """

    object: str
    kind: str
    class_version: int
    version: int
    part: msgspec.Raw


_chunk = msgspec.msgpack.Decoder(Chunk)


class Frozen:
    """A snapshot of the state after one entry, which later entries do not change.

    Attributes:
        start: the snapshot contains the effects of all entries below this position.
        digests: the digests of objects of user-defined types.
    """

    def __init__(self, start: int, machine: Machine) -> None:
        self.start = start
        self.digests = machine.digests()
        self._decided = machine.decided.copy()
        self._objects: list[tuple[str, str, int, int, Parts]] = [
            (name, state.kind, state.class_version, state.version, state.freeze())
            for name, state in machine.objects.items()
        ]

    def chunks(self) -> Iterator[bytes]:
        """Yield the chunks of a checkpoint. Equal entries give equal chunks."""
        decided = self._decided
        yield encode((decided.results(), "", VERSION, NEVER, decided.rows()))
        for name, kind, class_version, version, parts in self._objects:
            empty = True
            for part in parts():
                empty = False
                yield encode((name, kind, class_version, version, part))
            if empty:
                yield encode((name, kind, class_version, version, None))


class Machine:
    """A space's state at one position of the log: its objects, and the outcomes of transactions.

    Args:
        types: the classes of user-defined types, by their names in the log.
        position: the position of the first entry to apply. The space is empty before it.

    Attributes:
        position: the position of the next entry to apply.
        objects: the objects, by name.
        decided: the most recently decided transactions.
        changes: a list that collects the changes until the caller clears it; None collects nothing.
        wanted: the snapshots to take, by the ids of their marks. A snapshot is None until its mark
            is applied.
    """

    def __init__(self, types: Mapping[str, type[Replicated]], position: int) -> None:
        self.position = position
        self.objects: dict[str, State] = {}
        self.decided = Decided()
        self.changes: list[Change] | None = None
        self.wanted: dict[str, Frozen | None] = {}
        self._types = types
        self._marks: dict[str, dict[str, str]] = {}

    def apply(self, position: int, record: Record) -> Outcome | None:
        """Apply an entry. Returns the outcome if the entry is a transaction.

        Raises:
            Stopped: the entry can't be applied. Discard this state, because part of the entry may
                have taken effect.
        """
        kind = type(record)
        outcome: Outcome | None = None
        if kind is Write:
            ops = record.ops  # type: ignore[union-attr]
            try:
                if len(ops) > 1:
                    self._check_kinds(position, ops)
                for op in ops:
                    self._run(position, op)
            except Rejected:  # all replicas reject it, and its writer expects no answer
                pass
        elif kind is Commit:
            outcome = self.decide(position, record)  # type: ignore[arg-type]
        elif kind is Mark:
            self._mark(position, record)  # type: ignore[arg-type]
        else:
            self._compare(position, record)  # type: ignore[arg-type]
        self.position = position + 1
        return outcome

    def decide(self, position: int, record: Commit) -> Outcome:
        """Decide a transaction at the position of its entry, and execute it if it is valid."""
        again = self.decided.again(record.id, record.attempt)
        if again is not None:
            return again
        if record.snapshot < self.decided.floor:
            return Outcome("late", position)
        outcome = self._decide_new(position, record)
        self.decided.add(record.id, Decision(record.attempt, position, outcome.code))
        if len(outcome.results) == 1 and not (record.reads or record.ranges):
            self.decided.keep_result(record.id, outcome.results[0])
        return outcome

    def _decide_new(self, position: int, record: Commit) -> Outcome:
        items = self.invalid(record.reads, record.ranges, record.snapshot)
        if items:
            return Outcome("conflict", position, items=items)
        ops = record.ops
        try:
            if len(ops) > 1:
                self._check_kinds(position, ops)
            results = [self._run(position, op) for op in ops[:1]]
        except Rejected as error:
            return Outcome("rejected", position, error=error)
        try:
            results += [self._run(position, op) for op in ops[1:]]
        except Rejected as error:
            raise ApplyFailed(
                f"part of the transaction at {position} is refused, although all its commands"
                f" were accepted when it was created: {error}",
                position=position,
            ) from error
        return Outcome("committed", position, results)

    def invalid(
        self, reads: Iterable[Read], ranges: Iterable[Range], snapshot: int
    ) -> list[tuple[str, object]]:
        """Return what has changed since a transaction read it: objects, keys and ranges.

        A key has changed if its version is not the one that was read. A range has changed if one of
        its keys was put since the snapshot, or if it now has a different number of keys
        (docs/decisions/0022-objects.md).
        """
        found: list[tuple[str, object]] = []
        for name, key, version in reads:
            state = self.objects.get(name)
            if (NEVER if state is None else state.version_of(key)) != version:
                found.append((name, key))
        for name, start, end, count in ranges:
            state = self.objects.get(name)
            if state is None:
                now: int | None = 0
            elif isinstance(state, MapState):
                if state.version < snapshot:
                    continue  # the object has not changed at all
                now = state.count_unchanged(start, end, snapshot)
            else:
                now = None
            if now != count:
                found.append((name, (start, end)))
        return found

    def _run(self, position: int, op: Op) -> Any:
        state = self.objects.get(op.object)
        if state is None or state.kind != op.kind or op.version > state.class_version:
            state = self._state_for(position, op)
        try:
            result = state.apply(position, op.command)
        except Rejected:
            raise
        except Exception as error:
            raise ApplyFailed(
                f"{op.kind} {op.object!r} can't apply the entry at {position}:"
                f" {type(error).__name__}: {error}",
                position=position,
            ) from error
        if self.changes is not None:
            change = state.change(op.object, op.command, result)
            if change is not None:
                self.changes.append(change)
        return result

    def _state_for(self, position: int, op: Op) -> State:
        """Return the object of a command. The first command for a name creates the object."""
        state = typed(self.objects, op.object, op.kind)
        if state is None:
            state = new_state(self._types, op.kind, op.object, position)
            self.objects[op.object] = state
        if op.version > state.class_version:
            raise NewerRecord(
                f"{op.kind} {op.object!r} has version {state.class_version} in this program, but"
                f" the entry at {position} has version {op.version}",
                position=position,
            )
        return state

    def _check_kinds(self, position: int, ops: Iterable[Op]) -> None:
        """Raise before anything is changed if a command is for an object of another type."""
        for op in ops:
            self._state_for(position, op)

    def digests(self) -> dict[str, str]:
        """Return the digests of the objects of user-defined types, by the objects' names.

        Two versions of a class may encode the same state differently, so only digests of the same
        version are compared. For this purpose, the name contains the version if it is 2 or higher.
        """
        return {
            name if state.class_version == 1 else f"{name}\0{state.class_version}": digest(
                state.encoded()
            ).hexdigest()
            for name, state in self.objects.items()
            if isinstance(state, UserState)
        }

    def _mark(self, position: int, mark: Mark) -> None:
        try:
            if mark.id in self.wanted:
                self.wanted[mark.id] = frozen = Frozen(position + 1, self)
                digests = frozen.digests
            else:
                digests = self.digests()
        except Exception as error:
            raise ApplyFailed(
                f"`snapshot` of an object failed at {position}: {type(error).__name__}: {error}",
                position=position,
            ) from error
        if digests:
            self._marks[mark.id] = digests
            if len(self._marks) > _MARKS_MAX:
                del self._marks[next(iter(self._marks))]

    def _compare(self, position: int, manifest: Manifest) -> None:
        """Compare a checkpoint's digests of user-defined objects with the local ones."""
        mine = self._marks.pop(manifest.id, {})
        for name, theirs in manifest.objects.items():
            if mine.get(name, theirs) != theirs:
                bare = name.partition("\0")[0]
                raise Diverged(
                    f"object {bare!r} had a different state in this program at {manifest.start}"
                    f" than in the checkpoint at {position}",
                    position=position,
                )

    def load(self, chunk: bytes | memoryview) -> None:
        """Load a chunk of a checkpoint. Chunks must come in order."""
        try:
            found = _chunk.decode(chunk)
            if not found.kind:
                self.decided = Decided.load(found.object, found.part)
                return
        except DecodeError as error:
            raise UnknownRecord(
                f"the checkpoint below {self.position} has an invalid part: {error}",
                position=self.position,
            ) from error
        state = self.objects.get(found.object)
        if state is None:
            state = new_state(self._types, found.kind, found.object, self.position)
            self.objects[found.object] = state
        if found.class_version > state.class_version:
            raise NewerRecord(
                f"{found.kind} {found.object!r} has version {state.class_version} in this program,"
                f" but the checkpoint below {self.position} has version {found.class_version}",
                position=self.position,
            )
        if bytes(found.part) != b"\xc0" or found.kind not in ("map", "set", "queue"):
            try:
                state.load(found.part)
            except Exception as error:
                raise ApplyFailed(
                    f"{found.kind} {found.object!r} can't be restored from the checkpoint below"
                    f" {self.position}: {type(error).__name__}: {error}",
                    position=self.position,
                ) from error
        state.version = found.version


def new_state(types: Mapping[str, type[Replicated]], kind: str, name: str, position: int) -> State:
    """Return an object in its initial state."""
    built_in = BUILT_IN.get(kind)
    if built_in is not None:
        return built_in()
    cls = types.get(kind)
    if cls is None:
        raise UnknownObjectType(
            f"{name!r} is of type {kind!r} (at {position}), and this program has no class for"
            " this type",
            position=position,
        )
    return UserState(cls)


def check_types(types: Iterable[type[Replicated]]) -> dict[str, type[Replicated]]:
    """Return a dictionary of classes by their names in the log.

    Raises:
        TypeError, ValueError: a value is not a subclass of :class:`Replicated`, or two classes
            have the same name.
    """
    found: dict[str, type[Replicated]] = {}
    for cls in types:
        if not (isinstance(cls, type) and issubclass(cls, Replicated)):
            raise TypeError(f"{cls!r} is not a subclass of Replicated")
        name = type_name(cls)
        if type(name) is not str or type(cls.version) is not int or cls.version < 1:
            raise TypeError(
                f"{cls.__name__} needs a `type_name`, which is a string, and a `version`, which"
                " is an int of 1 or more"
            )
        try:
            cls()
        except Exception as error:
            raise TypeError(f"cannot create an object of {cls.__name__}: {error}") from error
        if name in BUILT_IN or found.get(name, cls) is not cls:
            raise ValueError(f"two classes have the type name {name!r}; change one")
        found[name] = cls
    return found
