"""Lets Spark find the data source ``zlog``: it imports every module called ``pyspark_…``."""

import warnings

try:
    from zlog.spark import ZlogDataSource as DefaultSource
except ImportError as error:
    # An exception would keep Spark from finding any data source in this way.
    warnings.warn(str(error), ImportWarning, stacklevel=2)
else:
    __all__ = ["DefaultSource"]
