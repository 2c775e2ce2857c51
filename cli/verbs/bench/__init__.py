"""The verb bench: how fast this store is, beside what it could do at most.

``testbed`` makes room for a benchmark, ``measure`` runs contenders in turns and compares them,
``limits`` runs the C++ program that measures what is possible, ``results`` prints. Each benchmark
is a module with a verb of its name; what it runs stands beside it.
"""

from __future__ import annotations

import click

from zlog.cli.verb import VerbGroup
from zlog.cli.verbs.bench import append, failover, read, sequencer, tail


@click.group(
    cls=VerbGroup,
    examples="""
    zlog bench append --batch 1024
    zlog --store ceph://logs bench read --size 16K
    """,
)
def bench() -> None:
    """Measure how fast a store is, beside what it can do at most.

    Each benchmark works in a part of the store of its own, which it removes in the end: a
    namespace of the pool, or a folder inside the store's.
    """


for _verb in (append.append, read.read, tail.tail, sequencer.sequencer, failover.failover):
    bench.add_command(_verb)
