"""Ways to break the protocol, one rule each, which the simulation has to notice.

The class is C++ and not built broken: what is wrong with it is done where its methods are called.
"""

from __future__ import annotations

import errno
from functools import partial

from zlog._append import exactly_once, exclusive, ownership
from zlog._append.exactly_once import _Attempt
from zlog._append.exclusive import Exclusive
from zlog._append.ordered import OrderedAppender
from zlog._append.rounds import Round
from zlog._base.codes import POSITION_MAX, Code
from zlog._base.io import Call
from zlog._layout import views
from zlog._layout.stripe_objects import seal
from zlog._native import messages
from zlog._positions import positions
from zlog._positions.positions import Positions
from zlog._read import select
from zlog._trim import compact
from zlog.entry import Entry
from zlog.errors import SequenceSuperseded

from ..conformance.stored import HEADER, envelope, fields_of
from .broken_spaces import SPACES
from .cluster import Objects
from .mutant import Mutant
from .run import Kind

_ANY_EPOCH = 2**63
_EPOCH = slice(6, 14)
_NUMBER = slice(33, 41)
"""Where a write has its epoch and its append number: docs/formats/wire.md."""
_INDEXED = slice(-29, -21)
"""Where a header says how far the index of tags goes."""


async def _look(io, ref, deadline):  # type: ignore[no-untyped-def]
    """What a seal would tell of an object, without sealing it. None: it is sealed higher."""
    call = Call(ref.name, "stat", messages.stat(_ANY_EPOCH))
    (reply,) = await io.execute([call], deadline)
    if reply.code != Code.OK:
        return None
    stat = messages.stat_reply(reply.payload)
    return messages.SealReply(stat.highest, stat.records, stat.stream_bytes, start=None, made=False)


async def _seal_all_but_one(io, objects, epoch, deadline, **others):  # type: ignore[no-untyped-def]
    refs = list(objects)
    looked = await _look(io, refs[0], deadline)
    sealed = await seal(io, refs[1:], epoch, deadline, **others)
    return epoch if isinstance(sealed, int) or looked is None else [looked, *sealed]


async def _look_before_sealing(io, objects, epoch, deadline, **others):  # type: ignore[no-untyped-def]
    refs = list(objects)
    looked = [await _look(io, ref, deadline) for ref in refs]
    sealed = await seal(io, refs, epoch, deadline, **others)
    return epoch if isinstance(sealed, int) or None in looked else looked


def _epoch_before_identity(objects, object, method, payload):  # type: ignore[no-untyped-def]
    if method == "write":
        code, reply = objects.execute(object, "stat", messages.stat(_ANY_EPOCH))
        if code == Code.OK:
            known = messages.stat_reply(reply).object_epoch
            if int.from_bytes(bytes(payload)[_EPOCH], "little") < known:
                return Code.STALE_EPOCH, b"\x01\x01\x08\0\0\0" + known.to_bytes(8, "little")
    return objects.execute(object, method, payload)


def _fill_overwrites(objects, object, method, payload):  # type: ignore[no-untyped-def]
    code, reply = objects.execute(object, method, payload)
    while method == "fill" and code == Code.READ_ONLY:
        if not _drop(objects, object, messages.refusal(reply).number):
            break
        code, reply = objects.execute(object, method, payload)
    return code, reply


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


def _another_id_on_retry(objects, object, method, payload):  # type: ignore[no-untyped-def]
    sent = objects.__dict__.setdefault("sent", set())
    if method == "write":
        request = bytes(payload)
        if request in sent:
            changed = bytearray(request)
            changed[_NUMBER] = (2**40 + len(sent)).to_bytes(8, "little")
            payload = bytes(changed)
        sent.add(request)
    return objects.execute(object, method, payload)


_grant = Positions.grant


async def _grant_again(self, count, deadline):  # type: ignore[no-untyped-def]
    """Use the positions of the last grant once more, if there is a newer epoch."""
    epoch, first, granted = self.__dict__.pop("_kept", (0, 0, 0))
    view = self.layout.view
    if epoch and view.epoch > epoch and granted >= count:
        return view, first
    view, first = await _grant(self, count, deadline)
    self._kept = view.epoch, first, count
    return view, first


async def _reserve_unrecorded(self, count, deadline):  # type: ignore[no-untyped-def]
    """Take a sequencer's word for it that positions are handed out once."""
    _, first = await self.grant(count, deadline)
    self._handed_out = max(self._handed_out, first + count)
    return range(first, first + count)


_attempt_grant = _Attempt.grant


async def _grant_to_all(self, count, deadline):  # type: ignore[no-untyped-def]
    """Go on in the name of the newest attempt, as if the head did not shut earlier ones out."""
    while True:
        try:
            return await _attempt_grant(self, count, deadline)
        except SequenceSuperseded:
            layout = self._reader.layout
            request = messages.delivery_read(layout.address.log_id, *self._key)
            call = Call(layout.head._object, "delivery_read", request)
            (reply,) = await layout.io.execute([call], deadline)
            if reply.code != Code.OK:
                raise
            self._number = messages.delivery_read_reply(reply.payload).attempt


