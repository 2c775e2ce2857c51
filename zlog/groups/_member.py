"""What members of groups of both kinds do: join, keep the lease, and maintain the group's log."""

from __future__ import annotations

import logging
import math
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, Generic, TypeVar

from zlog.errors import StoreTimeout, StoreUnavailable, ZlogError
from zlog.extension import LogPort, ProcessBound
from zlog.groups._states import GroupState, OrderedState, QueueState
from zlog.groups.errors import GroupDiffers, GroupNotFound
from zlog.limits import TIMEOUT_SECONDS
from zlog.names import check_cursor_name
from zlog.objects import SpaceNotFound
from zlog.objects.extension import Replica, Views, open_space, write_checkpoint

SPACE = OBJECT = "group"
"""The names of a group's space and of the only object in it."""

POLL_SECONDS = 0.2
"""How often a member looks for changes of its group, and how long it waits for new entries."""

LEASE_SECONDS_MIN = 1.0

_GROUP_BYTES_MAX = 64
_LOG_BYTES_MAX = 100
"""The maximum lengths of the names of groups and their logs. Producers' names are longer."""

_RENEWALS = 3
"""How often a lease is renewed before it would end."""

_GATHER_SECONDS = 0.02
"""How long changes wait for others, to be sent in one entry."""

_MAINTENANCE_SECONDS = 1.0

CHECKPOINT_ENTRIES = 5000
"""The number of entries of the group's log after which a member writes a checkpoint."""

logger = logging.getLogger("zlog.groups")

S = TypeVar("S", bound=GroupState)
T = TypeVar("T")


def cursor_name(group: str) -> str:
    """Return the name of the cursor that limits trims of the data log."""
    return f"group.{group}"


def log_name(log: str, group: str) -> str:
    """Return the name of a group's own log."""
    return f"{log}.group.{group}"


def check_group(log: str, group: str) -> None:
    """Raise ValueError or TypeError if a log's group cannot have this name."""
    check_cursor_name(cursor_name(group))
    if len(group) > _GROUP_BYTES_MAX or len(log_name(log, group)) > _LOG_BYTES_MAX:
        raise ValueError(
            f"the name of group {group!r} is too long: it may have {_GROUP_BYTES_MAX} characters,"
            f" and the name of its log, {log_name(log, group)!r}, {_LOG_BYTES_MAX}"
        )


def check_lease(lease: float) -> None:
    """Raise ValueError if a lease is too short."""
    if not LEASE_SECONDS_MIN <= lease < math.inf:
        raise ValueError(f"a lease must be at least {LEASE_SECONDS_MIN:g} s, not {lease:g} s")


def call_seconds(lease: float) -> float:
    """Return the time-out of calls to a group's log. A renewal must be possible after one."""
    return max(LEASE_SECONDS_MIN, lease / _RENEWALS)


class Clocks:
    """Measures for how long this client has seen things."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._since: dict[Any, float] = {}

    def update(self, seen: Iterable[tuple[Any, float]]) -> list[Any]:
        """Return the things that were seen for longer than their time. Forget all others.

        Args:
            seen: the things that this client sees now, each with a time in seconds.
        """
        now = self._now()
        pairs = [*seen]
        self._since = {thing: self._since.get(thing, now) for thing, _ in pairs}
        return [thing for thing, seconds in pairs if now - self._since[thing] > seconds]


async def open_state(own: LogPort, *, create: bool) -> Replica:
    """Return a replica of a group's state."""
    try:
        return await open_space(own, SPACE, (OrderedState, QueueState), create=create)
    except SpaceNotFound:
        raise GroupNotFound(f"log {own.log!r} does not belong to a group") from None


def state_of(replica: Replica) -> type[GroupState] | None:
    """Return the class of a group's state, or None if it was not created yet."""
    kind = Views(replica).objects().get(OBJECT)
    return next((cls for cls in (OrderedState, QueueState) if cls.type_name == kind), None)


class Client(ProcessBound, Generic[S]):
    """Reads a group's state and sends commands to it."""

    def __init__(self, replica: Replica, cls: type[S]) -> None:
        self.replica = replica
        self.port = replica.port
        self._cls = cls
        self._view = Views(replica).object(cls, OBJECT)

    def look(self, at: Callable[[S], T]) -> T:
        """Return the result of ``at`` for the state as far as this client knows it."""
        return self._view.read(at)

    async def send(self, *command: Any) -> Any:
        """Send a command, which is safe to repeat. Returns True if it was refused.

        Otherwise returns the answer of the state's method, or None. If the command is stored more
        than once, the first answer counts, because the others may be refused after it.
        """
        name, *arguments = command
        key = self.port.random_bytes(8).hex()
        op = (self._cls.type_name, OBJECT, (name, key, *arguments), self._cls.version)
        replica, until = self.replica, self.port.monotonic() + TIMEOUT_SECONDS
        try:
            while True:  # a call to the group's log takes at most a part of the lease
                overtaken = replica.overtaken
                self.look(lambda state: state.wait(key))
                try:
                    position = await replica.write([op])
                    await replica.play_to(position + 1)
                except StoreTimeout:
                    if self.port.monotonic() >= until:
                        raise
                else:
                    if overtaken == replica.overtaken:  # otherwise a checkpoint has hidden it
                        return self.look(lambda state: [*state.answers.get(key, ()), None][0])
        finally:
            if replica.failed is None:
                self.look(lambda state: state.answers.pop(key, None))


