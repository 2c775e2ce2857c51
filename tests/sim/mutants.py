"""Ways to break the protocol, one rule each, which the simulation has to notice.

Two are mistakes of the client that changes the layout, one of the client that appends, and three of
the object class. The class is C++, and not built broken: what is wrong with it is done where its
methods are called.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from unittest import mock

from zlog import _native, _views
from zlog._codes import Code
from zlog._io import Call
from zlog._positions import Positions
from zlog._stripe_objects import Sealed, seal
from zlog.store import RequestPayload

from .cluster import Execute, Objects

_ANY_EPOCH = 2**63
_EPOCH = slice(1, 9)
_NUMBER = slice(33, 41)
"""Where a write has its epoch and its append number: docs/formats/wire.md."""


def _as_it_is(objects: Objects) -> Execute:
    return objects.execute


@contextlib.contextmanager
def _nothing() -> Iterator[None]:
    yield


@dataclass(frozen=True)
class Mutant:
    """A broken variant.

    Attributes:
        broken: which rule, in words.
        seeds_max: within so many seeds it must be noticed.
        wrap: what the objects do then.
        patch: what the clients do then.
    """

    broken: str
    seeds_max: int
    wrap: Callable[[Objects], Execute] = _as_it_is
    patch: Callable[[], contextlib.AbstractContextManager[object]] = _nothing


async def _look(io, ref, deadline):  # type: ignore[no-untyped-def]
    """What a seal would tell of an object, without sealing it. None: it is sealed higher."""
    call = Call(ref.name, "stat", _native.encode_epoch(_ANY_EPOCH))
    (reply,) = await io.execute([call], deadline)
    if reply.code != Code.OK:
        return None
    stat = _native.decode_stat(reply.payload)
    return Sealed(stat.highest, stat.records, stat.stream_bytes)


async def _seal_all_but_one(io, objects, epoch, deadline, *, create=False, missing_ok=False):  # type: ignore[no-untyped-def]
    refs = list(objects)
    if create:
        return await seal(io, refs, epoch, deadline, create=True)
    looked = await _look(io, refs[0], deadline)
    sealed = await seal(io, refs[1:], epoch, deadline, missing_ok=missing_ok)
    return None if sealed is None or looked is None else [looked, *sealed]


async def _look_before_sealing(io, objects, epoch, deadline, *, create=False, missing_ok=False):  # type: ignore[no-untyped-def]
    refs = list(objects)
    if create:
        return await seal(io, refs, epoch, deadline, create=True)
    looked = [await _look(io, ref, deadline) for ref in refs]
    sealed = await seal(io, refs, epoch, deadline, missing_ok=missing_ok)
    return None if sealed is None or None in looked else looked


def _epoch_before_identity(objects: Objects) -> Execute:
    def execute(object: str, method: str, payload: RequestPayload) -> tuple[int, bytes]:
        if method == "write":
            code, reply = objects.execute(object, "stat", _native.encode_epoch(_ANY_EPOCH))
            if code == Code.OK:
                known = _native.decode_stat(reply).object_epoch
                if int.from_bytes(bytes(payload)[_EPOCH], "little") < known:
                    return Code.STALE_EPOCH, b"\x01" + known.to_bytes(8, "little")
        return objects.execute(object, method, payload)

    return execute


def _fill_overwrites(objects: Objects) -> Execute:
    def execute(object: str, method: str, payload: RequestPayload) -> tuple[int, bytes]:
        code, reply = objects.execute(object, method, payload)
        while method == "fill" and code == Code.READ_ONLY:
            if not _drop(objects, object, _native.decode_position(reply)):
                break
            code, reply = objects.execute(object, method, payload)
        return code, reply

    return execute


def _drop(objects: Objects, object: str, position: int) -> bool:
    """Take the entry of one position out of an object, if it has a record of its own."""
    found = objects.memory.peek(object)
    assert found is not None
    attrs, omap, stream = found
    key = b"e.%016x.1" % position
    if omap.pop(key, None) is None:
        return False
    objects.memory.poke(object, attrs, omap, stream)
    return True


def _another_id_on_retry(objects: Objects) -> Execute:
    sent: set[bytes] = set()

    def execute(object: str, method: str, payload: RequestPayload) -> tuple[int, bytes]:
        if method == "write":
            request = bytes(payload)
            if request in sent:
                changed = bytearray(request)
                changed[_NUMBER] = (2**40 + len(sent)).to_bytes(8, "little")
                payload = bytes(changed)
            sent.add(request)
        return objects.execute(object, method, payload)

    return execute


_grant = Positions.grant


async def _grant_again(self, count, deadline):  # type: ignore[no-untyped-def]
    """Use the positions of the last grant once more, if there is a newer epoch."""
    epoch, first, granted = self.__dict__.pop("_kept", (0, 0, 0))
    view = self._layout.view
    if epoch and view.epoch > epoch and granted >= count:
        return view, first
    view, first = await _grant(self, count, deadline)
    self._kept = view.epoch, first, count
    return view, first


MUTANTS = {
    "unsealed-object": Mutant(
        "a change of layout leaves one object unsealed",
        40,
        patch=lambda: mock.patch.object(_views, "seal", _seal_all_but_one),
    ),
    "tail-before-seal": Mutant(
        "a change of layout asks for the highest positions before it seals",
        40,
        patch=lambda: mock.patch.object(_views, "seal", _look_before_sealing),
    ),
    "epoch-before-identity": Mutant(
        "an object refuses a stale epoch before it looks whether the entry is there already",
        40,
        wrap=_epoch_before_identity,
    ),
    "fill-overwrites": Mutant("a fill replaces an entry", 40, wrap=_fill_overwrites),
    "id-forgotten": Mutant(
        "what is sent again carries another append id", 40, wrap=_another_id_on_retry
    ),
    "position-reused": Mutant(
        "a position granted in one epoch is used in the next",
        40,
        patch=lambda: mock.patch.object(Positions, "grant", _grant_again),
    ),
}
