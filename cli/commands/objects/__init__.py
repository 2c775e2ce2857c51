"""The command objects: maps, counters, queues and locks that the clients of a log share."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Any

import click

from zlog.cli.command import CommandGroup
from zlog.cli.commands.objects.lock import lock
from zlog.cli.commands.objects.spaces import OBJECT_NAME, open_space, space_option
from zlog.cli.commands.objects.values import json_of, prefix_option
from zlog.cli.commands.objects.watch import watch
from zlog.cli.exit_codes import ExitCode, Failure
from zlog.cli.input import load_json
from zlog.cli.names import log_argument
from zlog.cli.output import Output, escaped, note
from zlog.cli.parameters import json_option
from zlog.cli.render import to_json
from zlog.cli.session import Session, pass_session
from zlog.cli.tables import table

if TYPE_CHECKING:
    from zlog.objects import Transaction, Views

_ABSENT = -1
"""The version of a missing key."""


@click.group(
    cls=CommandGroup,
    examples="""
    zlog objects put app limits requests 100
    zlog objects get app limits
    zlog objects lock app nightly -- ./backup
    """,
)
def objects() -> None:
    """Show and change the objects that a log's clients share.

    The objects are the maps, sets, counters, registers, queues and locks that Python programs use
    through `zlog.objects`. They are in a space, which is stored in a log and may share it with
    other entries. Each command reads the space's newest checkpoint and the entries after it. The
    commands need msgspec, which the extra `objects` installs.
    """


objects.add_command(lock)
objects.add_command(watch)


@objects.command(
    examples="""
    zlog objects ls app
    zlog objects ls app --space billing --json
    """,
)
@log_argument
@space_option
@json_option("Print a JSON object per object.")
@pass_session
def ls(session: Session, log: str, space: str, as_json: bool) -> None:
    """List a space's objects, with their types and sizes.

    The size is the number of items. Counters, registers and locks have none.
    """
    with open_space(session, log, space) as opened, Output() as out:
        found = sorted(opened.local.objects().items())
        items = [_items(opened.local, kind, name) for name, kind in found]
        if as_json:
            for (name, kind), count in zip(found, items, strict=True):
                out.line(to_json({"object": name, "type": kind, "items": count}))
            return
        rows = [
            (name, kind, "-" if count is None else str(count))
            for (name, kind), count in zip(found, items, strict=True)
        ]
        table(out, ("OBJECT", "TYPE", "ITEMS"), rows)


def _items(views: Views, kind: str, name: str) -> int | None:
    if kind == "map":
        return len(views.map(name))
    if kind == "set":
        return len(views.set(name))
    return len(views.queue(name)) if kind == "queue" else None


@objects.command(
    examples="""
    zlog objects get app limits requests
    zlog objects get app limits                  # all keys
    zlog objects get app limits --prefix web/
    zlog objects get app limits requests --json  # with the version, for `put --if-version`
    """,
)
@log_argument
@click.argument("name", metavar="OBJECT", type=OBJECT_NAME)
@click.argument("key", metavar="[KEY]", required=False)
@prefix_option
@space_option
@json_option("Print a JSON object per key, member or value, and the version of a map's key.")
@pass_session
def get(
    session: Session,
    log: str,
    name: str,
    key: str | None,
    prefix: str | None,
    space: str,
    as_json: bool,
) -> None:
    """Print an object's contents, or one key of a map or set.

    The command prints values as JSON. For a queue, it prints the items in order; for a lock, the
    holder and the waiting clients. The output includes every change acknowledged before the command
    started. If the object or key does not exist, the exit code is 4.
    """
    if key is not None and prefix is not None:
        raise click.UsageError("KEY and --prefix cannot be combined")
    with open_space(session, log, space) as opened, Output() as out:
        views = opened.local
        kind = views.objects().get(name)
        if kind is None:
            raise _nothing(f"space {space!r} of log {log!r} has no object {name!r}", log)
        if kind == "map":
            _print_map(views, name, key, prefix, out, log, as_json=as_json)
        elif kind == "set":
            members = views.set(name).members(prefix=prefix)
            if key is not None:
                members = [each for each in members if each == key]
                if not members:
                    raise _nothing(f"set {name!r} has no member {key!r}", log, name)
            for member in members:
                out.line(to_json({"member": member}) if as_json else escaped(member))
        elif key is not None or prefix is not None:
            raise click.UsageError(f"{name!r} is a {kind}: it has no keys")
        else:
            for value in _values(views, kind, name):
                out.line(to_json({"value": value}) if as_json else to_json(value))


def _nothing(message: str, log: str, name: str | None = None) -> Failure:
    shows = f"ls {log}" if name is None else f"get {log} {name}"
    return Failure(message, ExitCode.NO_ENTRY, f"`zlog objects {shows}` lists them.")


def _print_map(
    views: Views,
    name: str,
    key: str | None,
    prefix: str | None,
    out: Output,
    log: str,
    *,
    as_json: bool,
) -> None:
    found = views.map(name)
    if key is not None and key not in found:
        raise _nothing(f"map {name!r} has no key {key!r}", log, name)
    items = found.items(prefix=prefix) if key is None else [(key, found[key])]
    if as_json:
        for each, value in items:
            out.line(to_json({"key": each, "value": value, "version": found.version(each)}))
    elif key is None:
        table(out, ("KEY", "VALUE"), [(each, to_json(value)) for each, value in items])
    else:
        out.line(to_json(items[0][1]))


def _values(views: Views, kind: str, name: str) -> list[Any]:
    if kind == "queue":
        return views.queue(name).items()
    if kind == "lock":
        found = views.lock(name)
        waiting = [json_of(each) for each in found.waiting()]
        return [{"holder": json_of(found.holder()), "waiting": waiting}]
    return [views.counter(name).get() if kind == "counter" else views.register(name).get()]


def _json(_ctx: click.Context, _param: click.Parameter, word: str | None) -> Any:
    """Return the value of a JSON word in a list, or None without a word."""
    if word is None:
        return None
    try:
        if word == "-":
            return [load_json(b"" if sys.stdin is None else sys.stdin.buffer.read())]
        return [load_json(word)]
    except ValueError as error:
        what, hint = repr(word), f". A text has quotes: '\"{word}\"'"
        if word == "-":
            what, hint = "stdin", ""
        raise click.BadParameter(f"{what} is {error}{hint}") from error


def _version(word: str) -> int:
    if word == "none":
        return _ABSENT
    if not re.fullmatch(r"\d{1,19}", word, re.ASCII):
        raise click.BadParameter(f"{word!r} is neither a position nor 'none'")
    return int(word)


@objects.command(
    examples="""
    zlog objects put app limits requests 100
    zlog objects put app owners web '"ann"'           # a JSON string has quotes
    zlog objects put app offsets east -- -5
    zlog objects put app limits requests --delete
    zlog objects put app limits requests 200 --if-version 17
    zlog objects put app plans web - < plan.json
    """,
)
@log_argument
@click.argument("name", metavar="OBJECT", type=OBJECT_NAME)
@click.argument("key", metavar="KEY")
@click.argument("value", metavar="[VALUE]", required=False, callback=_json)
@click.option("--delete", is_flag=True, help="Remove the key, if it exists.")
@click.option(
    "--if-version",
    "version",
    metavar="POSITION",
    type=_version,
    help="Change the key only if it still has this version, as printed by `get --json`: the"
    " position of the entry that set it. 'none' requires that the key does not exist.",
)
@space_option
@pass_session
def put(
    session: Session,
    log: str,
    name: str,
    key: str,
    value: list[Any] | None,
    delete: bool,
    version: int | None,
    space: str,
) -> None:
    """Set a key of a map to a value, or remove it.

    VALUE is JSON; use - to read it from stdin. The command creates the space and the map if they do
    not exist. With --if-version, the exit code is 11 if the key has another version by now.
    """
    if delete is (value is not None):
        raise click.UsageError("give a VALUE, or --delete")
    with open_space(session, log, space, create=True) as opened:

        def change(txn: Transaction) -> None:
            found = txn.map(name)
            if version not in (None, found.version(key)):
                was = "does not exist" if key not in found else f"has version {found.version(key)}"
                hint = f"Read it, and decide again: `zlog objects get {log} {name} {key} --json`."
                raise Failure(f"key {key!r} of map {name!r} {was}", ExitCode.CONFLICT, hint)
            if value is None:
                found.delete(key)
            else:
                found.put(key, value[0])

        opened.transact(change)
        note(f"{'removed' if value is None else 'set'} {key!r} of map {name!r}")


@objects.command(
    examples="""
    zlog objects checkpoint app
    zlog objects checkpoint app --trim
    """,
)
@log_argument
@click.option(
    "--trim",
    is_flag=True,
    help="Trim all entries before the checkpoint, including those of other spaces, up to the"
    " lowest cursor.",
)
@space_option
@json_option("Print the position as a JSON object.")
@pass_session
def checkpoint(session: Session, log: str, trim: bool, space: str, as_json: bool) -> None:
    """Write a space's state into the log for new clients.

    The command prints a position: the space no longer needs the entries below it, so you can trim
    them if no cursor shown by `zlog cursor ls` is lower.
    """
    with open_space(session, log, space) as opened, Output() as out:
        position = opened.checkpoint(trim=trim)
        out.line(to_json({"position": position}) if as_json else str(position))
