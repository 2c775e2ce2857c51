"""The event bus: what Ceph's RGW, senders of CloudEvents and OpenTelemetry's exporters post."""

from __future__ import annotations

import gzip
import itertools
import json
import os
import subprocess
import sys
from base64 import b64decode, b64encode
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import boto3
import pytest
from botocore.config import Config
from google.protobuf import json_format
from opentelemetry.proto.collector.logs.v1 import logs_service_pb2 as otlp
from opentelemetry.proto.common.v1.common_pb2 import KeyValue

from zlog.web import _events
from zlog.web._errors import Refusal

from ..support.ceph import CephCluster
from ..support.waiting import wait_until
from .conftest import Server, Starter

EVENTS, LOGS = "/v1/events/bus", "/v1/otlp/bus/v1/logs"
CLOUD_EVENT = "application/cloudevents+json"
CLOUD_EVENTS = "application/cloudevents-batch+json"
JSON, PROTOBUF = "application/json", "application/x-protobuf"
MIB = 1 << 20


@pytest.fixture
def bus(server: Server) -> Server:
    """A server with an empty log `bus`, which is ordered by its object."""
    assert server.ask("PUT", "/v1/logs/bus", b'{"ordering": "object"}').status == 201
    return server


def entries(server: Server) -> list[tuple[Any, list[str]]]:
    """The entries of the log, with their tags except those that identify events."""
    body = server.ask("GET", "/v1/logs/bus/entries").body
    lines = [json.loads(each) for each in body.splitlines()]
    return [
        (json.loads(line["data"]), [tag for tag in line["tags"] if not tag.startswith("id:")])
        for line in lines
    ]


def s3(key: str, event: str = "s3:ObjectCreated:Put", bucket: str = "photos") -> dict[str, Any]:
    return {"eventName": event, "s3": {"bucket": {"name": bucket}, "object": {"key": key}}}


def s3_body(*keys: str) -> bytes:
    return json.dumps({"Records": [s3(key) for key in keys]}, separators=(",", ":")).encode()


def cloud(number: object, **more: object) -> dict[str, Any]:
    return {"specversion": "1.0", "id": str(number), "source": "/shop", "type": "order", **more}


def cloud_body(*numbers: object) -> bytes:
    return json.dumps([cloud(each) for each in numbers]).encode()


def test_each_s3_event_becomes_an_entry_with_tags(bus: Server) -> None:
    records = [s3("a"), s3("b", "ObjectRemoved:Delete", "é" * 80)]
    body = json.dumps({"Records": records}, separators=(",", ":")).encode()
    assert bus.ask("POST", EVENTS, body).fields == {"positions": [0, 1]}
    assert entries(bus) == [
        (records[0], ["bucket:photos", "event:ObjectCreated:Put"]),
        (records[1], ["bucket:" + "é" * 60, "event:ObjectRemoved:Delete"]),
    ]


def test_the_modes_of_cloud_events_are_equal(bus: Server) -> None:
    headers = {"ce_specversion": "1.0", "ce_id": "1", "ce_source": "/shop", "ce_type": "order"}
    headers |= {"ce_subject": "Z%C3%BCrich%20%25", "ce_data": "no", "Content_Type": JSON}
    assert bus.ask("POST", EVENTS, b'{"a":1.50}', **headers).fields == {"positions": [0]}
    same = cloud(1, subject="Zürich %", datacontenttype=JSON, data={"a": 1.5})
    assert entries(bus) == [(same, ["source:/shop", "type:order"])]
    structured = bus.ask("POST", EVENTS, json.dumps(same).encode(), Content_Type=CLOUD_EVENT)
    assert (structured.status, structured.fields) == (200, {"positions": [0]})
    batch = json.dumps([cloud(2), same]).encode()
    both = bus.ask("POST", EVENTS, batch, Content_Type=CLOUD_EVENTS + "; charset=UTF-8")
    assert (both.status, both.fields) == (201, {"positions": [1, 0]})
    assert bus.ask("POST", EVENTS, b"[]", Content_Type=CLOUD_EVENTS).fields == {"positions": []}
    bus.ask("POST", EVENTS, b"\xff{", **{**headers, "ce_id": "3", "Content_Type": "text/plain"})
    data, _ = entries(bus)[2]
    assert (data["datacontenttype"], b64decode(data["data_base64"])) == ("text/plain", b"\xff{")
    # Ceph gives the events of several objects that one request deletes the same id.
    other = bus.ask("POST", EVENTS, b"", **{**headers, "ce_subject": "Bern"})
    assert (other.status, other.fields) == (201, {"positions": [3]})


