"""The command template: the settings of new logs, by patterns of their names."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import click

from zlog import Log, Retention
from zlog.cli.command import CommandGroup
from zlog.cli.commands.retention import OFF, limit_options
from zlog.cli.exit_codes import ExitCode, Failure
from zlog.cli.names import LOG_NAME
from zlog.cli.output import Output, escaped, labelled, note
from zlog.cli.parameters import (
    json_option,
    pattern,
    settings_option,
    stripe_options,
    stripe_unit_option,
    width_option,
)
from zlog.cli.session import Session, pass_session, usage_errors
from zlog.cli.several import for_each, selection_options
from zlog.cli.tables import print_rows
from zlog.templates import apply_template, list_templates, remove_template, set_template

_pattern_argument = click.argument("pattern", metavar="PATTERN", type=pattern)


@click.group(
    cls=CommandGroup,
    examples="""
    zlog template set 'web-*' --width 1 --compression zstd --retention-age 7d
    zlog template ls
    zlog template apply --match 'web-*' --dry-run
    zlog template rm 'web-*'
    """,
)
def template() -> None:
    """Set the settings of new logs, by patterns of their names.

    A new log gets the settings of the template whose pattern matches its name, unless they are
    given when it is created. If several templates match, the one whose pattern is the name itself
    applies, else the one with the most characters that are not wildcards. Mirrors and imported logs
    get the settings of their source.
    """


@template.command(
    "set",
    examples="""
    zlog template set 'web-*' --width 1 --compression zstd --retention-age 7d
    zlog template set '*' --option owner=platform --entry-bytes-max 4M
    """,
)
@_pattern_argument
@width_option("Spread positions over this many stripe objects.")
@stripe_unit_option("Store N consecutive positions, a power of two, in one stripe object.")
@stripe_options
@settings_option
@limit_options("retention-")
@pass_session
def set_(session: Session, /, pattern: str, **given: Any) -> None:
    """Set a template, instead of the one with the same pattern.

    The template has only the settings that you give. Existing logs do not change; use `zlog
    template apply`.
    """
    limits = {key: given.pop(key) for key in [*given] if key.startswith("retention_")}
    kept = {key.removeprefix("retention_"): limit for key, limit in limits.items()}
    if all(each in (None, ..., (), {}, OFF) for each in [*given.values(), *kept.values()]):
        raise click.UsageError("give at least one setting")
    with usage_errors(), session.connect(create=True) as store:
        retention = Retention(**{k: v for k, v in kept.items() if v not in (None, OFF)})
        made = set_template(store, pattern, retention=retention, timeout=session.timeout, **given)
    note(f"template {pattern!r}: {_in_words(made.settings)}")


@template.command(examples="zlog template ls")
@json_option("Print a JSON object per template.")
@pass_session
def ls(session: Session, as_json: bool) -> None:
    """List the templates of the store."""
    with session.connect() as store:
        found = list_templates(store, timeout=session.timeout)
    rows = [
        {
            "pattern": each.pattern,
            "settings": each.settings if as_json else _in_words(each.settings),
        }
        for each in found
    ]
    print_rows(rows, {"pattern": "PATTERN", "settings": "SETTINGS"}, as_json=as_json)


@template.command(examples="zlog template rm 'web-*'")
@_pattern_argument
@pass_session
def rm(session: Session, pattern: str) -> None:
    """Remove a template. Existing logs do not change."""
    with session.connect() as store, usage_errors():
        removed = remove_template(store, pattern, timeout=session.timeout)
    if not removed:
        hint = "`zlog template ls` lists the templates."
        raise Failure(f"there is no template {pattern!r}", ExitCode.FAILURE, hint)
    note(f"removed template {pattern!r}")


@template.command(
    examples="""
    zlog template apply web-1 web-2
    zlog template apply --match 'web-*' --dry-run
    """,
)
@click.argument("logs", metavar="LOG...", nargs=-1, type=LOG_NAME)
@functools.partial(selection_options, dry_run="Only show what would change.")
@pass_session
def apply(session: Session, logs: tuple[str, ...], match: tuple[str, ...], dry_run: bool) -> int:
    """Change existing logs to the settings of their templates.

    Settings that were given to a log itself change too, if its template has them. Limits of
    retention take effect as after `zlog retention`.
    """

    def change(log: str) -> None:
        with session.open_log(log) as opened, Output() as out:
            out.line(labelled(escaped(_apply(opened, dry_run))))

    return for_each(session, logs, match, change)


def _apply(log: Log, dry_run: bool) -> str:
    applied = apply_template(log, dry_run=dry_run)
    if applied.template is None:
        return "a mirror has no template" if log.view.mirror else "no template matches"
    changes = [
        f"{name} {old or 'default'} -> {new or 'default'}"
        for name, (old, new) in applied.changed.items()
    ]
    return f"template {applied.template.pattern!r}: {', '.join(changes) or 'nothing to change'}"


def _in_words(settings: Mapping[str, str]) -> str:
    return " ".join(f"{key}={value}" for key, value in settings.items()) or "-"
