"""Limits and defaults, with their units.

The object class enforces the limits as well (``cls_zlog/base/limits.h``). :meth:`zlog.Log.open` and
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
"""The maximum size of an entry in bytes, if ``entry_bytes_max`` does not set another one."""

APPEND_ENTRIES_MAX = 32768
"""How many entries of one list are in flight at once. The rest follow in later rounds."""

APPEND_BYTES_MAX = 16 << 20
"""How many bytes of one list are in flight at once."""

UNLESS_SETS_MAX = 32
"""The maximum number of sets of tags in the condition of an append."""

GRANT_COUNT_MAX = 65536
"""How many positions a sequencer grants at once, and how many can be reserved at once."""

WIDTH_DEFAULT = 8
"""The default number of stripe objects in a stripe."""

STRIPE_UNIT_DEFAULT = 256
"""The default number of consecutive positions in one stripe object."""

STRIPE_UNIT_MAX = 1 << codes.UNIT_SHIFT_MAX
"""The largest stripe unit."""

ORDERINGS = ("sequencer", "object")
"""What assigns the positions of a log: a sequencer, or the live stripe's only object."""

COMPRESSIONS = ("none", "zstd", "lz4")
"""How the data of a log can be compressed."""

STRIPE_BYTES_DEFAULT = 96 << 20
"""This is below the maximum size of an object (Ceph's osd_max_object_size, 128 MiB), so that a
stripe ends before its objects are full."""

STRIPE_RECORDS_DEFAULT = 100_000
"""Half the number of omap keys in one object at which Ceph warns
(osd_deep_scrub_large_omap_object_key_threshold)."""

RETENTION_SKEW_SECONDS = 3600.0
"""How far clocks may differ before zlog reports it. If the clocks of one machine differ by more, it
trims nothing by age. A log\'s retention may set another limit."""

CONNECT_TIMEOUT_SECONDS = 10.0
"""How long connecting to a Ceph cluster may take. ``?timeout=`` in the URL overrides it."""

TIMEOUT_SECONDS = 30.0
"""How long one call may take, including all its retries."""

HOLE_TIMEOUT_SECONDS = 1.0
"""How long a reader waits for the entry of a granted position before it fills the position."""

SEQUENCER_TIMEOUT_SECONDS = 3.0
"""How long a sequencer may be unreachable before writers install a view without it."""

MAC_KEY_BYTES_MIN = 16
MAC_KEY_BYTES_MAX = 4096
"""The limits of the size of the key that authenticates a log's entries, in bytes."""
