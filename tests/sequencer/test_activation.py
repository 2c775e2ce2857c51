"""Taking logs over in a real store, in this process."""

from __future__ import annotations

import pytest

import zlog
from zlog._append.append import Appender
from zlog._base.deadline import Deadline
from zlog._base.io import deadline_of
from zlog._base.sequencer import LogAddress
from zlog._catalog.directory import Directory
from zlog._catalog.head import Head
from zlog._io import drive
from zlog._layout.stripe_objects import seal
from zlog._native.new_entries import EntryLimit
from zlog.errors import LogNotFound, NotLeader, StoreUnavailable
from zlog.seqr.election.activation import Activation
from zlog.seqr.election.election import Election
from zlog.seqr.election.lease import LEASE_SECONDS_DEFAULT
from zlog.seqr.limits import Limits
from zlog.seqr.namespaces import Namespace, Stores

from .test_election import Logs

HERE = "tcp://127.0.0.1:1"  # without a listener
THERE = "tcp://127.0.0.1:2"


@pytest.fixture
def store(memory):
    return memory


@pytest.fixture
def log(store):
    with zlog.Log.create(store, "orders") as log:
        yield log


def address(log) -> LogAddress:
    return LogAddress("", "", log.name, log.view.log_id)


def newest(store):
    with zlog.Log.open(store, "orders") as log:
        return log.view


@pytest.fixture
async def stores(store):
    stores = Stores(store, zlog.connect, Limits())
    yield stores
    await stores.close()


@pytest.fixture
async def sequencer(stores):
    """Makes the part of a sequencer that takes logs over, by its address."""
    elections = []

    async def make(address: str) -> Activation:
        election = Election(stores, address, Limits(), LEASE_SECONDS_DEFAULT)
        elections.append(election)
        await election.start(Logs())
        return Activation(stores, election, address, Limits())

    yield make
    for election in elections:
        await election.resign()


async def test_epoch_lives_until_log_changes(log, store, stores, sequencer):
    here = await sequencer(HERE)
    where = address(log)
    epoch = (await here.activate(where)).epoch
    assert await here.lives(where, epoch)
    assert not await here.lives(where, epoch - 1)
    assert not await here.lives(where, epoch + 1)
    with pytest.raises(LogNotFound):
        await here.lives(where._replace(log_id=1), epoch)
    # By a client that died then.
    await Head(stores.first, "orders").epoch_next(deadline_of(stores.first, 10))
    assert not await here.lives(where, epoch)
    epoch = (await here.activate(where)).epoch
    assert await here.lives(where, epoch)
    assert not await (await sequencer(THERE)).lives(where, epoch)
    zlog.Log.remove(store, "orders")
    with pytest.raises(LogNotFound):
        await here.lives(where, epoch)


async def test_epoch_refused_by_object_is_dead(log, store, stores, sequencer):
    here = await sequencer(HERE)
    epoch = (await here.activate(address(log))).epoch
    objects = [*newest(store).objects()][:1]
    deadline = deadline_of(stores.first, 10)
    assert await seal(stores.first, objects, epoch + 1, deadline, start=0)
    assert not await here.lives(address(log), epoch)


@pytest.mark.parametrize("limits", [{"stripe_records": 1}, {"stripe_bytes": 1 << 20}])
async def test_epoch_ends_when_stripe_is_full(store, sequencer, limits):
    log = zlog.Log.create(store, "orders", width=2, stripe_unit=2, **limits)
    here = await sequencer(HERE)
    epoch = (await here.activate(address(log))).epoch
    assert await here.lives(address(log), epoch)
    layout = log._client.layout

    class Granted:
        async def grant(self, count, deadline):
            return await layout.refresh(deadline), 0

    appender = Appender(layout, Granted(), bytes(16), EntryLimit(1 << 20))
    drive(appender.append([bytes(1 << 20)], deadline_of(log._client.io, 10)))
    assert newest(store).epoch == epoch
    assert not await here.lives(address(log), epoch)


async def test_activation_refuses_log_of_another_sequencer(store, log, sequencer):
    await (await sequencer(HERE)).activate(address(log))
    before = newest(store)
    with pytest.raises(NotLeader, match=HERE):
        await (await sequencer(THERE)).activate(address(log))
    assert newest(store) == before


async def test_activation_refuses_recreated_log(store, log, sequencer):
    before = newest(store)
    with pytest.raises(LogNotFound, match="another log now has its name"):
        await (await sequencer(HERE)).activate(address(log)._replace(log_id=1))
    assert newest(store) == before


async def test_release_ignores_logs_of_other_sequencers(store, log, sequencer):
    await (await sequencer(HERE)).activate(address(log))
    before = newest(store)
    await (await sequencer(THERE)).release(address(log))
    assert newest(store) == before


async def test_store_without_pools_rejects_pool_names(stores):
    with pytest.raises(LogNotFound, match="no pool"):
        await stores.of(Namespace("logs", ""))


class PoolStore:
    """Stands for a store on Ceph: it has a pool, and does nothing."""

    def __init__(self, url: str, pool: str, namespace: str = "") -> None:
        self.url, self.pool, self.namespace = url, pool, namespace
        self.open = True

    def close(self) -> None:
        self.open = False


@pytest.fixture
def opened():
    return []


@pytest.fixture
def connect(opened):
    def connect(url: str) -> PoolStore:
        opened.append(url)
        if "missing" in url:
            raise StoreUnavailable("no such pool")
        return PoolStore(url, "any")

    return connect


ELSEWHERE = Namespace("other pool", "a/b")


async def test_other_pools_are_opened_once(opened, connect):
    first = PoolStore("ceph://logs?conf=/etc/c.conf&id=me", "logs")
    stores = Stores(first, connect, Limits())
    assert (await stores.of(Namespace("logs", ""))).store is first
    other = await stores.of(ELSEWHERE)
    assert await stores.of(Namespace("other pool", "a/b")) is other
    assert opened == ["ceph://other%20pool/a%2Fb?conf=/etc/c.conf&id=me"]
    await stores.close()
    assert not other.store.open
    assert first.open


async def test_failed_pool_open_is_retried(opened, connect):
    stores = Stores(PoolStore("ceph://logs", "logs"), connect, Limits(stores_max=1))
    for _ in range(2):
        with pytest.raises(StoreUnavailable, match="no such pool"):
            await stores.of(ELSEWHERE._replace(pool="missing"))
    await stores.of(ELSEWHERE)
    assert len(opened) == 3
    with pytest.raises(StoreUnavailable, match="open already"):
        await stores.of(ELSEWHERE._replace(pool="one too many"))
    await stores.close()


async def test_election_announces_and_withdraws_address(stores):
    here, there = (
        Election(stores, address, Limits(), LEASE_SECONDS_DEFAULT) for address in (HERE, THERE)
    )

    async def announced():
        return await Directory(stores.first).sequencer(Deadline(5))

    await here.start(Logs())
    assert await announced() == HERE
    await there.start(Logs())
    await here.resign()
    await here.withdraw(())
    assert await announced() == THERE
    await there.resign()
    await there.withdraw({stores.home})
    assert await announced() == THERE
    await there.withdraw(())
    assert await announced() == ""
