"""Offloads the ended stripes of a log (docs/design/offload.md)."""

from __future__ import annotations

import secrets
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import suppress
from datetime import timezone

import zlog
from zlog.errors import ClassNotLoaded, CorruptEntry, LogNotFound, StoreUnavailable, ZlogError
from zlog.extension import OffloadAfter, StripeFile, ThreadPort, drive
from zlog.offload._files import files as stripe_files
from zlog.offload._location import Location
from zlog.offload._parquet import Content, write
from zlog.view import PLACED, REMOVED, Stripe

_URL_MAX = 900
"""The head stores URLs of files of up to 1,024 bytes."""

_ABANDONED_SECONDS = 86400.0
"""After this time, a file that was never recorded is removed."""

_LOST = (
    "On Ceph, `zlog check LOG --repair --replicas 8` restores the entry if another replica has it."
    " To offload lost positions as gaps, use --keep-lost."
)
_KEPT = "Restore the file. The objects of its stripe that still exist were not removed."


class Offloader:
    """Moves ended stripes of one log into Parquet files, oldest first.

    Any number of processes may do this at the same time, and may be killed at any moment.

    Args:
        log: an open log. If the log has MACs, its key must be given to `zlog.Log.open`.
        to: the URL or path under which the log gets a folder. The default is the log option
            ``offload_to``.
        after: which stripes to offload: an age, such as ``7d``, or a size to keep in objects, such
            as ``100GiB``. The default is the log option ``offload_after``, or all ended stripes.
        keep_lost: whether to offload stripes with lost positions. They stay lost.
        pause: how many seconds to sleep for each second of reading and writing, so that other
            clients of the store are slowed down less.

    Raises:
        ValueError: ``to`` is not given, or PyArrow does not support it, or ``after`` is invalid.
    """

    def __init__(
        self,
        log: zlog.Log,
        to: str | None = None,
        *,
        after: str | None = None,
        keep_lost: bool = False,
        pause: float = 0.0,
    ) -> None:
        self._log = log
        self._port = ThreadPort(log)
        self._steps = self._port.stripe_offload()
        self._keep_lost = keep_lost
        self._to = to
        self._pause = pause
        self._after = None if after is None else OffloadAfter.parse(after)
        view = self._port.view
        self._name, self._log_id = view.log, view.log_id
        if len(self.folder.url) > _URL_MAX:
            raise ValueError(f"the URL of the log's folder has more than {_URL_MAX} characters")

    @property
    def folder(self) -> Location:
        """The folder of the log's files."""
        root = self._to or self._port.options.get("offload_to")
        if not root:
            raise ValueError(
                "say where to offload to, with --to or"
                f" `zlog reconfigure {self._name} --option offload_to=URL`"
            )
        return Location.of(root).folder_of(self._name, self._log_id)

    def run(self) -> Iterator[StripeFile]:
        """Offload all stripes that are due, and yield the file of each one when it is done.

        Raises:
            CorruptEntry, NotWritten: a stripe has lost or unwritten positions. Later stripes are
                not offloaded.
            StoreUnavailable: the store or the place for the files fails.
        """
        try:
            yield from self._run()
        except OSError as error:
            if isinstance(error, ZlogError):
                raise
            drive(self._port.refresh())  # raises LogNotFound if the log was removed with its folder
            raise StoreUnavailable(
                f"can't offload to {self.folder.url}: {error}",
                hint="Check the disk, or the object store and its credentials. Nothing was lost;"
                " run the command again.",
            ) from error

    def due(self) -> Iterator[Stripe]:
        """Yield the stripes that :meth:`run` would begin to offload now. Changes nothing."""
        drive(self._port.refresh())
        yield from self._due(drive(self._steps.files(self._port.deadline())))

    def _run(self) -> Iterator[StripeFile]:
        port, steps = self._port, self._steps
        drive(port.refresh())
        files = drive(steps.files(port.deadline()))
        if port.view.offloads:
            with suppress(ClassNotLoaded):  # a client that may trim does this
                drive(steps.reclaim(port.deadline()))
        folder = self.folder
        here = folder.url.partition("?")[0]
        if any(file.url.startswith(here) for file in files) and not folder.exists():
            raise OSError(f"{folder.url} does not exist; is its disk mounted?")
        for file in files:
            if file.state < REMOVED and (done := self._finish(file, check=True)) is not None:
                yield done
        files = drive(steps.files(port.deadline()))
        self._remove_abandoned(files)
        for stripe in self._due(files):
            if (done := self._offload(stripe)) is not None:
                yield done

    def _due(self, files: list[StripeFile]) -> Iterator[Stripe]:
        """Yield the stripes without a file that the setting ``after`` selects, oldest first."""
        recorded = {file.id for file in files}
        ended = drive(self._steps.ended(self._port.deadline()))
        stripes = [each for each in ended if each.id not in recorded]
        after = self._after
        if after is None:
            after = OffloadAfter.parse(self._port.options.get("offload_after", "0s"))
        if after.bytes:
            above = self._log.stat(stripes[-1].end).bytes if stripes else 0
            for count in range(len(stripes), 0, -1):
                if above >= after.bytes:
                    yield from stripes[:count]
                    break
                last = stripes[count - 1]
                above += self._log.stat(last.start, last.end).bytes
            return
        oldest = time.time() - after.seconds
        for each in stripes:
            if not after.seconds or self._ended_before(each, oldest):
                yield each

    def _ended_before(self, stripe: Stripe, when: float) -> bool:
        """Whether the first entry after a stripe was appended before ``when``."""
        for item in self._log.read_range(stripe.end, hole_timeout=None):
            if isinstance(item, zlog.Entry):
                return item.timestamp.timestamp() <= when
        return False

    def _offload(self, stripe: Stripe) -> StripeFile | None:
        """Offload a stripe. Returns None if it was trimmed, or offloaded by another process."""
        port, steps = self._port, self._steps
        view = drive(steps.allow(port.deadline()))
        drive(steps.freeze(stripe, port.deadline()))
        place = self.folder / f"{stripe.start:020}-{stripe.end:020}-{secrets.token_hex(4)}.parquet"
        incoming = place.incoming
        incoming.parent.system.create_dir(incoming.parent.path)
        try:
            pieces = _pieces(steps.pieces(stripe, keep_lost=self._keep_lost), self._pause)
            with incoming.system.open_output_stream(incoming.path) as stream:
                macs = view.mac is not None
                file = write(stream, place.url, stripe, self._log_id, pieces, macs=macs)
            incoming.sync()
            if not incoming.holds(file):
                raise OSError(f"{incoming.url} differs from what was written")
            stripe_files.check(file, incoming)  # PyArrow limits the size of a file's metadata
        except BaseException as error:
            with suppress(OSError):
                incoming.remove()
            if isinstance(error, CorruptEntry):
                error.hint = _LOST
            raise
        try:
            recorded = drive(steps.record(file, port.deadline()))
        except (LogNotFound, ValueError):  # certainly not recorded
            incoming.remove()
            raise
        if not recorded:
            incoming.remove()
            return None
        return self._finish(file)

    def _finish(self, file: StripeFile, *, check: bool = False) -> StripeFile | None:
        """Do the steps that follow the record of a file.

        Returns None if the stripe was trimmed, or if its file was lost before it was placed. With
        ``check``, the file is read first, because another process wrote it.
        """
        try:
            return self._place(file, check=check)
        except (OSError, CorruptEntry, LogNotFound):
            if self._is_recorded(file):
                raise
            stripe_files.remove(file)  # it may have been moved after another process removed it
            return None

    def _is_recorded(self, file: StripeFile) -> bool:
        with suppress(LogNotFound):
            return file.url in {f.url for f in drive(self._steps.files(self._port.deadline()))}
        return False

    def _place(self, file: StripeFile, *, check: bool) -> StripeFile | None:
        port, steps = self._port, self._steps
        place = Location.of(file.url)
        if file.state < PLACED and place.incoming.size() is not None:
            place.incoming.move_to(place)
        if not (place.holds(file) if check else place.size() == file.size):
            if file.state < PLACED:
                drive(steps.forget(file, port.deadline()))  # refused if it was placed meanwhile
                stripe_files.remove(file)
                return None
            raise CorruptEntry(f"{file.url} is missing or damaged", hint=_KEPT)
        if file.state < PLACED:
            place.sync()
            file = file._replace(state=PLACED)
            if not drive(steps.record(file, port.deadline())):
                raise CorruptEntry(f"{file.url} is no longer recorded")
        drive(steps.remove_objects(file, port.deadline()))
        file = file._replace(state=REMOVED)
        with suppress(StoreUnavailable):  # the next run repeats these steps
            drive(steps.record(file, port.deadline()))
        return file

    def _remove_abandoned(self, files: list[StripeFile]) -> None:
        """Remove files of processes that died before they recorded them."""
        incoming = (self.folder / "any").incoming.parent
        recorded = {Location.of(file.url).name for file in files}
        oldest = time.time() - _ABANDONED_SECONDS
        for info in incoming.files():
            written = info.mtime.replace(tzinfo=info.mtime.tzinfo or timezone.utc).timestamp()
            if info.base_name not in recorded and written < oldest:
                (incoming / info.base_name).remove()


def _pieces(reader: AsyncIterator[Sequence[Content]], pause: float) -> Iterator[Content]:
    """Yield the pieces of a stripe."""

    async def following() -> Sequence[Content] | None:
        return await anext(reader, None)

    began = time.monotonic()
    while (pieces := drive(following())) is not None:
        yield from pieces
        time.sleep(pause * (time.monotonic() - began))
        began = time.monotonic()
