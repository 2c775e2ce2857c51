"""The command retention: shows and sets how much of a log is kept."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any, TypeVar

import click

from zlog import Log, Retention, RetentionReport, ZlogError
from zlog.admin import RETENTION_DOUBT_HINT
from zlog.cli.command import Command
from zlog.cli.output import Output, labelled, note, say
from zlog.cli.parameters import json_option, together
from zlog.cli.render import to_json
from zlog.cli.session import Session
from zlog.cli.several import each_log
from zlog.cli.units import count, human_bytes, size, span_words, time_span
from zlog.limits import RETENTION_SKEW_SECONDS

F = TypeVar("F", bound=Callable[..., Any])

OFF = "off"
_SPANS = ("age", "compact_after", "skew")


def _or_off(read: Callable[[str], float], *, zero: bool = False) -> Callable[[str], float | str]:
    def limit(word: str) -> float | str:
        if word == OFF:
            return OFF
        try:
            found = read(word)
        except click.BadParameter as error:
            raise click.BadParameter(f"{error.message}; {OFF!r} removes the limit") from error
        if found == 0 and not zero:
            raise click.BadParameter(
                f"a limit of 0 would keep no entries; to remove the limit, give {OFF!r}, and to"
                " remove entries, use `zlog trim`"
            )
        return found

    return limit


def limit_options(prefix: str = "") -> Callable[[F], F]:
    """Return the options for the limits of a retention, with a prefix in their names."""
    return together(
        click.option(
            f"--{prefix}age",
            type=_or_off(time_span),
            metavar="SPAN",
            help="Keep entries younger than this, such as 90s, 36h or 7d.",
        ),
        click.option(
            f"--{prefix}bytes",
            type=_or_off(size),
            metavar="SIZE",
            help="Keep this much of the newest data, such as 500M or 10G.",
        ),
        click.option(
            f"--{prefix}entries",
            type=_or_off(count),
            metavar="N",
            help="Keep this many of the newest entries, such as 5000 or 1M.",
        ),
        click.option(
            f"--{prefix}compact-after",
            type=_or_off(time_span, zero=True),
            metavar="SPAN",
            help="Among entries older than this, keep only the newest entry of each tag.",
        ),
        click.option(
            f"--{prefix}skew",
            type=time_span,
            metavar="SPAN",
            help="Warn if clocks differ by more than this.  [default: 1h]",
        ),
    )


@click.command(
    cls=Command,
    examples="""
    zlog retention orders                        # show the limits
    zlog retention orders --age 7d --bytes 10G
    zlog retention orders --age off --entries 1M
    zlog retention carts --compact-after 1h      # keep the newest entry of each tag
    zlog retention orders --apply                # trim now
    zlog retention --match 'web-*' --age 7d
    """,
)
@each_log
@limit_options()
@click.option("--off", "off", is_flag=True, help="Remove all limits.")
@click.option("--apply", "apply_", is_flag=True, help="Trim now.")
@json_option("Print the limits of each log as a JSON object.")
def retention(
    session: Session, /, log: str, off: bool, apply_: bool, as_json: bool, **limits: Any
) -> None:
    """Set how much of a log is kept, by age, size or tags.

    Entries that exceed any of the limits are trimmed. Compaction trims an entry once each of its
    tags has a newer entry; entries without tags stay. Use 'off' to remove a limit. Limits that you
    do not give stay as they are. Retention never trims past a cursor.

    On Ceph, the leading sequencer enforces the limits about once a minute. An embedded store has no
    sequencer, so run --apply regularly, for instance from cron. An entry's age counts from the
    first of these runs after its append.
    """
    given = {name: limit for name, limit in limits.items() if limit is not None}
    changes: dict[str, Any] = {
        name: None if limit == OFF else limit for name, limit in given.items()
    }
    if off and changes:
        raise click.UsageError(
            "--off cannot be combined with --age, --bytes, --entries, --compact-after or --skew"
        )
    with session.open_log(log) as opened, Output() as out:
        before = opened.retention
        try:
            wanted = Retention() if off else replace(before, **changes)
        except ValueError as error:
            raise click.UsageError(str(error)) from error
        if wanted != before:
            opened.set_retention(wanted)
        if changes or off:
            note(_in_words(wanted))
        if apply_:
            _apply(opened)
        elif (changes or off) and not wanted.unlimited and not opened.store.url.startswith("ceph:"):
            say(
                "no sequencer enforces this on an embedded store: run"
                f" `zlog retention {log} --apply` regularly"
            )
        if as_json:
            shown = asdict(wanted)
            fields = {f"{key}_s" if key in _SPANS else key: shown[key] for key in shown}
            out.line(to_json({"log": log, **fields}))
        elif not (changes or off or apply_):
            out.line(labelled(_in_words(wanted)))


def _apply(log: Log) -> None:
    age, compact_after = log.retention.age, log.retention.compact_after
    ages = [each for each in (age, compact_after) if each is not None]
    point = log.apply_retention()
    # A client that enforces no age may lack the caps to read the report.
    while (report := log.retention_report() if ages else RetentionReport(0, "")).compacting:
        note(f"compacted below {report.compacted} so far")
        point = log.apply_retention()
    note(f"every position below {point} is trimmed")
    with contextlib.suppress(ZlogError):  # the client may lack the caps for this remark
        holding = [repr(each.name) for each in log.cursors() if each.position == point]
        if holding and point < log.tail():
            say(f"retention stops at {point}, the position of cursor {', '.join(holding)}")
    if compact_after is not None:
        note(f"below {report.compacted}, only the newest entries of each tag are left")
    if report.doubt:
        say(f"the clocks disagree: {report.doubt}. {RETENTION_DOUBT_HINT}")
    known_age = report.known_age
    if age is not None and known_age < age:
        note(
            "nothing is trimmed by age yet: an entry's age counts from when retention first saw"
            f" it, at most {span_words(round(known_age))} ago"
        )


def _in_words(wanted: Retention) -> str:
    skew = None if wanted.skew == RETENTION_SKEW_SECONDS else wanted.skew
    rows: tuple[tuple[str, Any, Callable[[Any], str]], ...] = (
        ("age", wanted.age, span_words),
        ("bytes", wanted.bytes, lambda size: f"{size:,} ({human_bytes(size)})"),
        ("entries", wanted.entries, "{:,}".format),
        ("compact after", wanted.compact_after, span_words),
        ("skew", skew, span_words),
    )
    limits = [f"{name} {shown(limit)}" for name, limit, shown in rows if limit is not None]
    return ", ".join(limits) or "everything is kept"