async def _grant_unrecorded(self, count, deadline):  # type: ignore[no-untyped-def]
    return await self._reader.positions.grant(count, deadline)


async def _read_unsettled(self, positions, deadline):  # type: ignore[no-untyped-def]
    """Take note of what earlier attempts have written by now, and let them go on."""
    writers: dict[int, bytes] = {}
    found = await self._reader.read_some(positions, deadline, bytes_max=1 << 20, writers=writers)
    for position, slot in found.items():
        if isinstance(slot, Entry) and writers[position] in self._writers:
            self._written[exactly_once.digest_of(slot.data, slot.tags)] += 1


def _confirm_all_written(self):  # type: ignore[no-untyped-def]
    """Confirm a round as soon as it is written, whatever has become of those before it."""
    for done in [each for each in self._rounds if each.written]:
        self._rounds.remove(done)
        self.confirmed = max(self.confirmed, done.end)
        for pending, count in done.parts:
            pending.left -= count
            if not pending.left:
                self._ended.append((pending, None))


class _WrittenForEver(Round):
    """A round that was written once counts as written, whatever the layout became since."""

    __slots__ = ()

    def __setattr__(self, name: str, value: object) -> None:
        if name != "written" or value or not hasattr(self, name):
            super().__setattr__(name, value)


async def _highest_end(io, view, start, deadline, objects=None):  # type: ignore[no-untyped-def]
    """Take all that is written for confirmed, above holes too."""
    refs = [*view.objects(view.live_stripe)] if objects is None else objects
    request = messages.max_position(view.epoch, start)
    calls = [Call(ref.name, "max_position", request) for ref in refs]
    replies = await io.execute(calls, deadline)
    if any(reply.code in (Code.STALE_EPOCH, -errno.ENOENT) for reply in replies):
        return None
    for reply in replies:
        reply.check("max_position")
    found = [messages.max_position_reply(reply.payload).highest for reply in replies]
    return max([start, *(highest + 1 for highest in found if highest is not None)])


async def _prefix_past_holes(layout, view, known, deadline):  # type: ignore[no-untyped-def]
    while (start := known(view)) is not None:
        end = await _highest_end(layout.io, view, start, deadline)
        if end is not None:
            return view, end
        view = await layout.advance(view, deadline)
    return view, None


def _late_not_indexed(objects, object, method, payload):  # type: ignore[no-untyped-def]
    before = objects.memory.peek(object) if method == "write" else None
    answer = objects.execute(object, method, payload)
    after = objects.memory.peek(object) if method == "write" else None
    if before is not None and after is not None:
        attrs, omap, stream = after
        old = {key: value for key, value in before[1].items() if key[:2] in (b"c.", b"t.")}
        objects.memory.poke(object, attrs, {**omap, **old}, stream)
    return answer


def _filter_of_unread_records(objects, object, method, payload):  # type: ignore[no-untyped-def]
    found = objects.memory.peek(object) if method == "append" else None
    if found is not None:
        attrs, omap, stream = found
        last = max((key[2:18] for key in omap if key[:2] == b"e."), default=b"0" * 16)
        key = b"f.40.%s.%x" % (last, int(last, 16) + 1)
        objects.memory.poke(object, attrs, {**omap, key: envelope(key, bytes(4))}, stream)
    return objects.execute(object, method, payload)


def _unindexed_not_selected(objects, object, method, payload):  # type: ignore[no-untyped-def]
    found = objects.memory.peek(object) if method == "select" else None
    if found is None:
        return objects.execute(object, method, payload)
    request = bytearray(payload)
    start, asked = (int.from_bytes(request[at : at + 8], "little") for at in (14, 22))
    indexed = int.from_bytes(fields_of(found[0][HEADER])[0][_INDEXED], "little")
    end = max(start, min(asked, indexed))
    request[22:30] = end.to_bytes(8, "little")
    code, reply = objects.execute(object, method, bytes(request))
    at = 15 if reply[6:7] == b"\x01" else 7
    if code == Code.OK and int.from_bytes(reply[at : at + 8], "little") == end:
        reply = reply[:at] + asked.to_bytes(8, "little") + reply[at + 8 :]
    return code, reply


_compact = compact._compact


async def _compact_one_more(layout, pages, deadline):  # type: ignore[no-untyped-def]
    """Trim what stands behind the last entry of each object that is superseded, too."""
    more = {}
    for ref, (first, end, superseded) in pages.items():
        behind = ref.striping.after(superseded[-1])
        more[ref] = first, end, [*superseded, *[behind] * (behind < end)]
    await _compact(layout, more, deadline)


_request = OrderedAppender._request


def _condition_not_sent(self, view, parts, sent, since):  # type: ignore[no-untyped-def]
    parts = [part._replace(expect=None, unless=()) for part in parts]
    return _request(self, view, parts, sent, since)


async def _nothing_found(*_: object) -> None:
    return None


async def _nothing_recorded(*_: object) -> bool:
    return True


