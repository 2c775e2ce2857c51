"""The verb bench: how fast this store is, beside what it could do at most.

``workload`` says what is run, ``writers`` runs it, ``limits`` measures the raw limits of the same
store in the same run, ``results`` prints. A further benchmark is one more module beside
``append``.
"""

from __future__ import annotations

import click

from zlog.cli.bench import append
from zlog.cli.verb import VerbGroup


@click.group(
    cls=VerbGroup,
    examples="""
    zlog bench append
    zlog bench append --size 1K --batch 256
    """,
)
def bench() -> None:
    """Measure how fast a store is.

    Each benchmark makes a log of its own and removes it in the end.
    """


bench.add_command(append.append)
