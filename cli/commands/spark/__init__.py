"""The command spark: copies a log into tables. PySpark is only imported when a command runs."""

from __future__ import annotations

from pathlib import Path

import click

from zlog.cli.command import CommandGroup
from zlog.cli.commands.spark import submit, tail
from zlog.cli.output import Output


@click.group(
    cls=CommandGroup,
    examples="""
    zlog spark tail orders --to /tables/orders
    """,
)
def spark() -> None:
    """Copy a log into tables, with Spark.

    These commands need PySpark and PyArrow, which the extra `spark` installs, and Java 17 or later.
    """


spark.add_command(tail.tail)


@spark.command(
    examples="""
    zlog spark path
    spark-submit --master spark://master:7077 $(zlog spark path) orders --to /tables/orders
    """,
)
def path() -> None:
    """Print the path of the program for spark-submit.

    The program takes the same arguments as `zlog spark tail`.
    """
    with Output() as out:
        out.line(str(Path(submit.__file__).with_name("tail.py")))
