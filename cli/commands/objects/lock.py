"""The command objects lock: runs another command while a lock is held, and no longer."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING

import click

import zlog
from zlog.cli.command import Command
from zlog.cli.commands.objects.spaces import OBJECT_NAME, open_space, space_option
from zlog.cli.exit_codes import ExitCode, Failure
from zlog.cli.names import log_argument
from zlog.cli.output import note, say
from zlog.cli.parameters import or_none, seconds
from zlog.cli.session import Session, pass_session
from zlog.cli.signals import terminable

if TYPE_CHECKING:
    from zlog.objects import Held

_TOKEN_VARIABLE = "ZLOG_LOCK_TOKEN"  # noqa: S105  # a name
_LEASE_SECONDS = 10.0
_LOOK_SECONDS = 0.1
"""The interval for checks of the command, the lease and signals."""

_GRACE = 0.25
"""The part of a lease in which the command may end before it is killed."""

_PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def _lease(word: str | float) -> float:
    span = seconds(word)
    if not 0 < span < float("inf"):
        raise click.BadParameter(f"{word} is out of range: a lease is finite and above 0")
    return span


@click.command(
    cls=Command,
    examples=f"""
    zlog objects lock app nightly -- ./backup --full
    zlog objects lock app nightly --wait 0 -- ./backup     # only if the lock is free
    zlog objects lock app deploy --lease 60 -- sh -c './deploy --token ${_TOKEN_VARIABLE}'
    """,
)
@log_argument
@click.argument("name", metavar="NAME", type=OBJECT_NAME)
@click.argument("words", metavar="-- COMMAND...", nargs=-1, required=True, type=click.UNPROCESSED)
@click.option(
    "-w",
    "--wait",
    type=seconds,
    default="never",
    metavar="SECONDS",
    help="Give up waiting for the lock after this time, with exit code 10.  [default: never]",
)
@click.option(
    "--lease",
    type=_lease,
    default=_LEASE_SECONDS,
    show_default=True,
    metavar="SECONDS",
    help="Let others take the lock if it is not renewed for this long.",
)
@click.option(
    "--owner", metavar="TEXT", help="Name of the holder, shown to others.  [default: HOST:PROCESS]"
)
@space_option
@pass_session
def lock(
    session: Session,
    log: str,
    name: str,
    words: tuple[str, ...],
    wait: float,
    lease: float,
    owner: str | None,
    space: str,
) -> int:
    """Run a command while holding a lock.

    Clients get the lock in the order of their requests. zlog renews the lock three times per lease,
    releases it when the command ends, and exits with the command's exit code.

    If the lock is lost, or only a quarter of its lease is left without a renewal, zlog sends
    SIGTERM to the command, and SIGKILL a quarter of the lease later. The exit code is then 10. zlog
    forwards SIGINT, SIGTERM and SIGHUP to the command and, if stdin is not a terminal, to its
    children.

    The command may still outlive the lock: a suspended machine notices the loss too late, and
    nothing stops the command if zlog is killed. To prevent damage, pass the number in the
    environment variable ZLOG_LOCK_TOKEN to the resource that the lock protects. Each later holder
    has a higher number, so the resource should refuse a number lower than one it has seen.
    """
    program = shutil.which(words[0])
    if program is None:
        raise click.UsageError(f"no such command: {words[0]!r}")
    who = owner or f"{socket.gethostname()}:{os.getpid()}"
    with open_space(session, log, space, create=True) as opened, terminable():
        held = opened.lock(name).acquire(who, lease=lease, timeout=or_none(wait))
        try:
            note(f"holding lock {name!r} under token {held.token}")
            return _run([program, *words[1:]], held, name)
        finally:
            try:
                held.release()
            except zlog.ZlogError as error:
                say(f"lock {name!r} was not released; it becomes free when its lease ends: {error}")


def _run(words: list[str], held: Held, name: str) -> int:
    """Run the command, and end it in time if the lease is not renewed. Returns its exit code."""
    # At a terminal it stays in the foreground, and gets the terminal's signals itself.
    own_group = not (sys.stdin is not None and sys.stdin.isatty())
    grace = held.lease * _GRACE
    kill_at: float | None = None
    with _noted() as received:
        environment = {**os.environ, _TOKEN_VARIABLE: str(held.token)}
        process = subprocess.Popen(words, env=environment, start_new_session=own_group)  # noqa: S603
        send = partial(_send, process, own_group=own_group)
        while not _ended(process):
            while received:
                number = received.pop(0)
                if own_group or number != signal.SIGINT:  # a terminal has sent it to both
                    send(number)
            if kill_at is None:
                if held.remaining() < grace:
                    say(f"the lease of lock {name!r} was not renewed: ending the command")
                    send(signal.SIGTERM)
                    kill_at = time.monotonic() + grace
            elif time.monotonic() >= kill_at:
                send(signal.SIGKILL)
    if kill_at is not None:
        hint = "Another client may hold it now. Check what the command did before it ended."
        raise Failure(f"lock {name!r} was lost", ExitCode.NOT_HELD, hint)
    code = process.returncode
    return code if code >= 0 else 128 - code  # ended by a signal: as shells say it


def _ended(process: subprocess.Popen[bytes]) -> bool:
    with suppress(subprocess.TimeoutExpired):
        process.wait(_LOOK_SECONDS)
    return process.returncode is not None


def _send(process: subprocess.Popen[bytes], number: int, *, own_group: bool) -> None:
    """Send a signal to the command, and to its known child processes."""
    with suppress(ProcessLookupError):
        if own_group:
            os.killpg(process.pid, number)
        else:
            process.send_signal(number)


@contextmanager
def _noted() -> Iterator[list[int]]:
    """Record signals during a ``with`` block; ignored signals stay ignored."""
    received: list[int] = []
    known = {number: signal.getsignal(number) for number in _PASSED_ON}
    for number, handler in known.items():
        if handler is not signal.SIG_IGN:
            signal.signal(number, lambda got, _: received.append(got))
    try:
        yield received
    finally:
        for number, handler in known.items():
            signal.signal(number, handler)
