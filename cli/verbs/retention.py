"""The verb retention: how much of a log is kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import click

from zlog import Log, Retention
from zlog.admin import RETENTION_DOUBT_HINT
from zlog.cli.names import log_argument
from zlog.cli.output import Output, note, say
from zlog.cli.parameters import json_option
from zlog.cli.render import to_json
from zlog.cli.session import Session, pass_session
from zlog.cli.units import count, human_bytes, size, span_words, time_span
from zlog.cli.verb import Verb
from zlog.limits import RETENTION_SKEW_SECONDS

_OFF = "off"


def _or_off(read: Callable[[str], float]) -> Callable[[str], float | str]:
    def limit(word: str) -> float | str:
        if word == _OFF:
            return _OFF
        found = read(word)
        if found == 0:
            raise click.BadParameter(
                f"0 would keep nothing: {_OFF!r} removes the limit, `zlog trim` removes entries"
            )
        return found

    return limit


@click.command(
    cls=Verb,
    examples="""
    zlog retention orders                        # what is set
    zlog retention orders --age 7d --bytes 10G
    zlog retention orders --age off --entries 1M
    zlog retention orders --apply                # trim now
    """,
)
@log_argument
@click.option(
    "--age",
    type=_or_off(time_span),
    metavar="SPAN",
    help="Keep entries younger than this: 90s, 36h, 7d.",
)
@click.option(
    "--bytes",
    "size_",
    type=_or_off(size),
    metavar="SIZE",
    help="Keep this much of the newest data: 500M, 10G.",
)
@click.option(
    "--entries",
    type=_or_off(count),
    metavar="N",
    help="Keep this many of the newest entries: 5000, 1M.",
)
@click.option(
    "--skew",
    type=time_span,
    metavar="SPAN",
    help="Tell of clocks that differ by more; 1h unless set.",
)
@click.option("--off", "off", is_flag=True, help="Remove all limits.")
@click.option("--apply", "apply_", is_flag=True, help="Trim now.")
@json_option("Print the limits as one JSON object.")
@pass_session
def retention(
    session: Session,
    log: str,
    age: float | str | None,
    size_: float | str | None,
    entries: float | str | None,
    skew: float | None,
    off: bool,
    apply_: bool,
    as_json: bool,
) -> None:
    """Set how much of a log is kept: by age, bytes or entries.

    Entries beyond any of the limits are trimmed. 'off' removes a limit; limits that are not given
    stay. On Ceph the leading sequencer enforces them about once a minute; an embedded store has
    none, so run --apply regularly, by cron for instance: ages count from the first run that saw an
    entry. Retention never passes a cursor.
    """
    given = {"age": age, "bytes": size_, "entries": entries, "skew": skew}
    changes: dict[str, Any] = {
        key: None if each == _OFF else each for key, each in given.items() if each is not None
    }
    if off and changes:
        raise click.UsageError("--off excludes --age, --bytes, --entries and --skew")
    with session.open_log(log) as opened, Output() as out:
        before = opened.retention
        wanted = Retention() if off else replace(before, **changes)
        if wanted != before:
            opened.set_retention(wanted)
        if changes or off:
            note(f"log {log!r}: {_in_words(wanted)}")
        if apply_:
            _apply(opened)
        elif (changes or off) and not wanted.unlimited and not opened.store.url.startswith("ceph:"):
            say(
                "no sequencer enforces this on an embedded store: run"
                f" `zlog retention {log} --apply` regularly"
            )
        if as_json:
            out.line(
                to_json(
                    {
                        "age_s": wanted.age,
                        "bytes": wanted.bytes,
                        "entries": wanted.entries,
                        "skew_s": wanted.skew,
                    }
                )
            )
        elif not (changes or off or apply_):
            out.line(_in_words(wanted))


def _apply(log: Log) -> None:
    point = log.apply_retention()
    note(f"every position below {point} is trimmed")
    holding = [repr(each.name) for each in log.cursors() if each.position == point]
    if holding and point < log.tail():
        say(f"retention goes no further than {point}, where cursor {', '.join(holding)} is")
    age = log.retention.age
    if age is None:
        return
    known_age, doubt = log.retention_report()
    if doubt:
        say(f"clocks disagree: {doubt}. {RETENTION_DOUBT_HINT}")
    if known_age < age:
        note(
            "nothing is trimmed by age yet: ages count from when retention first saw an entry,"
            f" {span_words(round(known_age))} ago at most"
        )


def _in_words(wanted: Retention) -> str:
    limits = []
    if wanted.age is not None:
        limits.append(f"age {span_words(wanted.age)}")
    if wanted.bytes is not None:
        limits.append(f"bytes {wanted.bytes:,} ({human_bytes(wanted.bytes)})")
    if wanted.entries is not None:
        limits.append(f"entries {wanted.entries:,}")
    if wanted.skew != RETENTION_SKEW_SECONDS:
        limits.append(f"skew {span_words(wanted.skew)}")
    return ", ".join(limits) or "everything is kept"
