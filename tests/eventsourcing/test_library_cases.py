"""The recorders and the factory pass the library's own test cases."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from eventsourcing.dcb import tests as dcb_cases
from eventsourcing.tests import application as application_cases
from eventsourcing.tests import persistence as cases
from eventsourcing.utils import Environment

import zlog
from zlog.eventsourcing import ZlogApplicationRecorder, ZlogDCBRecorder, ZlogFactory


class WithLog:
    @pytest.fixture(autouse=True)
    def _log(self, log: zlog.Log) -> None:
        self.log = log

    def create_recorder(self) -> ZlogApplicationRecorder:
        return ZlogApplicationRecorder(self.log)


class TestApplicationRecorder(WithLog, cases.ApplicationRecorderTestCase[ZlogApplicationRecorder]):
    test_performance = test_concurrent_throughput = None  # they only measure

    def test_insert_subscribe(self) -> None:
        self.optional_test_insert_subscribe()


class TestNotificationIds(WithLog, cases.NonInterleavingNotificationIDsBaseCase):
    pass


class TestDCBRecorder(WithLog, dcb_cases.DCBRecorderTestCase):
    def test_append_read(self) -> None:
        self._test_append_read(ZlogDCBRecorder(self.log))

    def test_append_subscribe(self) -> None:
        self._test_append_subscribe(ZlogDCBRecorder(self.log))


class TestFactory(cases.InfrastructureFactoryTestCase[ZlogFactory]):
    @pytest.fixture(autouse=True)
    def _environment(self, tmp_path: Path) -> None:
        self.env = Environment(
            "School",
            {"PERSISTENCE_MODULE": "zlog.eventsourcing", "ZLOG_STORE": (tmp_path / "s").as_uri()},
        )

    def expected_factory_class(self) -> type[ZlogFactory]:
        return ZlogFactory

    def expected_aggregate_recorder_class(self) -> type[ZlogApplicationRecorder]:
        return ZlogApplicationRecorder

    expected_application_recorder_class = expected_aggregate_recorder_class

    def test_create_tracking_recorder(self) -> None:
        for create in (self.factory.tracking_recorder, self.factory.process_recorder):
            with pytest.raises(NotImplementedError, match="another PERSISTENCE_MODULE"):
                create()

    expected_tracking_recorder_class: Any = None
    tracking_recorder_subclass: Any = None
    expected_process_recorder_class: Any = None
    test_create_process_recorder = None


class TestApplication(application_cases.ExampleApplicationTestCase):
    expected_factory_topic = "zlog.eventsourcing:ZlogFactory"

    @pytest.fixture(autouse=True)
    def _environment(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PERSISTENCE_MODULE", "zlog.eventsourcing")
        monkeypatch.setenv("ZLOG_STORE", (tmp_path / "store").as_uri())
