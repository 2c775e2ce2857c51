"""Windows of entries as tables of Arrow, for copies of logs and for Spark."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from zlog import Columns


def entries_of(columns: Columns, width: int, stripe_unit: int) -> pa.Table:
    """Return the entries of a window, all of which are in one stripe, without copying them.

    The columns are position, stripe (the number of the object that has the position), timestamp,
    data and, if the window has them, tags.
    """
    table = pa.table(columns)
    return table.add_column(1, "stripe", object_numbers(table["position"], width, stripe_unit))


def object_numbers(positions: pa.ChunkedArray, width: int, stripe_unit: int) -> pa.ChunkedArray:
    """Return, for each position, the number of the stripe object that has it."""
    units = pc.divide(positions, stripe_unit)
    whole = pc.multiply(pc.divide(units, width), width)  # Arrow has no modulo
    return pc.subtract(units, whole).cast(pa.int32())
