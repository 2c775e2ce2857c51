"""What `zlog.metrics` tells of a process, on every store; spans where OpenTelemetry is there."""

from __future__ import annotations

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from prometheus_client import CollectorRegistry

import zlog
import zlog.aio
import zlog.metrics
from zlog import _client

from ..native.support import run


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> CollectorRegistry:
    monkeypatch.setattr(_client, "attached", [])
    registry = CollectorRegistry()
    zlog.metrics.enable(registry)
    return registry


def value(registry: CollectorRegistry, name: str, **labels: str) -> float:
    return registry.get_sample_value(f"zlog_client_{name}", labels) or 0.0


def test_calls_of_handle_are_counted(store: zlog.Store, registry: CollectorRegistry) -> None:
    with zlog.Log.create(store, "metered", width=2, stripe_unit=4) as log:
        log.append(b"alone")
        log.append_many([b"x" * 100] * 40)
        assert value(registry, "appended_entries_total") == 41
        assert value(registry, "append_seconds_count") == 2
        assert value(registry, "append_round_entries_bucket", le="1.0") == 1
        assert value(registry, "append_round_entries_sum") == 41
        assert value(registry, "calls_total", method="write", result="ok") == 3
        assert value(registry, "sent_bytes_total", method="write") > 4000
        assert len([*log.read_range()]) == 41
        assert value(registry, "calls_total", method="read", result="ok") >= 2
        assert value(registry, "received_bytes_total", method="read") > 4000
        assert log.read(3).data == b"x" * 100
        with pytest.raises(zlog.AlreadyWritten):
            log.fill(3)
        assert value(registry, "calls_total", method="fill", result="read_only") == 1


def test_conflicts_and_failures_are_counted(store: zlog.Store, registry: CollectorRegistry) -> None:
    with (
        zlog.Log.create(store, "metered", width=1) as log,
        zlog.Log.open(store, "metered") as other,
    ):
        other.reconfigure(width=2)
        log.append(b"in an epoch that is over")
        assert value(registry, "appended_entries_total") == 1
        with pytest.raises(zlog.EntryTooLarge):
            log.append(b"x" * (9 << 20))
        log.read_only()
        with pytest.raises(zlog.AppendRefused):
            other.append(b"refused")
        assert value(registry, "append_failures_total", error="AppendRefused") == 1


def test_appends_and_reads_create_spans(store: zlog.Store, monkeypatch: pytest.MonkeyPatch) -> None:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer", provider.get_tracer)
    monkeypatch.setattr(_client, "attached", [])
    zlog.metrics.enable(CollectorRegistry(), tracing=True)
    with zlog.Log.create(store, "metered") as log:
        log.append_many([b"a", b"b"])
        log.read(0)
    provider.shutdown()
    spans = [(span.name, dict(span.attributes or {})) for span in exporter.get_finished_spans()]
    assert ("zlog.append", {"zlog.log": "metered", "zlog.entries": 2}) in spans
    assert ("zlog.read", {"zlog.log": "metered", "zlog.objects": 1}) in spans


def test_metrics_are_enabled_only_once(registry: CollectorRegistry) -> None:
    with pytest.raises(zlog.ZlogError, match="already enabled"):
        zlog.metrics.enable(registry)


def test_missing_packages_error_has_install_hint() -> None:
    code = (
        "import sys; sys.modules[{0!r}] = None; import zlog, zlog.metrics\n"
        "try: zlog.metrics.enable(tracing={1})\n"
        "except zlog.ZlogError as error: print(error, '|', error.hint)"
    )
    for module, tracing in (("prometheus_client", False), ("opentelemetry", True)):
        said = run(code.format(module, tracing))
        assert "need" in said
        assert "nstall" in said.partition("|")[2]
