"""An Iceberg table. Each commit also sets the position, which is a property of the table."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pyarrow as pa
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import CommitFailedException, NoSuchTableError
from pyiceberg.table import Table

from zlog.tables.sink import State, WrongTable, moved, not_ours

_ORIGIN, _POSITION = "zlog.origin", "zlog.position"
_RETRIES = "commit.retry.num-retries"
"""How often PyIceberg repeats a commit. It would add the rows even if another process did that."""

_AGE = "history.expire.max-snapshot-age-ms"
_PROPERTIES = {
    _RETRIES: "0",
    _AGE: str(60 * 60 * 1000),
    "commit.manifest-merge.enabled": "true",
    "write.metadata.delete-after-commit.enabled": "true",
}
_TRIES = 5


class IcebergSink:
    """An Iceberg table; see :class:`zlog.tables.sink.Sink`.

    Args:
        table: the path of the table; or its namespace and name in a catalog.
        catalog: the name of a catalog in PyIceberg's configuration. None means an SQLite file next
            to the table.
    """

    def __init__(self, table: str, catalog: str | None = None) -> None:
        if catalog is None and "://" in table:
            raise WrongTable(f"{table} needs a catalog", hint="Name the catalog with --catalog.")
        self._name = ("zlog", Path(table).name) if catalog is None else tuple(table.split("."))
        self._location = table if catalog is None else None
        self._catalog_name = catalog
        self._catalog: Catalog | None = None
        self._table: Table

    def load(self) -> State | None:
        """See Sink."""
        if self._location is None:
            self._catalog = self._catalog or load_catalog(self._catalog_name)
        elif self._catalog is None:
            Path(self._location).parent.mkdir(parents=True, exist_ok=True)
            uri = f"sqlite:///{self._location}.catalog.db"
            self._catalog = load_catalog("zlog", type="sql", uri=uri)
        try:
            self._table = self._catalog.load_table(self._name)
        except NoSuchTableError:
            return None
        found = self._table.properties
        if _POSITION not in found:
            raise not_ours(".".join(self._name))
        if found.get(_RETRIES) != "0":
            with self._table.transaction() as transaction:
                transaction.set_properties({_RETRIES: "0"})
        return State(found[_ORIGIN], int(found[_POSITION]))

    def create(self, state: State, schema: pa.Schema, partitions: Sequence[str]) -> None:
        """See Sink."""
        assert self._catalog is not None
        self._catalog.create_namespace_if_not_exists(self._name[:-1])
        properties = {**_PROPERTIES, _ORIGIN: state.origin, _POSITION: str(state.position)}
        with (
            self._catalog.create_table_transaction(
                self._name, schema, self._location, properties=properties
            ) as transaction,
            transaction.update_spec() as spec,
        ):
            for name in partitions:
                spec.add_identity(name)
        self.load()

    def append(self, rows: pa.Table, start: int, end: int) -> None:
        """See Sink. The commit fails if the newest snapshot is not the one that was loaded."""
        for tries_left in reversed(range(_TRIES)):
            try:
                with self._table.transaction() as transaction:
                    transaction.set_properties({_POSITION: str(end)})
                    transaction.append(rows)
                break
            except CommitFailedException:  # perhaps because of a maintenance of the table
                state = self.load()
                if state is None or not tries_left:
                    raise
                if state.position != start:
                    raise moved(".".join(self._name), start, state.position) from None
        self._expire()

    def _expire(self) -> None:
        """Forget old snapshots, since PyIceberg copies the list of them in each commit."""
        age = timedelta(milliseconds=int(self._table.properties.get(_AGE, _PROPERTIES[_AGE])))
        now, oldest = datetime.now(timezone.utc), self._table.snapshots()[0].timestamp_ms / 1000
        if datetime.fromtimestamp(oldest, timezone.utc) < now - 2 * age:
            with contextlib.suppress(CommitFailedException):
                self._table.maintenance.expire_snapshots().older_than(now - age).commit()

    def close(self) -> None:
        """See Sink."""
        if self._catalog is not None:
            self._catalog.close()
