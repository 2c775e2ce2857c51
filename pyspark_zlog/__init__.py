"""Where Spark finds the data source ``zlog``: it looks into every module called ``pyspark_…``."""

import warnings

try:
    from zlog.spark import ZlogDataSource as DefaultSource
except ImportError as error:
    # Raised, it would keep Spark from all data sources that it finds in this way.
    warnings.warn(str(error), ImportWarning, stacklevel=2)
else:
    __all__ = ["DefaultSource"]
