"""Reads and removes the files of offloaded stripes, for zlog's readers."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow.parquet as pq

from zlog.errors import CorruptEntry, UnsupportedVersion, ZlogError
from zlog.extension import SegmentColumns, StripeFile, Wanted
from zlog.offload._location import Location
from zlog.offload._parquet import Content, check, columns_of, pieces_of

_FOOTERS_MAX = 128
"""How many files' footers are kept in memory."""


class ParquetFiles:
    """See :class:`zlog.extension.StripeFiles`."""

    def __init__(self) -> None:
        self._footers: dict[str, pq.FileMetaData] = {}  # no lock, which a fork could leave held

    @contextmanager
    def _opened(self, file: StripeFile, place: Location | None = None) -> Iterator[pq.ParquetFile]:
        """Open a file, whose footer is usually read only once, and explain errors."""
        place, footer = place or Location.of(file.url), self._footers.get(file.url)
        try:
            with pq.ParquetFile(
                place.system.open_input_file(place.path),
                metadata=footer,
                pre_buffer=True,
                page_checksum_verification=True,
            ) as opened:
                if footer is None:
                    check(opened.metadata, file)
                    if len(self._footers) >= _FOOTERS_MAX:
                        self._footers.clear()
                    self._footers[file.url] = opened.metadata
                yield opened
        except Exception as error:  # damage can make the parser raise almost any error
            raise _explained(error, place, file) from error

    def read(self, file: StripeFile, number: int, wanted: Wanted | None) -> list[Content]:
        """See :meth:`zlog.extension.StripeFiles.read`."""
        with self._opened(file) as parquet:
            return pieces_of(parquet, file, number, wanted)

    def columns(self, file: StripeFile, number: int) -> SegmentColumns:
        """See :meth:`zlog.extension.StripeFiles.columns`."""
        with self._opened(file) as parquet:
            return columns_of(parquet, file, number)

    def check(self, file: StripeFile, place: Location | None = None) -> None:
        """Open a file, which may be at another place, without reading its entries.

        Raises as :meth:`read` does.
        """
        self._footers.pop(file.url, None)
        with self._opened(file, place):
            self._footers.pop(file.url, None)  # so that later damage is noticed

    def remove(self, file: StripeFile, *, of_log: bool = False) -> None:
        """See :meth:`zlog.extension.StripeFiles.remove`."""
        place = Location.of(file.url)
        place.incoming.remove()
        place.remove()
        if of_log:
            place.incoming.parent.remove_folder(anything=True)
            place.parent.remove_folder()


def _explained(error: Exception, place: Location, file: StripeFile) -> Exception:
    """Return the error to raise instead, which says whether the file is missing or damaged.

    A connection that fails and damage raise the same errors, so the whole file is compared with its
    checksum. An object store that is unreachable raises OSError here, too.
    """
    if place.size() is None:
        if place.parent.exists():
            return FileNotFoundError(errno.ENOENT, f"{file.url} does not exist")
        return OSError(errno.EAGAIN, f"{place.parent.url} does not exist; is its disk mounted?")
    if place.holds(file):
        if isinstance(error, ZlogError):
            return UnsupportedVersion(f"{file.url} is intact, but can't be read: {error}")
        return OSError(errno.EAGAIN, f"reading {file.url} failed: {error}")
    return CorruptEntry(f"{file.url} is damaged: {error}")


files = ParquetFiles()
"""The reader of stripe files that zlog uses."""
