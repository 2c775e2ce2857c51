"""What a sequencer does when it begins to lead: announce itself, and take over what others had."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

import zlog
from zlog._base.deadline import Deadline
from zlog._base.sequencer import LogAddress
from zlog._catalog.directory import Directory
from zlog._catalog.head import Head
from zlog._io import AsyncioIo, BlockingIo, drive
from zlog._layout.views import change_view
from zlog.errors import StoreUnavailable
from zlog.seqr.election.candidate import Candidate, Role
from zlog.seqr.election.election import Election
from zlog.seqr.election.lease import LEASE_SECONDS_DEFAULT
from zlog.seqr.election.maintenance import Duties
from zlog.seqr.limits import Limits
from zlog.seqr.namespaces import Namespace, Stores

from ..client.faulty import FaultyStore, Refusing, at_method
from .fakes import until

HERE, FORMER = "tcp://127.0.0.1:1", "tcp://127.0.0.1:2"
LOGS = 20


class Logs:
    """The server's part; it can be told to be slow."""

    def __init__(self) -> None:
        self.adopted: list[str] = []
        self.at_once = self.at_once_max = 0
        self.stepped_down: list[Namespace] = []
        self.looks = 0
        self.in_use: set[str] = set()

    async def adopt(self, log: LogAddress) -> None:
        self.at_once += 1
        self.at_once_max = max(self.at_once, self.at_once_max)
        await asyncio.sleep(0.001)
        self.at_once -= 1
        self.adopted.append(log.name)

    def step_down(self, namespace: Namespace) -> None:
        self.stepped_down.append(namespace)

    def look_again(self) -> None:
        self.looks += 1

    def used(self, namespace: Namespace) -> set[str]:
        return self.in_use


def name_sequencer(store: zlog.Store, log: str, sequencer: str) -> None:
    """Have a log's view name a sequencer."""
    io = BlockingIo(store)
    drive(change_view(io, log, lambda view: replace(view, sequencer=sequencer), Deadline(10)))


def list_as_used(store: zlog.Store, *names: str) -> None:
    """Leave the list of a leader whose clients had these logs open."""
    drive(Directory(BlockingIo(store)).used.add_all(names, Deadline(10)))


def used(store: zlog.Store) -> list[str]:
    return drive(Directory(BlockingIo(store)).used.names(Deadline(10)))


def retained(store: zlog.Store) -> list[str]:
    return drive(Directory(BlockingIo(store)).retained.names(Deadline(10)))


@pytest.fixture
def logs(memory):
    """Logs that a former leader served, beside others that it did not."""
    for number in range(LOGS):
        zlog.Log.create(memory, f"served-{number}", width=1)
        name_sequencer(memory, f"served-{number}", FORMER)
    zlog.Log.create(memory, "shared", width=1)
    zlog.Log.create(memory, "alone", width=1)
    name_sequencer(memory, "alone", "")
    served = [f"served-{number}" for number in range(LOGS)]
    list_as_used(memory, *served, "alone", "gone")
    return served


class Sequencer:
    """An election over a store, and what it tells its server."""

    def __init__(self, store: zlog.Store, **limits: int) -> None:
        self.logs = Logs()
        self.roles: list[Role] = []
        self.stores = Stores(store, zlog.connect, Limits(**limits))
        self.election = Election(
            self.stores,
            HERE,
            Limits(**limits),
            LEASE_SECONDS_DEFAULT,
            note_role=lambda: self.roles.append(self.election.role),
        )

    async def __aenter__(self):
        await self.election.start(self.logs)
        return self

    async def __aexit__(self, *_):
        await self.election.resign()
        await self.stores.close()

    async def adopts(self, count: int) -> None:
        """Wait until that many logs were adopted."""
        await until(lambda: len(set(self.logs.adopted)) >= count)


async def announced(stores: Stores) -> str:
    return await Directory(stores.first).sequencer(Deadline(5))


async def test_new_leader_adopts_logs_with_tls_address(memory, logs):
    name_sequencer(memory, "alone", "tls://127.0.0.1:3")
    async with Sequencer(memory) as sequencer:
        await sequencer.adopts(LOGS + 1)
        assert set(sequencer.logs.adopted) == {*logs, "alone"}


