"""Limits and defaults, with their units.

The object class also enforces the limits (``cls_zlog/base/limits.h``). :meth:`zlog.Log.open` and
:meth:`zlog.Log.create` use the defaults.
"""

from zlog._base import codes

ENTRY_BYTES_MAX = codes.ENTRY_BYTES_MAX
NAME_BYTES_MAX = codes.LOG_NAME_BYTES_MAX
OPTION_KEY_BYTES_MAX = codes.OPTION_KEY_BYTES_MAX
OPTION_VALUE_BYTES_MAX = codes.OPTION_VALUE_BYTES_MAX
POSITION_MAX = codes.POSITION_MAX
WIDTH_MAX = codes.WIDTH_MAX

ENTRY_BYTES_MAX_DEFAULT = 1 << 20
"""A handle refuses larger entries unless its ``entry_bytes_max`` says otherwise."""

APPEND_ENTRIES_MAX = 32768
"""Entries of one list that are in flight at once; the rest follows."""

APPEND_BYTES_MAX = 16 << 20
"""Bytes of one list that are in flight at once."""

GRANT_COUNT_MAX = 65536
"""Positions that a sequencer grants at once, and that can be reserved at once."""

WIDTH_DEFAULT = 8
"""Stripe objects of one stripe."""

STRIPE_UNIT_DEFAULT = 256
"""Consecutive positions in one stripe object."""

STRIPE_UNIT_MAX = 1 << codes.UNIT_SHIFT_MAX
"""The largest stripe unit."""

COMPRESSIONS = ("none", "zstd", "lz4")
"""How a log's data can be compressed."""

STRIPE_BYTES_DEFAULT = 96 << 20
"""Below the maximum size of an object (Ceph's osd_max_object_size, 128 MiB), so that a stripe ends
before its objects are full."""

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
"""How long a reader waits for a granted position to be written, before it fills it."""

SEQUENCER_TIMEOUT_SECONDS = 3.0
"""How long a sequencer may be unreachable before writers install a view without it."""

MAC_KEY_BYTES_MIN = 16
MAC_KEY_BYTES_MAX = 4096
"""Bytes of the key that a log's entries are authenticated with."""
