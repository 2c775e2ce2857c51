"""What transactions on lists read and appended, for :func:`check_transactions`."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from hashlib import sha256
from typing import NamedTuple

from tests.history.operations import Events, Record, Result


class ListStep(NamedTuple):
    """One step of a transaction: it appends a value to the list of a key, or reads that list.

    Attributes:
        key: of the list.
        value: what it appends; None: it reads.
        found: what it reads, the whole list, with what the transaction itself has appended.
    """

    key: str
    value: Hashable
    found: tuple[Hashable, ...] = ()

    def __str__(self) -> str:
        if self.value is not None:
            return f"append {self.value} to {self.key}"
        return f"read {self.key}: {' '.join(map(str, self.found)) or 'nothing'}"


@dataclass(slots=True, eq=False)
class ListTransaction(Record):
    """One attempt at a transaction. A read or an append by itself is a transaction, too.

    With the result ``OK`` it is committed, with ``REFUSED`` it has had no effect and never will;
    with any other it is unknown.

    Attributes:
        id: attempts with the same id take effect once, all together, but for those that only read;
            None: it is the only one.
        steps: what it did, in order.
    """

    id: str | None = None
    steps: list[ListStep] = field(default_factory=list)

    def append(self, key: str, value: Hashable) -> None:
        """Note that it appends a value, which no other attempt appends to this key."""
        if value is None:
            raise ValueError("None is no value of a list")
        self.steps.append(ListStep(key, value))

    def read(self, key: str, found: Iterable[Hashable]) -> None:
        """Note that it found a list to be so."""
        self.steps.append(ListStep(key, None, tuple(found)))

    @property
    def appends(self) -> bool:
        """Whether it appends anything."""
        return any(step.value is not None for step in self.steps)

    def __str__(self) -> str:
        what = f" as {self.id}" if self.id is not None else ""
        return self.shown(f"{what}: {', '.join(map(str, self.steps)) or 'nothing'}")


class TransactionHistory(Events):
    """Transactions on lists, with the order in which they began and ended.

    A list is anything that values are appended to, and that is read as a whole.

    Args:
        clock: tells the seconds that messages show; None shows 0.

    Attributes:
        transactions: all of them, in the order in which they were noted.
    """

    def __init__(self, clock: Callable[[], float] | None = None) -> None:
        super().__init__(clock)
        self.transactions: list[ListTransaction] = []

    def begin(
        self, process: str, *, id: str | None = None, invoked: float | None = None
    ) -> ListTransaction:
        """Note that an attempt begins, now or at an earlier event."""
        transaction = ListTransaction(
            len(self.transactions),
            process,
            self.event() if invoked is None else invoked,
            id=id,
            seconds=self.seconds,
        )
        self.transactions.append(transaction)
        return transaction

    def end(self, transaction: ListTransaction, result: Result, error: str = "") -> None:
        """Note that an attempt ends."""
        transaction.returned, transaction.result = self.event(), result
        transaction.error = error

    def digest(self) -> str:
        """Return a number for all that happened: equal histories have equal ones."""
        content = "\n".join(map(str, self.transactions))
        return sha256(content.encode()).hexdigest()[:16]
