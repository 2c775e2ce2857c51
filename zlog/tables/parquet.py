"""A folder of Parquet files.

A batch is written into files in the folder ``_zlog``, which readers of the table ignore. The state
then replaces the old one; this commits the batch. Its files are then moved to their places. If the
process ends before they are all there, the next one moves the others.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from zlog.tables.sink import State, TableConflict, WrongTable, check_empty

_NULL = "__HIVE_DEFAULT_PARTITION__"
_ESCAPED = re.compile(r"[\x00-\x1f\"#%'*/:=?\\\x7f{\[\]^]")
"""The characters that Spark escapes in the names of partitions."""


class ParquetSink:
    """A folder of Parquet files; see :class:`zlog.tables.sink.Sink`."""

    def __init__(self, table: str) -> None:
        if "://" in table:
            raise WrongTable(
                f"{table}: a table in Parquet must be a local folder",
                hint="Object stores cannot commit several files at once. Use --format delta or"
                " iceberg.",
            )
        self._table = Path(table)
        self._own = self._table / "_zlog"
        self._state = self._own / "state.json"
        self._content: dict[str, Any] = {}
        self._lock: BinaryIO | None = None

    def load(self) -> State | None:
        """See Sink. Also move the files of the last batch to their places."""
        if not self._state.exists():
            check_empty(str(self._table))
        self._own.mkdir(parents=True, exist_ok=True)
        self._lock = (self._own / "lock").open("ab")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise TableConflict(f"another process copies into {self._table}") from None
        if not self._state.exists():
            return None
        self._content = json.loads(self._state.read_bytes())
        self._publish()
        for leftover in self._own.glob("*.tmp"):
            leftover.unlink()
        return State(self._content["origin"], self._content["position"])

    def create(self, state: State, schema: pa.Schema, partitions: Sequence[str]) -> None:
        """See Sink."""
        _sync(self._table.parent)
        _sync(self._table)
        self._save({**state._asdict(), "partitions": [*partitions], "files": {}})

    def append(self, rows: pa.Table, start: int, end: int) -> None:
        """See Sink. The name of a file has the positions of its batch."""
        files = {}
        for number, (folder, part) in enumerate(_parts(rows, self._content["partitions"])):
            path = self._own / f"{start}-{number}.tmp"
            pq.write_table(part, path, compression="zstd")
            _sync(path)
            files[path.name] = f"{folder}{start:019}-{end:019}.parquet"
        self._save({**self._content, "position": end, "files": files})
        self._publish()

    def close(self) -> None:
        """See Sink."""
        if self._lock is not None:
            self._lock.close()

    def _save(self, content: dict[str, Any]) -> None:
        path = self._own / "state.tmp"
        path.write_text(json.dumps(content))
        _sync(path)
        path.replace(self._state)
        _sync(self._own)
        self._content = content

    def _publish(self) -> None:
        """Move the files of the last batch, unless that was done."""
        changed = {self._own}
        for name, place in self._content["files"].items():
            path, target = self._own / name, self._table / place
            if path.exists():
                target.parent.mkdir(parents=True, exist_ok=True)
                path.rename(target)
            changed.update(each for each in target.parents if each.is_relative_to(self._table))
        for folder in changed:
            if folder.exists():  # users may remove old partitions
                _sync(folder)


def _sync(path: Path) -> None:
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def _parts(rows: pa.Table, partitions: Sequence[str]) -> Iterator[tuple[str, pa.Table]]:
    """Divide rows by the folders of their partitions, whose names are those that Spark makes."""
    if not partitions:
        yield from [("", rows)] if len(rows) else []
        return
    folders = pc.binary_join_element_wise(*(_folders(rows, name) for name in partitions), "/")
    content = rows.drop_columns([*partitions])
    for folder in pc.unique(folders):
        yield f"{folder}/", content.filter(pc.equal(folders, folder))


def _folders(rows: pa.Table, name: str) -> pa.Array:
    codes = rows[name].cast(pa.string()).combine_chunks().dictionary_encode()
    values = [_escape(each) if each else _NULL for each in codes.dictionary.to_pylist()]
    names = pa.array([f"{_escape(name)}={each}" for each in values], pa.string())
    return names.take(codes.indices).fill_null(f"{_escape(name)}={_NULL}")


def _escape(text: str) -> str:
    return _ESCAPED.sub(lambda found: f"%{ord(found[0]):02X}", text)
