"""zlog spark tail: a log into a table, as a command and inside a session."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, Row, SparkSession

import zlog
from zlog.distribution import requirements
from zlog.names import check_cursor_name
from zlog.spark._failures import cause
from zlog.spark.parse import parser_of
from zlog.spark.tail import Run, Tail
from zlog.tables.common import Progress, cursor_name_of

from ..cli.conftest import Cli, Inside
from ..docs.pages import REPOSITORY

SECONDS = 120
LINE = r"^(?P<time>\S+ \S+) (?P<pid>\d+) (?P<level>[A-Z]+) (?P<component>\S+) "
LINE += r"\[(?P<request>[^\]]*)\] (?P<content>.*)$"


class Copying:
    """`zlog spark tail` of a log in this session."""

    def __init__(self, spark: SparkSession, log: zlog.Log, folder: Path) -> None:
        self.spark = spark
        self.log = log
        self.table = str(folder / "table")

    def run(
        self, parse: str | None = None, schema: str | None = None, **changes: Any
    ) -> list[Progress]:
        """Copy as far as the tail; returns the batches that had rows."""
        checkpoint = f"{self.table}.checkpoint"
        given: dict[str, Any] = {
            "store": self.log.store.url,
            "log": self.log.name,
            "table": self.table,
            "format": "parquet",
            "checkpoint": checkpoint,
            "parser": parser_of(parse, schema),
            "partition_by": None,
            "drop_raw": False,
            "cursor": cursor_name_of(self.table, checkpoint),
            "trigger": {"availableNow": True},
            "options": {"holeTimeout": "0.05"},
            **changes,
        }
        job = Tail(**given)
        run = Run(job.start(self.spark), lambda _: self.log, job.cursor)
        return [each for each in run.progress() if each.rows]

    def rows(self, format_: str = "parquet") -> list[Row]:
        """Return the table."""
        table: DataFrame = self.spark.read.format(format_).load(self.table)
        return table.orderBy("position").collect()


@pytest.fixture
def copying(spark: SparkSession, log: zlog.Log, tmp_path: Path) -> Copying:
    return Copying(spark, log, tmp_path)


def service_lines(count: int) -> Iterator[tuple[str, str, str]]:
    """Make lines as services of a cloud write them; yields level, component and line."""
    dice = random.Random(5)
    for i in range(count):
        level = dice.choice(["INFO", "WARNING", "ERROR"])
        component = dice.choice(["nova.api.wsgi", "nova.compute.manager", "nova.virt.libvirt"])
        content = dice.choice(['10.1.2.3 "GET /v2/x HTTP/1.1" status: 200', "[instance: b] [x", ""])
        time = f"2026-05-16 00:{i // 60 % 60:02}:{i % 60:02}.{i % 1000:03}"
        yield level, component, f"{time} {2000 + i % 7} {level} {component} [req-{i} - -] {content}"


def test_parsed_counts_match_log_lines(copying: Copying) -> None:
    lines = list(service_lines(2000))
    copying.log.append_many([line.encode() for _, _, line in lines])
    (batch,) = copying.run(LINE, "time timestamp, pid int")
    assert (batch.rows, batch.logs, batch.lag) == (2000, {"orders": (0, 2000, 2000)}, 0)
    rows = copying.rows()
    expected = Counter((level, component) for level, component, _ in lines)
    assert Counter((row.level, row.component) for row in rows) == expected
    assert rows[61].time.isoformat(timespec="milliseconds") == "2026-05-16T00:01:01.061"
    assert rows[8].pid == 2001
    assert bytes(rows[7].data).decode() == lines[7][2]


def test_unmatched_lines_are_kept(copying: Copying) -> None:
    copying.log.append_many([b"id=1 x", b"Traceback\xff", b"id=many y", b""])
    copying.run(r"^id=(?P<id>\S+) (?P<word>\w*)", "id int")
    rows = copying.rows()
    assert [(row.id, row.word) for row in rows] == [
        (1, "x"),
        (None, None),
        (None, "y"),
        (None,) * 2,
    ]
    assert [bytes(row.data) for row in rows] == [b"id=1 x", b"Traceback\xff", b"id=many y", b""]


def test_json_entries_become_columns(copying: Copying) -> None:
    copying.log.append_many([b'{"id": 1, "tags": ["a"], "more": 2}', b"none", b"\xff"])
    copying.run("json", "id long, tags array<string>", drop_raw=True)
    rows = copying.rows()
    assert [(row.id, row.tags) for row in rows] == [(1, ["a"]), (None, None), (None, None)]
    assert "data" not in rows[0]


def test_function_from_file_runs_on_workers(copying: Copying, tmp_path: Path) -> None:
    file = tmp_path / "columns.py"
    file.write_text(
        "from pyspark.sql import functions as f\n"
        "SUFFIX = '!'\n"
        "@f.udf('string', useArrow=False)\n"
        "def shout(data): return data.decode().upper() + SUFFIX\n"
        "def parse(entries): return entries.withColumn('said', shout('data'))\n"
    )
    copying.log.append_many([b"one", b"two", b"three"])
    copying.run(str(file), format="json", partition_by=["stripe"])
    assert [row.said for row in copying.rows("json")] == ["ONE!", "TWO!", "THREE!"]
    assert (Path(copying.table) / "stripe=1").is_dir()


def test_cursor_matches_end_of_table(copying: Copying) -> None:
    copying.log.append_many([b"x"] * 25)
    batches = copying.run(options={"maxEntriesPerTrigger": "10"})
    found = [(batch.rows, *batch.logs["orders"]) for batch in batches if batch.rows]
    assert found == [(10, 0, 10, 25), (10, 10, 20, 25), (5, 20, 25, 25)]
    (cursor,) = copying.log.cursors()
    assert (cursor.position, cursor.name[:12]) == (25, "spark-table-")
    copying.log.append(b"y")
    assert [batch.rows for batch in copying.run()] == [1]
    (cursor,) = copying.log.cursors()
    assert cursor.position == 26
    assert len(copying.rows()) == 26


def test_checkpoint_of_other_log_is_one_line_error(copying: Copying) -> None:
    copying.log.append(b"x")
    copying.run()
    with zlog.Log.create(copying.log.store, "invoices") as other:
        copying.log = other
        with pytest.raises(zlog.ZlogError, match=r"^the checkpoint belongs to log 'orders', not"):
            copying.run(cursor=None)


def test_unwritable_table_is_one_line_error(copying: Copying) -> None:
    """When the query starts, and in a task of it."""
    copying.log.append(b"x")
    table = Path(copying.table)
    table.touch()
    with pytest.raises(zlog.ZlogError, match=r"^Spark failed: \w+Exception: .*table$") as caught:
        copying.run()
    assert "Spark may write" in caught.value.hint
    table.unlink()
    table.mkdir()
    (table / f"date={copying.log.read(0).timestamp:%Y-%m-%d}").touch()
    with pytest.raises(zlog.ZlogError, match=r"^Spark failed: \w+Exception: .*date=.*$") as caught:
        copying.run()
    assert "Spark may write" in caught.value.hint


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("entries.nosuch", r"^Spark failed: \[ATTRIBUTE_NOT_SUPPORTED\] Attribute `nosuch` .*$"),
        ("f.udf(int, useArrow=False)(entries.data)", r"^Spark failed: ValueError: .*boom.*$"),
    ],
)
def test_failing_function_is_one_line_error(
    copying: Copying, tmp_path: Path, line: str, complaint: str
) -> None:
    copying.log.append(b"boom")
    code = "from pyspark.sql import functions as f\n\n\ndef parse(entries):\n"
    (tmp_path / "own.py").write_text(f"{code}    return entries.withColumn('y', {line})\n")
    with pytest.raises(zlog.ZlogError, match=complaint) as caught:
        copying.run(str(tmp_path / "own.py"))
    assert "--debug" in caught.value.hint


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"parse": "json", "schema": "id unknown"}, "--schema 'id unknown'"),
        ({"parse": "json", "schema": "Data string"}, "two columns 'Data'"),
        ({"parse": "(?P<date>x)"}, "two columns 'date'"),
        ({"parse": "(?P<a>x)", "schema": "b int"}, "no group b"),
        ({"parse": r"(?P<a>x)?(?(a)b|c)"}, "Java does not understand"),
        ({"partition_by": ["level"]}, "cannot partition by level; the columns are"),
    ],
)
def test_invalid_columns_are_refused(
    copying: Copying, changes: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(ValueError, match=complaint):
        copying.run(**changes)
    assert not Path(copying.table).exists()


def test_cursor_names_are_valid_and_distinct() -> None:
    names = {
        cursor_name_of(table, f"{table}.checkpoint")
        for table in ("/a/orders", "/b/orders", "s3a://b/" + "x" * 300, "/a/--", "/a/é")
    }
    assert len(names) == 5
    for name in names:
        check_cursor_name(name)


@pytest.mark.parametrize(
    ("words", "code", "complaint"),
    [
        (["nosuchlog", "--to", "x"], 3, "nosuchlog"),
        (["orders"], 2, "--to"),
        (["orders", "--to", "x", "--parse", "(?P<a>"], 2, "does not compile"),
        (["orders", "--to", "x", "--parse", "(a)"], 2, "has no named group"),
        (["orders", "--to", "x", "--parse", "(?P<data>a)"], 2, "two columns 'data'"),
        (["orders", "--to", "x", "--parse", "json"], 2, "--schema"),
        (["orders", "--to", "x", "--schema", "id int"], 2, "--parse"),
        (["orders", "--to", "x", "--parse", "/nowhere.py"], 1, "/nowhere.py"),
        (["orders", "--to", "x", "--trigger", "soon"], 2, "is not a duration"),
        (["orders", "--to", "x", "--cursor", "a/b"], 2, "cursor"),
        (["orders", "--to", "x", "--hole-timeout", "never"], 2, "--hole-timeout"),
        (["orders", "--to", "x", "--spark-conf", "spark.x"], 2, "KEY=VALUE"),
        (["orders", "--to", "x", "--format", "delta"], 1, "delta-spark=="),
    ],
)
def test_bad_input_is_reported_before_spark_starts(
    store: zlog.Store,
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
    code: int,
    complaint: str,
) -> None:
    zlog.Log.create(store, "orders").close()
    monkeypatch.setattr(SparkSession.Builder, "getOrCreate", None)
    result = Inside(store.url)("spark", "tail", *words)
    assert (result.code, result.out) == (code, b"")
    assert complaint in result.err


def test_missing_java_is_reported(
    store: zlog.Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    result = Inside(store.url)("spark", "tail", "orders", "--to", "x")
    assert result.code == 1
    assert "Java runtime" in result.err


def test_missing_pyspark_is_reported(store: zlog.Store, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("zlog.spark")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pyspark.sql.streaming.datasource", None)
    result = Inside(store.url)("spark", "tail", "orders", "--to", "x")
    assert result.code == 1
    assert f"zlog.spark needs {requirements('spark')} (" in result.err
    assert "pip install 'pyarrow>=" in result.err


def test_spark_error_keeps_hint() -> None:
    text = "Job aborted\nzlog.spark._plan.IncompletePlan: it is short\nHint: Run this.\n\n\tat org"
    error = cause(RuntimeError(text))
    assert isinstance(error, zlog.ZlogError)
    assert (str(error), error.hint) == ("it is short", "Run this.")


def test_spark_requirements_are_consistent() -> None:
    """The group brings what the extra does; what messages say is the extra's, as installed."""
    import tomllib  # since Python 3.11, as these tests

    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
    extra = project["project"]["optional-dependencies"]["spark"]
    assert requirements("spark") == ", ".join(sorted(extra))
    group = [each.partition(";")[0] for each in project["dependency-groups"]["spark"]]
    assert sorted(group) == sorted(extra)


