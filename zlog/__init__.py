"""zlog: a distributed shared log on Ceph, or on a local directory.

Many writers append to one log; all readers see the same entries in the same order, each at a
64-bit position.

    import zlog

    with zlog.connect("file:///tmp/store") as store:
        log = zlog.Log.create(store, "orders")
        position = log.append(b"first")
        print(log.read(position).data)

:mod:`zlog.aio` has the same API for asyncio.
"""

import typing as _typing
from types import ModuleType as _ModuleType

from zlog import aio as aio
from zlog._append.producer_records import Producer as Producer
from zlog._audit.check import Progress as Progress
from zlog._audit.findings import CheckSummary as CheckSummary
from zlog._audit.findings import Finding as Finding
from zlog._audit.findings import FindingKind as FindingKind
from zlog._audit.position_map import PositionCell as PositionCell
from zlog._audit.position_map import PositionMap as PositionMap
from zlog._base.deadline import Timeout as Timeout
from zlog._base.mac import MacKeySource as MacKeySource
from zlog._base.striping import ObjectPositions as ObjectPositions
from zlog._base.striping import Striping as Striping
from zlog._base.wanted import Match as Match
from zlog._client import Tags as Tags
from zlog._positions.positions import PositionSpec as PositionSpec
from zlog._positions.stat import LogStat as LogStat
from zlog._positions.stat import OffloadedStat as OffloadedStat
from zlog._read.columns import ColumnIterator as ColumnIterator
from zlog._read.columns import Columns as Columns
from zlog._read.cursors import CursorState as CursorState
from zlog._trim.retention import Retention as Retention
from zlog._trim.retention import RetentionReport as RetentionReport
from zlog.entry import *  # noqa: F403
from zlog.errors import *  # noqa: F403
from zlog.many import Following as Following
from zlog.many import follow_many as follow_many
from zlog.read_only import ReadOnlyStore as ReadOnlyStore
from zlog.spool import Spool as Spool
from zlog.spool import SpoolStat as SpoolStat
from zlog.spool import spool_stat as spool_stat
from zlog.store import ObjectClassUse as ObjectClassUse
from zlog.store import Store as Store
from zlog.store import connect as connect
from zlog.store import default_url as default_url
from zlog.sync.check import Check as Check
from zlog.sync.cursor import Cursor as Cursor
from zlog.sync.log import Log as Log
from zlog.sync.stream import Stream as Stream
from zlog.sync.writer import Writer as Writer
from zlog.transfer import Copied as Copied
from zlog.transfer import export_log as export_log
from zlog.transfer import import_log as import_log
from zlog.transfer import mirror_log as mirror_log
from zlog.view import EntryMac as EntryMac
from zlog.view import ExclusiveWriter as ExclusiveWriter
from zlog.view import FileSegment as FileSegment
from zlog.view import ObjectRef as ObjectRef
from zlog.view import Origin as Origin
from zlog.view import Stripe as Stripe
from zlog.view import StripeFile as StripeFile
from zlog.view import View as View

__all__ = sorted(
    name
    for name, value in globals().items()
    if name[0] != "_" and (name == "aio" or not isinstance(value, _ModuleType))
)

__version__: str
"""The version of the distribution."""

if not _typing.TYPE_CHECKING:

    def __getattr__(name: str) -> str:
        if name == "__version__":  # importing the metadata takes as long as importing all the rest
            from zlog.distribution import version

            return version()
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
