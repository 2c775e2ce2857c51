"""What Prometheus is told: by sequencers, by `zlog exporter`; and which alerts follow from it.

The real Prometheus (Debian's package) scrapes, and promtool checks the rules.
"""

from __future__ import annotations

import json
import re
import shutil
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import pytest
from prometheus_client.parser import text_string_to_metric_families

import zlog
from bench.peers.peer import free_port

from ..support.programs import REPOSITORY
from ..support.sequencer import SequencerProcess
from ..support.waiting import wait_until
from .conftest import Cli

RULES = REPOSITORY / "packaging" / "prometheus" / "zlog.rules.yml"
BOARD = REPOSITORY / "packaging" / "grafana" / "zlog.json"

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def scrape(where: str) -> tuple[str, Samples]:
    with urllib.request.urlopen(f"http://{where}/metrics", timeout=10) as answer:
        text = answer.read().decode()
    families = text_string_to_metric_families(text)
    return text, {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in families
        for sample in family.samples
    }


@contextmanager
def exporting(cli: Cli, *words: str) -> Iterator[str]:
    """Run an exporter; gives where it listens, once it has looked at the logs."""
    with cli.start("exporter", "--listen", "127.0.0.1:0", *words) as running:
        try:
            found = re.search(r"http://(\S+)/metrics", running.stderr.readline().decode())
            assert found
            where = found[1]
            wait_until(lambda: scrape(where)[1]["zlog_store_looked_timestamp_seconds", ()] > 0)
            yield where
        finally:
            running.send_signal(signal.SIGTERM)
            running.communicate(timeout=30)


def test_exporter_reports_store_contents(cli: Cli) -> None:
    with zlog.connect(cli.url) as store:
        with zlog.Log.create(store, "sales", width=2) as log:
            log.append_many([b"x" * 100] * 10)
            log.trim_to(3)
            log.cursor("billing", create=4)
        zlog.Log.create(store, "empty").close()
        zlog.Log.create(store, "zebra").close()
        with zlog.Log.open(store, "sales") as log:
            stat = log.stat()
    with exporting(cli, "--logs", "3") as where:
        text, found = scrape(where)
    of_sales = (("log", "sales"),)
    assert found["zlog_store_logs", ()] == 3
    assert found["zlog_store_logs_left_out", ()] == 1
    assert found["zlog_log_tail", of_sales] == stat.tail == 10
    assert found["zlog_log_trim_point", of_sales] == 3
    assert found["zlog_log_cursor_lag", (("cursor", "billing"), *of_sales)] == 6
    assert found["zlog_log_entries", of_sales] == stat.entries
    assert found["zlog_log_bytes", of_sales] == stat.bytes
    assert found["zlog_log_objects", of_sales] == stat.objects
    assert found["zlog_log_tail", (("log", "empty"),)] == 0
    assert ("zlog_log_tail", (("log", "zebra"),)) not in found
    lint(text)


def test_exporter_notices_new_and_removed_logs(cli: Cli) -> None:
    cli.ok("create", "an-old-one")
    with exporting(cli, "--interval", "0.1") as where:
        cli.ok("create", "sales")
        tail = "zlog_log_tail", (("log", "sales"),)
        wait_until(lambda: tail in scrape(where)[1])
        cli.ok("rm", "sales", "--yes")
        wait_until(lambda: tail not in scrape(where)[1])


def test_exporter_returns_404_for_other_paths(cli: Cli) -> None:
    with exporting(cli, "--listen", "0.0.0.0:0") as where:
        assert where.startswith(f"{socket.gethostname()}:")
        with urllib.request.urlopen(f"http://127.0.0.1:{where.rpartition(':')[2]}/metrics"):
            pass
        for path in ("/", "/metric", "/metrics/x", "/favicon.ico"):
            with pytest.raises(urllib.error.HTTPError, match="404"):
                urllib.request.urlopen(f"http://{where}{path}", timeout=10)


def test_address_in_use_is_reported(cli: Cli) -> None:
    cli.ok("create", "sales")
    with exporting(cli) as where:
        result = cli("exporter", "--listen", where)
    assert result.code == 1
    assert f"can't serve metrics on {where}" in result.err
    assert "hint: Use an address that belongs to this machine" in result.err


