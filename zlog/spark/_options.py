"""Parses the options that programs set with ``.option(name, value)``.

Spark passes names in lower case and values as text. Options that mean the same as in Spark's Kafka
connector have the same names (docs/spark.md).
"""

from __future__ import annotations

import difflib
import json
import math
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from fnmatch import fnmatchcase
from typing import Literal, TypeVar

from zlog import Match
from zlog.extension import as_time
from zlog.names import (
    check_cursor_name,
    check_log_name,
    check_pattern,
    check_producer_name,
    check_tags,
)
from zlog.store import STORE_VARIABLE, default_url

T = TypeVar("T")

Place = int | datetime | Literal["earliest", "latest"]
"""The place where a read begins or ends."""


_BOTH = (
    "store",
    "log",
    "logs",
    "logsPattern",
    "startingPosition",
    "startingTimestamp",
    "minPartitions",
    "maxPartitions",
    "failOnDataLoss",
    "holeTimeout",
    "includeGaps",
    "includeTags",
    "tags",
    "match",
    "macKeyFile",
    "columns",
)
BATCH_OPTIONS = (*_BOTH, "endingPosition", "endingTimestamp")
"""The options of a batch read."""

STREAM_OPTIONS = (
    *_BOTH,
    "maxEntriesPerTrigger",
    "maxBytesPerTrigger",
    "discoverInterval",
    "cursor",
    "continueOnMirror",
)
"""The options of a streaming read."""

_WRITE_OPTIONS = ("store", "log", "createLog", "macKeyFile")

BATCH_WRITE_OPTIONS = (*_WRITE_OPTIONS, "producer", "sequence")
"""The options of a batch write."""

STREAM_WRITE_OPTIONS = (*_WRITE_OPTIONS, "exactlyOnce")
"""The options of a streaming write."""

_DISCOVER_SECONDS = 10.0

_OPTIONS_OF_SPARK = ("checkpointLocation", "queryName")
"""Options that Spark passes to a streaming sink in addition to its own options."""

COLUMNS = ("log", "position", "stripe", "timestamp", "data", "tags", "state")
"""All columns of a read, in their order."""


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """The checked options of a read.

    Attributes:
        store: the URL at which every worker must reach the store.
        logs: the names of the logs.
        pattern: the shell pattern of the logs' names; None if they are named.
        several: whether the read may have several logs, and so has the column ``log``.
        starting: where the read begins in each log.
        ending: where a batch read ends in each log.
        entries_max: the maximum number of entries of a streaming batch; None means no limit.
        bytes_max: the approximate maximum of their data in bytes; None means no limit.
        discover: how many seconds pass between two searches for logs that match the pattern.
        tasks_min: the minimum number of tasks, if there are enough positions; None means no limit.
        tasks_max: the maximum number of tasks of a batch; None means no limit.
        fail_on_data_loss: whether the query fails if entries are trimmed before they are read.
        hole_timeout: how many seconds a position may stay unwritten before it is filled; None means
            each log's own hole timeout.
        include_gaps: whether positions without an entry also become rows.
        tags: the tags of the entries to read; None means all entries.
        match: whether an entry must have any or all of the tags.
        cursor: the name of each log's cursor that follows a streaming query; None means no cursor.
        continue_on_mirror: whether a query continues in a promoted mirror of its checkpoint's log.
        mac_key_file: the path, on every worker, of the file with the key of the logs' MACs.
        columns: the names of the columns to read, in the order of `COLUMNS`.
    """

    store: str
    logs: tuple[str, ...]
    pattern: str | None = None
    several: bool = False
    starting: Place = "earliest"
    ending: Place = "latest"
    entries_max: int | None = None
    bytes_max: int | None = None
    discover: float = _DISCOVER_SECONDS
    tasks_min: int | None = None
    tasks_max: int | None = None
    fail_on_data_loss: bool = True
    hole_timeout: float | None = None
    include_gaps: bool = False
    tags: tuple[str, ...] | None = None
    match: Match = "any"
    cursor: str | None = None
    continue_on_mirror: bool = False
    mac_key_file: str | None = None
    columns: tuple[str, ...] = COLUMNS[1:5]

    @classmethod
    def parse(cls, options: Mapping[str, str], *, streaming: bool | None = False) -> SourceOptions:
        """Check the options of a read.

        Args:
            options: the options, by name in any case.
            streaming: whether the read is streaming; None if it may be of either kind.

        Raises:
            ValueError: an option is unknown or missing, or its value is invalid.
        """
        given = _Given(options)
        if streaming is None:
            given.only(dict.fromkeys((*BATCH_OPTIONS, *STREAM_OPTIONS)), "read")
        elif streaming:
            given.only(STREAM_OPTIONS, "streaming read")
        else:
            given.only(BATCH_OPTIONS, "batch read")
        tasks_min = given.maybe("minPartitions", _count)
        tasks_max = given.maybe("maxPartitions", _count)
        if tasks_min is not None and tasks_max is not None and tasks_min > tasks_max:
            raise ValueError(f"minPartitions={tasks_min} is more than maxPartitions={tasks_max}")
        tags = given.maybe("tags", _tags)
        include_gaps = given.get("includeGaps", _flag, "false")
        include_tags = given.get("includeTags", _flag, "false")
        if tags is not None and include_gaps:
            raise ValueError("the options tags and includeGaps cannot be combined")
        logs, pattern = given.logs()
        several = not given.has("log")
        optional = {"log": several, "tags": include_tags, "state": include_gaps}
        there_are = [name for name in COLUMNS if optional.get(name, True)]
        return cls(
            store=given.store(),
            logs=logs,
            pattern=pattern,
            several=several,
            starting=given.place("starting", "earliest", several=several),
            ending=given.place("ending", "latest", several=several),
            entries_max=given.maybe("maxEntriesPerTrigger", _count),
            bytes_max=given.maybe("maxBytesPerTrigger", _count),
            discover=given.get("discoverInterval", _seconds, str(_DISCOVER_SECONDS)),
            tasks_min=tasks_min,
            tasks_max=tasks_max,
            fail_on_data_loss=given.get("failOnDataLoss", _flag, "true"),
            hole_timeout=given.maybe("holeTimeout", _seconds),
            include_gaps=include_gaps,
            tags=tags,
            match=given.get("match", _match, "any"),
            cursor=given.maybe("cursor", check_cursor_name),
            continue_on_mirror=given.get("continueOnMirror", _flag, "false"),
            mac_key_file=given.maybe("macKeyFile", str),
            columns=given.get("columns", _columns_of(there_are), ",".join(there_are)),
        )

    @property
    def skip_removed(self) -> bool:
        """Whether logs that were removed are skipped."""
        return self.several and not self.fail_on_data_loss

    @property
    def log(self) -> str:
        """The name of the only log, or what replaces LOG in hints."""
        return self.logs[0] if len(self.logs) == 1 else "LOG"

    def selects(self, log: str) -> bool:
        """Whether the read has a log of this name."""
        return log in self.logs or (self.pattern is not None and fnmatchcase(log, self.pattern))


