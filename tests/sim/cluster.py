"""A simulated cluster: a store with the real object class, processes that reach it, faults."""

from __future__ import annotations

import asyncio
import contextlib
import errno
from collections.abc import Callable

from zlog._native import messages
from zlog._native.completions import CompletionQueue
from zlog._native.local import MemoryStore
from zlog.seqr.limits import Limits
from zlog.seqr.security import Security
from zlog.seqr.service import serve
from zlog.store import RequestPayload
from zlog.testing import Fate, FaultyStore, Process, SeededPlan, StoreCall, StoreFaults, VirtualLoop

from ..conformance.stored import HEADER, envelope, fields_of
from ..sequencer.locks import LockStore
from ..support.programs import REPOSITORY
from .trace import Trace

POOL = "sim"
HOST = "seqr"
TOKEN = str(REPOSITORY / "tests" / "sim" / "testdata" / "token.txt")
LEASE_SECONDS = 0.8

_ANY_EPOCH = 2**63
_FIRST_POSITION = slice(54, 62)
"""Where a write has it: docs/formats/wire.md."""

_WITH_TAGS = b"\x03"
"""The compat of a write with tags."""

_CHUNK_RECORDS = 4
_CHUNK_RECORDS_MAX = 1024
"""Records that make a chunk here, and those that the class makes one of."""

Execute = Callable[["Objects", str, str, RequestPayload], tuple[int, bytes]]
"""What the objects do with a call: objects, object, method, payload → code, reply."""


def end_chunks(memory: MemoryStore, object: str) -> None:
    """Have the next write that may make a chunk of the index of tags do so, if it is of some size.

    The header's last field but one says how many records it would be of.
    """
    found = memory.peek(object)
    if found is None or HEADER not in found[0]:
        return
    attrs, omap, stream = found
    fields, _ = fields_of(attrs[HEADER])
    if _CHUNK_RECORDS <= int.from_bytes(fields[-5:-1], "little") < _CHUNK_RECORDS_MAX:
        more = fields[:-5] + _CHUNK_RECORDS_MAX.to_bytes(4, "little") + fields[-1:]
        attrs[HEADER] = envelope(HEADER, more, version=7, compat=6)
        memory.poke(object, attrs, omap, stream)


class Objects:
    """What all processes share: the objects, in memory, and Ceph's locks on them."""

    def __init__(self) -> None:
        self.memory = MemoryStore()
        self.locks = LockStore()
        self.stalled: dict[str, float] = {}
        self.cut_off: set[str] = set()
        self.applied = 0
        self._written: dict[tuple[str, bytes], tuple[int, bytes]] = {}

    def execute(self, object: str, method: str, payload: RequestPayload) -> tuple[int, bytes]:
        """Run a method now. Chunks of tags are small, so that there are some."""
        self.applied += 1
        if method == "write" and bytes(payload)[1:2] == _WITH_TAGS:
            end_chunks(self.memory, object)
        return self.memory.execute(object, method, payload)

    def lock(self, method: str, request: bytes) -> tuple[int, bytes]:
        """Run a method of the class ``lock`` now."""
        self.applied += 1
        return self.locks.execute(method, request)

    def answer_again(self, object: str, request: bytes) -> tuple[int, bytes] | None:
        """What a write answered before that is repeated, if its object is gone or has forgotten it.

        An object knows an append below its trim point only until its record is freed
        (docs/formats/wire.md). RADOS keeps what a repeated operation was answered, so that the
        class never sees it; here that is left to the class wherever it can tell.
        """
        known = self._written.get((object, request))
        if known is not None:
            code, reply = self.memory.execute(object, "stat", messages.stat(_ANY_EPOCH))
            first = int.from_bytes(request[_FIRST_POSITION], "little")
            if code == -errno.ENOENT or first < messages.stat_reply(reply).trim_point:
                return known
        return None

    def remember(self, object: str, request: bytes, answer: tuple[int, bytes]) -> None:
        """Note what a write was answered first."""
        self._written.setdefault((object, request), answer)