@pytest.mark.parametrize("store_url", ["ceph-memstore"], indirect=True)
def test_prometheus_scrapes_sequencer_and_exporter(store_url: str, tmp_path: Path) -> None:
    """And what a sequencer tells is what its status says."""
    cli = Cli(store_url)
    cli.ok("create", "sales")
    cli.ok("cursor", "set", "sales", "billing", "0")
    metrics = f"127.0.0.1:{free_port()}"
    with SequencerProcess(cli.url, "--metrics", metrics) as sequencer, exporting(cli) as exporter:
        cli.ok("append", "sales", stdin=b"a\nb\nc\n")
        status = json.loads(cli.ok("seqr", "status", sequencer.address, "--json"))
        text, found = scrape(metrics)
        lint(text)
        (namespace,), (log,) = status["namespaces"], status["logs"]
        place = (("namespace", log["namespace"]), ("pool", log["pool"]))
        assert found["zlog_seqr_up", ()] == 1
        assert found["zlog_seqr_grants_total", ()] == status["grants"]
        assert found["zlog_seqr_positions_total", ()] == status["positions"] == 3
        assert found["zlog_seqr_take_overs_total", ()] == status["take_overs"] == 1
        assert found["zlog_seqr_leader", place] == (namespace["role"] == "leader") == 1
        of_log = (("log", "sales"), *place)
        assert found["zlog_seqr_log_tail", of_log] == log["tail"] == 3
        wait_until(lambda: scrape(metrics)[1]["zlog_seqr_event_loop_lag_seconds_count", ()] > 0)
        with prometheus(tmp_path, {"zlog-seqr": metrics, "zlog-exporter": exporter}) as ask:
            wait_until(lambda: len(ask("up == 1")) == 2)
            wait_until(lambda: ask("zlog_seqr_log_tail") == [3.0])
            wait_until(lambda: ask("zlog_log_width") == [8.0])
            assert ask('ALERTS{alertstate="firing"}') == []
            named = {metric for metric in named_metrics(BOARD) if metric.startswith("zlog_")}
            assert named
            for metric in named:
                assert ask(f"count({metric}) or vector(0)") != [0.0], f"{metric} is not there"
        assert sequencer.stop() == 0


def named_metrics(board: Path) -> set[str]:
    text = json.dumps([panel["targets"] for panel in json.loads(board.read_text())["panels"]])
    return set(re.findall(r"\bzlog_[a-z_]+", text))


@contextmanager
def prometheus(folder: Path, jobs: dict[str, str]) -> Iterator:
    """Run the real one with the alert rules; gives what asks it for the values of an expression."""
    where = f"127.0.0.1:{free_port()}"
    config = folder / "prometheus.json"  # which is YAML, too
    config.write_text(
        json.dumps(
            {
                "global": {"scrape_interval": "500ms", "evaluation_interval": "500ms"},
                "rule_files": [str(RULES)],
                "scrape_configs": [
                    {
                        "job_name": job,
                        "scrape_timeout": "500ms",
                        "static_configs": [{"targets": [target]}],
                    }
                    for job, target in jobs.items()
                ],
            }
        )
    )
    words = ["prometheus", f"--config.file={config}", f"--storage.tsdb.path={folder / 'data'}"]
    words += [f"--web.listen-address={where}", "--log.level=error"]
    with subprocess.Popen([shutil.which(words[0]) or words[0], *words[1:]]) as process:

        def ask(expression: str) -> list[float]:
            url = f"http://{where}/api/v1/query?query={quote(expression)}"
            try:
                with urllib.request.urlopen(url, timeout=10) as answer:
                    found = json.load(answer)["data"]["result"]
            except OSError:  # it does not listen yet
                return []
            return [float(each["value"][1]) for each in found]

        try:
            yield ask
        finally:
            process.terminate()


def lint(text: str) -> None:
    """Have promtool check names, units and help texts."""
    done = promtool("check", "metrics", stdin=text)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def promtool(*words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["promtool", *words], input=stdin, capture_output=True, text=True, check=False, timeout=60
    )


