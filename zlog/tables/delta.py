"""A Delta table. Each commit has the position as the version of an application's transaction.

Delta refuses a commit if another one with a version of the same application came first.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from deltalake.exceptions import CommitFailedError

from zlog.tables.sink import State, check_empty, moved, not_ours

_APPLICATION = "zlog table tail"


class DeltaSink:
    """A Delta table; see :class:`zlog.tables.sink.Sink`. Its description is the origin."""

    def __init__(self, table: str) -> None:
        self._table = table
        self._delta: DeltaTable

    def load(self) -> State | None:
        """See Sink."""
        if not DeltaTable.is_deltatable(self._table):
            check_empty(self._table)
            return None
        self._delta = DeltaTable(self._table)
        position = self._delta.transaction_version(_APPLICATION)
        if position is None:
            raise not_ours(self._table)
        return State(self._delta.metadata().description or "", position)

    def create(self, state: State, schema: pa.Schema, partitions: Sequence[str]) -> None:
        """See Sink."""
        self._delta = DeltaTable.create(
            self._table,
            schema,
            partition_by=[*partitions],
            description=state.origin,
            commit_properties=_at(state.position),
        )

    def append(self, rows: pa.Table, start: int, end: int) -> None:
        """See Sink."""
        try:
            write_deltalake(self._delta, rows, mode="append", commit_properties=_at(end))
        except CommitFailedError:
            state = self.load()
            if state is not None and state.position != start:
                raise moved(self._table, start, state.position) from None
            raise

    def close(self) -> None:
        """See Sink."""


def _at(position: int) -> CommitProperties:
    return CommitProperties(app_transactions=[Transaction(_APPLICATION, position)])
