"""Reads and removes the files of offloaded stripes, for zlog's readers."""

from __future__ import annotations

import errno
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from threading import Lock
from typing import TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from zlog.errors import CorruptEntry
from zlog.extension import Form, SegmentColumns, StripeFile
from zlog.offload._location import Location
from zlog.offload._parquet import Content, check, columns_of, pieces_of

T = TypeVar("T")

_FOOTERS_MAX = 128
"""How many files' footers are kept in memory."""


class ParquetFiles:
    """See :class:`zlog.extension.StripeFiles`."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._footers: OrderedDict[str, pq.FileMetaData] = OrderedDict()

    def open(self, file: StripeFile) -> pq.ParquetFile:
        """Open a file. Its footer is read at most once."""
        place = Location.of(file.url)
        with self._lock:
            footer = self._footers.get(file.url)
        try:
            source = place.system.open_input_file(place.path)
            opened = pq.ParquetFile(
                source, metadata=footer, pre_buffer=True, page_checksum_verification=True
            )
        except (pa.ArrowInvalid, OSError) as error:
            raise _explained(error, place, file) from error
        if footer is None:
            check(opened.metadata, file)
            with self._lock:
                self._footers[file.url] = opened.metadata
                if len(self._footers) > _FOOTERS_MAX:
                    self._footers.popitem(last=False)
        return opened

    def read(self, file: StripeFile, number: int, form: Form) -> list[Content]:
        """See :meth:`zlog.extension.StripeFiles.read`."""
        return self._reading(file, number, partial(pieces_of, form=form))

    def _reading(
        self, file: StripeFile, number: int, read: Callable[[pq.ParquetFile, StripeFile, int], T]
    ) -> T:
        try:
            with self.open(file) as opened:
                return read(opened, file, number)
        except (pa.ArrowException, OSError) as error:
            raise _explained(error, Location.of(file.url), file) from error

    def columns(self, file: StripeFile, number: int) -> SegmentColumns:
        """See :meth:`zlog.extension.StripeFiles.columns`."""
        return self._reading(file, number, columns_of)

    def remove(self, file: StripeFile) -> None:
        """See :meth:`zlog.extension.StripeFiles.remove`."""
        place = Location.of(file.url)
        place.incoming.remove()
        place.remove()


def _explained(error: Exception, place: Location, file: StripeFile) -> Exception:
    """Return the error to raise instead, which says whether the file is missing or damaged.

    A connection that fails and damage raise the same errors, so the whole file is compared with its
    checksum. An object store that is unreachable raises OSError here, too.
    """
    size = place.size()
    if size is None:
        if place.parent.exists():
            return FileNotFoundError(errno.ENOENT, f"{file.url} does not exist")
        return OSError(errno.EAGAIN, f"{place.parent.url} does not exist; is its disk mounted?")
    if size == file.size and place.checksum() == file.checksum:
        return OSError(errno.EAGAIN, f"reading {file.url} failed: {error}")
    return CorruptEntry(f"{file.url} is damaged: {error}")


files = ParquetFiles()
"""The reader of stripe files that zlog uses."""
