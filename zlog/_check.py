"""Auditing a log while it is used: checksums, holes, doubled entries, missing objects, epochs."""

from __future__ import annotations

import enum
import errno
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from zlog import _native
from zlog._codes import Code, State
from zlog._deadline import Deadline
from zlog._io import Call
from zlog._read import READ_BYTES_MAX
from zlog.errors import from_errno
from zlog.view import ObjectRef, View

if TYPE_CHECKING:
    from zlog._client import LogClient

_POSITIONS_PER_STEP = 1024


class FindingKind(enum.Enum):
    """What an audit can find."""

    MISSING_OBJECT = "missing-object"
    """A stripe object of the view is gone, with its entries."""
    DAMAGED_OBJECT = "damaged-object"
    """A stripe object's header fails its checksum."""
    LOST = "lost"
    """Stored entries fail their checksum."""
    HOLE = "hole"
    """Handed out, not written so far. Young holes are appends in flight."""
    DUPLICATE = "duplicate"
    """One append stands at two positions. Never happens unless stored bytes were changed."""
    EPOCH_BEHIND = "epoch-behind"
    """An object of the live stripe was never sealed with the epoch of the newest view."""
    EPOCH_AHEAD = "epoch-ahead"
    """An object is sealed above the newest view: a layout change is under way, or its author died.
    The next writer finishes it."""


class Finding(NamedTuple):
    """One thing that an audit found.

    Attributes:
        kind: what it is.
        object: name of the stripe object concerned.
        position: first position concerned, None when it is about the object as a whole.
        end: one past the last position concerned.
        detail: a sentence for people.
    """

    kind: FindingKind
    object: str
    position: int | None
    end: int | None
    detail: str

    @property
    def serious(self) -> bool:
        """Whether data is lost or a promise is broken, as opposed to work in progress."""
        return self.kind not in (FindingKind.HOLE, FindingKind.EPOCH_AHEAD)


class Checker:
    """Goes through all objects of a log, a bounded number of positions at a time."""

    def __init__(self, client: LogClient) -> None:
        self._client = client
        self._steps: list[tuple[ObjectRef, int, int]] | None = None
        self._seen: dict[bytes, dict[int, int]] = {}

    async def next(self) -> Sequence[Finding] | None:
        """Return the findings of the next step; None when the audit is done."""
        deadline = self._client.deadline(None)
        if self._steps is None:
            return await self._begin(deadline)
        while self._steps:
            ref, start, end = self._steps.pop()
            step_end = min(end, start + _POSITIONS_PER_STEP * ref.stride)
            if step_end < end:
                self._steps.append((ref, step_end, end))
            findings = await self._check_positions(
                ref, range(start, step_end, ref.stride), deadline
            )
            if findings:
                return findings
        return None

    async def _begin(self, deadline: Deadline) -> list[Finding]:
        tail = await self._client.positions.tail(deadline)
        layout = self._client.layout
        await layout.refresh(deadline)

        def calls(view: View) -> list[Call]:
            request = _native.encode_epoch(view.epoch)
            return [Call(ref.name, "stat", request) for ref in view.objects()]

        view = layout.view
        replies = await layout.io.execute(calls(view), deadline)
        findings: list[Finding] = []
        self._steps = []
        stripes = [(stripe, ref) for stripe in view.stripes for ref in view.objects(stripe)]
        for (stripe, ref), reply in zip(stripes, replies, strict=True):
            if reply.code == -errno.ENOENT:
                findings.append(_about(FindingKind.MISSING_OBJECT, ref, "the object is gone"))
                continue
            if reply.code == -errno.EIO:
                detail = "the header fails its checksum"
                findings.append(_about(FindingKind.DAMAGED_OBJECT, ref, detail))
                continue
            if reply.code < 0:
                raise from_errno(reply.code, f"stat on {ref.name}")
            if reply.code == Code.STALE_EPOCH:
                epoch = _native.decode_epoch(reply.payload)
            else:
                epoch = _native.decode_stat(reply.payload).object_epoch
            if epoch > view.epoch:
                detail = f"sealed with epoch {epoch}, the newest view has {view.epoch}"
                findings.append(_about(FindingKind.EPOCH_AHEAD, ref, detail))
            elif stripe.open and epoch < view.epoch:
                detail = f"sealed with epoch {epoch} only, the view has {view.epoch}"
                findings.append(_about(FindingKind.EPOCH_BEHIND, ref, detail))
            start = max(stripe.start, view.trim_point)
            start += (ref.residue - start) % ref.stride
            self._steps.append((ref, start, min(stripe.end, tail)))
        self._steps.reverse()
        return findings

    async def _check_positions(
        self, ref: ObjectRef, positions: range, deadline: Deadline
    ) -> list[Finding]:
        findings: list[Finding] = []
        while positions:

            def calls(view: View, asked: range = positions) -> list[Call]:
                request = _native.encode_read(view.epoch, ref.stride, asked, READ_BYTES_MAX, True)
                return [Call(ref.name, "read", request)]

            _, (reply,) = await self._client.layout.guarded(calls, deadline)
            if reply.code == -errno.ENOENT:
                break  # trimmed or removed since; the object was counted at the beginning
            if reply.code < 0:
                raise from_errno(reply.code, f"read on {ref.name}")
            decoded = _native.decode_read(reply.payload, positions, True)
            for i in range(decoded.count):
                self._check_one(ref, positions[i], decoded, i, findings)
            positions = positions[decoded.count :]
        return findings

    def _check_one(
        self,
        ref: ObjectRef,
        position: int,
        reply: _native.ReadReply,
        i: int,
        findings: list[Finding],
    ) -> None:
        state = reply.state(i)
        if state == State.WRITTEN:
            numbers = self._seen.setdefault(reply.writer(i), {})
            other = numbers.setdefault(reply.number(i), position)
            if other != position:
                detail = f"the same append stands at position {other}"
                findings.append(_at(FindingKind.DUPLICATE, ref, position, detail))
        elif state == State.UNWRITTEN:
            findings.append(_at(FindingKind.HOLE, ref, position, "handed out, not written"))
        elif state == State.LOST:
            detail = "stored bytes fail their checksum"
            findings.append(_at(FindingKind.LOST, ref, position, detail))


def _about(kind: FindingKind, ref: ObjectRef, detail: str) -> Finding:
    return Finding(kind, ref.name, None, None, detail)


def _at(kind: FindingKind, ref: ObjectRef, position: int, detail: str) -> Finding:
    return Finding(kind, ref.name, position, position + 1, detail)