SEQR = '{job="zlog-seqr",instance="a"}'
PLACE = '{job="zlog-seqr",instance="a",pool="p",namespace=""}'
LOG = '{job="zlog-exporter",instance="e",log="sales"}'
ALERTS: dict[str, tuple[dict[str, str], int, int]] = {
    "ZlogSequencerDown": ({f"up{SEQR}": "1 0x4 1x20"}, 4, 10),
    "ZlogNoLeader": ({f"zlog_seqr_leader{PLACE}": "1 0x4 1x20"}, 4, 10),
    "ZlogNoStandby": (
        {f"zlog_seqr_leader{PLACE}": "1x60", f"zlog_seqr_standbys{PLACE}": "0x20 1x40"},
        18,
        30,
    ),
    "ZlogTakeOversFail": ({f"zlog_seqr_take_over_failures_total{SEQR}": "0+60x15 900x60"}, 14, 40),
    "ZlogEventLoopLag": (
        {
            f'zlog_seqr_event_loop_lag_seconds_bucket{SEQR[:-1]},le="0.1"}}': "0x15 0+240x60",
            f'zlog_seqr_event_loop_lag_seconds_bucket{SEQR[:-1]},le="1"}}': "0+240x15 3600+240x60",
            f'zlog_seqr_event_loop_lag_seconds_bucket{SEQR[:-1]},le="+Inf"}}': (
                "0+240x15 3600+240x60"
            ),
        },
        12,
        40,
    ),
    "ZlogConnectionsRefused": (
        {f'zlog_seqr_closed_connections_total{SEQR[:-1]},reason="token"}}': "0+60x15 900x60"},
        12,
        40,
    ),
    "ZlogMaintenanceLate": (
        {
            f"zlog_seqr_leader{PLACE}": "1x60",
            f"zlog_seqr_maintenance_age_seconds{PLACE}": "0+60x20 0x20",
        },
        18,
        25,
    ),
    "ZlogDamaged": ({f"zlog_seqr_scrub_damaged_total{PLACE}": "0x5 1x100"}, 10, 90),
    "ZlogExporterStale": (
        {'zlog_store_looked_timestamp_seconds{instance="e"}': "0x5 360+60x20"},
        5,
        8,
    ),
    "ZlogLogUnreadable": ({'zlog_store_log_errors{instance="e"}': "1x10 0x20"}, 8, 15),
    "ZlogCursorLag": (
        {f'zlog_log_cursor_lag{LOG[:-1]},cursor="c"}}': "1e6+1000x50 0x60"},
        45,
        60,
    ),
    "ZlogGroupStalled": (
        {f'zlog_group_oldest_seconds{LOG[:-1]},group="g"}}': "0+60x40 0x20"},
        25,
        45,
    ),
    "ZlogObjectOverfull": ({f"zlog_log_fullness_ratio{LOG}": "1.3x20 0.1x20"}, 18, 25),
}
"""For each, series of a value per minute; minutes at which it fires, and is cleared."""


def test_each_alert_fires_and_is_cleared(tmp_path: Path) -> None:
    assert set(ALERTS) == set(re.findall(r"alert: (\w+)", RULES.read_text()))
    done = promtool("check", "rules", str(RULES))
    assert done.returncode == 0, done.stderr + done.stdout
    tests = []
    for name, (series, fires, cleared) in ALERTS.items():
        firing = f'count(ALERTS{{alertname="{name}",alertstate="firing"}}) or vector(0)'
        asked = [
            {
                "expr": firing,
                "eval_time": f"{minute}m",
                "exp_samples": [{"labels": "{}", "value": value}],
            }
            for minute, value in ((0, 0), (fires, 1), (cleared, 0))
        ]
        given = [{"series": each, "values": values} for each, values in series.items()]
        tests.append({"interval": "1m", "input_series": given, "promql_expr_test": asked})
    file = tmp_path / "alerts.yml"
    file.write_text(
        json.dumps({"rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": tests})
    )
    done = promtool("test", "rules", str(file))
    assert done.returncode == 0, done.stdout + done.stderr


def test_missing_package_error_has_install_hint(cli: Cli) -> None:
    code = (
        "import sys; sys.modules['prometheus_client'] = None; sys.argv = ['zlog', 'exporter'];"
        "from zlog.cli.main import main; main()"
    )
    words = [sys.executable, "-c", code]
    done = subprocess.run(words, env=cli.environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "zlog: metrics need the prometheus-client package" in done.stderr
    assert "pip install 'prometheus-client>=" in done.stderr