def test_command_help_does_not_import_pyspark() -> None:
    code = (
        "import sys, zlog.cli.main as m\n"
        "try: m.command.main(['spark', 'tail', '--help'])\n"
        "finally: assert 'pyspark' not in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


QUICK = ("--spark-conf", "spark.ui.enabled=false", "--master", "local[2]")


def cli_of(store: zlog.Store) -> Cli:
    cli = Cli(store.url)
    cli.environment |= {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    return cli


def positions_of(table: Path) -> list[int]:
    import pyarrow.dataset as ds

    return sorted(ds.dataset(table).to_table(columns=["position"])["position"].to_pylist())


@pytest.mark.long
def test_command_copies_logs_that_match_a_pattern(store: zlog.Store, tmp_path: Path) -> None:
    import pyarrow.dataset as ds

    for name, count in (("web-1", 30), ("web-2", 5), ("db", 7)):
        with zlog.Log.create(store, name) as each:
            each.append_many([b"x"] * count)
    words = ("--to", str(tmp_path / "table"), "--trigger", "available-now", "--json", *QUICK)
    cli = cli_of(store)
    done = cli("spark", "tail", "web-*", *words, "--max-entries", "20")
    assert done.code == 0, done.err
    batches = [json.loads(line) for line in done.out.splitlines()]
    assert [batch["logs"] for batch in batches] == [
        {
            "web-1": {"start": 0, "position": 15, "tail": 30},
            "web-2": {"start": 0, "position": 5, "tail": 5},
        },
        {"web-1": {"start": 15, "position": 30, "tail": 30}},
    ]
    table = ds.dataset(tmp_path / "table").to_table(columns=["log", "position"])
    found = Counter(table["log"].to_pylist())
    assert found == {"web-1": 30, "web-2": 5}
    for name, count in found.items():
        with zlog.Log.open(store, name) as each:
            assert [cursor.position for cursor in each.cursors()] == [count]
    for words in (("web-*,db",), ("web-*", "--from", "3")):
        failed = cli("spark", "tail", *words, "--to", str(tmp_path / "other"))
        assert failed.code == 2
        assert "log" in failed.err


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A folder like that of the sources, in which Python finds no package that works."""
    folder = tmp_path / "clone"
    (folder / "zlog").mkdir(parents=True)
    (folder / "zlog" / "__init__.py").write_text("raise ImportError('sources, not the package')")
    return folder


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_ends_command_cleanly(
    store: zlog.Store, log: zlog.Log, tmp_path: Path, clone: Path, number: signal.Signals
) -> None:
    """Also in a folder that has something of the package's name."""
    log.append_many([b"x"] * 50)
    words = ("orders", "--to", str(tmp_path / "table"), "--trigger", "1s", "--json", *QUICK)
    started = cli_of(store).start("spark", "tail", *words, cwd=clone, start_new_session=True)
    with started as process:
        first = json.loads(process.stdout.readline())
        log.append_many([b"y"] * 10)
        second = json.loads(process.stdout.readline())
        process.send_signal(number)
        assert process.wait(SECONDS) == 0
        assert process.stdout.read() == b""
        said = process.stderr.read().decode()
    assert (first["position"], second["position"], second["rows"]) == (50, 60, 10)
    assert said == ""
    assert [cursor.position for cursor in log.cursors()] == [60]
    assert positions_of(tmp_path / "table") == list(range(60))


@pytest.mark.long
@pytest.mark.parametrize("debug", [False, True])
def test_spark_failure_prints_line_and_hint(
    store: zlog.Store, log: zlog.Log, tmp_path: Path, debug: bool
) -> None:
    log.append(b"x")
    (tmp_path / "file").touch()
    words = ("orders", "--to", str(tmp_path / "file" / "table"), *QUICK, *["--debug"] * debug)
    result = cli_of(store)("spark", "tail", *words)
    assert (result.code, result.out) == (1, b"")
    assert ("\tat org.apache" in result.err) is debug
    *jvm, said, hint = result.err.splitlines()
    assert bool(jvm) is debug
    assert said.startswith("zlog: Spark failed: ParentNotDirectoryException: ")
    assert hint.startswith("zlog: hint: Check whether")


def test_jvm_output_is_shown_on_start_failure(store: zlog.Store, log: zlog.Log) -> None:
    words = ("--to", "table", "--spark-conf", "spark.driver.memory=none")
    result = cli_of(store)("spark", "tail", log.name, *words)
    assert result.code == 1
    *jvm, said = result.err.splitlines()
    assert "Spark did not start" in said
    assert any("none" in line for line in jvm)


@pytest.mark.long
def test_command_runs_under_spark_submit(store: zlog.Store, log: zlog.Log, tmp_path: Path) -> None:
    log.append_many([b"x"] * 50)
    cli = cli_of(store)
    program = cli.ok("spark", "path").decode().strip()
    submit = Path(sys.executable).with_name("spark-submit")
    words = ("orders", "--to", str(tmp_path / "table"), "--trigger", "available-now", "--json")
    done = subprocess.run(
        [submit, "--master", "local[2]", program, *words, *QUICK[:2]],
        env=cli.environment,
        capture_output=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    last = done.stdout.splitlines()[-1]  # spark-submit also prints warnings of PySpark here
    assert json.loads(last)["position"] == 50
    assert positions_of(tmp_path / "table") == list(range(50))
