"""Reads a log with Spark's own Parquet reader where its stripes are offloaded (docs/offload.md)."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

import zlog

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

_SCHEMES: Mapping[str, str] = {"s3": "s3a"}
"""Names of file systems in Hadoop that differ from those in PyArrow."""


def read(spark: SparkSession, store: str, log: str, *, tags: bool = False) -> DataFrame:
    """Return the entries of a log: from the files of its oldest stripes, and then from objects.

    Spark reads the files several times as fast as ``format("zlog")``, which reads everything else.
    Its file systems need their own credentials. The result does not show gaps: positions that were
    lost before their stripe was offloaded are missing.

    Args:
        spark: the session.
        store: the URL of the store.
        log: the name of the log.
        tags: whether to return the column ``tags``.

    Returns:
        The columns ``position``, ``timestamp``, ``data``, and ``tags`` if wanted, of all entries
        that are in the log now.

    Raises:
        zlog.ZlogError: the log cannot be opened.
    """
    with zlog.connect(store) as opened, zlog.Log.open(opened, log) as handle:
        first, tail = handle.earliest(), handle.tail()
        at = first
        paths: list[str] = []
        for file in handle.stripe_files():
            if not file.start <= at < file.end:
                break
            paths.append(_path(file.url))
            at = file.end
    columns = ["position", "timestamp", "data", *["tags"] * tags]
    parts: list[DataFrame] = []
    if paths:
        parts.append(spark.read.parquet(*paths).where(f.col("position") >= first))
    if at < tail or not paths:
        source = spark.read.format("zlog").options(store=store, log=log, includeTags=tags)
        parts.append(source.option("startingPosition", at).load())
    return reduce(DataFrame.union, (part.select(*columns) for part in parts))


def _path(url: str) -> str:
    scheme, place, path, *_ = urlsplit(url)
    return f"{_SCHEMES.get(scheme, scheme)}://{place}{path}"
