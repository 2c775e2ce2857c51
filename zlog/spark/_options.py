"""Parses the options that programs set with ``.option(name, value)``.

Spark passes names in lower case and values as text. Options that mean the same as in Spark's Kafka
connector have the same names (docs/spark.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

from zlog import Match
from zlog.names import check_cursor_name, check_log_name, check_producer_name
from zlog.spark._given import (
    Given,
    Place,
    as_columns,
    as_count,
    as_flag,
    as_match,
    as_seconds,
    as_sequence,
    as_tags,
)

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
        given = Given(options)
        if streaming is None:
            given.only(dict.fromkeys((*BATCH_OPTIONS, *STREAM_OPTIONS)), "read")
        elif streaming:
            given.only(STREAM_OPTIONS, "streaming read")
        else:
            given.only(BATCH_OPTIONS, "batch read")
        tasks_min = given.maybe("minPartitions", as_count)
        tasks_max = given.maybe("maxPartitions", as_count)
        if tasks_min is not None and tasks_max is not None and tasks_min > tasks_max:
            raise ValueError(f"minPartitions={tasks_min} is more than maxPartitions={tasks_max}")
        tags = given.maybe("tags", as_tags)
        include_gaps = given.get("includeGaps", as_flag, "false")
        include_tags = given.get("includeTags", as_flag, "false")
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
            entries_max=given.maybe("maxEntriesPerTrigger", as_count),
            bytes_max=given.maybe("maxBytesPerTrigger", as_count),
            discover=given.get("discoverInterval", as_seconds, str(_DISCOVER_SECONDS)),
            tasks_min=tasks_min,
            tasks_max=tasks_max,
            fail_on_data_loss=given.get("failOnDataLoss", as_flag, "true"),
            hole_timeout=given.maybe("holeTimeout", as_seconds),
            include_gaps=include_gaps,
            tags=tags,
            match=given.get("match", as_match, "any"),
            cursor=given.maybe("cursor", check_cursor_name),
            continue_on_mirror=given.get("continueOnMirror", as_flag, "false"),
            mac_key_file=given.maybe("macKeyFile", str),
            columns=given.get("columns", as_columns(there_are), ",".join(there_are)),
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
        given = Given(options)
        if streaming:
            given.only(STREAM_WRITE_OPTIONS, "streaming write", _OPTIONS_OF_SPARK)
        else:
            given.only(BATCH_WRITE_OPTIONS, "batch write")
        producer = given.maybe("producer", check_producer_name)
        sequence = given.maybe("sequence", as_sequence)
        if (producer is None) != (sequence is None):
            raise ValueError("the options producer and sequence must be set together")
        return cls(
            log=given.maybe("log", check_log_name)
            if routed
            else given.require("log", check_log_name),
            store=given.store(),
            create_log=given.get("createLog", as_flag, "false"),
            exactly_once=given.get("exactlyOnce", as_flag, "true"),
            mac_key_file=given.maybe("macKeyFile", str),
            producer=producer,
            sequence=sequence,
        )
