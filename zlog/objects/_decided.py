"""The outcomes of transactions that a space remembers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import msgspec

from zlog.objects._records import owned
from zlog.objects.errors import Rejected

DECIDED_MAX = 65536
"""The number of newest transactions whose ids a space remembers."""

RESULTS_BYTES = 1 << 20
"""The size of the newest command results that a space remembers, as JSON with their ids."""

Code = Literal["committed", "conflict", "rejected", "repeated", "late"]
"""The outcomes of a transaction. ``repeated`` means that its id was decided before, and ``late``
that the space no longer knows whether it was decided."""


class Outcome(NamedTuple):
    """The outcome of a transaction.

    Attributes:
        code: the decision.
        position: the position of the entry that decided the transaction.
        results: the commands' results if the transaction was committed. If the code is
            ``repeated``, the space may no longer store them.
        error: why the transaction was rejected.
        items: the objects, keys and ranges that have changed since the transaction read them.
        attempt: the number of the attempt that decided the transaction.
        committed: if the code is ``repeated``, whether the earlier attempt was committed.
    """

    code: Code
    position: int
    results: Sequence[Any] = ()
    error: Rejected | None = None
    items: Sequence[tuple[str, object]] = ()
    attempt: int = 0
    committed: bool = False


class Decision(NamedTuple):
    """The information that a space keeps about a decided transaction."""

    attempt: int
    position: int
    code: Code


class Decided:
    """Remembers the newest decisions on transactions, and the newest results of their commands.

    Checkpoints contain both. So a client can find out what became of its transaction even if the
    entry was trimmed before the client applied it.

    Attributes:
        floor: all decisions at or above this position are remembered.
    """

    def __init__(
        self,
        known: Mapping[str, Decision] = {},
        floor: int = 0,
        results: Mapping[str, bytes] = {},
    ) -> None:
        self._known = dict(known)
        self._results = dict(results)
        self._bytes = sum(map(_size, self._results.items()))
        self.floor = floor

    def find(self, id: str) -> Decision | None:
        """Return the decision on an id."""
        return self._known.get(id)

    def again(self, id: str, attempt: int) -> Outcome | None:
        """Return the outcome of a record whose attempt at an id was decided before, or None."""
        known = self.find(id)
        if known is None or not (known.code == "committed" or known.attempt >= attempt):
            return None
        result = self._results.get(id)
        return Outcome(
            "repeated",
            known.position,
            () if result is None else (msgspec.json.decode(result),),
            attempt=known.attempt,
            committed=known.code == "committed",
        )

    def add(self, id: str, decision: Decision) -> None:
        """Remember the newest decision; forget the oldest one if there are too many."""
        self._known.pop(id, None)
        self._known[id] = decision
        if len(self._known) > DECIDED_MAX:
            oldest = next(iter(self._known))
            self.floor = self._known.pop(oldest).position + 1
            self._forget_result(oldest)

    def keep_result(self, id: str, result: Any) -> None:
        """Remember the newest result if it is a JSON value; forget the oldest if there are many."""
        try:
            data = msgspec.json.encode(owned(result))
        except (TypeError, ValueError):
            return
        self._results[id] = data
        self._bytes += _size((id, data))
        while self._bytes > RESULTS_BYTES and len(self._results) > 1:
            self._forget_result(next(iter(self._results)))

    def _forget_result(self, id: str) -> None:
        data = self._results.pop(id, None)
        if data is not None:
            self._bytes -= _size((id, data))

    def copy(self) -> Decided:
        """Return a copy."""
        return Decided(self._known, self.floor, self._results)

    def rows(self) -> tuple[int, list[tuple[str, int, int, Code]]]:
        """Return all decisions, oldest first, in the form of a checkpoint."""
        return self.floor, [(name, *decision) for name, decision in self._known.items()]

    def results(self) -> str:
        """Return the results, oldest first, in the form of a checkpoint."""
        if not self._results:
            return ""
        rows = {name: msgspec.Raw(data) for name, data in self._results.items()}
        return msgspec.json.encode(rows).decode()

    @classmethod
    def load(cls, results: str, rows: msgspec.Raw) -> Decided:
        """Return the decisions and results that :meth:`rows` and :meth:`results` returned."""
        floor, decisions = _rows.decode(rows)
        kept = {name: bytes(raw) for name, raw in _results.decode(results or "{}").items()}
        return cls({row[0]: Decision(*row[1:]) for row in decisions}, floor, kept)


_rows = msgspec.msgpack.Decoder(tuple[int, list[tuple[str, int, int, Code]]])
_results = msgspec.json.Decoder(dict[str, msgspec.Raw])


def _size(item: tuple[str, bytes]) -> int:
    return len(item[0]) + len(item[1])
