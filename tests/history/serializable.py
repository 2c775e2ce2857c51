"""P22, P23: what transactions on lists tell of the order in which they took effect.

The idea is Elle's (Kingsbury and Alvaro, VLDB 2020). A list shows in which order values were
appended, so that the longest one that was read is the order of a key's versions. From that follows
which transaction comes before which: who appended before whom (ww), who read what another one
appended (wr), who read what another one appended to later (rw), and who had ended before another
one began (rt). A cycle is an order that can't be. If there is none, any order that agrees with the
edges explains the history.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator
from graphlib import CycleError, TopologicalSorter
from operator import attrgetter
from typing import NamedTuple

from tests.history.facts import Violation, progress
from tests.history.operations import Result
from tests.history.transactions import ListTransaction, TransactionHistory

WW, WR, RW, RT = "ww", "wr", "rw", "rt"

_FOUND = ((WW,), (WW, WR), (WW, WR, RW), (WW, WR, RW, RT))
"""What is allowed in a cycle, the worst first."""

Values = tuple[Hashable, ...]


class Edge(NamedTuple):
    """One node comes before another one.

    Attributes:
        target: the later node.
        kind: why.
        key: on which key; empty if on none.
    """

    target: int
    kind: str
    key: str = ""


Graph = list[list[Edge]]
"""For each node what comes later."""


def check_transactions(history: TransactionHistory) -> list[Violation]:
    """Return violations of P22 and P23, and of P13: strict serializability; of cycles, one.

    A transaction whose outcome is unknown may have taken effect, or not; if another one read what
    it has appended, it has, and then what it read counts too.

    It takes time that is linear in what was read and appended, but for sorting the events.

    Raises:
        ValueError: two transactions append the same value to the same key, so that it is not known
            which of them a reader found.
    """
    facts = _Facts(history)
    return [violation for rule in _RULES for violation in rule(facts)]


class _Read(NamedTuple):
    """A transaction's first read of a key.

    Attributes:
        by: the transaction.
        key: of the list.
        found: the list without what the transaction itself has appended.
    """

    by: ListTransaction
    key: str
    found: Values


class _Facts:
    """A history, sorted by what the rules ask of it.

    Attributes:
        history: see there.
        writers: who appends a value to a key, or tries to.
        last: the last value that a transaction appends to a key.
        effective: the transactions that took effect for certain.
        lists: of each key, the lists that were read, each with one of its readers; the longest
            first, then those that are no beginning of it.
        reads: what effective transactions read that others appended.
        versions: of each key its values, in their order.
        confused: transactions whose reads do not agree with each other, with the key.
    """

    def __init__(self, history: TransactionHistory) -> None:
        self.history = history
        self.writers: dict[tuple[str, Hashable], ListTransaction] = {}
        self.last: dict[tuple[int, str], Hashable] = {}
        for transaction in history.transactions:
            for key, value, _ in transaction.steps:
                if value is not None:
                    if (key, value) in self.writers:
                        raise ValueError(f"{value!r} was appended to {key!r} by two transactions")
                    self.writers[key, value] = transaction
                    self.last[transaction.number, key] = value
        self.lists: dict[str, list[tuple[Values, ListTransaction]]] = defaultdict(list)
        self.effective = self._find_effective()
        self.confused: list[tuple[ListTransaction, str]] = []
        self.reads = [read for each in self.effective for read in self._reads_of(each)]
        self.versions = {key: lists[0][0] for key, lists in self.lists.items()}

    def _find_effective(self) -> list[ListTransaction]:
        """Return the committed transactions, and all whose values these show, one by another."""
        found = [each for each in self.history.transactions if each.result is Result.OK]
        known = {each.number for each in found}
        longest: dict[str, Values] = {}
        others: list[tuple[str, Values, ListTransaction]] = []
        readers: dict[str, ListTransaction] = {}
        for transaction in found:  # it grows meanwhile
            for key, value, values in transaction.steps:
                before = longest.get(key, ())
                if value is not None or (key in longest and before[: len(values)] == values):
                    continue
                if values[: len(before)] == before:
                    news = values[len(before) :]
                    longest[key], readers[key] = values, transaction
                else:
                    news = values
                    others.append((key, values, transaction))
                for each in news:
                    writer = self.writers.get((key, each))
                    if (
                        writer is not None
                        and writer.number not in known
                        and writer.result is not Result.REFUSED
                    ):
                        known.add(writer.number)
                        found.append(writer)
        for key, values in longest.items():
            self.lists[key].append((values, readers[key]))
        for key, values, transaction in others:
            if len(values) > len(longest[key]):
                # Which of two that contradict each other is right is not known.
                self.lists[key].insert(0, (values, transaction))
            elif longest[key][: len(values)] != values:
                self.lists[key].append((values, transaction))
        return sorted(found, key=attrgetter("number"))

    def _reads_of(self, transaction: ListTransaction) -> Iterator[_Read]:
        """Return the first read of each key; what it reads later has to agree with that."""
        first: dict[str, Values] = {}
        own: dict[str, list[Hashable]] = defaultdict(list)
        for key, value, values in transaction.steps:
            if value is not None:
                own[key].append(value)
                continue
            mine = tuple(own[key])
            others = values[: len(values) - len(mine)] if mine else values
            agree = not mine or values[len(values) - len(mine) :] == mine
            if agree and key not in first:
                first[key] = others
                agree = not others or self.writers.get((key, others[-1])) is not transaction
                if agree:
                    yield _Read(transaction, key, others)
            elif agree:
                agree = first[key] == others
            if not agree:
                self.confused.append((transaction, key))


def _genuine(facts: _Facts) -> Iterator[Violation]:
    """P23: what is read was appended, once, and not by a transaction that had no effect."""
    for key, lists in facts.lists.items():
        for values, reader in lists:
            seen: set[Hashable] = set()
            for value in values:
                writer = facts.writers.get((key, value))
                if writer is None:
                    message = f"{key} holds {value}, which was not appended"
                    yield Violation("P23", message, None, (reader,))
                elif writer.result is Result.REFUSED:
                    message = f"G1a: {key} holds {value} of a transaction that was refused"
                    yield Violation("P23", message, None, (writer, reader))
                elif value in seen:
                    message = f"{key} holds {value} twice"
                    yield Violation("P23", message, None, (writer, reader))
                seen.add(value)


def _whole(facts: _Facts) -> Iterator[Violation]:
    """P23: no transaction reads a part of what another one has appended."""
    for read in facts.reads:
        if not read.found:
            continue
        writer = facts.writers.get((read.key, read.found[-1]))
        if writer is not None and facts.last[writer.number, read.key] != read.found[-1]:
            message = f"G1b: {read.key} was read in the middle of a transaction"
            yield Violation("P23", message, None, (writer, read.by))


def _once(facts: _Facts) -> Iterator[Violation]:
    """P23: of all attempts with one id, one takes effect; what only reads has none."""
    first: dict[str, ListTransaction] = {}
    for transaction in facts.effective:
        if transaction.id is not None and transaction.appends:
            other = first.setdefault(transaction.id, transaction)
            if other is not transaction:
                message = f"transaction {transaction.id} took effect twice"
                yield Violation("P23", message, None, (other, transaction))


def _agreed(facts: _Facts) -> Iterator[Violation]:
    """P22: all lists that were read of a key are beginnings of one, in each transaction too."""
    for key, ((_, reader), *others) in facts.lists.items():
        for _, other in others:
            message = f"{key} was read in orders that contradict each other"
            yield Violation("P22", message, None, (reader, other))
    for transaction, key in facts.confused:
        message = f"{key} was read, and not as the transaction itself had left it"
        yield Violation("P22", message, None, (transaction,))


def _in_one_order(facts: _Facts) -> Iterator[Violation]:
    """P22: there is no cycle. Of several, one of the worst kind is reported."""
    graph = _Order(facts).edges
    if _node_of_cycle(graph, _FOUND[-1]) is None:
        return
    for kinds in _FOUND:
        node = _node_of_cycle(graph, kinds)
        if node is not None:
            cycle = _shortest_cycle(graph, node, kinds)
            yield _described(facts.history.transactions, cycle)
            return


def _node_of_cycle(graph: Graph, kinds: Collection[str]) -> int | None:
    """Return a node that is on a cycle of edges of some kinds, if there is one."""
    sorter = TopologicalSorter[int]()
    for node, edges in enumerate(graph):
        for edge in edges:
            if edge.kind in kinds:
                sorter.add(edge.target, node)
    try:
        sorter.prepare()
    except CycleError as error:
        found: int = min(error.args[1])
        return found
    return None


def _shortest_cycle(graph: Graph, start: int, kinds: Collection[str]) -> list[tuple[int, Edge]]:
    """Return a cycle through a node that is on one: its nodes, each with the edge to the next."""
    came: dict[int, tuple[int, Edge]] = {}
    queue = deque([start])
    while start not in came:
        node = queue.popleft()
        for edge in graph[node]:
            if edge.kind in kinds and edge.target not in came:
                came[edge.target] = node, edge
                queue.append(edge.target)
    cycle = [came[start]]
    while cycle[-1][0] != start:
        cycle.append(came[cycle[-1][0]])
    return cycle[::-1]


def _described(transactions: list[ListTransaction], cycle: list[tuple[int, Edge]]) -> Violation:
    """Return what a cycle violates, with the name that anomalies of its kind have."""
    real = [at for at, (node, _) in enumerate(cycle) if node < len(transactions)]
    cycle = cycle[real[0] :] + cycle[: real[0]]
    nodes = [node for node, _ in cycle if node < len(transactions)]
    kinds = [edge.kind for _, edge in cycle]
    anti = kinds.count(RW)
    name = "G2" if anti > 1 else "G-single" if anti else "G1c" if WR in kinds else "G0"
    name += "-realtime" if RT in kinds else ""
    said = ""
    for node, edge in cycle:
        if node < len(transactions):
            on = f" on {edge.key}" if edge.key else ""
            said += f"#{node} -{edge.kind}{on}-> "
    return Violation(
        "P22",
        f"{name}: no order has {said}#{nodes[0]}",
        None,
        tuple(transactions[node] for node in nodes),
    )


class _Order:
    """What follows from a history about which transaction comes before which.

    Attributes:
        edges: the first nodes are the transactions, by their numbers; the others stand for moments.
    """

    def __init__(self, facts: _Facts) -> None:
        self.edges: Graph = [[] for _ in facts.history.transactions]
        self._facts = facts
        self._add_versions()
        self._add_reads()
        self._add_unread()
        self._add_real_time()

    def _add(self, before: int, after: int, kind: str, key: str = "") -> None:
        if before != after:
            self.edges[before].append(Edge(after, kind, key))

    def _node(self) -> int:
        self.edges.append([])
        return len(self.edges) - 1

    def _writer(self, key: str, value: Hashable) -> int | None:
        writer = self._facts.writers.get((key, value))
        return None if writer is None else writer.number

    def _add_versions(self) -> None:
        for key, values in self._facts.versions.items():
            before: int | None = None
            for value in values:
                writer = self._writer(key, value)
                if writer is not None:
                    if before is not None:
                        self._add(before, writer, WW, key)
                    before = writer

    def _add_reads(self) -> None:
        for read in self._facts.reads:
            versions, count = self._facts.versions[read.key], len(read.found)
            if versions[:count] != read.found:
                continue  # P22 is violated there anyhow
            writer = self._writer(read.key, read.found[-1]) if count else None
            if writer is not None:
                self._add(writer, read.by.number, WR, read.key)
            if count < len(versions):
                writer = self._writer(read.key, versions[count])
                if writer is not None:
                    self._add(read.by.number, writer, RW, read.key)

    def _add_unread(self) -> None:
        """What was appended for certain and is in no read comes behind all that was read."""
        unread: dict[str, list[int]] = defaultdict(list)
        shown = {(key, value) for key, values in self._facts.versions.items() for value in values}
        for transaction in self._facts.effective:
            for key, value, _ in transaction.steps:
                if value is not None and (key, value) not in shown and key in self._facts.versions:
                    unread[key].append(transaction.number)
        readers: dict[str, list[int]] = defaultdict(list)
        for read in self._facts.reads:
            if read.key in unread and read.found == self._facts.versions[read.key]:
                readers[read.key].append(read.by.number)
        for key, writers in unread.items():
            self._add_last(key, dict.fromkeys(writers), dict.fromkeys(readers[key]))

    def _add_last(self, key: str, writers: Collection[int], readers: Collection[int]) -> None:
        """Put writers behind the last version of a key, and behind those that read this one.

        One that does both comes before all other writers; two of that kind, each before the other.
        """
        versions = self._facts.versions[key]
        last = self._writer(key, versions[-1]) if versions else None
        both = [reader for reader in readers if reader in writers]
        for writer in writers:
            if last is not None:
                self._add(last, writer, WW, key)
            if both:
                self._add(both[0], writer, RW, key)
        for reader in both[1:]:
            self._add(reader, both[0], RW, key)
        moment = self._node()
        for reader in readers:
            if reader not in writers:
                self._add(reader, moment, RW, key)
        for writer in writers:
            self._add(moment, writer, WW, key)

    def _add_real_time(self) -> None:
        """Have those that ended before others began come before them.

        There is a node for each end: those that ended come before it, and it comes before the next
        one, and before those that begin between the two.
        """
        committed = [each for each in self._facts.effective if each.result is Result.OK]
        ends = sorted(committed, key=attrgetter("returned"))
        ended: int | None = None
        coming = iter(ends)
        end = next(coming, None)
        for transaction in sorted(self._facts.effective, key=attrgetter("invoked")):
            while end is not None and end.returned < transaction.invoked:
                moment = self._node()
                if ended is not None:
                    self._add(ended, moment, RT)
                self._add(end.number, moment, RT)
                ended, end = moment, next(coming, None)
            if ended is not None:
                self._add(ended, transaction.number, RT)


_RULES: tuple[Callable[[_Facts], Iterable[Violation]], ...] = (
    _genuine,
    _whole,
    _once,
    _agreed,
    _in_one_order,
    lambda facts: progress(facts.history.transactions, facts.history.repaired),
)
