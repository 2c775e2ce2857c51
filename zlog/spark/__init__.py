"""zlog for Spark: ``spark.read.format("zlog")`` and ``spark.readStream.format("zlog")``.

    reader = spark.read.format("zlog").option("store", "ceph://logs")
    entries = reader.option("log", "orders").load()

Spark finds the format by itself. It needs PySpark and PyArrow, which the extra ``spark`` installs.
"""

import gc as _gc
import sys as _sys

from zlog import distribution as _distribution

try:
    import pyarrow as _pyarrow  # noqa: F401  # its absence shows here
    from pyspark.sql.streaming.datasource import ReadMaxRows as _  # noqa: F401  # since 4.2
except ImportError as error:
    raise ImportError(
        f"zlog.spark needs {_distribution.requirements('spark')} ({error});"
        f" {_distribution.how_to_install('spark')}"
    ) from error

from zlog.spark._daemon import hush as _hush
from zlog.spark._data_source import ZlogDataSource

if _hush(_sys.modules["__main__"]):
    _gc.freeze()  # after each task, the daemon collects garbage: 25 ms if it searched all modules

__all__ = ["ZlogDataSource"]