@dataclass(frozen=True, slots=True)
class SinkOptions:
    """The checked options of a write.

    Attributes:
        store: the URL at which every worker must reach the store.
        log: the name of the log; None if a column names the log of each row.
        create_log: whether to create a log that does not exist.
        exactly_once: whether a streaming query appends each row exactly once, or at least once.
        mac_key_file: the path, on every worker, of the file with the key of the log's MACs.
        producer: the producer under which a batch write appends each row exactly once; None means
            at least once.
        sequence: the sequence number of that batch write.
    """

    store: str
    log: str | None
    create_log: bool = False
    exactly_once: bool = True
    mac_key_file: str | None = None
    producer: str | None = None
    sequence: int | None = None

    @classmethod
    def parse(
        cls, options: Mapping[str, str], *, streaming: bool = False, routed: bool = False
    ) -> SinkOptions:
        """Check the options of a batch write or a streaming write.

        Args:
            options: the options, by name in any case.
            streaming: whether the write is streaming.
            routed: whether the rows have a column with their logs, so that no option names a log.

        Raises:
            ValueError: an option is unknown or missing, or its value is invalid.
        """
        given = _Given(options)
        if streaming:
            given.only(STREAM_WRITE_OPTIONS, "streaming write", _OPTIONS_OF_SPARK)
        else:
            given.only(BATCH_WRITE_OPTIONS, "batch write")
        producer = given.maybe("producer", check_producer_name)
        sequence = given.maybe("sequence", _sequence)
        if (producer is None) != (sequence is None):
            raise ValueError("the options producer and sequence must be set together")
        return cls(
            log=given.maybe("log", check_log_name)
            if routed
            else given.require("log", check_log_name),
            store=given.store(),
            create_log=given.get("createLog", _flag, "false"),
            exactly_once=given.get("exactlyOnce", _flag, "true"),
            mac_key_file=given.maybe("macKeyFile", str),
            producer=producer,
            sequence=sequence,
        )