async def test_new_leader_skips_unused_logs(memory, logs):
    for number in range(LOGS):
        zlog.Log.create(memory, f"idle-{number}", width=1)
        name_sequencer(memory, f"idle-{number}", FORMER)
    looks: list[str] = []
    store = Looked(memory, looks)
    async with Sequencer(store, sweep_max=3) as sequencer:
        await sequencer.adopts(LOGS)
        await asyncio.sleep(0.05)
    assert sorted(sequencer.logs.adopted) == sorted(logs)
    assert sequencer.logs.at_once_max == 3
    assert sorted(set(looks)) == sorted(f"zlog.{log}.head" for log in [*logs, "alone", "gone"])


async def test_leader_lists_logs_in_use(memory, monkeypatch):
    """And strikes off what they have not any more, of what it found there too."""
    monkeypatch.setattr("zlog.seqr.election.leadership._ANNOUNCEMENT_SECONDS", 0.01)
    monkeypatch.setattr("zlog.seqr.election.leadership.UNUSED_SECONDS", 0.3)
    list_as_used(memory, "former")
    async with Sequencer(memory) as sequencer:
        sequencer.logs.in_use = {"one", "two"}
        await until(lambda: used(memory) == ["former", "one", "two"])
        await until(lambda: used(memory) == ["one", "two"])
        sequencer.logs.in_use = {"two"}
        await until(lambda: used(memory) == ["two"])


async def test_leader_continues_without_listing_permission(memory, monkeypatch, caplog):
    """Its user may not be allowed to."""
    monkeypatch.setattr("zlog.seqr.election.leadership._ANNOUNCEMENT_SECONDS", 0.01)
    tries: list[str] = []

    def fault(_: int, method: str) -> str | None:
        if method == "directory_add":
            tries.append(method)
            return "fail"
        return None

    async with Sequencer(FaultyStore(memory, fault)) as sequencer:
        sequencer.logs.in_use = {"one"}
        await until(lambda: len(tries) > 2)
        assert await announced(sequencer.stores) == HERE
    assert caplog.text.count("can't list the logs in use") == 1


class Looked(FaultyStore):
    """A store that notes of which objects views were read."""

    def __init__(self, inner: zlog.Store, looks: list[str]) -> None:
        super().__init__(inner, lambda *_: None)
        self.looks = looks

    def submit(self, queue, token, calls):
        self.looks += [call[0] for call in calls if call[1] == "view_read"]
        return self.inner.submit(queue, token, calls)


class Damaged(FaultyStore):
    """A store in which the head of one log can't be read."""

    def submit(self, queue, token, calls):
        for number, call in enumerate(calls, token):
            bad = call[0] == "zlog.broken.head"
            self.inner.submit(queue, number, [(call[0], "nothing", b"") if bad else call])


async def test_damaged_head_does_not_affect_other_logs(memory, logs, monkeypatch, caplog):
    """Neither from being taken over, nor, ever after, from being looked after."""
    monkeypatch.setattr("zlog.seqr.election.leadership._ANNOUNCEMENT_SECONDS", 0.01)
    monkeypatch.setattr("zlog.seqr.election.leadership.DUTY_SECONDS", 0.01)
    zlog.Log.create(memory, "broken", width=1)
    list_as_used(memory, "broken")
    trimmed = zlog.Log.create(memory, "trimmed", width=1)
    trimmed.append_many([b"entry"] * 10)
    trimmed.set_retention(zlog.Retention(entries=3))
    async with Sequencer(Damaged(memory, lambda *_: None), sweep_max=1) as sequencer:
        await sequencer.adopts(LOGS)
        await until(lambda: trimmed.stat().trim_point == 7)
        assert sorted(sequencer.logs.adopted) == sorted(logs)  # each once
    assert "could not read the head of log=broken" in caplog.text


async def test_unexpected_error_does_not_end_leadership(memory, monkeypatch, caplog):
    monkeypatch.setattr("zlog.seqr.election.leadership._ANNOUNCEMENT_SECONDS", 0.01)
    failures: list[Exception] = []

    def fault(_: int, method: str) -> str | None:
        if method == "sequencer_find" and failures:
            raise failures.pop()
        return None

    async with Sequencer(FaultyStore(memory, fault)) as sequencer:
        failures.append(RuntimeError("no one knows why"))
        await until(lambda: not failures)
        await Directory(sequencer.stores.first).announce(FORMER, Deadline(5))
        plain = BlockingIo(memory)
        await until(lambda: drive(Directory(plain).sequencer(Deadline(5))) == HERE)
    assert "no one knows why" in caplog.text


