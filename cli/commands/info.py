"""The command info: one log's tail, size and layout."""

from __future__ import annotations

from collections.abc import Iterator

import click

from zlog import Log, LogStat, Store, View
from zlog.cli.appenders import BY_OBJECT, position_source, since, who_appends
from zlog.cli.command import Command
from zlog.cli.commands.ls import log_fields
from zlog.cli.output import Output, labelled, subject
from zlog.cli.parameters import json_option
from zlog.cli.render import entries_of, to_json
from zlog.cli.several import each_open_log
from zlog.cli.tables import details
from zlog.cli.units import human_bytes
from zlog.templates import Setting, settings_of


@click.command(
    cls=Command,
    examples="""
    zlog info orders
    zlog info orders --json | jq .tail
    zlog info --match 'web-*'
    """,
)
@each_open_log
@json_option("Print a JSON object per log.")
def info(log: Log, as_json: bool) -> None:
    """Show a log's tail, size and layout.

    For several logs, the command prints one line each.
    """
    stat, view, store = log.stat(), log.view, log.store.url
    files = log.stripe_files() if stat.offloaded.stripes else []
    folders = [*dict.fromkeys(file.folder for file in files)]
    with Output() as out:
        if as_json:
            fields = {**log_fields(stat, view), "options": dict(view.options)}
            fields["settings"] = {
                each.name: {
                    "value": each.value,
                    "origin": each.origin,
                    "pattern": each.pattern or None,
                }
                for each in settings_of(view, log.store)
            }
            origins = [(f"{log_id:016x}", position) for log_id, position in view.promoted_from]
            fields["promoted_from"] = [{"log_id": each, "position": at} for each, at in origins]
            fields["mac_key_id"] = None if view.mac is None else view.mac.key_id
            out.line(to_json({**fields, "offload_folders": folders, "store": store}))
        elif subject():
            size = f"{entries_of(stat.entries)}, {human_bytes(stat.bytes)}"
            if stat.offloaded.stripes:
                size += f" ({human_bytes(stat.offloaded.bytes)} offloaded)"
            out.line(labelled(f"tail {stat.tail:,}, {size}, {position_source(view)}"))
        else:
            details(out, _rows(stat, view, log.store, folders))


def _rows(stat: LogStat, view: View, store: Store, folders: list[str]) -> list[tuple[str, str]]:
    return [
        ("log", stat.name),
        ("store", store.url),
        ("tail", f"{stat.tail:,}"),
        ("trim point", f"{stat.trim_point:,}"),
        ("entries", f"{stat.entries:,}"),
        ("bytes", f"{stat.bytes:,} ({human_bytes(stat.bytes)})"),
        *_offloaded(stat, folders),
        *_stored(stat),
        ("sequencer", _sequencer(view)),
        *_writer(view),
        *([] if view.mac is None else [("MACs", f"of the key {view.mac.key_id}")]),
        ("epoch", str(stat.epoch)),
        ("layout", _layout(stat)),
        ("id", f"{stat.log_id:016x}"),
        *(
            ("promoted from", f"log {log_id:016x}, at position {position:,}")
            for log_id, position in view.promoted_from
        ),
        *_settings(settings_of(view, store)),
    ]


def _settings(found: list[Setting]) -> Iterator[tuple[str, str]]:
    for name, value, origin, pattern in found:
        if origin != "default":
            label = name if name in ("width", "stripe_unit", "ordering") else f"option {name}"
            yield label, f"{value} ({f'template {pattern!r}' if pattern else origin})"
    rest = [each for each in found if each.origin == "default" and each.value is not None]
    yield "defaults", ", ".join(f"{each.name} {each.value}" for each in rest)


def _offloaded(stat: LogStat, folders: list[str]) -> list[tuple[str, str]]:
    stripes, entries, size, file_bytes = stat.offloaded
    if not stripes:
        return []
    held = f"{entries_of(stat.entries - entries)}, {human_bytes(stat.bytes - size)}"
    count = "1 stripe" if stripes == 1 else f"{stripes:,} stripes"
    return [
        ("in objects", held),
        ("offloaded", f"{entries_of(entries)}, {human_bytes(size)}, {count}"),
        ("files", f"{human_bytes(file_bytes)} in {', '.join(folders)}"),
    ]


def _stored(stat: LogStat) -> list[tuple[str, str]]:
    in_objects = stat.bytes - stat.offloaded.bytes
    if stat.stored_bytes == in_objects:
        return []
    stored = f"{stat.stored_bytes:,} ({human_bytes(stat.stored_bytes)})"
    if stat.stored_bytes < in_objects:  # else the MACs make it more
        stored += f", compressed {in_objects / max(stat.stored_bytes, 1):.1f} times"
    return [("stored", stored)]


def _layout(stat: LogStat) -> str:
    stripes = "1 stripe" if stat.stripes == 1 else f"{stat.stripes} stripes"
    objects = "1 object" if stat.objects == 1 else f"{stat.objects} objects"
    return f"{stripes}, {objects}, width {stat.width}, stripe unit {stat.stripe_unit}"


def _sequencer(view: View) -> str:
    if view.mirror or view.read_only:
        return who_appends(view)
    if view.writer is not None:
        return "none: its writer grants positions"
    if view.ordered:
        return f"none: {BY_OBJECT}"
    if not view.sequencer:
        return "none: writers find the tail themselves"
    if view.sequencer == "store:":
        return "shared through the store"
    return view.sequencer


def _writer(view: View) -> list[tuple[str, str]]:
    if view.writer is None:
        return []
    return [("writer", f"{who_appends(view)}, since {since(view.writer)}")]
