"""The small languages of the command line: ranges, formats, sizes, times; cutting into entries."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

import zlog
from zlog import Entry
from zlog.cli.batches import Splitter, from_json
from zlog.cli.parameters import NEVER, or_none, seconds
from zlog.cli.ranges import Range, parse, position_spec
from zlog.cli.render import printable, to_json
from zlog.cli.template import Template
from zlog.cli.units import count, human_bytes, size, span_words, time_span


@pytest.mark.parametrize(
    ("word", "start", "end"),
    [
        ("5:10", 5, 10),
        ("5:", 5, None),
        (":10", 0, 10),
        (":", 0, None),
        ("-10:", 90, None),
        ("-10:-5", 90, 95),
        (":-1", 0, 99),
        ("-200:", 0, None),
        ("0:0", 0, 0),
    ],
)
def test_ranges_are_slices(word: str, start: int, end: int | None) -> None:
    assert parse(word).resolve(FakeLog(), 100) == (start, 100 if end is None else end)
    assert not parse(word).single


@pytest.mark.parametrize("word", ["5", "-1", "-100"])
def test_single_number_is_one_position(word: str) -> None:
    assert parse(word) == Range(int(word), None, single=True)


class FakeLog(zlog.Log):
    """A log with its tail at 100, trimmed to 20, whose times are seconds of today."""

    def __init__(self) -> None:
        pass

    def earliest(self, *, timeout: float | None = None) -> int:
        return 20

    def find_time(
        self,
        when: datetime | float,
        *,
        timeout: float | None = None,
    ) -> int:
        assert isinstance(when, datetime)
        start = datetime.now(timezone.utc).replace(hour=0, minute=0, second=0, microsecond=0)
        return int((when - start).total_seconds())


@pytest.mark.parametrize(
    ("word", "start", "end"),
    [
        ("earliest", 20, 100),
        ("earliest:50", 20, 50),
        (":latest", 0, 100),
        ("latest", 100, 100),
        ("latest:", 100, 100),
        ("@00:00:30", 30, 100),
        ("@00:01:-5", 60, 95),
        ("@00:00:10:@00:01:30", 10, 90),
        ("@00:00:10.5Z:200", 10, 100),
        ("@00:01+00:00:@00:01:30+0000", 60, 90),
        ("@00:30+00:29:", 60, 100),
    ],
)
def test_ranges_accept_times_and_ends(word: str, start: int, end: int) -> None:
    assert parse(word).resolve(FakeLog(), 100) == (start, end)
    assert not parse(word).single


MIDNIGHT = datetime(2026, 11, 22, tzinfo=timezone.utc)


@pytest.fixture
def today(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is shortly before four in the afternoon."""
    now = MIDNIGHT + timedelta(hours=15, minutes=59)
    monkeypatch.setattr("zlog.cli.ranges.utc_now", lambda: now)


@pytest.mark.usefixtures("today")
@pytest.mark.parametrize(
    ("word", "moment"),
    [
        ("@2026-11-20", datetime(2026, 11, 20, tzinfo=timezone.utc)),
        ("@2026-11-20T10:00", datetime(2026, 11, 20, 10, tzinfo=timezone.utc)),
        ("@2026-11-20T10:00:01.25", datetime(2026, 11, 20, 10, 0, 1, 250000, timezone.utc)),
        ("@2026-11-20T10:00:01.000002Z", datetime(2026, 11, 20, 10, 0, 1, 2, timezone.utc)),
        ("@2026-11-20T10:00+01:00", datetime(2026, 11, 20, 9, tzinfo=timezone.utc)),
        ("@2026-11-20T10:00-0230", datetime(2026, 11, 20, 12, 30, tzinfo=timezone.utc)),
        ("@2026-11-20 07:00", datetime(2026, 11, 20, 7, tzinfo=timezone.utc)),
        ("@2026-11-20 07:00:01.5+01:00", datetime(2026, 11, 20, 6, 0, 1, 500000, timezone.utc)),
        ("@today", MIDNIGHT),
        ("@yesterday", MIDNIGHT - timedelta(days=1)),
        ("@today 07:00", MIDNIGHT + timedelta(hours=7)),
        ("@yesterdayT07:00Z", MIDNIGHT - timedelta(hours=17)),
        ("@07:00", MIDNIGHT + timedelta(hours=7)),
    ],
)
def test_times_default_to_utc(word: str, moment: datetime) -> None:
    assert position_spec(word) == moment
    assert parse(word) == Range(moment, None)
    assert parse(f":{word}") == Range(0, moment)


@pytest.mark.parametrize(
    ("word", "seconds"), [("@90s", 90), ("@5m", 300), ("@1h30m", 5400), ("@1.5d", 129600)]
)
def test_span_counts_back_from_now(word: str, seconds: int) -> None:
    found = position_spec(word)
    assert isinstance(found, datetime)
    ago = (datetime.now(timezone.utc) - found).total_seconds()
    assert 0 <= ago - seconds < 60


@pytest.mark.parametrize(
    "word",
    [
        "@",
        "@5",
        "@m",
        "@2026-13-01",
        "@25:00",
        "@-5m",
        "@tomorrow",
        "@today7",
        "@2026-11-20  07:00",
        "@yesterday+01:00",
        "@800000d",
        "@9999-12-31T23:59-01:00",
        "9" * 5000,
        "early",
        "5:",
        str(2**63),
    ],
)
def test_invalid_positions_are_refused(word: str) -> None:
    with pytest.raises(click.UsageError):
        position_spec(word)