def test_repeated_events_are_in_an_ordered_log_once(bus: Server) -> None:
    numbers = [*range(100)]
    some = bus.ask("POST", EVENTS, cloud_body(*numbers[:40]), Content_Type=CLOUD_EVENTS)
    assert some.fields == {"positions": numbers[:40]}
    for body in (cloud_body(*numbers), cloud_body(7, *numbers[1:], 7)):
        again = bus.ask("POST", EVENTS, body, Content_Type=CLOUD_EVENTS).fields["positions"]
        assert again[1:100] == numbers[1:100]
    assert (again[0], again[100]) == (7, 7)
    assert bus.ask("POST", EVENTS, s3_body("a", "b", "a")).fields == {"positions": [100, 101, 100]}
    assert bus.ask("POST", EVENTS, s3_body("b", "c")).fields == {"positions": [101, 102]}
    assert len(entries(bus)) == 103


def test_events_that_two_servers_receive_at_once_are_in_the_log_once(
    bus: Server, start: Starter
) -> None:
    servers = [bus, start()]

    def send(number: int) -> list[int]:
        body = cloud_body(*range(number, number + 40))
        reply = servers[number % 2].ask("POST", EVENTS, body, Content_Type=CLOUD_EVENTS)
        found: list[int] = reply.fields["positions"]
        return found

    with ThreadPoolExecutor(12) as pool:
        replies = [*pool.map(send, range(12))]
    found = entries(bus)
    assert len(found) == 51
    for number, positions in enumerate(replies):
        ids = [int(found[position][0]["id"]) for position in positions]
        assert ids == [*range(number, number + 40)]


def test_a_log_ordered_by_a_sequencer_keeps_repeated_events(server: Server) -> None:
    server.ask("PUT", "/v1/logs/bus")
    for _ in range(2):
        assert server.ask("POST", EVENTS, s3_body("a", "b")).status == 201
    assert sorted(data["s3"]["object"]["key"] for data, _ in entries(server)) == [*"aabb"]
    assert server.ask("POST", "/v1/events/none", s3_body("a")).fields["code"] == "LogNotFound"
    server.ask("PUT", "/v1/stream/s")
    assert server.ask("POST", "/v1/events/s", s3_body("a")).fields["code"] == "IsAStream"


RECORD = {
    "timeUnixNano": "1795872548117993984",
    "severityNumber": 13,
    "traceId": "5b8efff798038103d269b633813fc60c",
    "body": {"stringValue": "slow"},
    "attributes": [{"key": "k", "value": {"bytesValue": "/wA="}}],
}
RESOURCE = {"attributes": [{"key": "service.name", "value": {"stringValue": "shop"}}]}


def otlp_json(*records: dict[str, Any]) -> dict[str, Any]:
    scopes = [{"scope": {"name": "x"}, "logRecords": [*records], "schemaUrl": "s"}]
    return {"resourceLogs": [{"resource": RESOURCE, "scopeLogs": scopes}]}


def otlp_protobuf(*records: dict[str, Any]) -> otlp.ExportLogsServiceRequest:
    encoded = [{**each, "traceId": b64encode(bytes.fromhex(each["traceId"]))} for each in records]
    return json_format.ParseDict(otlp_json(*encoded), otlp.ExportLogsServiceRequest())


