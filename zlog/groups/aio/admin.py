"""Operations on the groups of a log."""

from __future__ import annotations

import builtins
from contextlib import suppress
from datetime import datetime
from typing import Any

from zlog.aio.log import Log
from zlog.entry import Entry
from zlog.errors import CursorNotFound, LogNotFound, ZlogError
from zlog.extension import AsyncioPort, PositionSpec
from zlog.extension import drive_aio as drive
from zlog.groups._member import Client, cursor_name, log_name, state_of
from zlog.groups._ordered import INTO
from zlog.groups._queue import OWN_TAGS, letter_of
from zlog.groups._stat import GroupStat, stat_of
from zlog.groups._states import NO_MEMBER, GroupState
from zlog.groups.aio.own_log import open_own
from zlog.groups.errors import GroupNotFound


class Groups:
    """The groups of a log."""

    def __init__(self, log: Log) -> None:
        """Use a log, which must stay open."""
        self.log = log

    async def list(self) -> list[str]:
        """Return the names of the log's groups, in order."""
        prefix = log_name(self.log.name, "")
        names = await Log.list(self.log.store, after=prefix)
        return [name.removeprefix(prefix) for name in names if name.startswith(prefix)]

    async def _open(self, name: str) -> tuple[Log, Client[GroupState]]:
        own, replica = await open_own(self.log, name, None)
        cls = state_of(replica)
        if cls is None:
            await own.close()
            raise GroupNotFound(f"log {self.log.name!r} has no group {name!r}")
        return own, Client(replica, cls)

    async def stat(self, name: str) -> GroupStat:
        """Return the state of a group.

        Raises:
            GroupNotFound: the group does not exist.
        """
        own, client = await self._open(name)
        async with own:
            tail = await self.log.tail()
            stat = client.look(lambda state: stat_of(state, self.log.name, name, tail))
            members = []
            for each in stat.members:
                with suppress(ZlogError):  # a checkpoint has trimmed the entry
                    renewed = (await own.read(each.version)).timestamp
                    members.append(each._replace(renewed=renewed))
                    continue
                members.append(each)
            oldest = None
            if stat.lag:
                async for item in self.log.read_range(stat.position, min(tail, stat.position + 64)):
                    if isinstance(item, Entry):
                        oldest = item.timestamp
                        break
        return stat._replace(members=(*members,), oldest=oldest)

    async def reset(self, name: str, to: PositionSpec | datetime) -> int:
        """Let a group continue at another position, which the call returns.

        What the members are processing now can no longer be committed.

        Args:
            to: a position, ``"earliest"``, ``"latest"``, or a time: the first position whose entry
                is not older.

        Raises:
            GroupNotFound: the group does not exist.
            Invalidated: the position is below the trim point.
            BeyondTail: the position is above the tail.
        """
        own, client = await self._open(name)
        async with own:
            where = await self.log.find_time(to) if isinstance(to, datetime) else to
            port = AsyncioPort(self.log)
            position = await drive(port.resolve(where))
            cursor = await self.log.cursor(cursor_name(name), create="earliest")
            if position < cursor.position:  # nothing from there on may be trimmed meanwhile
                await cursor.reset(position)
            await drive(client.send("seek", position, NO_MEMBER, []))
            low = client.look(lambda state: state.low())  # jobs that died may be below
            await drive(port.refresh())  # no cursor can be below the trim point
            await cursor.reset(max(min(position, low), port.trim_point))
            return position

    async def remove(self, name: str) -> None:
        """Remove a group with its state, and the cursor that limits trims. Stop its workers first.

        The log and the dead letters stay. It is safe to repeat this call.

        Raises:
            GroupNotFound: the group does not exist. A log that only has the name of a group's own
                log is not removed.
        """
        found = False
        try:
            own, replica = await open_own(self.log, name, None)
        except GroupNotFound:  # an earlier call, or the group's creation, may be interrupted
            with suppress(LogNotFound):
                async with Log.open(self.log.store, log_name(self.log.name, name)) as log:
                    if await log.tail():  # it is not a group's
                        raise
        else:
            await own.close()
            if (cls := state_of(replica)) is not None:
                await self._forget(own.name, Client(replica, cls).look(lambda state: state.config))
        with suppress(LogNotFound):
            await Log.remove(self.log.store, log_name(self.log.name, name))
            found = True
        with suppress(CursorNotFound):
            await (await self.log.cursor(cursor_name(name))).remove()
            found = True
        if not found:
            raise GroupNotFound(f"log {self.log.name!r} has no group {name!r}")

    async def _forget(self, own: str, config: dict[str, Any]) -> None:
        """Forget the producers of a group."""
        if config.get("dead_letters"):
            with suppress(LogNotFound):
                async with Log.open(self.log.store, config["dead_letters"]) as dead:
                    await dead.forget_producer(f"{own}.{config['nonce']}")
                    await self.log.forget_producer(_redrive(own, config, dead))
        for target in (key.removeprefix(INTO) for key in config if key.startswith(INTO)):
            with suppress(LogNotFound):
                async with Log.open(self.log.store, target) as into:
                    for number in range(config["slots"]):
                        await into.forget_producer(f"{own}.{config['nonce']}.{number}")

    async def redrive(self, name: str, *, count: int | None = None) -> int:
        """Append dead letters of a queue to its log again, each exactly once.

        They are new entries, which all groups of the log get. The dead letters are trimmed. If the
        call is interrupted, repeat it.

        Args:
            count: the maximum number of dead letters; None means all.

        Returns:
            The number of dead letters.

        Raises:
            GroupNotFound: the group does not exist.
            ValueError: the group has no log of dead letters.
        """
        own, client = await self._open(name)
        await own.close()
        config = client.look(lambda state: dict(state.config))
        if not config.get("dead_letters"):
            raise ValueError(f"group {name!r} has no log of dead letters")
        done = last = 0
        try:
            dead = await Log.open(self.log.store, config["dead_letters"])
        except LogNotFound:  # there was no dead letter yet
            return 0
        async with dead:
            producer = _redrive(own.name, config, dead)
            async for item in dead.read_range(tags=[f"{OWN_TAGS[0]}{own.name}"]):
                if done == count:
                    break
                if isinstance(item, Entry):
                    data, tags = letter_of(item)
                    await self.log.append_once(
                        [data], tags=tags, producer=producer, sequence=item.position
                    )
                    await dead.trim(item.position)
                    done, last = done + 1, item.end
        if done:
            await self.log.complete_sequences(producer, before=last)
        return done

    def __repr__(self) -> builtins.str:
        return f"<zlog.groups.aio.Groups of {self.log.name!r}>"


def _redrive(own: str, config: dict[str, Any], dead: Log) -> str:
    """Return the producer of dead letters that are appended again, with their positions."""
    return f"{own}.{config['nonce']}.{dead.view.log_id:x}"
