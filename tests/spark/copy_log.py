"""Copy a log to another one with Spark: what ``python -m tests.spark.torture --to log`` kills."""

from __future__ import annotations

import argparse
import os
import sys


def main() -> None:
    """Parse the command line, and copy until killed, or up to the tail with ``--once``."""
    parser = argparse.ArgumentParser(prog="python -m tests.spark.copy_log", description=__doc__)
    parser.add_argument("store", help="URL of the store of both logs")
    parser.add_argument("log", help="the log to read")
    parser.add_argument("copy", help="the log to write to")
    parser.add_argument("checkpoint", help="folder")
    parser.add_argument("--once", action="store_true", help="end at the tail")
    parser.add_argument("--option", action="append", default=[], help="NAME=VALUE, of the read")
    parser.add_argument("--conf", action="append", default=[], help="NAME=VALUE, of Spark")
    given = parser.parse_args()

    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local[2]")
    for each in given.conf:
        name, _, value = each.partition("=")
        builder = builder.config(name, value)
    options = dict(each.split("=", 1) for each in given.option)
    entries = (
        builder.getOrCreate()
        .readStream.format("zlog")
        .options(store=given.store, log=given.log, cursor="copy", **options)
        .load()
    )
    trigger = {"availableNow": True} if given.once else {"processingTime": "200 milliseconds"}
    query = (
        entries.select("data")
        .writeStream.format("zlog")
        .options(store=given.store, log=given.copy)
        .option("checkpointLocation", given.checkpoint)
        .trigger(**trigger)
        .start()
    )
    query.awaitTermination()


if __name__ == "__main__":
    main()
