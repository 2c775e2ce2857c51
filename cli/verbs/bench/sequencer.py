"""The benchmark ``bench sequencer``."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import click

from zlog.cli.output import note
from zlog.cli.session import Session, pass_session
from zlog.cli.verb import Verb
from zlog.cli.verbs.bench import frames
from zlog.cli.verbs.bench.echo import running_echo
from zlog.cli.verbs.bench.measure import ROUNDS, Contender, Slice, contest
from zlog.cli.verbs.bench.options import count_option, report_option, seconds_option
from zlog.cli.verbs.bench.processes import running_sequencer
from zlog.cli.verbs.bench.results import Report, show
from zlog.cli.verbs.bench.testbed import NO_SEQUENCER, Testbed, new_testbed
from zlog.cli.verbs.bench.usage import Processes

_ECHOES = {
    "echo": "a bare asyncio Protocol that sends the same bytes back",
    "parsed echo": "an asyncio Protocol that unpacks and packs every frame, and no more",
}
_KINDS = {"echo": "echo", "parsed echo": "frames"}


@click.command(
    cls=Verb,
    examples="""
    zlog bench sequencer
    zlog --store ceph://logs bench sequencer --connections 8 --depth 256
    """,
)
@count_option("--connections", 8, 64, "Connections that ask at the same time.")
@count_option("--depth", 16, 4096, "Requests that each of them has in flight.")
@seconds_option(5.0)
@report_option
@pass_session
def sequencer(
    session: Session,
    connections: int,
    depth: int,
    seconds: float,
    as_json: bool,
) -> None:
    """Measure how fast a sequencer hands out positions, one per request, over TCP.

    A client in C++ asks `zlog seqr`, which is started for it on this machine. Beside it stand
    servers that do less, asked by the same client in turns with it. RATIO is the part of their rate
    that was reached. An entry is a position here.
    """
    load = {"connections": connections, "depth": depth}
    with ExitStack() as stack:
        testbed = stack.enter_context(new_testbed(session, _unused(session)))
        if testbed.kind == "mem":
            raise click.UsageError("mem:// is one process's memory: no server can serve it")
        log = stack.enter_context(testbed.new_log(1))
        server = stack.enter_context(running_sequencer(testbed.url))
        greeting = frames.to_sequencer(testbed.store, log, server.address)
        contender = _contender(
            testbed, "sequencer", "zlog seqr, one position per request", server.pid, greeting, load
        )
        limits = []
        for name, how in _ECHOES.items():
            echo = stack.enter_context(running_echo(_KINDS[name]))
            limits.append(
                _contender(testbed, name, how, echo.pid, frames.to_echo(echo.address), load)
            )
        contender.run(seconds / ROUNDS / 2)
        note(f"asking and measuring the limits, {seconds:g} s each")
        measured = contest(contender, limits, seconds, 0)
        title = f"sequencer, connections {connections}, depth {depth}, on {session.url}"
        workload = {**load, "store": session.url, "seconds": seconds}
    show([Report("sequencer", title, workload, measured)], as_json=as_json)


def _unused(session: Session) -> str:
    """Return the choice of sequencer for a testbed that gets another one."""
    return NO_SEQUENCER if session.url.startswith("ceph:") else "own"


def _contender(
    testbed: Testbed,
    name: str,
    how: str,
    pid: int,
    greeting: dict[str, object],
    load: dict[str, int],
) -> Contender:
    server = Processes((pid,))

    def run(seconds: float) -> Slice:
        options: dict[str, Any] = {**greeting, **load}
        before = server.cpu_seconds()
        done = testbed.limits.measure("frames", seconds=seconds, **options)
        done.cpu["sequencer"] = server.cpu_seconds() - before
        return done

    return Contender(name, how, run)
