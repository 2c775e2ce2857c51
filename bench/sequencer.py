"""The benchmark ``bench sequencer``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from bench.echo import ask_echo, ask_sequencer, start_echo
from bench.measure import Candidate
from bench.options import Bench, bench_options
from bench.results import Report
from bench.servers import ServerProcess, start_sequencer
from bench.testbed import new_testbed
from bench.usage import Processes
from zlog.cli.command import Command
from zlog.cli.parameters import number_option


@click.command(
    cls=Command,
    examples="""
    python -m bench sequencer
    python -m bench --store ceph://logs sequencer --connections 8 --depth 256
    """,
)
@number_option("--connections", 8, 1, 64, "Simultaneous connections.")
@number_option("--depth", 16, 1, 4096, "Requests in flight per connection.")
@bench_options
def sequencer(bench: Bench, connections: int, depth: int) -> Report:
    """Measure how fast a sequencer grants positions over TCP, one per request.

    A client in C++ asks `zlog seqr`, which is started for it on this machine. Beside it stands
    a server that sends the frames back, asked by the same client in turns with it. RATIO is the
    part of its rate that was reached. An entry is a position here.
    """
    with new_testbed(bench.session, sequencer=False) as testbed:
        if testbed.kind == "mem":
            raise click.UsageError(
                "a store in memory belongs to one process, so no server can serve it"
            )

        def candidate(
            name: str, how: str, server: ServerProcess, greeting: Mapping[str, Any]
        ) -> Candidate:
            servers = {"sequencer": Processes((server.pid,))}
            load = {"connections": connections, "depth": depth, **greeting}
            return testbed.limit(name, how, "frames", servers=servers, **load)

        log = testbed.enter(testbed.new_log(1))
        server = testbed.enter(start_sequencer(testbed.url))
        greeting = ask_sequencer(testbed.store, log, server.address)
        load = candidate("sequencer", "zlog seqr, one position per request", server, greeting)
        echo = testbed.enter(start_echo())
        how = "a bare asyncio Protocol that sends the same bytes back"
        limits = [candidate("echo", how, echo, ask_echo(echo.address))]
        bench.warm_up(load.run)
        title = f"sequencer, connections {connections}, depth {depth}"
        return bench.measure(load, limits, title, 0, connections=connections, depth=depth)
