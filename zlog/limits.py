"""Limits and defaults, each with its unit.

The object class enforces the limits too (``cls_zlog/base/limits.h``). The defaults are those of
:meth:`zlog.Log.open` and :meth:`zlog.Log.create`.
"""

from zlog._base.codes import ENTRY_BYTES_MAX as ENTRY_BYTES_MAX
from zlog._base.codes import LOG_NAME_BYTES_MAX as NAME_BYTES_MAX
from zlog._base.codes import OPTION_KEY_BYTES_MAX as OPTION_KEY_BYTES_MAX
from zlog._base.codes import OPTION_VALUE_BYTES_MAX as OPTION_VALUE_BYTES_MAX
from zlog._base.codes import POSITION_MAX as POSITION_MAX
from zlog._base.codes import UNIT_SHIFT_MAX as _UNIT_SHIFT_MAX
from zlog._base.codes import WIDTH_MAX as WIDTH_MAX

__all__ = [
    "APPEND_BYTES_MAX",
    "APPEND_ENTRIES_MAX",
    "COMPRESSIONS",
    "CONNECT_TIMEOUT_SECONDS",
    "ENTRY_BYTES_MAX",
    "ENTRY_BYTES_MAX_DEFAULT",
    "GRANT_COUNT_MAX",
    "HOLE_TIMEOUT_SECONDS",
    "NAME_BYTES_MAX",
    "OPTION_KEY_BYTES_MAX",
    "OPTION_VALUE_BYTES_MAX",
    "POSITION_MAX",
    "RETENTION_SKEW_SECONDS",
    "SEQUENCER_TIMEOUT_SECONDS",
    "STRIPE_BYTES_DEFAULT",
    "STRIPE_RECORDS_DEFAULT",
    "TIMEOUT_SECONDS",
    "UNIT_DEFAULT",
    "UNIT_MAX",
    "WIDTH_DEFAULT",
    "WIDTH_MAX",
]

ENTRY_BYTES_MAX_DEFAULT = 1 << 20
"""A handle refuses larger entries unless its ``entry_bytes_max`` says otherwise."""

APPEND_ENTRIES_MAX = 32768
"""Entries of one list that are in flight at once; the rest of a longer list follows them."""

APPEND_BYTES_MAX = 16 << 20
"""Bytes of one list that are in flight at once."""

GRANT_COUNT_MAX = 65536
"""Positions that a sequencer grants at once, and that can be reserved at once."""

WIDTH_DEFAULT = 8
"""Stripe objects of one stripe."""

UNIT_DEFAULT = 256
"""Positions in a row that lie in one stripe object."""

UNIT_MAX = 1 << _UNIT_SHIFT_MAX
"""The most that may."""

COMPRESSIONS = ("none", "zstd", "lz4")
"""How a log's data can be compressed."""

STRIPE_BYTES_DEFAULT = 96 << 20
"""Far enough below what an object can hold (Ceph's osd_max_object_size is 128 MiB) that a stripe
is ended before its objects are full."""

STRIPE_RECORDS_DEFAULT = 100_000
"""Half of the omap keys in one object above which Ceph warns
(osd_deep_scrub_large_omap_object_key_threshold)."""

RETENTION_SKEW_SECONDS = 3600.0
"""By how much clocks may differ before nothing is trimmed by age, unless a log's retention says."""

CONNECT_TIMEOUT_SECONDS = 10.0
"""How long connecting to a Ceph cluster may take, unless ``?timeout=`` says otherwise."""

TIMEOUT_SECONDS = 30.0
"""How long one call may take, with all its retries."""

HOLE_TIMEOUT_SECONDS = 1.0
"""How long a reader waits for a position that was handed out and not written, before filling it."""

SEQUENCER_TIMEOUT_SECONDS = 3.0
"""How long a sequencer may be out of reach before writers bring in a view without it."""

MAC_KEY_BYTES_MIN = 16
MAC_KEY_BYTES_MAX = 4096
"""Bytes of the key that a log's entries are authenticated with."""