class Member(Client[S]):
    """A member of a group. Two background tasks keep its lease and maintain the group's log.

    Attributes:
        data: the log that the group reads.
        token: the member's token, or None while it has none.
        config: the group's configuration.
    """

    def __init__(
        self, data: LogPort, replica: Replica, cls: type[S], group: str, name: str, lease: float
    ) -> None:
        super().__init__(replica, cls)
        self.data = data
        self.group = group
        self.name = name
        self.token: int | None = None
        self.lock = self.port.lock
        self.clock = self.port.monotonic
        self._lease = lease
        self._until = -math.inf
        self._renew_at = -math.inf
        self._id = ""
        self._wake = self.port.event()
        self._ended = False
        self._done = [self.port.event(), self.port.event()]
        self._leases = Clocks(self.clock)
        self._checkpointed = 0

    @property
    def config(self) -> dict[str, Any]:
        """The group's configuration. An older version may have created it with fewer settings."""
        return self.look(lambda state: {**self._cls.defaults, **state.config})

    async def begin(self, config: dict[str, Any], changes: dict[str, Any]) -> None:
        """Create the group if it does not exist, check its configuration, and join it.

        Raises:
            GroupDiffers: the group was created with other values than those of ``config`` that are
                not None, except its start.
        """
        found = state_of(self.replica)
        if found not in (None, self._cls):
            raise GroupDiffers(
                f"{self.group!r} is a group in mode {found.mode!r}, not {self._cls.mode!r}"
            )
        if not self.look(lambda state: state.config):
            defaults = {**self._cls.defaults, "nonce": self.port.random_bytes(4).hex()}
            await self.send("create", {**defaults, **_given(config), **_given(changes)})
        stored = self.config
        for name, value in config.items():
            as_stored = value is None and stored[name] != "key"  # a function is not stored
            if name != "start" and value != stored[name] and not as_stored:
                raise GroupDiffers(
                    f"group {self.group!r} was created with {name}={stored[name]!r}, not {value!r}"
                )
        if any(stored[name] != value for name, value in _given(changes).items()):
            await self.send("configure", _given(changes))
        await self._join()
        self.port.spawn(self._keep())
        self.port.spawn(self._maintain())

    async def _join(self) -> None:
        """Join, and begin a lease."""
        with self.lock:
            if not self._id:
                self._id = self.port.random_bytes(8).hex()
            own, began = self._id, self.clock()
        since = self.replica.machine.position
        if await self.send("join", own, self.name, self._lease, since):
            self.check_name()
        members = self.look(lambda state: [*state.members.values()])
        with self.lock:
            for each in members:
                if each.id == own == self._id:
                    self.token = each.token
                    self._extend(began)

    def _extend(self, began: float) -> None:
        self._until = began + self._lease
        self._renew_at = began + self._lease / _RENEWALS

    async def _renew(self) -> None:
        token, began = self.token, self.clock()
        if token is None:
            return
        if await self.send("renew", token):
            self.lose(token)
        else:
            self._extend(began)

    def remaining(self) -> float:
        """Return the remaining seconds of the lease by this machine's clock."""
        return 0.0 if self.token is None else max(0.0, self._until - self.clock())

    def lose(self, token: int) -> None:
        """Note that the group has removed the member."""
        with self.lock:
            if self.token == token:
                logger.warning("member %s of group %r was removed", token, self.group)
                self.token, self._id = None, ""
                self.forget()

    def forget(self) -> None:
        """Drop the entries that a lost token has protected, while the lock is held."""

    async def ensure(self) -> int:
        """Return the token, and before that renew an ended lease or join again.

        Raises:
            Fenced: another client has joined with the same name.
            StoreUnavailable: the member is closed.
        """
        while True:
            self.replica.check()
            if self._ended:
                raise StoreUnavailable(
                    f"this member of group {self.group!r} is closed",
                    hint="Join the group again.",
                    retryable=False,
                )
            token = self.token
            if token is None:
                self.check_name()
                await self._join()
            elif not self.remaining():
                await self._renew()
            else:
                return token

    def check_name(self) -> None:
        """Raise Fenced if the member must not join again, because another has its name."""

    def wake(self) -> None:
        """Let the background task flush soon."""
        self._wake.set()

    async def _keep(self) -> None:
        """Flush, renew the lease, and remove members whose leases have ended."""
        tick = min(POLL_SECONDS, self._lease / 10)
        ticked = self.clock()
        while not self._ended:
            woken = await self._wake.wait(tick)
            self._wake = self.port.event()
            try:
                if woken:
                    await self.port.sleep(_GATHER_SECONDS)
                await self.flush()
                if self.clock() - ticked >= tick:
                    ticked = self.clock()
                    await self._tick()
            except Exception as error:  # noqa: BLE001 - logged, and the lease must be renewed
                if self.replica.failed is not None:
                    break
                self._log(error)
                await self.port.sleep(tick)
        self._done[0].set()

    async def _tick(self) -> None:
        await self.replica.sync()
        token = self.token
        if token is not None and not self.look(lambda state: token in state.members):
            self.lose(token)
        elif self.clock() >= self._renew_at:
            await self._renew()
        members = self.look(lambda state: [*state.members.values()])
        others = [((m.token, m.version), m.lease) for m in members if m.token != token]
        for ended in self._leases.update(others):
            await self.send("expire", *ended)
        await self.tick()

    async def flush(self) -> None:
        """Send the acknowledgements of a queue, which are collected."""

    async def tick(self) -> None:
        """Do the regular work of a kind of group."""

    async def _maintain(self) -> None:
        """Move the cursor, and write checkpoints, if this is the oldest member."""
        while not await self._over(_MAINTENANCE_SECONDS):
            for step in (self.maintain, self._move_cursor, self._checkpoint):
                try:
                    if self.look(lambda state: next(iter(state.members), None)) == self.token:
                        await step()
                except Exception as error:  # noqa: BLE001 - logged; the other steps go on
                    self._log(error)
            if self.replica.failed is not None:
                break
        self._done[1].set()

    def _log(self, error: Exception) -> None:
        known = isinstance(error, ZlogError)
        level = logging.INFO if known else logging.ERROR
        logger.log(level, "group %r: %s", self.group, error, exc_info=not known)

    async def _checkpoint(self) -> None:
        """Write a checkpoint if the group's log has become long."""
        start = max(self._checkpointed, self.port.trim_point)
        if self.replica.machine.position - start >= CHECKPOINT_ENTRIES:
            self._checkpointed = await write_checkpoint(self.replica, trim=True)

    async def _move_cursor(self) -> None:
        """Move the cursor of the data log, unless it was removed with the group."""
        await self.replica.sync()  # raises an error if the group was removed
        name, low = cursor_name(self.group), self.look(lambda state: state.low())
        position = await self.data.cursor(name)
        if position is not None and position < low:
            await self.data.advance_cursor(name, low)
            await self.replica.sync()  # the group may have been reset meanwhile
            low = self.look(lambda state: state.low())
        if position != low:
            await self.hold(low)

    async def hold(self, position: int) -> None:
        """Move the cursor of the data log back to a position if it is above."""
        name = cursor_name(self.group)
        if (await self.data.cursor(name) or 0) > position:
            await self.data.refresh()  # no cursor can be below the trim point
            await self.data.set_cursor(name, max(position, self.data.trim_point))

    async def _over(self, seconds: float) -> bool:
        """Wait for some seconds. Returns whether the member was closed."""
        until = self.clock() + seconds
        while not self._ended and (left := until - self.clock()) > 0:
            await self.port.sleep(min(left, POLL_SECONDS))
        return self._ended

    async def maintain(self) -> None:
        """Do the work that only the oldest member of a kind of group does."""

    async def close(self, *, leave: bool) -> None:
        """Make what was acknowledged durable, and end the membership.

        Args:
            leave: whether to give the member's share to others at once, not after the lease.
        """
        if self._ended:
            return
        try:
            await self.flush()
        finally:
            self._ended = True
            self.wake()
            for done in self._done:
                await done.wait(self._lease)
            token = self.token
            if leave and token is not None:
                with suppress(Exception):  # the next member does it
                    await self.maintain()
                with suppress(ZlogError):  # the lease ends then
                    await self.send("leave", token, self.untried())
                with self.lock:
                    self.token = None
                    self.forget()
            with suppress(ZlogError):
                await self._move_cursor()
            self.replica.close()

    def untried(self) -> list[int]:
        """Return the positions of jobs that were not begun."""
        return []


def _given(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in settings.items() if value is not None}


async def awaited(result: T | Awaitable[T]) -> T:
    """Return the result of a function, or of a coroutine function."""
    return await result if isinstance(result, Awaitable) else result
