"""zlog: a distributed shared log on Ceph, or on a local directory.

Many writers append to one log; all readers see the same entries in the same order, each at a
64-bit position.

    import zlog

    with zlog.connect("file:///tmp/store") as store:
        log = zlog.Log.create(store, "orders")
        position = log.append(b"first")
        print(log.read(position).data)

:mod:`zlog.aio` has the same for asyncio.
"""

from typing import TYPE_CHECKING

from zlog import aio
from zlog._append.delivery_records import DeliverySource
from zlog._audit.check import Progress
from zlog._audit.findings import CheckSummary, Finding, FindingKind
from zlog._audit.position_map import PositionCell, PositionMap
from zlog._base.deadline import Timeout
from zlog._base.mac import MacKeySource
from zlog._base.striping import Places, Spacing
from zlog._client import Tags
from zlog._positions.positions import PositionSpec
from zlog._positions.stat import LogStat
from zlog._read.columns import Columns
from zlog._read.cursors import CursorState
from zlog._read.select import Match
from zlog._trim.retention import Retention, RetentionReport
from zlog.entry import Entry, Fill, FillReason, Gap, GapKind, Loss, LossReason
from zlog.errors import (
    AlreadyWritten,
    AppendRefused,
    BeyondTail,
    ClassNotLoaded,
    CopyDiffers,
    CorruptEntry,
    CursorAhead,
    CursorNotFound,
    DeliveryDiffers,
    DeliverySuperseded,
    EntryTooLarge,
    ExportDamaged,
    Fenced,
    ForgedEntry,
    HeldByCursor,
    Invalidated,
    InvalidEpoch,
    InvalidTag,
    KeyNeeded,
    LimitReached,
    LogExhausted,
    LogExists,
    LogNotFound,
    MacsMissing,
    NotLeader,
    NotWritten,
    ReentrantCall,
    SequencerBusy,
    SequencerRefused,
    SequencerTimeout,
    SequencerUnavailable,
    StaleEpoch,
    StoreReadOnly,
    StoreTimeout,
    StoreUnavailable,
    UnsupportedVersion,
    WrongKey,
    ZlogError,
)
from zlog.read_only import ReadOnlyStore
from zlog.store import ObjectClassUse, Store, connect, default_url
from zlog.sync.check import Check
from zlog.sync.cursor import Cursor
from zlog.sync.log import Log
from zlog.sync.stream import Stream
from zlog.sync.writer import Writer
from zlog.transfer import Copied, export_log, import_log, mirror_log
from zlog.view import EntryMac, ExclusiveWriter, ObjectRef, Stripe, View

__all__ = [
    "AlreadyWritten",
    "AppendRefused",
    "BeyondTail",
    "Check",
    "CheckSummary",
    "ClassNotLoaded",
    "Columns",
    "Copied",
    "CopyDiffers",
    "CorruptEntry",
    "Cursor",
    "CursorAhead",
    "CursorNotFound",
    "CursorState",
    "DeliveryDiffers",
    "DeliverySource",
    "DeliverySuperseded",
    "Entry",
    "EntryMac",
    "EntryTooLarge",
    "ExclusiveWriter",
    "ExportDamaged",
    "Fenced",
    "Fill",
    "FillReason",
    "Finding",
    "FindingKind",
    "ForgedEntry",
    "Gap",
    "GapKind",
    "HeldByCursor",
    "InvalidEpoch",
    "InvalidTag",
    "Invalidated",
    "KeyNeeded",
    "LimitReached",
    "Log",
    "LogExhausted",
    "LogExists",
    "LogNotFound",
    "LogStat",
    "Loss",
    "LossReason",
    "MacKeySource",
    "MacsMissing",
    "Match",
    "NotLeader",
    "NotWritten",
    "ObjectClassUse",
    "ObjectRef",
    "Places",
    "PositionCell",
    "PositionMap",
    "PositionSpec",
    "Progress",
    "ReadOnlyStore",
    "ReentrantCall",
    "Retention",
    "RetentionReport",
    "SequencerBusy",
    "SequencerRefused",
    "SequencerTimeout",
    "SequencerUnavailable",
    "Spacing",
    "StaleEpoch",
    "Store",
    "StoreReadOnly",
    "StoreTimeout",
    "StoreUnavailable",
    "Stream",
    "Stripe",
    "Tags",
    "Timeout",
    "UnsupportedVersion",
    "View",
    "Writer",
    "WrongKey",
    "ZlogError",
    "aio",
    "connect",
    "default_url",
    "export_log",
    "import_log",
    "mirror_log",
]

__version__: str
"""The version of the distribution."""

if not TYPE_CHECKING:

    def __getattr__(name: str) -> str:
        if name == "__version__":  # few ask, and the metadata takes as long as the rest to import
            from zlog.distribution import version

            return version()
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