class _Given:
    """Options as the user gave them."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._values = {name.lower(): value for name, value in options.items()}

    def only(self, names: Iterable[str], kind: str, others: Iterable[str] = ()) -> None:
        """Raise ValueError for an option that this kind of read or write does not have.

        Args:
            names: the names of the valid options.
            kind: the kind of read or write, for the message.
            others: the names of options that are not checked here.
        """
        known = {name.lower(): name for name in names}
        for name in sorted(self._values.keys() - {name.lower() for name in others}):
            if name not in known:
                near = difflib.get_close_matches(name, known, n=1)
                hint = (
                    f"did you mean {known[near[0]]}?"
                    if near
                    else f"it has {', '.join(known.values())}"
                )
                raise ValueError(f"a {kind} of zlog has no option {name!r}: {hint}")

    def has(self, name: str) -> bool:
        """Whether an option is given."""
        return name.lower() in self._values

    def logs(self) -> tuple[tuple[str, ...], str | None]:
        """Return the names of the logs to read, or their pattern."""
        if sum(map(self.has, ("log", "logs", "logsPattern"))) > 1:
            raise ValueError("give only one of the options log, logs and logsPattern")
        if self.has("logs"):
            return self.maybe("logs", _log_names) or (), None
        if self.has("logsPattern"):
            return (), self.maybe("logsPattern", check_pattern)
        return (self.require("log", check_log_name),), None

    def store(self) -> str:
        """Return the store's URL, from the option or from this process's environment."""
        found = self.maybe("store", _store)
        if found is None:
            found = _store(os.environ.get(STORE_VARIABLE, ""))
        if not found:
            raise ValueError(
                f'zlog needs the option store, as in .option("store", "{default_url()}"):'
                f" {STORE_VARIABLE} is not set in the environment that Spark's JVM was started"
                " with. Setting it later, as in a notebook, has no effect"
            )
        return found

    def maybe(self, name: str, parse: Callable[[str], T]) -> T | None:
        """Return an option's value, or None if the option is not given."""
        value = self._values.get(name.lower())
        if value is None:
            return None
        try:
            return parse(value)
        except ValueError as error:
            raise ValueError(f"option {name}={value!r}: {error}") from None

    def get(self, name: str, parse: Callable[[str], T], default: str) -> T:
        """Return an option's value, or its default."""
        value = self.maybe(name, parse)
        return parse(default) if value is None else value

    def require(self, name: str, parse: Callable[[str], T]) -> T:
        """Return the value of a required option."""
        value = self.maybe(name, parse)
        if value is None:
            raise ValueError(
                f'zlog needs the option {name}: .option("{name}", …), or logs or logsPattern for a'
                f" read of several logs, or a column {name} in the rows of a write. Only CREATE"
                " TABLE … USING zlog OPTIONS (…) without a list of columns makes a table that keeps"
                " its options; saveAsTable does not. INSERT INTO passes no options: write with"
                " .save()"
            )
        return value

    def place(self, which: str, default: Place, *, several: bool) -> Place:
        """Return the place to start or end, which has two options."""
        by_position = self.maybe(f"{which}Position", _position)
        by_time = self.maybe(f"{which}Timestamp", _time)
        if by_position is not None and by_time is not None:
            raise ValueError(f"give either {which}Position or {which}Timestamp, not both")
        if several and isinstance(by_position, int):
            raise ValueError(
                f"{which}Position must be earliest or latest to read several logs, because each log"
                f" has its own positions; or set {which}Timestamp"
            )
        if by_position is not None:
            return by_position
        return default if by_time is None else by_time


def _store(text: str) -> str:
    if text.startswith("mem:"):
        raise ValueError("a store in memory belongs to one process, but Spark uses several")
    return text


def _words(text: str) -> list[str]:
    """Parse a JSON list, or words separated by commas."""
    return json.loads(text) if text.lstrip().startswith("[") else text.split(",")


def _tags(text: str) -> tuple[str, ...]:
    try:
        tags = check_tags(_words(text))
    except TypeError as error:
        raise ValueError(str(error)) from None
    if not tags:
        raise ValueError("it must contain a tag; omit the option to read all entries")
    return tags


def _log_names(text: str) -> tuple[str, ...]:
    names = [check_log_name(name.strip()) for name in map(str, _words(text))]
    if not names:
        raise ValueError("it must contain the name of a log")
    return tuple(sorted(set(names)))


def _columns_of(names: list[str]) -> Callable[[str], tuple[str, ...]]:
    def parse(text: str) -> tuple[str, ...]:
        wanted = {each.strip() for each in text.split(",")}
        if unknown := sorted(wanted - {*names}):
            raise ValueError(
                f"there is no column {', '.join(unknown)}; the columns are {', '.join(names)}"
            )
        return tuple(name for name in names if name in wanted)

    return parse


def _match(text: str) -> Match:
    if text not in ("any", "all"):
        raise ValueError("it must be 'any' or 'all'")
    return "any" if text == "any" else "all"


def _position(text: str) -> Place:
    if text == "earliest":
        return "earliest"
    if text == "latest":
        return "latest"
    if not text.isdecimal():
        raise ValueError("it must be a position, earliest or latest")
    return int(text)


def _time(text: str) -> datetime:
    try:
        if text.isdecimal():
            return as_time(int(text) / 1000)
        when = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except (ValueError, OverflowError):
        raise ValueError(
            "it must be a time, such as 2026-01-31T12:00:00Z, or a number of milliseconds since"
            " 1970"
        ) from None
    if when.tzinfo is None:
        raise ValueError("it has no time zone: append Z for UTC, or an offset such as +01:00")
    return as_time(when)


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise ValueError("it must be a number of 1 or more")
    return int(text)


def _sequence(text: str) -> int:
    if not text.isdecimal():
        raise ValueError("it must be a number of 0 or more")
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise ValueError("it must be a number of seconds above 0")
    return seconds


def _flag(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError("it must be true or false")
    return text.lower() == "true"