@pytest.mark.parametrize("kind", [JSON, PROTOBUF])
def test_each_log_record_becomes_an_entry_with_its_resource(bus: Server, kind: str) -> None:
    records = [RECORD, {**RECORD, "severityNumber": 0, "severityText": "loud"}]
    if kind == JSON:
        body = json.dumps(otlp_json(*records)).encode()
    else:
        del records[1]["severityNumber"]  # protobuf does not encode zeros
        body = otlp_protobuf(*records).SerializeToString()
    reply = bus.ask("POST", LOGS, gzip.compress(body), Content_Type=kind, Content_Encoding="gzip")
    assert (reply.status, reply.headers["content-type"]) == (200, kind)
    assert reply.body == (b"{}" if kind == JSON else b"")
    assert entries(bus) == [
        (otlp_json(records[0]), ["service.name:shop", "severity:WARN"]),
        (otlp_json(records[1]), ["service.name:shop", "severity:loud"]),
    ]


def test_log_records_that_are_too_large_are_rejected_alone(bus: Server) -> None:
    large = {**RECORD, "body": {"stringValue": "x" * MIB}}
    reply = bus.ask("POST", LOGS, json.dumps(otlp_json(large, RECORD)).encode(), Content_Type=JSON)
    assert reply.fields["partialSuccess"]["rejectedLogRecords"] == 1
    request = otlp_protobuf(RECORD, large, RECORD)
    # An attribute without key and value takes two bytes, and much more memory when converted.
    scope = request.resource_logs[0].scope_logs[0]
    scope.log_records[0].attributes.extend([KeyValue()] * MIB)
    reply = bus.ask("POST", LOGS, request.SerializeToString(), Content_Type=PROTOBUF)
    partial = otlp.ExportLogsServiceResponse.FromString(reply.body).partial_success
    assert partial.rejected_log_records == 2
    assert "1048576 bytes" in partial.error_message
    assert [data for data, _ in entries(bus)] == [otlp_json(RECORD)] * 2
    many = json.dumps(otlp_json(*[{}] * 32769)).encode()
    assert bus.ask("POST", LOGS, many, Content_Type=JSON).status == 413


async def test_a_server_without_protobuf_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, otlp.__name__, None)
    monkeypatch.delattr("opentelemetry.proto.collector.logs.v1.logs_service_pb2")
    with pytest.raises(Refusal, match="protobuf") as caught:
        await _events._checked("", _events._log_records, PROTOBUF, b"", MIB)
    assert (caught.value.status, "install" in caught.value.hint) == (415, True)


def test_a_token_can_be_the_password_of_a_url(start: Starter, tmp_path: Path) -> None:
    """Ceph's RGW has no other setting for it."""
    (tmp_path / "tokens").write_text(f"rgw sha256:{sha256(b'secret').hexdigest()} all *\n")
    server = start("--tokens", str(tmp_path / "tokens"))
    words = [b64encode(each).decode() for each in (b"any:secret", b"secret", b"any:no", b"\xff")]
    replies = [server.ask("PUT", "/v1/logs/a", Authorization=f"Basic {word}") for word in words]
    assert [reply.status for reply in replies] == [201, 401, 401, 401]
    assert "Basic" not in replies[1].headers["www-authenticate"]  # browsers would keep it


LARGE = cloud("large", data="x" * MIB)


@pytest.mark.parametrize(
    ("path", "kind", "body", "status"),
    [
        (EVENTS, JSON, b"", 400),
        (EVENTS, JSON, b"{}", 400),
        (EVENTS, JSON, json.dumps({"Records": [s3("a"), {"eventName": "x"}]}).encode(), 400),
        (EVENTS, JSON, b'{"Records": [{"eventName": "\xff"}]}', 400),
        (EVENTS, CLOUD_EVENT, b"[" * MIB, 400),
        *(
            (EVENTS, CLOUD_EVENT, json.dumps(cloud(number, **more)).encode(), 400)
            for number, more in (
                ("", {}),
                (1, {"data_base64": "!"}),
                (1, {"data_base64": "eA==", "data": 1}),
                (1, {"time": "yesterday"}),
                (1, {"not_valid": "x"}),
                (1, {"extension": {"a": 1}}),
            )
        ),
        (EVENTS, CLOUD_EVENTS, json.dumps([cloud(1), cloud(2, specversion="0.3")]).encode(), 400),
        (EVENTS, CLOUD_EVENTS, json.dumps([*map(cloud, range(40)), LARGE]).encode(), 413),
        (EVENTS, "application/cloudevents+avro", b"", 415),
        (LOGS, "text/plain", b"{}", 415),
        (LOGS, JSON, json.dumps(otlp_json(RECORD, [])).encode(), 400),  # type: ignore[arg-type]
        (LOGS, PROTOBUF, b"\xff", 400),
    ],
    ids=itertools.count(),
)
def test_nothing_of_an_invalid_body_is_appended(
    bus: Server, path: str, kind: str, body: bytes, status: int
) -> None:
    reply = bus.ask("POST", path, body, Content_Type=kind)
    assert (reply.status, bool(reply.fields["hint"])) == (status, True)
    assert entries(bus) == []