class ProcessStore(FaultyStore):
    """The cluster's store as one process reaches it.

    Attributes:
        effect: called with the method of each of its operations that has taken effect.
        hold: seconds by which its next write is late.
    """

    effect: Callable[[str], None] | None = None
    hold = 0.0

    def __init__(
        self, objects: Objects, execute: Execute, plan: SeededPlan, process: str, *, token: bool
    ) -> None:
        super().__init__(objects.memory, self._fate, share_sequencer=False)
        self.url, self.pool = f"ceph://{POOL}", POOL
        if token:
            self.url += f"?sequencer_token_file={TOKEN}"
        self._objects = objects
        self._execute = execute
        self._seeded = plan
        self._process = process

    def carry_out(self, object: str, method: str, payload: RequestPayload) -> tuple[int, bytes]:
        answer = self._carry_out(object, method, payload)
        if self.effect is not None:
            self.effect(method)
        return answer

    def _carry_out(self, object: str, method: str, payload: RequestPayload) -> tuple[int, bytes]:
        if method != "write":
            return self._execute(self._objects, object, method, payload)
        request = bytes(payload)
        answer = self._objects.answer_again(object, request)
        if answer is None:
            answer = self._execute(self._objects, object, method, payload)
            self._objects.remember(object, request, answer)
        return answer

    def lock(
        self, queue: CompletionQueue, token: int, object: str, method: str, request: bytes
    ) -> None:
        def start(queue: CompletionQueue, token: int) -> None:
            queue.put(token, *self._objects.lock(method, request))

        self.pass_on(queue, token, self.decide(object, "lock"), start)

    def close(self) -> None:
        """The objects stay."""

    def _fate(self, call: StoreCall) -> Fate:
        fate = self._seeded(call)
        now = asyncio.get_running_loop().time()
        wait = max(0.0, self._objects.stalled.get(call.object, 0.0) - now)
        if self._process in self._objects.cut_off:
            # Nothing answers; some of it was on its way, and gets there later.
            return Fate(None if fate.effect is None or wait else fate.effect + 2.0, None)
        if call.method == "lock" and fate.error == 0:
            fate = fate._replace(again=None)  # RADOS sends it once, as everything
        if call.method == "write":
            wait, self.hold = max(wait, self.hold), 0.0
        if not wait:
            return fate
        return Fate(
            None if fate.effect is None else fate.effect + wait,
            None if fate.reply is None else fate.reply + wait,
            fate.error,
            None if fate.again is None else fate.again + wait,
        )


class Cluster:
    """Objects, processes and the network between them.

    Args:
        loop: on which all of it runs.
        seed: of the store's faults.
        trace: see there.
        execute: what the objects do with a call.
        token: whether sequencers and clients show each other that they know the token.
    """

    def __init__(
        self,
        loop: VirtualLoop,
        seed: int,
        trace: Trace,
        execute: Execute,
        *,
        token: bool,
    ) -> None:
        self.loop = loop
        self.trace = trace
        self.objects = Objects()
        self.faults = StoreFaults()
        self.processes: dict[str, Process] = {}
        self._plan = SeededPlan(seed, self.faults)
        self._execute = execute
        self._token = token

    def process(self, name: str) -> Process:
        """Return a new process of this name; a former one must be dead."""
        assert name not in self.processes or self.processes[name].dead
        process = self.processes[name] = Process(name)
        return process

    def store(self, process: Process) -> ProcessStore:
        """Return the store as a process reaches it."""
        return ProcessStore(
            self.objects, self._execute, self._plan, process.name, token=self._token
        )

    def start_sequencer(self, name: str, port: int) -> Process:
        """Start a sequencer process, which may come to lead; where one died, in its place."""
        process = self.process(name)
        process.start(self._sequencer(process, port))
        return process

    async def _sequencer(self, process: Process, port: int) -> None:
        where = self.loop.network.bind(HOST, port)
        address = f"tcp://{HOST}:{port}"
        limits = Limits(activation_s_max=5.0)
        security = Security(token_file=TOKEN if self._token else "")
        while True:
            with contextlib.suppress(Exception):  # its operator starts it again
                await serve(
                    where,  # type: ignore[arg-type]  # in the place of a socket
                    address,
                    self.store(process),
                    asyncio.Event(),
                    limits,
                    lease_seconds=LEASE_SECONDS,
                    security=security,
                )
            self.trace(process.name, "ended by itself, and is started again")
            await asyncio.sleep(0.5)

    def stall(self, object: str, seconds: float) -> None:
        """Have an object answer no call for a while; operations wait there."""
        self.objects.stalled[object] = self.loop.time() + seconds

    def repair(self) -> None:
        """End every fault."""
        self.faults.slow = self.faults.never = self.faults.silent = self.faults.late = 0.0
        self.faults.again = self.faults.refused = 0.0
        network = self.loop.network
        network.faults.slow = network.faults.broken = 0.0
        network.restore()
        self.objects.stalled.clear()
        self.objects.cut_off.clear()
        for process in self.processes.values():
            process.resume()


def stripe_objects(objects: Objects, log: str) -> list[str]:
    """Return the names of a log's stripe objects."""
    queue = CompletionQueue()
    objects.memory.list_objects(queue, 0, f"zlog.{log}.")
    ((_, _, page),) = queue.drain()
    names = bytes(page).decode().split("\0")[1:]
    return [name for name in names if name and not name.endswith(".head")]
