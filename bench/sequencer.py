"""The benchmark ``bench sequencer``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import click

from bench.echo import ask_echo, ask_sequencer, start_echo
from bench.measure import Candidate
from bench.options import Bench, bench_options
from bench.results import Report
from bench.servers import ServerProcess, start_sequencer
from bench.testbed import NO_SEQUENCER, OWN, new_testbed
from bench.usage import Processes
from zlog.cli.command import Command
from zlog.cli.parameters import number_option

_ECHOES = {
    "echo": "a bare asyncio Protocol that sends the same bytes back",
    "parsed echo": "an asyncio Protocol that unpacks and packs every frame, and no more",
}


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

    The command starts `zlog seqr` on this machine, and a client in C++ sends the requests. In
    turns, the same client measures simpler servers. RATIO is the part of their rate that the
    sequencer reaches. An entry is a position here.
    """
    on_ceph = urlsplit(bench.session.url).scheme == "ceph"
    with new_testbed(bench.session, NO_SEQUENCER if on_ceph else OWN) as testbed:
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
        limits = []
        for name, how in _ECHOES.items():
            echo = testbed.enter(start_echo(name))
            limits.append(candidate(name, how, echo, ask_echo(echo.address)))
        bench.warm_up(load.run)
        title = f"sequencer, connections {connections}, depth {depth}"
        return bench.measure(load, limits, title, 0, connections=connections, depth=depth)
