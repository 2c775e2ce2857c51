"""The command group: the groups whose members share a log's entries."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from zlog import Log, ZlogError
from zlog.cli import ranges
from zlog.cli.command import CommandGroup
from zlog.cli.exit_codes import ExitCode
from zlog.cli.groups import (
    GROUP_NAME,
    HEAD,
    cells,
    group_fields,
    group_stat,
    groups_of,
    is_alive,
    living,
    seen_fields,
)
from zlog.cli.names import pass_log
from zlog.cli.output import Output, note, say
from zlog.cli.parameters import json_option
from zlog.cli.ranges import PositionSpec
from zlog.cli.render import to_json
from zlog.cli.session import usage_errors
from zlog.cli.tables import details, table

if TYPE_CHECKING:
    from zlog.groups import GroupStat

name_argument = click.argument("name", metavar="NAME", type=GROUP_NAME)


@click.group(
    cls=CommandGroup,
    examples="""
    zlog group ls orders
    zlog group show orders billing
    zlog group redrive orders billing
    """,
)
def group() -> None:
    """Show and change the groups that share a log's entries.

    The members of a group are programs that use `zlog.groups`, and the commands `zlog work` and
    `zlog tail --group`. The first member creates the group. The group stores its state in a log of
    its own, LOG.group.NAME, and its cursor, group.NAME, limits trims. The commands need msgspec,
    which the extra `objects` installs.
    """


@group.command(
    examples="""
    zlog group ls orders
    zlog group ls orders --json | jq .lag
    """,
)
@pass_log
@json_option("Print a JSON object per group.")
def ls(log: Log, as_json: bool) -> int:
    """List a log's groups with their lag and members.

    The lag is the number of positions that are not finished; in an ordered group, the number from
    its slowest slot to the tail. OLDEST is the age of the oldest unfinished entry. A member counts
    if it renewed its lease in time, or if the group has since trimmed the renewal. Queues also
    count the jobs that were tried again, and those that became dead letters.
    """
    with Output() as out:
        found: dict[str, GroupStat | str] = {}
        for name in groups_of(log).list():
            try:
                stat = group_stat(log, name)
            except ZlogError as error:
                say(f"can't read group {name!r}: {error}")
                found[name] = str(error)
            else:
                found.update({name: stat} if stat else {})
        if as_json:
            for fields in seen_fields(found):
                out.line(to_json(fields))
        else:
            table(out, HEAD, (cells(*each) for each in found.items()))
    failed = any(isinstance(each, str) for each in found.values())
    return ExitCode.FAILURE if failed else ExitCode.OK


@group.command(examples="zlog group show orders billing")
@pass_log
@name_argument
@json_option("Print a JSON object.")
def show(log: Log, name: str, as_json: bool) -> None:
    """Show a group and its members.

    SHARE is the number of slots or jobs that a member has. A member in the state "expired" has not
    renewed its lease in time. Another member removes it and takes over its share; if there is no
    other member, the next one does so a lease after it has joined.
    """
    stat = groups_of(log, name).stat(name)
    with Output() as out:
        if as_json:
            out.line(to_json(group_fields(stat)))
            return
        shown = {**stat._asdict(), "oldest": f"{stat.age:,.0f} s" if stat.oldest else ""}
        del shown["members"]
        rows = (
            (field.replace("_", " "), f"{value:,}" if isinstance(value, int) else value)
            for field, value in shown.items()
            if value or field in ("position", "tail", "lag")
        )
        details(out, rows)
        if stat.members:
            out.line("")
            state = {True: "", False: "expired"}
            members = (
                (
                    each.name or f"token {each.token}",
                    str(each.share),
                    f"{each.lease:g} s",
                    state[is_alive(each)],
                )
                for each in stat.members
            )
            table(out, ("MEMBER", "SHARE", "LEASE", "STATE"), members, head_always=True)


@group.command(
    examples="""
    zlog group reset orders billing --to earliest
    zlog group reset orders billing --to @2h      # process the last two hours again
    zlog group reset orders billing --to latest   # skip what is not finished
    """,
)
@pass_log
@name_argument
@click.option(
    "--to",
    type=ranges.position_spec,
    required=True,
    metavar="POSITION",
    help="Continue at a position, at earliest, latest, or a time such as @5m.",
)
def reset(log: Log, name: str, to: PositionSpec) -> None:
    """Let a group continue at another position.

    Entries from this position on are delivered again, and unfinished entries before it are not. Do
    not stop the members. They continue there, and the group refuses their commits and
    acknowledgements of entries that they got before.
    """
    position = groups_of(log, name).reset(name, ranges.beginning(log, to))
    note(f"group {name!r} continues at {position}")


@group.command(examples="zlog group rm orders billing")
@pass_log
@name_argument
@click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
def rm(log: Log, name: str, yes: bool) -> int:
    """Remove a group and its state.

    The group then no longer holds back trims, and unfinished entries are not processed. Stop its
    members first. The command asks for confirmation if `zlog group ls` counts members. The log with
    the dead letters stays.
    """
    stat = None if yes else group_stat(log, name)  # also None if its removal was interrupted
    members = 0 if stat is None else living(stat)
    if members and not (sys.stdin and sys.stdin.isatty()):
        raise click.UsageError(f"group {name!r} has {members} members; stop them, or give --yes")
    question = f"Remove group {name!r}, which has {members} members?"
    if members and not click.confirm(question, err=True):
        return ExitCode.FAILURE
    groups_of(log, name).remove(name)
    note(f"removed group {name!r}")
    return ExitCode.OK


@group.command(
    examples="zlog group redrive orders billing --count 1",
)
@pass_log
@name_argument
@click.option(
    "-c", "--count", type=click.IntRange(min=1), metavar="N", help="Redrive at most N dead letters."
)
def redrive(log: Log, name: str, count: int | None) -> None:
    """Append dead letters of a queue to its log again.

    Each dead letter is appended exactly once, as a new entry that all groups of the log get, and is
    then trimmed from the log with the dead letters. If the command is interrupted, repeat it.
    """
    with usage_errors():
        done = groups_of(log, name).redrive(name, count=count)
    note(f"appended {done:,} dead letters to log {log.name!r}")
