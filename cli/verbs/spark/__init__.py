"""The verb spark: a log as a table, by Spark. Nothing here imports PySpark before a verb runs."""

from __future__ import annotations

from pathlib import Path

import click

from zlog.cli.output import Output
from zlog.cli.verb import VerbGroup
from zlog.cli.verbs.spark import submit, tail


@click.group(
    cls=VerbGroup,
    examples="""
    zlog spark tail orders --to /tables/orders
    """,
)
def spark() -> None:
    """Copy a log into tables, with Spark.

    Needs PySpark and PyArrow (the extra `spark`), and a Java runtime of 17 or later.
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

    It takes the arguments of `zlog spark tail`.
    """
    with Output() as out:
        out.line(str(Path(submit.__file__).with_name("tail.py")))
