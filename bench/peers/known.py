"""The peers: SQLite, Redis, NATS JetStream and Kafka, which sync before they acknowledge."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Callable, Coroutine, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeVar

from bench.peers.peer import STEP, Missing, Peer, client, free_port, program, said, server, versions

T = TypeVar("T")


class Sqlite(Peer):
    """A table in SQLite, through Python's standard library."""

    name = "SQLite"

    def __init__(self, folder: Path, tools: Path, stack: ExitStack) -> None:
        self.how = (
            f"{sqlite3.sqlite_version}, `journal_mode=WAL`, `synchronous=FULL`, by Python's"
            " sqlite3; a batch is a transaction"
        )
        self._folder = folder
        self._count = 0
        self._database = sqlite3.connect(":memory:")
        stack.callback(lambda: self._database.close())

    def empty(self) -> None:
        self._database.close()
        (self._folder / f"{self._count}").unlink(missing_ok=True)
        self._count += 1
        self._database = sqlite3.connect(self._folder / f"{self._count}", isolation_level=None)
        self._database.execute("PRAGMA journal_mode=WAL")
        self._database.execute("PRAGMA synchronous=FULL")
        self._database.execute("CREATE TABLE log (position INTEGER PRIMARY KEY, data BLOB)")

    def append(self, entries: Sequence[bytes]) -> None:
        self._database.execute("BEGIN")
        rows = ((entry,) for entry in entries)
        self._database.executemany("INSERT INTO log (data) VALUES (?)", rows)
        self._database.execute("COMMIT")

    def reader(self) -> Callable[[], int]:
        rows = self._database.execute("SELECT position, data FROM log ORDER BY position")
        return lambda: len(rows.fetchmany(STEP))


class Redis(Peer):
    """A stream in Redis."""

    name = "Redis"
    has_queue = True

    def __init__(self, folder: Path, tools: Path, stack: ExitStack) -> None:
        (redis, _) = client("redis", "hiredis")
        redis_server, port = program("redis-server", tools), free_port()
        settings = "--appendonly yes --appendfsync always --auto-aof-rewrite-percentage 0"
        where = f"--bind 127.0.0.1 --port {port}"
        words = [redis_server, *settings.split(), *where.split(), "--save", ""]
        self.server = stack.enter_context(server(folder, port, *words))
        self._redis = stack.enter_context(redis.Redis(port=port))
        number = self._redis.info("server")["redis_version"]
        self.how = (
            f'redis-server {number}, `{settings} --save ""`, a stream, by'
            f" {versions('redis', 'hiredis')}; a batch is pipelined `XADD`s; the queue is"
            " `XREADGROUP` and `XACK`"
        )

    def empty(self) -> None:
        self._redis.delete("log")

    def append(self, entries: Sequence[bytes]) -> None:
        pipeline = self._redis.pipeline(transaction=False)
        for entry in entries:
            pipeline.xadd("log", {"d": entry})
        pipeline.execute()

    def reader(self) -> Callable[[], int]:
        after = "-"

        def take() -> int:
            nonlocal after
            found = self._redis.xrange("log", after, count=STEP)
            if found:
                after = "(" + found[-1][0].decode()
            return len(found)

        return take

    def queue(self, entries: Sequence[bytes]) -> Callable[[int], int]:
        self.empty()
        self.append(entries)
        self._redis.xgroup_create("log", "group", "0")

        def take(count: int) -> int:
            found = self._redis.xreadgroup("group", "worker", {"log": ">"}, count)
            numbers = [number for _, entries in found for number, _ in entries]
            return int(self._redis.xack("log", "group", *numbers)) if numbers else 0

        return take


