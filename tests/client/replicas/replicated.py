"""A store that keeps several replicas of each object, as Ceph does, in memory."""

from __future__ import annotations

import errno
import json
import random
from collections.abc import Callable, Sequence

import zlog
from zlog._base.names import directory_shard
from zlog._native.completions import CompletionQueue
from zlog._native.local import MemoryStore
from zlog.store import RequestPayload
from zlog.testing import FaultyStore

from ...conformance.messages import METHODS
from ...conformance.stored import Content, MemoryDoor


class Replicated(FaultyStore):
    """Methods run on the primary replica, and what they change is done to all replicas.

    So a replica that is damaged stays so where no change goes.

    Attributes:
        replicas: the first one is the primary.
        up: ranks of the replicas that answer.
        without_class: those of them that only say that they can't.
        tells_replicas_apart: whether it says which of them did.
        map_epoch: another one once all OSDs have started anew.
        asked: methods that were run on a replica other than by an ordinary call.
        on_ask: called before a replica is chosen for such a one.
    """

    def __init__(self, count: int = 3, seed: int = 1) -> None:
        self.replicas = [MemoryStore() for _ in range(count)]
        super().__init__(self.replicas[0])
        self.up = set(range(count))
        self.without_class: set[int] = set()
        self.tells_replicas_apart = True
        self.map_epoch = 1
        self.asked: list[str] = []
        self.on_ask: Callable[[], object] = lambda: None
        self._random = random.Random(seed)

    def execute(
        self, object: str, method: str, payload: RequestPayload, timeout: float | None = None
    ) -> tuple[int, bytes]:
        """Run it on the primary replica."""
        before = self.replicas[0].peek(object)
        answer = self.replicas[0].execute(object, method, payload, timeout)
        if answer[0] == 0 and method in METHODS and not METHODS[method].reads:
            for replica in self.replicas[1:]:
                self._replicate(object, before, replica, everything=method == "heal")
        return answer

    def _replicate(
        self, name: str, before: object, replica: MemoryStore, *, everything: bool
    ) -> None:
        after = self.replicas[0].peek(name)
        if after is None:
            replica.poke(name, {}, {}, b"")
            replica.execute(name, "remove", b"")
            return
        old = Content(*(before or ({}, {}, b"")))  # type: ignore[misc]
        new = Content(*after)
        had = MemoryDoor(replica).load(name)
        omap = {
            key: value for key, value in had.omap.items() if key in new.omap or key not in old.omap
        }
        omap |= {k: v for k, v in new.omap.items() if everything or old.omap.get(k) != v}
        attrs = had.attrs | {
            k: v for k, v in new.attrs.items() if everything or old.attrs.get(k) != v
        }
        stream = new.stream if everything else had.stream + new.stream[len(old.stream) :]
        replica.poke(name, attrs, omap, stream)

    def submit(
        self, queue: CompletionQueue, token: int, calls: Sequence[tuple[str, str, RequestPayload]]
    ) -> None:
        """Run them at once."""
        for number, call in enumerate(calls, token):
            queue.put(number, *self.execute(*call))

    def ask_replica(
        self, queue: CompletionQueue, token: int, object: str, method: str, request: bytes
    ) -> None:
        """Run it on a replica chosen at random, of those that are up."""
        if not METHODS[method].reads:
            queue.put(token, -errno.EOPNOTSUPP, b"")
            return
        self.asked.append(method)
        self.on_ask()
        rank = self._random.choice(sorted(self.up))
        if rank in self.without_class:
            queue.put(token, -errno.EOPNOTSUPP, bytes(8))
            return
        code, reply = self.replicas[rank].execute(object, method, request)
        instance = rank + 1 + 10 * self.map_epoch if self.tells_replicas_apart else 0
        queue.put(token, code, instance.to_bytes(8, "little") + reply)

    def ask_monitor(self, queue: CompletionQueue, token: int, command: str) -> None:
        """Tell how many replicas the pool keeps, and which answer."""
        answers = {
            "osd pool get": {"size": len(self.replicas)},
            "osd map": {
                "epoch": self.map_epoch,
                "pgid": "1.0",
                "acting": sorted(self.up),
                "acting_primary": 0,
            },
        }
        queue.put(token, 0, json.dumps(answers[json.loads(command)["prefix"]]).encode())

    def damage(self, rank: int, name: str, old: bytes, new: bytes) -> None:
        """Replace bytes of one replica of an object, wherever they are."""
        door = MemoryDoor(self.replicas[rank])
        door.save(name, door.load(name).replaced(old, new))

    def alike(self, name: str) -> bool:
        """Whether all replicas of an object are the same."""
        first, *others = (replica.peek(name) for replica in self.replicas)
        return first is not None and all(other == first for other in others)


def vanished_value(store: Replicated, rank: int, name: str, key: str) -> None:
    """Remove a key from one replica."""
    door = MemoryDoor(store.replicas[rank])
    door.save(name, door.load(name).without(key.encode()))


def damaged_value(store: Replicated, rank: int, name: str, key: str) -> None:
    """Flip a bit in the middle of an attribute or a key's value, in one replica."""
    content = MemoryDoor(store.replicas[rank]).load(name)
    value = {**content.attrs, **content.omap}[key.encode()]
    middle = len(value) // 2
    flipped = value[:middle] + bytes([value[middle] ^ 1]) + value[middle + 1 :]
    store.damage(rank, name, value, flipped)


LARGE = [bytes([65 + i]) * 20_000 for i in range(4)]
SMALL = [b"small %d" % i for i in range(3)]
HEAD = "zlog.orders.head"
LISTED = directory_shard("logs", "orders")
VIEW = "v.0000000000000001"

Damage = Callable[[Replicated, str, int], None]
DAMAGES: dict[str, Damage] = {
    "stream": lambda store, stripe, rank: store.damage(rank, stripe, LARGE[2], bytes(20_000)),
    "data": lambda store, stripe, rank: store.damage(rank, stripe, SMALL[1], b"smell 1"),
    "record": lambda store, stripe, rank: damaged_value(
        store, rank, stripe, "e.0000000000000003.4"
    ),
    "header": lambda store, stripe, rank: damaged_value(store, rank, stripe, "zlog.header"),
    "head": lambda store, _, rank: damaged_value(store, rank, HEAD, "zlog.head"),
    "view": lambda store, _, rank: damaged_value(store, rank, HEAD, VIEW),
    "vanished view": lambda store, _, rank: vanished_value(store, rank, HEAD, VIEW),
    "directory": lambda store, _, rank: damaged_value(store, rank, LISTED, "n.orders"),
}


def with_older_copy(store: Replicated, log: zlog.Log, name: str, what: str, rank: int) -> Content:
    """Change an object, but for one replica, and damage the primary one; the newest content."""
    door = MemoryDoor(store.replicas[rank])
    before = door.load(name)
    log.reconfigure(options={"team": "a"})
    log.tail()
    newest = MemoryDoor(store.replicas[0]).load(name)
    door.save(name, before)
    DAMAGES[what](store, name, 0)
    return newest


def with_log(store: Replicated) -> str:
    """Make a log with entries in the bytestream, at 0 to 3, and in a record; its one object."""
    with zlog.Log.create(store, "orders", width=1) as log:
        log.append_many(LARGE)
        log.append_many(SMALL)
        (ref,) = log.view.objects(log.view.live_stripe)
    assert store.alike(ref.name)
    assert store.alike(HEAD)
    return ref.name