@pytest.mark.long
def test_rgw_sends_its_events(s3_cluster: CephCluster, start: Starter) -> None:
    """Ceph's S3 gateway sends an event again until the log exists that is to receive it."""
    server = start(url=s3_cluster.url("events"))
    sns = boto3.client("sns", region_name="default")
    files = boto3.client("s3", config=Config(s3={"addressing_style": "path"}))
    target = {"push-endpoint": server.address + EVENTS, "http-ack-level": "non-error"}
    topic = sns.create_topic(Name="zlog", Attributes={**target, "persistent": "true"})["TopicArn"]
    files.create_bucket(Bucket="photos")
    kinds = ["s3:ObjectCreated:*", "s3:ObjectRemoved:*"]
    wanted = {"Id": "zlog", "TopicArn": topic, "Events": kinds}
    files.put_bucket_notification_configuration(
        Bucket="photos", NotificationConfiguration={"TopicConfigurations": [wanted]}
    )
    for key in ("cat.jpg", "dog.jpg"):
        files.put_object(Bucket="photos", Key=key, Body=b"meow")
    files.delete_object(Bucket="photos", Key="cat.jpg")
    refused = 'zlog_http_requests_total{method="POST",status="404"} '
    wait_until(lambda: refused in urlopen(f"http://{server.metrics}/metrics").read().decode())
    server.ask("PUT", "/v1/logs/bus", b'{"ordering": "object"}')
    wait_until(lambda: len(entries(server)) == 3, server.said)
    found = sorted((data["s3"]["object"]["key"], *tags) for data, tags in entries(server))
    assert found == [
        ("cat.jpg", "bucket:photos", "event:ObjectCreated:Put"),
        ("cat.jpg", "bucket:photos", "event:ObjectRemoved:Delete"),
        ("dog.jpg", "bucket:photos", "event:ObjectCreated:Put"),
    ]
    files.delete_object(Bucket="photos", Key="dog.jpg")
    files.delete_bucket(Bucket="photos")
    sns.delete_topic(TopicArn=topic)


EXPORTER = """
import logging
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.sdk._logs import LoggerProvider, LoggingHandler
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor

provider = LoggerProvider()
exporter = OTLPLogExporter(compression=Compression.Gzip)
provider.add_log_record_processor(BatchLogRecordProcessor(exporter))
logging.getLogger().addHandler(LoggingHandler(logger_provider=provider))
for number in range(1000):
    logging.warning("number %d", number)
provider.shutdown()
"""


@pytest.mark.long
def test_the_exporter_of_opentelemetry_sends_its_records(bus: Server) -> None:
    variables = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": bus.address + "/v1/otlp/bus",
        "OTEL_SERVICE_NAME": "shop",
    }
    words = [sys.executable, "-W", "ignore", "-c", EXPORTER]
    subprocess.run(words, env={**os.environ, **variables}, check=True, timeout=60)
    found = entries(bus)
    bodies = [data["resourceLogs"][0]["scopeLogs"][0]["logRecords"][0]["body"] for data, _ in found]
    assert bodies == [{"stringValue": f"number {number}"} for number in range(1000)]
    assert {tuple(tags) for _, tags in found} == {("service.name:shop", "severity:WARN")}