class Nats(Peer):
    """A stream of NATS JetStream."""

    name = "NATS"
    has_queue = True

    def __init__(self, folder: Path, tools: Path, stack: ExitStack) -> None:
        nats, self._api = client("nats", "nats.js.api")
        nats_server, port = program("nats-server", tools), free_port()
        settings = "sync_interval: always"
        conf = folder / "conf"
        conf.write_text(
            f"listen: 127.0.0.1:{port}\njetstream {{ store_dir: '{folder}', {settings} }}\n"
        )
        self.server = stack.enter_context(server(folder, port, nats_server, "-c", str(conf)))
        self._loop = asyncio.new_event_loop()
        stack.callback(self._loop.close)
        connection = self._do(nats.connect(f"nats://127.0.0.1:{port}"))
        stack.callback(lambda: self._do(connection.close()))
        self._stream = connection.jetstream(publish_async_max_pending=1 << 16)
        self._exists = False
        self.how = (
            f"{said(nats_server, '--version').replace(': v', ' ')}, `{settings}`, JetStream, a"
            f" stream in files, by {versions('nats-py')}; a batch is publishes in flight; the"
            " queue is a work queue, whose acknowledgements wait for the server"
        )

    def empty(self, retention: str = "limits") -> None:
        if self._exists:
            self._do(self._stream.delete_stream("log"))
        self._do(self._stream.add_stream(name="log", subjects=["log"], retention=retention))
        self._exists = True

    def append(self, entries: Sequence[bytes]) -> None:
        async def publish() -> None:
            acknowledged = [await self._stream.publish_async("log", entry) for entry in entries]
            await asyncio.gather(*acknowledged)

        self._do(publish())

    def reader(self) -> Callable[[], int]:
        config = self._api.ConsumerConfig(ack_policy=self._api.AckPolicy.NONE)
        consumer = self._do(self._stream.pull_subscribe("log", stream="log", config=config))
        left = self._do(self._stream.stream_info("log")).state.messages

        def take() -> int:
            nonlocal left
            if not left:
                self._do(consumer.unsubscribe())
                return 0
            taken = len(self._do(consumer.fetch(min(STEP, left))))
            left -= taken
            return taken

        return take

    def queue(self, entries: Sequence[bytes]) -> Callable[[int], int]:
        self.empty("workqueue")
        for start in range(0, len(entries), STEP):
            self.append(entries[start : start + STEP])
        consumer = self._do(self._stream.pull_subscribe("log", durable="group", stream="log"))

        async def work(count: int) -> int:
            messages = await consumer.fetch(count)
            await asyncio.gather(*(message.ack_sync() for message in messages))
            return len(messages)

        return lambda count: self._do(work(count))

    def _do(self, work: Coroutine[Any, Any, T]) -> T:
        return self._loop.run_until_complete(work)


class Kafka(Peer):
    """A Kafka topic with one partition."""

    name = "Kafka"

    def __init__(self, folder: Path, tools: Path, stack: ExitStack) -> None:
        self._kafka, self._admin = client("confluent_kafka", "confluent_kafka.admin")
        java, jars = program("java", tools), tools / "kafka"
        archives = [jar.stem for jar in jars.glob("kafka_*.jar")]
        if not archives:
            raise Missing(f"{jars} has no jars of it")
        port, controller = free_port(), free_port()
        conf = folder / "conf"
        conf.write_text(
            "process.roles=broker,controller\nnode.id=1\n"
            f"controller.quorum.voters=1@127.0.0.1:{controller}\n"
            "controller.listener.names=CONTROLLER\n"
            f"listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}\n"
            f"log.dirs={folder / 'logs'}\nlog.flush.interval.messages=1\n"
            "offsets.topic.replication.factor=1\ngroup.initial.rebalance.delay.ms=0\n"
        )
        words = [java, "-Xmx1g", "-cp", f"{jars}/*"]
        tool = [*words, "kafka.tools.StorageTool", "format", "-t", "MkU3OEVBNTcwNTJENDM2Qk"]
        said(*tool, "-c", str(conf))
        self.server = stack.enter_context(server(folder, port, *words, "kafka.Kafka", str(conf)))
        common = {"bootstrap.servers": f"127.0.0.1:{port}", "log_level": 0}
        self._topics = self._admin.AdminClient(common)
        self._producer = self._kafka.Producer({**common, "acks": "all"})
        self._consumer = self._kafka.Consumer(
            {**common, "group.id": "bench", "enable.auto.commit": False, "fetch.wait.max.ms": 10}
        )
        stack.callback(self._consumer.close)
        self._topic = ""
        self._count = 0
        self.how = (
            f"{archives[0].replace('_', ' ').replace('-', ', ')}, KRaft, one broker,"
            " `log.flush.interval.messages=1`, a topic of one partition, by"
            f" {versions('confluent-kafka')} with `acks=all`; a batch is `produce`d and flushed"
        )

    def empty(self) -> None:
        if self._topic:
            self._topics.delete_topics([self._topic])[self._topic].result()
        self._topic = f"log-{os.urandom(8).hex()}"
        self._count = 0
        new = self._admin.NewTopic(self._topic, num_partitions=1, replication_factor=1)
        self._topics.create_topics([new])[self._topic].result()

    def append(self, entries: Sequence[bytes]) -> None:
        failures: list[object] = []

        def told(failure: object, _message: object) -> None:
            if failure is not None:
                failures.append(failure)

        for entry in entries:
            self._producer.produce(self._topic, entry, on_delivery=told)
        if self._producer.flush(60) or failures:
            raise RuntimeError(f"Kafka did not append: {failures or 'no answer'}")
        self._count += len(entries)

    def reader(self) -> Callable[[], int]:
        self._consumer.assign([self._kafka.TopicPartition(self._topic, 0, 0)])
        left = self._count

        def take() -> int:
            nonlocal left
            taken = len(self._consumer.consume(min(STEP, left), timeout=10)) if left else 0
            left -= taken
            return taken

        return take