@pytest.fixture
def everywhere(monkeypatch):
    """Every namespace is in the first store; looks whether a guest is wanted follow each other."""

    async def first(stores: Stores, _: Namespace):
        return stores.first

    monkeypatch.setattr(Stores, "of", first)
    monkeypatch.setattr("zlog.seqr.election.election._VISIT_SECONDS", 0.01)


@pytest.mark.usefixtures("everywhere")
async def test_unexpected_error_does_not_keep_guest_leading(memory, caplog):
    failures = [RuntimeError("no one knows why"), RuntimeError("nor this")]

    def in_use(_: Namespace) -> set[str]:
        if failures:
            raise failures.pop()
        return set()

    guest = Namespace("elsewhere", "")
    async with Sequencer(memory) as sequencer:
        sequencer.logs.used = in_use
        assert (await sequencer.election.candidate(guest)).role is Role.LEADER
        await until(lambda: len(sequencer.election.describe()["namespaces"]) == 1)
        assert sequencer.logs.stepped_down == [guest]
    assert "no one knows why" in caplog.text
    assert "nor this" in caplog.text


@pytest.mark.usefixtures("everywhere")
async def test_failure_to_resign_is_logged(memory, monkeypatch, caplog):
    async def resign(_: Candidate) -> bool:
        raise RuntimeError("no one knows why")

    async with Sequencer(memory) as sequencer:
        monkeypatch.setattr(Candidate, "resign", resign)
        await sequencer.election.candidate(Namespace("elsewhere", ""))
        await until(lambda: "could not resign namespace=elsewhere" in caplog.text)
        assert await sequencer.election.resign() == set()
    assert "could not resign namespace=the store" in caplog.text


async def test_adoption_retries_after_store_failure(memory, logs, monkeypatch):
    monkeypatch.setattr("zlog.seqr.election.leadership._ANNOUNCEMENT_SECONDS", 0.01)
    failures = iter((None, "fail", None, None, "fail"))

    def fault(_: int, method: str) -> str | None:
        return next(failures, None) if method == "view_read" else None

    async with Sequencer(FaultyStore(memory, fault)) as sequencer:
        await sequencer.adopts(LOGS)
        assert set(sequencer.logs.adopted) == set(logs)
    assert next(failures, "used up") == "used up"


async def test_slow_maintenance_does_not_delay_announcement(memory, monkeypatch):
    monkeypatch.setattr("zlog.seqr.election.leadership._ANNOUNCEMENT_SECONDS", 0.01)
    monkeypatch.setattr("zlog.seqr.election.leadership.DUTY_SECONDS", 0.01)
    begun = asyncio.Event()

    async def never_done(_: Duties) -> None:
        begun.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(Duties, "round", never_done)
    async with Sequencer(memory) as sequencer:
        await begun.wait()
        await Directory(sequencer.stores.first).announce(FORMER, Deadline(5))
        plain = BlockingIo(memory)
        await until(lambda: drive(Directory(plain).sequencer(Deadline(5))) == HERE)


async def test_leader_trims_logs_by_retention(memory, monkeypatch, caplog):
    monkeypatch.setattr("zlog.seqr.election.leadership._ANNOUNCEMENT_SECONDS", 0.01)
    monkeypatch.setattr("zlog.seqr.election.leadership.DUTY_SECONDS", 0.01)
    kept = zlog.Log.create(memory, "kept", width=1)
    trimmed = zlog.Log.create(memory, "trimmed", width=1)
    broken = zlog.Log.create(memory, "broken", width=1)
    for log in (kept, trimmed, broken):
        log.append_many([b"entry"] * 10)
    for log in (trimmed, broken):
        log.set_retention(zlog.Retention(entries=3))
    fault = at_method("trim_point_raise", lambda: None, verdict="fail")
    async with Sequencer(FaultyStore(memory, fault)):
        await until(lambda: trimmed.stat().trim_point == broken.stat().trim_point == 7)
    assert kept.stat().trim_point == 0
    assert "maintenance failed log=broken" in caplog.text


