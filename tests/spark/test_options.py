"""Options are checked before anything is read, and errors say what to write instead."""

from __future__ import annotations

import json
from datetime import datetime, timezone

import pytest

from zlog.spark._offset import LogOffset, Offset, WrongCheckpoint
from zlog.spark._options import SinkOptions, SourceOptions

LOG = {"store": "file:///logs", "log": "orders"}


def test_lower_case_option_names_are_accepted() -> None:
    given = {
        **LOG,
        "startingposition": "7",
        "maxentriespertrigger": "100",
        "minpartitions": "2",
        "maxpartitions": "3",
        "failondataloss": "False",
        "holetimeout": "2.5",
        "includegaps": "true",
        "cursor": "table",
    }
    assert SourceOptions.parse(given, streaming=True) == SourceOptions(
        store="file:///logs",
        logs=("orders",),
        starting=7,
        ending="latest",
        entries_max=100,
        tasks_min=2,
        tasks_max=3,
        fail_on_data_loss=False,
        hole_timeout=2.5,
        include_gaps=True,
        cursor="table",
        columns=("position", "stripe", "timestamp", "data", "state"),
    )


def test_store_defaults_to_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ZLOG_STORE", "ceph://logs")
    assert SourceOptions.parse({"log": "orders"}).store == "ceph://logs"
    monkeypatch.setenv("ZLOG_STORE", "mem://")
    with pytest.raises(ValueError, match="belongs to one process"):
        SinkOptions.parse({"log": "orders"})


def test_store_without_option_or_environment_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Who has set ZLOG_STORE after Spark's start would read from another store than he thinks."""
    monkeypatch.delenv("ZLOG_STORE", raising=False)
    for parse in (SourceOptions.parse, SinkOptions.parse):
        with pytest.raises(ValueError, match=r"ZLOG_STORE is not set .* Spark's JVM"):
            parse({"log": "orders"})


@pytest.mark.parametrize(
    "text", ["1700000000000", "2023-11-14T22:13:20Z", "2023-11-14T23:13:20+01:00"]
)
def test_times_are_milliseconds_or_iso_8601(text: str) -> None:
    options = SourceOptions.parse({**LOG, "startingTimestamp": text, "endingPosition": "9"})
    assert options.starting == datetime(2023, 11, 14, 22, 13, 20, tzinfo=timezone.utc)
    assert options.ending == 9


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"store": "file:///logs"}, "needs the option log"),
        ({"log": "-x"}, "is not a valid name for a log"),
        ({**LOG, "store": "mem://"}, "belongs to one process"),
        ({**LOG, "startingPositon": "3"}, "did you mean startingPosition"),
        ({**LOG, "maxEntriesPerTrigger": "3"}, "a batch read of zlog has no option"),
        ({**LOG, "startingPosition": "-1"}, "a position, earliest or latest"),
        ({**LOG, "startingPosition": "1", "startingTimestamp": "1"}, "not both"),
        ({**LOG, "startingTimestamp": "yesterday"}, "milliseconds since 1970"),
        ({**LOG, "startingTimestamp": "2026-01-31 12:00:00"}, "no time zone: append Z for UTC"),
        ({**LOG, "startingTimestamp": "9" * 400}, "milliseconds since 1970"),
        ({**LOG, "endingTimestamp": "9" * 20}, "milliseconds since 1970"),
        ({**LOG, "columns": "position,sise"}, "no column sise; the columns are position, stripe"),
        ({**LOG, "columns": "tags"}, "no column tags"),
        ({**LOG, "maxPartitions": "0"}, "a number of 1 or more"),
        ({**LOG, "minPartitions": "5", "maxPartitions": "4"}, "minPartitions=5 is more than"),
        ({**LOG, "holeTimeout": "0"}, "seconds above 0"),
        ({**LOG, "holeTimeout": "none"}, "seconds above 0"),
        ({**LOG, "failOnDataLoss": "maybe"}, "true or false"),
    ],
)
def test_invalid_options_are_refused(options: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SourceOptions.parse(options)


@pytest.mark.parametrize(
    ("option", "streaming", "message"),
    [
        ("macKeyfil", False, "did you mean macKeyFile"),
        ("exactly_once", True, "did you mean exactlyOnce"),
        ("exactlyOnce", False, "a batch write of zlog has no option"),
        ("tags", True, "a streaming write of zlog has no option 'tags': it has store, log"),
        ("checkpointLocation", False, "has no option"),
    ],
)
def test_write_refuses_unknown_options(option: str, streaming: bool, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SinkOptions.parse({**LOG, option.lower(): "false"}, streaming=streaming)


def test_zero_position_is_valid() -> None:
    options = SourceOptions.parse({**LOG, "startingPosition": "0", "endingPosition": "0"})
    assert (options.starting, options.ending) == (0, 0)


def test_stream_refuses_ending_position() -> None:
    with pytest.raises(ValueError, match="a streaming read of zlog has no option"):
        SourceOptions.parse({**LOG, "endingPosition": "9"}, streaming=True)


def test_offset_json_is_canonical() -> None:
    """Spark compares them as text."""
    offset = Offset({"orders": LogOffset(position=20, since=10, log_id=0xAB)})
    assert list(offset.to_json(several=False)) == ["position", "from", "log", "id"]
    assert Offset.from_json(offset.to_json(several=False)) == offset
    logs = {name: LogOffset(position, position, 0xAB) for position, name in enumerate("ba")}
    content = Offset(logs).to_json(several=True)
    assert json.dumps(content) == (
        '{"logs": {"a": ["00000000000000ab", 1], "b": ["00000000000000ab", 0]}}'
    )
    assert Offset.from_json(content) == Offset(logs)


@pytest.mark.parametrize(
    "content",
    [
        {},
        {"position": 1},
        {"position": 1, "from": 2, "log": "orders", "id": "ab"},
        {"position": "1", "from": 0, "log": "orders", "id": "ab"},
        {"position": 1, "from": 0, "log": "orders", "id": "xyz"},
        {"position": 1, "from": 0, "log": "orders"},
        {"logs": {"orders": ["ab"]}},
        {"logs": {"orders": ["ab", 1, 0]}},
        {"logs": ["orders"]},
    ],
)
def test_foreign_offsets_are_refused(content: dict[str, object]) -> None:
    with pytest.raises(WrongCheckpoint, match="the checkpoint does not belong to a zlog log"):
        Offset.from_json(content)