_OrderedMutant = partial(Mutant, kinds=(Kind.ORDERED,))
_OnceMutant = partial(Mutant, kinds=(Kind.EXACTLY_ONCE,), shows="P15")
_ExclusiveMutant = partial(Mutant, kinds=(Kind.EXCLUSIVE,))

MUTANTS = {
    "unsealed-object": Mutant(
        "a change of layout, such as taking the log, leaves one object unsealed",
        patches=((views, "seal", _seal_all_but_one),),
        kinds=(Kind.NOTHING, Kind.EXCLUSIVE),
    ),
    "tail-before-seal": Mutant(
        "a change of layout asks for the highest positions before it seals",
        patches=((views, "seal", _look_before_sealing),),
        tried_first=4,
    ),
    "epoch-before-identity": Mutant(
        "an object refuses a stale epoch before it looks whether the entry is there already",
        execute=_epoch_before_identity,
        tried_first=11,
    ),
    "fill-overwrites": Mutant("a fill replaces an entry", execute=_fill_overwrites),
    "id-forgotten": Mutant(
        "what is sent again carries another append id", execute=_another_id_on_retry
    ),
    "position-reused": Mutant(
        "a position granted in one epoch is used in the next",
        patches=((Positions, "grant", _grant_again),),
    ),
    "reservation-not-recorded": Mutant(
        "a later epoch may hand out what was reserved",
        patches=((Positions, "reserve", _reserve_unrecorded),),
        shows="P16",
        tried_first=3,
    ),
    "attempt-not-shut-out": _OnceMutant(
        "an attempt at an exactly-once append is granted positions when a later one has begun",
        patches=((_Attempt, "grant", _grant_to_all),),
    ),
    "grant-not-recorded": _OnceMutant(
        "an exactly-once append writes where no later attempt will look",
        patches=((_Attempt, "grant", _grant_unrecorded),),
    ),
    "attempt-not-settled": _OnceMutant(
        "an attempt leaves open what earlier ones were granted and have not written",
        patches=((_Attempt, "recover", _read_unsettled),),
        tried_first=28,
    ),
    "confirmed-out-of-order": _ExclusiveMutant(
        "a writer confirms an entry before those that were handed in before it",
        patches=((Exclusive, "_confirm", _confirm_all_written),),
    ),
    "not-written-again": _ExclusiveMutant(
        "a writer does not write again what is above a hole of the stripe that ended",
        patches=((exclusive, "Round", _WrittenForEver),),
        tried_first=3,
    ),
    "recovered-past-a-hole": _ExclusiveMutant(
        "a client that takes a log takes what lies above a hole for confirmed",
        patches=(
            (views, "confirmed_end", _highest_end),
            (ownership, "prefix_end", _prefix_past_holes),
        ),
        tried_first=8,
    ),
    "read-beyond-a-hole": _ExclusiveMutant(
        "a reader takes what lies above a hole for confirmed",
        seeds_max=80,
        patches=(
            (positions, "confirmed_end", _highest_end),
            (positions, "prefix_end", _prefix_past_holes),
        ),
        tried_first=49,
    ),
    "selected-past-a-hole": Mutant(
        "a reader by tags passes positions that may still be written",
        patches=((select, "doubtful_places", lambda *_: []),),
        shows="P20",
    ),
    "late-not-indexed": Mutant(
        "an entry that comes late to a chunk of the index of tags is not added to it",
        execute=_late_not_indexed,
        shows="P20",
        tried_first=88,
    ),
    "loose-not-selected": Mutant(
        "a select finds nothing above the last chunk of the index",
        execute=_unindexed_not_selected,
        shows="P20",
    ),
    "newest-compacted": Mutant(
        "compaction trims an entry behind the last one that is superseded",
        patches=((compact, "_compact", _compact_one_more),),
        kinds=(Kind.COMPACTION,),
        shows="P21",
    ),
    "condition-checked-before": _OrderedMutant(
        "a condition is checked before the append instead of with it",
        patches=((OrderedAppender, "_request", _condition_not_sent),),
        shows="P25",
    ),
    "filter-of-unread-records": _OrderedMutant(
        "a filter of tags covers records whose tags are not in it",
        execute=_filter_of_unread_records,
        shows="P25",
        tried_first=4,
    ),
    "ended-stripes-not-searched": _OrderedMutant(
        "a condition is not checked in the stripes that have ended",
        patches=((OrderedAppender, "search_ended", _nothing_found),),
        shows="P25",
    ),
    "open-grant-not-recorded": _OrderedMutant(
        "an exactly-once append to an ordered log does not say where it begins",
        patches=((_Attempt, "_open", _nothing_recorded),),
        shows="P15",
    ),
    "copy-not-recognized": _OrderedMutant(
        "a copy of a request that comes late is taken for a new one",
        patches=(
            (
                OrderedAppender,
                "_request",
                lambda self, view, parts, sent, _: _request(self, view, parts, sent, POSITION_MAX),
            ),
        ),
    ),
    **SPACES,
}