async def test_leader_removes_pending_and_trimmed_stripes(memory, monkeypatch):
    """Stripes that were announced and never came into a view, and those below the trim point."""
    monkeypatch.setattr("zlog.seqr.election.leadership._ANNOUNCEMENT_SECONDS", 0.01)
    monkeypatch.setattr("zlog.seqr.election.leadership.DUTY_SECONDS", 0.01)
    log = zlog.Log.create(memory, "orders", width=1)
    log.append_many([b"entry"] * 10)
    log.reconfigure(width=2)
    io = BlockingIo(memory)
    head = Head(io, "orders")
    drive(head.epoch_next(Deadline(5), width=3))
    name_sequencer(memory, "orders", "")  # a later view: the announced stripe never comes
    drive(head.trim_point_raise(log.view.log_id, 10, Deadline(5)))
    first, *_ = log.views()[0].objects()
    assert memory.peek(first.name) is not None

    def loose():
        return drive(head.pending_stripes(log.view.log_id, Deadline(5)))[1]

    assert loose()
    async with Sequencer(memory):
        await until(lambda: memory.peek(first.name) is None and not loose())


async def test_maintenance_rounds_reach_every_log(memory, monkeypatch):
    """However few a round takes; and the list of those with a retention is put right."""
    monkeypatch.setattr("zlog.seqr.election.maintenance._LOGS_PER_ROUND", 1)
    monkeypatch.setattr("zlog.seqr.election.maintenance._NAMES_PER_SHARD", 1)
    names = [f"log-{number:02}" for number in range(40)]
    for name in names:
        zlog.Log.create(memory, name, width=1).append(b"x")
    directory = Directory(BlockingIo(memory))
    zlog.Log.open(memory, "log-07").set_retention(zlog.Retention(entries=0))
    assert retained(memory) == ["log-07"]
    drive(directory.retained.remove_all(["log-07"], Deadline(5)))
    drive(directory.retained.add_all(["log-09", "gone"], Deadline(5)))
    looks: list[str] = []
    io = AsyncioIo(Looked(memory, looks))
    duties = Duties(io)
    await duties.round()
    assert 0 < len({*looks}) < 35  # log-09, the one that is gone, and a page
    for _ in names:
        await duties.round()
    await io.close()
    assert {*looks} == {f"zlog.{name}.head" for name in [*names, "gone"]}
    assert retained(memory) == ["log-07"]
    assert zlog.Log.open(memory, "log-07").stat().trim_point == 1


async def test_status_describes_namespace(memory):
    async with Sequencer(memory) as sequencer:
        assert sequencer.election.describe() == {
            "role": "leader",
            "namespaces": [
                {
                    "pool": "",
                    "namespace": "",
                    "role": "leader",
                    "leader": HERE,
                    "lease_left_s": pytest.approx(LEASE_SECONDS_DEFAULT, abs=1),
                    "others": [],
                    "scrub": {"rounds": 0, "log": "", "bytes": 0, "repaired": 0, "damaged": 0},
                    "duties": {
                        **dict.fromkeys(("rounds", "failures", "trimmed", "reclaimed"), 0),
                        "age_s": pytest.approx(0, abs=LEASE_SECONDS_DEFAULT),
                    },
                }
            ],
        }


async def test_unavailable_namespace_is_retried(memory):
    """A client may ask for a log in a namespace not named at the start, without lasting effect."""
    async with Sequencer(memory) as sequencer:
        for _ in range(2):
            with pytest.raises(zlog.LogNotFound, match="no pool"):
                await sequencer.election.candidate(Namespace("elsewhere", ""))
        assert len(sequencer.election.describe()["namespaces"]) == 1


async def test_store_failure_at_start_is_raised(memory):
    store = FaultyStore(memory, lambda *_: None)
    store.pool = "logs"  # where a lease is to be had, and nothing here gives one
    sequencer = Sequencer(store)
    with pytest.raises(StoreUnavailable):
        await sequencer.election.start(sequencer.logs)
    await sequencer.election.resign()
    await sequencer.stores.close()


async def test_lease_requires_permission_to_announce(memory):
    sequencer = Sequencer(Refusing(memory, "sequencer_announce"))
    with pytest.raises(zlog.ClassNotLoaded, match=r"announce the sequencer .* Nothing was changed"):
        await sequencer.election.start(sequencer.logs)
    assert sequencer.election.describe()["namespaces"] == []
    await sequencer.stores.close()
