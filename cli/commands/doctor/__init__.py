"""The command doctor: reports problems, and how to fix them."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from contextlib import suppress
from itertools import chain
from pathlib import Path
from urllib.parse import unquote, urlsplit

import click

from zlog import StoreUnavailable
from zlog.admin import Credentials, space_inside
from zlog.cli.command import Command
from zlog.cli.commands.doctor import directory, installation, pool, service, spool, versions
from zlog.cli.commands.doctor.diagnosis import Diagnosis, Level, failed, ok, worst
from zlog.cli.exit_codes import ExitCode
from zlog.cli.output import Output
from zlog.cli.parameters import json_option, spool_option
from zlog.cli.render import to_json
from zlog.cli.session import Session, pass_session

_SECONDS_MAX = 5.0
"""Limit of each answer of the store, unless --timeout is shorter."""

_COLOURS = {
    Level.OK: "green",
    Level.NOTE: "blue",
    Level.WARNING: "yellow",
    Level.FAILURE: "red",
}


@click.command(
    cls=Command,
    examples="""
    zlog doctor
    zlog --store ceph://logs doctor
    zlog doctor --json | jq 'select(.level == "failure")'
    """,
)
@json_option("Print a JSON object per part.")
@spool_option
@pass_session
def doctor(session: Session, as_json: bool, spools: tuple[str, ...]) -> int:
    """Report problems, and how to fix them.

    The doctor examines the spools given by --spool, the installation, the token file for
    sequencers, the store, the object class and the sequencers, and changes no log. The exit code
    depends on the first failure: 6 if the store is unreachable, 7 if the object class is not
    loaded, and 1 for any other failure.
    """
    found: list[Diagnosis] = []
    with Output() as out:
        for diagnosis in chain(map(spool.examine, spools), examine(session)):
            found.append(diagnosis)
            if as_json:
                out.line(to_json(diagnosis_fields(diagnosis)))
            else:
                _show(out, diagnosis)
            out.flush()
    return worst(found)


def examine(session: Session) -> Iterator[Diagnosis]:
    """Examine the installation, the store, the object class and the sequencers, in this order."""
    seconds = min(_SECONDS_MAX, session.timeout or _SECONDS_MAX)
    session.timeout = seconds
    url = session.url
    parts = urlsplit(url)
    ceph = parts.scheme == "ceph"
    if not (yield from _sound(installation.examine(ceph=ceph))):
        return
    yield from installation.examine_token(Credentials.of(url))
    disk: Path | None = None
    if parts.scheme not in ("ceph", "mem"):
        path = Path(unquote(parts.path)).absolute()
        if not os.path.lexists(path):
            with suppress(StoreUnavailable), session.connect():
                pass  # only for an invalid URL, which is refused
        usable = True
        read_only = parts.query == "mode=ro"
        for diagnosis in directory.examine(path, read_only=read_only):
            usable = usable and diagnosis.code is not ExitCode.UNREACHABLE
            yield diagnosis
        disk = None if read_only else path
        if usable and disk is not None and not path.exists():
            yield directory.examine_disk(disk)
        if not usable or not path.exists():
            return
    try:
        with session.connect() as store:
            yield ok("store", f"{url} is open")
            if disk is not None:
                yield directory.examine_disk(disk, space_inside(store))
                disk = None
            classes = service.examine_class(store, url, seconds)
            layers = [classes, service.examine_logs(store, url, seconds)]
            if ceph and not service.never_asks(url):
                layers[0] = chain(classes, versions.examine_osds(url, seconds))
            if ceph:
                layers.insert(0, pool.examine(store, url, seconds))
            for layer in layers:
                if not (yield from _sound(layer)):
                    return
    except StoreUnavailable as error:
        if disk is not None:
            yield directory.examine_disk(disk)
        yield failed("store", error)


def _sound(layer: Iterator[Diagnosis]) -> Generator[Diagnosis, None, bool]:
    """Yield diagnoses. Returns whether none is a failure, so that dependent parts can follow."""
    sound = True
    for diagnosis in layer:
        sound = sound and diagnosis.level is not Level.FAILURE
        yield diagnosis
    return sound


def diagnosis_fields(diagnosis: Diagnosis) -> dict[str, object]:
    """Return a diagnosis for JSON."""
    code = diagnosis.code if diagnosis.level is Level.FAILURE else ExitCode.OK
    return {**diagnosis._asdict(), "level": diagnosis.level.value, "code": code}


def _show(out: Output, diagnosis: Diagnosis) -> None:
    level = f"{diagnosis.level.value:7}"
    if out.is_terminal:
        level = click.style(level, fg=_COLOURS[diagnosis.level])
    out.line(f"{level}  {diagnosis.part}: {diagnosis.text}")
    if diagnosis.fix:
        out.line(f"         fix: {diagnosis.fix}")
