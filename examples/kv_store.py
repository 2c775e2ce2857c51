"""A key-value store whose write-ahead log is an exclusive log. docs/wal.md explains it.

    python examples/kv_store.py STORE-URL LOG FOLDER < COMMANDS

Each line of COMMANDS is `set KEY VALUE`, `add KEY NUMBER`, `get KEY` or `flush`. The program
answers each with a line, and answers a change when it is confirmed.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from pathlib import Path
from types import TracebackType

import zlog


class KeyValueStore:
    """A map of text to text in memory. Changes that are not in the table on disk are in the log.

    Args:
        log: the log, to which no other client writes.
        folder: the folder of the table, which is created if it does not exist.
        memtable_bytes: the size of changes in bytes after which the table is written.
    """

    def __init__(self, log: zlog.Log, folder: Path, memtable_bytes: int = 1 << 20) -> None:
        self._folder = folder
        self._folder.mkdir(parents=True, exist_ok=True)
        self._log = log
        self._memtable_bytes = memtable_bytes
        self._values: dict[str, str] = {}
        self._applied = 0  # positions below it are in _values
        # It is twice the memtable, so that changes continue while the table is written and the log
        # is trimmed.
        self._wal = log.writer(f"kv:{os.getpid()}", capacity=2 * memtable_bytes)
        try:
            self._recover()
        except BaseException:
            self._wal.close()
            raise

    def get(self, key: str) -> str | None:
        """Return the value of a key, or None if it has none."""
        return self._values.get(key)

    def set(self, key: str, value: str) -> None:
        """Set the value of a key. It is durable when this returns."""
        self._change("set", key, value)

    def add(self, key: str, number: int) -> None:
        """Add to a key's number, which is 0 at first. It is durable when this returns."""
        self._change("add", key, str(number))

    def flush(self) -> None:
        """Write the table, and trim the entries that it contains from the log."""
        # The position is in the name, so that a fenced store cannot replace a newer table.
        table = self._folder / f"table-{self._applied:020d}.json"
        new = table.with_suffix(f".{os.getpid()}.new")
        with new.open("w") as file:
            json.dump({"applied": self._applied, "values": self._values}, file)
            file.flush()
            os.fsync(file.fileno())
        new.replace(table)
        folder = os.open(self._folder, os.O_RDONLY)
        os.fsync(folder)  # before the trim: otherwise both could be lost
        os.close(folder)
        self._wal.trim(self._applied)
        for older in self._folder.glob("table-*"):
            if older.name < table.name:
                older.unlink(missing_ok=True)

    def close(self) -> None:
        """Write the table. The store keeps the log."""
        self.flush()
        self._wal.close()

    def _recover(self) -> None:
        """Load the newest table, and apply the log's entries after it."""
        seen = None
        while True:
            self._load()
            start = self._applied
            for entry in self._wal.recover():
                # The log has the entries that are in the table until it is trimmed.
                if isinstance(entry, zlog.Entry) and entry.position >= start:
                    self._apply(entry.position, entry.data)
            begin = self._log.stat().trim_point
            if begin <= start:
                return
            if start == seen:
                raise FileNotFoundError(
                    f"the log begins at position {begin}, and the newest table in {self._folder}"
                    f" goes up to {start}: name the folder that the log's tables are in"
                )
            seen = start  # a fenced store has just written its table and trimmed: load that table

    def _load(self) -> None:
        """Load the newest table, or an empty one if there is none."""
        self._applied, self._values = 0, {}
        with contextlib.suppress(FileNotFoundError):  # a fenced store has just removed it
            for newest in sorted(self._folder.glob("table-*.json"))[-1:]:
                table = json.loads(newest.read_text())
                self._applied, self._values = table["applied"], table["values"]

    def _change(self, what: str, key: str, value: str) -> None:
        change = json.dumps([what, key, value]).encode()
        if (self._wal.held_bytes or 0) + len(change) > self._memtable_bytes:
            self.flush()
        self._apply(self._wal.append(change), change)

    def _apply(self, position: int, change: bytes) -> None:
        what, key, value = json.loads(change)
        if what == "add":
            value = str(int(self._values.get(key, "0")) + int(value))
        self._values[key] = value
        self._applied = position + 1

    def __enter__(self) -> KeyValueStore:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            self.close()
        else:
            self._wal.close()


def main() -> None:
    """Answer the commands on stdin."""
    if len(sys.argv) != 4:
        sys.exit("usage: kv_store.py STORE-URL LOG FOLDER < COMMANDS")
    url, name, folder = sys.argv[1:]
    try:
        log = zlog.Log.open(zlog.connect(url), name, create=True, width=1)
        with KeyValueStore(log, Path(folder), memtable_bytes=4096) as store:
            for line in sys.stdin:
                sys.stdout.write(answer(store, line.split()) + "\n")
                sys.stdout.flush()
    except (zlog.ZlogError, OSError) as error:
        sys.exit(f"kv_store.py: {error}")


def answer(store: KeyValueStore, command: list[str]) -> str:
    """Return the answer to one command."""
    match command:
        case ["get", key]:
            return store.get(key) or ""
        case ["set", key, value]:
            store.set(key, value)
        case ["add", key, number]:
            store.add(key, int(number))
        case ["flush"]:
            store.flush()
        case _:
            return f"no command: {' '.join(command)}"
    return "ok"


if __name__ == "__main__":
    main()
