"""Starts Spark quietly, with clear errors about missing parts."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from zlog.admin import how_to_install
from zlog.cli.commands.spark.startup import quiet_startup
from zlog.cli.parameters import key_values

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

F = TypeVar("F", bound=Callable[..., Any])

_IN_SPARK_SUBMIT = "PYSPARK_GATEWAY_PORT"
"""Set by spark-submit, which has already started the JVM."""

_DEFAULTS = {
    "spark.log.level": "ERROR",
    "spark.ui.showConsoleProgress": "false",
    # Days begin at the same moment wherever the driver runs.
    "spark.sql.session.timeZone": "UTC",
}

_UNIX_SOCKETS = "spark.python.unix.domain.socket.enabled"
"""Whether Spark uses Unix sockets for its Python workers. By default it uses TCP, where small
messages wait for delayed acknowledgements: about 40 ms in each task and between two tasks."""

_WITH_UNIX_SOCKETS = ("local", "spark://")
"""Masters whose sockets are in the system's temporary folder. A YARN container has its own folder,
whose path may be too long for a socket's name."""


def master_options(command: F) -> F:
    """Add Spark's own options to a command."""
    master = click.option(
        "--master",
        metavar="URL",
        help="Spark's master.  [default: local[*], or the master of spark-submit]",
    )
    conf = click.option(
        "--spark-conf",
        "settings",
        multiple=True,
        callback=key_values,
        metavar="KEY=VALUE",
        help="A setting of Spark; may be repeated.",
    )
    return master(conf(command))


def check_spark() -> None:
    """Raise ClickException if PySpark, PyArrow or Java is missing."""
    try:
        importlib.import_module("zlog.spark")
    except ImportError as error:
        raise click.ClickException(str(error)) from error
    if _IN_SPARK_SUBMIT not in os.environ and _java() is None:
        raise click.ClickException(
            "Spark needs a Java runtime, 17 or later, but none is installed: apt-get install"
            " default-jre-headless, or set JAVA_HOME"
        )


def check_delta() -> None:
    """Raise ClickException if Delta Lake's package is missing, or is for an older PySpark."""
    if importlib.util.find_spec("delta") is None:
        raise click.ClickException(
            f"--format delta needs the package delta-spark: {how_to_install('delta')}"
        )
    if _IN_SPARK_SUBMIT in os.environ:  # whose --packages say which release it is
        return
    spark = metadata.version("pyspark")
    newest = _newest_spark(metadata.requires("delta-spark") or [])
    if newest is not None and _release(spark) > _release(newest):
        raise click.ClickException(
            f"delta-spark {metadata.version('delta-spark')} is for PySpark up to {newest}, and this"
            f" is {spark}: install a later delta-spark, if there is one, or pyspark=={newest}"
        )


def _newest_spark(requirements: Iterable[str]) -> str | None:
    """Return the newest PySpark that a package's requirements allow, or None for any."""
    for each in requirements:
        if found := re.match(r"pyspark\b.*<=\s*([\d.]+)", each):
            return found[1]
    return None


def _release(version: str) -> tuple[int, ...]:
    """Return the major and minor version, which are part of the names of Delta's Java archives."""
    return tuple(int(number) for number in version.split(".")[:2])


def _java() -> str | None:
    home = os.environ.get("JAVA_HOME")
    return shutil.which("java", path=str(Path(home) / "bin") if home else None)


@contextmanager
def spark_session(
    name: str, master: str | None, settings: Mapping[str, str], *, delta: bool, quiet: bool = True
) -> Iterator[SparkSession]:
    """Start Spark, and stop it at the end of the ``with`` block.

    Args:
        name: the name of the application.
        master: the URL of Spark's master. None means the master that spark-submit chose or, without
            spark-submit, a local one with all cores.
        settings: the user's settings for Spark, which override zlog's own.
        delta: whether the query writes Delta tables.
        quiet: whether to hide what the JVM prints while it starts. If the start fails, this is
            shown.

    Raises:
        click.ClickException: Spark did not start.
    """
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName(name)
    submitted = _IN_SPARK_SUBMIT in os.environ
    if master is None and not submitted:
        master = settings.get("spark.master", "local[*]")
    if master is not None:
        builder = builder.master(master)
        if master.startswith("local"):
            os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
            # Its Python processes look for modules in the working directory first. A folder there
            # that is called zlog, as in a clone, would be taken for this package.
            os.environ.setdefault("PYTHONSAFEPATH", "1")
        if master.startswith(_WITH_UNIX_SOCKETS):
            builder = builder.config(_UNIX_SOCKETS, "true")
    if delta:
        builder = _with_delta(builder, submitted=submitted)
    for key, value in {**_DEFAULTS, **settings}.items():
        builder = builder.config(key, value)
    try:
        with quiet_startup() if quiet and not submitted else nullcontext():
            session = builder.getOrCreate()
    except PySparkException as error:
        raise click.ClickException(f"Spark did not start: {error}") from error
    try:
        yield session
    finally:
        session.stop()


def _with_delta(builder: SparkSession.Builder, *, submitted: bool) -> SparkSession.Builder:
    builder = builder.config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
    builder = builder.config(
        "spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog"
    )
    if submitted:  # whose --packages brought Delta's classes
        return builder
    from delta import configure_spark_with_delta_pip

    configured: SparkSession.Builder = configure_spark_with_delta_pip(builder)
    return configured