def test_spans_and_counts_are_parsed() -> None:
    assert [time_span(w) for w in ("90s", "1h30m", "7d", "2w")] == [90, 5400, 604800, 1209600]
    assert [count(w) for w in ("0", "5000", "10K", "1.5M", "2g")] == [
        0,
        5000,
        10_000,
        1_500_000,
        2 * 10**9,
    ]
    for wrong in ("", "5", "m", "-5m", "5x", "52001w", f"{'9' * 400}s"):
        with pytest.raises(click.BadParameter):
            time_span(wrong)
    for wrong in ("", "m", "-5", "5T", f"{'9' * 400}K"):
        with pytest.raises(click.BadParameter):
            count(wrong)
    assert [span_words(s) for s in (90, 5400, 604800, 86400, 0.5)] == [
        "90s",
        "90m",
        "1w",
        "1d",
        "0.5s",
    ]


@pytest.mark.parametrize(
    "word", ["", "a", "1-2", "1:2:3", "--json", "-x", "1.5", "٣", "@5x:", str(2**63)]
)
def test_invalid_ranges_are_refused(word: str) -> None:
    with pytest.raises(click.UsageError):
        parse(word)


ENTRY = Entry(7, b"\xffdata\n", datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=timezone.utc))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("%s", b"\xffdata\n"),
        (r"%p\t%S\n", b"7\t6\n"),
        ("%t", b"2026-01-02T03:04:05.000006Z"),
        (r"100%% \\ \0\r", b"100% \\ \0\r"),
        ("ü", "ü".encode()),
        ("", b""),
    ],
)
def test_formats_are_rendered(text: str, expected: bytes) -> None:
    assert Template(text).render(ENTRY) == expected


@pytest.mark.parametrize("text", ["%x", "%", "\\", r"\x"])
def test_formats_with_unknown_tokens_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a token"):
        Template(text)


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("0", 0),
        ("4096", 4096),
        ("64K", 65536),
        ("64k", 65536),
        ("1.5M", 3 << 19),
        ("2 GiB", 2 << 30),
        ("10GB", 10**10),
        ("1.5kb", 1500),
        ("7B", 7),
    ],
)
def test_sizes_are_parsed(word: str, expected: int) -> None:
    assert size(word) == expected


@pytest.mark.parametrize("word", ["", "K", "-1", "1X", "1e3", "9" * 400, str(2**63)])
def test_invalid_sizes_are_refused(word: str) -> None:
    with pytest.raises(click.BadParameter):
        size(word)


def test_time_spans_are_parsed() -> None:
    assert seconds("1.5") == 1.5
    assert or_none(seconds("never")) is None
    assert or_none(0.0) == 0.0
    assert seconds(1.0) == 1.0
    assert NEVER > 1e300
    for word in ("", "-1", "nan", "soon"):
        with pytest.raises(click.BadParameter):
            seconds(word)


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (5 << 40, "5.0 TiB")]
)
def test_byte_counts_are_formatted(count: int, text: str) -> None:
    assert human_bytes(count) == text


def test_json_is_one_utf_8_line() -> None:
    text = to_json({"data": "é\u2028\u0085\ud800"})
    assert text == '{"data": "é\\u2028\\u0085\\ud800"}'
    assert json.loads(text) == {"data": "é\u2028\u0085\ud800"}


def test_control_characters_are_escaped() -> None:
    assert printable("ünï\tx".encode()) == "ünï\tx"
    assert printable(b"\x1b[31m\xff\0\r") == r"\x1b[31m\xff\x00\r"


@given(st.binary(), st.lists(st.integers(1, 9)), st.sampled_from([b"\n", b"\0"]))
def test_lines_do_not_depend_on_read_boundaries(
    data: bytes, cuts: list[int], separator: bytes
) -> None:
    kept, plain = Splitter(separator, keep=True), Splitter(separator)
    with_end: list[bytes] = []
    without: list[bytes] = []
    rest = data
    for cut in [*cuts, len(data)]:
        chunk, rest = rest[:cut], rest[cut:]
        with_end += kept.feed(chunk)
        without += plain.feed(chunk)
    with_end += kept.finish()
    without += plain.finish()
    assert b"".join(with_end) == data
    assert without == [line.removesuffix(separator) for line in with_end]
    assert len(with_end) == data.count(separator) + (not data.endswith(separator) and data != b"")


@pytest.mark.parametrize(
    ("line", "entry"),
    [
        (b'{"data": "\xc3\xbc\\u0000", "position": 5}', "ü\0".encode()),
        (b'{"data_b64": "/w=="}', b"\xff"),
        (b'{"data": ""}', b""),
        (b'{"gap": "filled", "position": 1, "end": 2}', None),
        (b"  \r", None),
    ],
)
def test_json_lines_are_parsed(line: bytes, entry: bytes | None) -> None:
    assert from_json(line) == entry


@pytest.mark.parametrize(
    "line",
    [
        b"text",
        b"[" * 100_000,
        b"[]",
        b"{}",
        b'{"data": 1}',
        b'{"data_b64": "*"}',
        b'{"data": "\\ud800"}',
        b"\xff",
    ],
)
def test_invalid_json_lines_are_refused(line: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  # the texts are Python's own
        from_json(line)
