"""Groups of a log, for the commands that work with them and those that monitor logs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from types import ModuleType
from typing import TYPE_CHECKING, Any

import click

import zlog
from zlog import ZlogError, aio
from zlog.cli.names import Name, log_named
from zlog.cli.session import Session, usage_errors
from zlog.cli.template import iso
from zlog.names import check_cursor_name

if TYPE_CHECKING:
    from zlog.groups import Groups, GroupStat, MemberStat
    from zlog.overview import LogOverview

_CURSOR_PREFIX = "group."
"""Each group has a cursor with this prefix and its name, which limits trims."""

_AT_ONCE = 8
"""How many groups are read at the same time."""

Seen = Mapping[str, "GroupStat | str"]
"""The state of each group of a log, by name, or the reason why it cannot be read."""


def groups_module() -> ModuleType:
    """Import zlog.groups, which needs a package that not every installation has."""
    try:
        from zlog import groups
    except ImportError as error:
        raise click.ClickException(str(error)) from error
    return groups


def groups_of(log: zlog.Log, name: str = "") -> Groups:
    """Return the groups of a log. Raises click.UsageError if a group cannot have this name."""
    groups = groups_module()
    with usage_errors():
        groups.Queue(log, name or "any")  # checks the name, whose limit depends on the log's
    found: Groups = groups.Groups(log)
    return found


def group_stat(log: zlog.Log, name: str) -> GroupStat | None:
    """Return the state of a group, or None if it does not exist."""
    with suppress(groups_module().GroupNotFound):
        return groups_of(log, name).stat(name)
    return None


def _names(session: Session, ctx: click.Context) -> list[str]:
    with session.open_log(log_named(ctx)) as log:
        return groups_of(log).list()


GROUP_NAME = Name("group", check_cursor_name, _names)


async def see_groups(
    session: Session, store: zlog.Store, logs: Iterable[LogOverview]
) -> dict[str, Seen]:
    """Return the groups of logs, by the names of the logs that have any. This changes nothing.

    It returns none if the requirements of zlog.groups are not installed.
    """
    try:
        from zlog.groups import GroupNotFound
        from zlog.groups.aio import Groups
    except ImportError:
        return {}
    looked_at, turns = zlog.ReadOnlyStore(store), asyncio.Semaphore(_AT_ONCE)
    options: dict[str, Any] = {"timeout": session.timeout, "mac_key": session.mac_key}
    found: dict[str, dict[str, GroupStat | str]] = {}

    async def see(log: LogOverview, name: str) -> None:
        groups = found.setdefault(log.name, {})
        try:
            opening = aio.Log.open(looked_at, log.name, hole_timeout=0, **options)
            async with turns, opening as opened:
                groups[name] = await Groups(opened).stat(name)
        except (GroupNotFound, zlog.LogNotFound):
            pass  # it was removed, or the cursor is not a group's
        except ZlogError as error:
            groups[name] = str(error)
        except ValueError:
            pass  # no group can have this name

    cursors = ((log, each.name) for log in logs for each in log.cursors)
    await asyncio.gather(
        *(
            see(log, name.removeprefix(_CURSOR_PREFIX))
            for log, name in cursors
            if name.startswith(_CURSOR_PREFIX)
        )
    )
    return {log: dict(sorted(seen.items())) for log, seen in found.items() if seen}


def is_alive(member: MemberStat) -> bool:
    """Whether a member renewed its lease in time, as far as the clocks agree.

    The time of the last renewal is unknown if the group has since written a checkpoint.
    """
    return member.renewed is None or time.time() - member.renewed.timestamp() <= member.lease


def living(stat: GroupStat) -> int:
    """Return the number of members that are alive."""
    return sum(map(is_alive, stat.members))


def group_fields(stat: GroupStat) -> dict[str, object]:
    """Return the state of a group for JSON."""
    members = [
        {**each._asdict(), "renewed": each.renewed and iso(each.renewed), "alive": is_alive(each)}
        for each in stat.members
    ]
    oldest = stat.oldest and iso(stat.oldest)
    return {**stat._asdict(), "oldest": oldest, "age": round(stat.age, 3), "members": members}


def seen_fields(seen: Seen) -> list[dict[str, object]]:
    """Return the groups of a log for JSON."""
    return [
        {"name": name, "error": each} if isinstance(each, str) else group_fields(each)
        for name, each in seen.items()
    ]


HEAD = ("GROUP", "MODE", "LAG", "OLDEST", "MEMBERS", "REDELIVERED", "DEAD")


def cells(name: str, stat: GroupStat | str) -> tuple[str, ...]:
    """Return the values of the columns in ``HEAD``."""
    if isinstance(stat, str):
        return (name, "can't be read", *["-"] * (len(HEAD) - 2))
    queue = (f"{stat.redeliveries:,}", f"{stat.dead:,}") if stat.mode == "queue" else ("-", "-")
    age = f"{stat.age:,.0f} s" if stat.oldest else "-"
    return (name, stat.mode, f"{stat.lag:,}", age, str(living(stat)), *queue)
