"""Spools, in which entries wait on a local disk while their log is unavailable (docs/spool.md)."""

from zlog.spool._local import SpoolStat as SpoolStat
from zlog.spool._local import spool_stat as spool_stat
from zlog.spool._metrics import spool_metrics as spool_metrics
from zlog.spool._spool import SPOOL_BYTES_DEFAULT as SPOOL_BYTES_DEFAULT
from zlog.spool._spool import Spool as Spool
