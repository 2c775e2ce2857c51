"""What a head object must do, in plain Python; see `model` for stripe objects."""

from __future__ import annotations

import errno
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from . import requests
from .messages import STRUCTS
from .model import EPOCH_MAX, EPOCHS_AHEAD_MAX, POSITION_MAX, WIDTH_MAX
from .replies import Answer, Code, answered
from .requests import ADVANCE, CREATE, SET, TIME, Grant, Part, StripeView, View
from .wire import OPEN_END

OBJECT_TAIL_MAX = 2**24
PAGE_VIEWS_MAX = 1024
CURSORS_MAX = 1024
RETENTION_BYTES_MAX = 8192
SEQUENCE_ALL = 2**64 - 1
PRODUCERS_MAX = 1024
PARTS_MAX = 65536
GRANTS_MAX = 4096
PARTS_REMOVED_MAX = 256
PAGE_STRIPES_MAX = 1024
STRIPES_MOVED_MAX = 256
VIEW_STRIPES_MAX = 32
VIEWS_KEPT_MAX = 128
Cursor: Any = STRUCTS["NamedCursor"].type
Delivery: Any = STRUCTS["DeliveryReadReply"].type
Source: Any = STRUCTS["NamedProducer"].type
_OK = Answer(Code.OK)
_MISSING = Answer(-errno.ENOENT)
_INVALID = Answer(-errno.EINVAL)


@dataclass
class HeadModel:
    """A log's head: a counter, the newest views, what they left behind, and two points."""

    log_id: int = 0
    exists: bool = False
    counter: int = 0
    tail_floor: int = 0
    trim_point: int = 0
    views: list[View] = field(default_factory=list)
    cursors: dict[str, Cursor] = field(default_factory=dict)
    producers: dict[str, Source] = field(default_factory=dict)
    incarnations: dict[str, int] = field(default_factory=dict)
    incarnation: int = 0
    parts: dict[Part, Delivery] = field(default_factory=dict)
    retention: tuple[int, bytes] = (0, b"")
    archived: list[StripeView] = field(default_factory=list)
    loose: dict[int, int] = field(default_factory=dict)
    """Width by id."""

    @property
    def newest(self) -> int:
        """The newest view's epoch, 0 when there is none."""
        return self.views[-1].epoch if self.views else 0

    def create(self, name: str, log_id: int) -> Answer:
        """head_create: once."""
        if not valid_name(name):
            return _INVALID
        if self.exists:
            return Answer(-errno.EEXIST)
        self.exists, self.log_id = True, log_id
        return _OK

    def epoch_next(self, width: int = 0, above: int = 0) -> Answer:
        """epoch_next: the counter only grows; a stripe that may be made is loose."""
        if width > WIDTH_MAX or above > EPOCH_MAX:
            return _INVALID
        if not self.exists:
            return _MISSING
        self.counter = max(self.counter, min(above, self.counter + EPOCHS_AHEAD_MAX)) + 1
        if width:
            self.loose[self.counter] = width
        return answered("epoch_next", self.counter, self.tail_floor)

    def _state(self) -> tuple[int, ...]:
        return self.counter, self.newest, self.tail_floor, self.trim_point, self.log_id

    def epoch_read(self) -> Answer:
        """epoch_read: looks, changes nothing."""
        return answered("epoch_read", *self._state()) if self.exists else _MISSING

    def tail_raise(self, epoch: int, tail: int, log_id: int = 7) -> Answer:
        """tail_raise: only in the newest epoch, and only upwards."""
        if refusal := self._refusal(tail <= POSITION_MAX + 1, log_id):
            return refusal
        if epoch != self.counter:
            return Answer(Code.STALE_EPOCH, self.counter)
        if beyond := self._beyond(tail):
            return beyond
        self.tail_floor = max(self.tail_floor, tail)
        return _OK

    def _beyond(self, tail: int) -> Answer | None:
        """What a tail gets that is further from the live stripe's start than any may be."""
        if not self.views or tail <= self.tail_floor:
            return None
        live = self.views[-1].stripes[-1]
        most = min(live.start + OBJECT_TAIL_MAX * live.width, POSITION_MAX + 1)
        return Answer(Code.BEYOND_STRIPE, most) if tail > most else None

    def trim_point_raise(
        self, position: int, log_id: int = 7, past_cursors: bool = False
    ) -> Answer:
        """trim_point_raise: in any epoch, only upwards, and past cursors only if told to."""
        if refusal := self._refusal(position <= POSITION_MAX + 1, log_id):
            return refusal
        raised = position > self.trim_point
        tail = max([self.tail_floor, *(view.stripes[-1].start for view in self.views[-1:])])
        mirror = self.views and "mirror_of" in self.views[-1].options
        if raised and position > tail and not mirror:
            return Answer(Code.BEYOND_TAIL, tail)
        lowest = min((cursor.position for cursor in self.cursors.values()), default=position)
        if raised and lowest < position and not past_cursors:
            return Answer(Code.HELD_BY_CURSOR, lowest)
        self.trim_point = max(self.trim_point, position)
        below = [stripe for stripe in self.archived if stripe.end <= self.trim_point]
        for stripe in below[:STRIPES_MOVED_MAX]:
            self.archived.remove(stripe)
            self.loose[stripe.id] = stripe.width
        return Answer(Code.OK, len(below) > STRIPES_MOVED_MAX)

    def _refusal(self, sound: bool, log_id: int, *, reads: bool = False) -> Answer | None:
        """What an unsound request gets, and one about another log; a read misses the head first."""
        if reads and not self.exists:
            return _MISSING
        if not sound:
            return _INVALID
        return _MISSING if self._absent(log_id) else None

    def _absent(self, log_id: int) -> bool:
        return not self.exists or log_id != self.log_id

    def cursor_commit(
        self, name: str, mode: int, position: int, timestamp: int = TIME, log_id: int = 7
    ) -> Answer:
        """cursor_commit: forward only, unless set; made and set nowhere below the trim point."""
        sound = valid_name(name) and mode <= SET and position <= POSITION_MAX + 1
        if refusal := self._refusal(sound, log_id):
            return refusal
        known = self.cursors.get(name)
        if known is None and mode == ADVANCE:
            return Answer(Code.NOT_FOUND)
        if known and mode == CREATE:
            return Answer(Code.EXISTS, known.position)
        if known and mode == ADVANCE and position < known.position:
            return Answer(Code.CURSOR_AHEAD, known.position)
        if mode != ADVANCE and position < self.trim_point:
            return Answer(Code.BELOW_TRIM_POINT, self.trim_point)
        if known is None and len(self.cursors) >= CURSORS_MAX:
            return Answer(Code.LIMIT_REACHED, CURSORS_MAX)
        created = known.created if known else timestamp
        self.cursors[name] = Cursor(name, position, created, timestamp)
        return _OK

    def cursor_read(self, name: str, log_id: int = 7) -> Answer:
        """cursor_read: one, if it is there."""
        if refusal := self._refusal(valid_name(name), log_id, reads=True):
            return refusal
        known = self.cursors.get(name)
        return Answer(Code.NOT_FOUND) if known is None else answered("cursor_read", *known[1:])

    def cursor_list(self, after: str = "", count_max: int = 1000, log_id: int = 7) -> Answer:
        """cursor_list: one page."""
        return self._page("cursor_list", self.cursors, CURSORS_MAX, after, count_max, log_id)

    def cursor_remove(self, name: str, log_id: int = 7) -> Answer:
        """cursor_remove: once."""
        if refusal := self._refusal(valid_name(name), log_id):
            return refusal
        return Answer(Code.NOT_FOUND) if self.cursors.pop(name, None) is None else _OK

    def _source(self, name: str, timestamp: int) -> Source | None:
        """A producer, perhaps a new one, at this time; None: there is no space for one."""
        known = self.producers.get(name)
        if known is None and len(self.producers) >= PRODUCERS_MAX:
            return None
        if known is None:
            self.incarnation += 1
            self.incarnations[name] = self.incarnation
        return (known or Source(name, 0, 0, timestamp, 0))._replace(updated=timestamp)

    def _count_parts(self, producer: str) -> int:
        return sum(part.producer == producer for part in self.parts)

    def retention_read(self, log_id: int = 7) -> Answer:
        """retention_read: what was written last."""
        if refusal := self._refusal(True, log_id, reads=True):
            return refusal
        return answered("retention_read", *self.retention)

    def retention_write(self, version: int, state: bytes, log_id: int = 7) -> Answer:
        """retention_write: once for each version."""
        if refusal := self._refusal(len(state) <= RETENTION_BYTES_MAX, log_id):
            return refusal
        if version != self.retention[0]:
            return Answer(Code.SUPERSEDED, self.retention[0])
        self.retention = (version + 1, state)
        return _OK

    def delivery_begin(self, part: Part, timestamp: int = TIME) -> Answer:
        """delivery_begin: one attempt more, unless the batch is done."""
        if refusal := self._refusal(_deliverable(part), part.log_id):
            return refusal
        state = self._source(part.producer, timestamp)
        if state is None:
            return Answer(Code.LIMIT_REACHED, PRODUCERS_MAX)
        if part.sequence < state.sequence:
            return Answer(Code.SEQUENCE_DONE, state.sequence)
        begun = Delivery(self.incarnations[part.producer], 0, ())
        known = self.parts.get(part, begun)
        self.parts[part] = known._replace(attempt=known.attempt + 1)
        self.producers[part.producer] = state._replace(parts=self._count_parts(part.producer))
        grants, incarnation = len(known.grants), known.incarnation
        return answered("delivery_begin", known.attempt + 1, grants, incarnation)

    def delivery_grant(self, grant: Grant) -> Answer:
        """delivery_grant: to the newest attempt, in the newest epoch; neighbours are one."""
        part, first, count = grant.part, grant.first, grant.count
        sound = 0 < count <= 65536 and first + count <= POSITION_MAX + 1
        if refusal := self._refusal(_deliverable(part) and sound, part.log_id):
            return refusal
        if grant.epoch != self.counter:
            return Answer(Code.STALE_EPOCH, self.counter)
        known = self.parts.get(part)
        if known is None or known.incarnation != grant.incarnation:
            return Answer(Code.NOT_FOUND)
        if grant.attempt != known.attempt:
            return Answer(Code.SUPERSEDED, known.attempt)
        first = max(first, self.tail_floor) if grant.reserve else first
        if first + count > POSITION_MAX + 1:
            return Answer(-errno.ERANGE)
        if beyond := self._beyond(first + count):
            return beyond
        grants = [*known.grants]
        if grants and sum(grants[-1]) == first:
            begin, length = grants.pop()
            grants.append((begin, length + count))
        else:
            grants.append((first, count))
        self.parts[part] = known._replace(grants=tuple(grants))
        self.tail_floor = max(self.tail_floor, first + count)
        return Answer(Code.OK, first)

    def delivery_read(self, part: Part) -> Answer:
        """delivery_read: one part."""
        if refusal := self._refusal(_deliverable(part), part.log_id, reads=True):
            return refusal
        known = self.parts.get(part)
        return Answer(Code.NOT_FOUND) if known is None else Answer(Code.OK, known)

    def delivery_done(
        self,
        producer: str,
        sequence: int,
        incarnation: int = 1,
        timestamp: int = TIME,
        log_id: int = 7,
    ) -> Answer:
        """delivery_done: parts go in the order of their batches, that many at a time.

        Of the producer of that incarnation only, and of one that is not there if it is the next
        one.
        """
        if refusal := self._refusal(valid_name(producer), log_id):
            return refusal
        if producer in self.producers:
            if incarnation != self.incarnations[producer]:
                return Answer(Code.SUPERSEDED, self.incarnations[producer])
        elif sequence == SEQUENCE_ALL:
            return Answer(Code.OK, False)
        elif incarnation != self.incarnation + 1:
            return Answer(Code.NOT_FOUND, self.incarnation + 1)
        state = self._source(producer, timestamp)
        if state is None:
            return Answer(Code.LIMIT_REACHED, PRODUCERS_MAX)
        sequence = max(sequence, state.sequence)
        below = (
            part for part in self.parts if part.producer == producer and part.sequence < sequence
        )
        gone = sorted(below, key=lambda part: (part.sequence, part.part))
        for part in gone[:PARTS_REMOVED_MAX]:
            del self.parts[part]
        more = len(gone) > PARTS_REMOVED_MAX
        if sequence == SEQUENCE_ALL and not more:
            del self.producers[producer]
        else:
            self.producers[producer] = state._replace(
                sequence=sequence, parts=self._count_parts(producer)
            )
        return Answer(Code.OK, more)

    def delivery_list(self, after: str = "", count_max: int = 1000, log_id: int = 7) -> Answer:
        """delivery_list: one page."""
        return self._page("delivery_list", self.producers, PRODUCERS_MAX, after, count_max, log_id)

    def _page(
        self,
        method: str,
        named: Mapping[str, Any],
        most: int,
        after: str,
        count_max: int,
        log_id: int,
    ) -> Answer:
        """What comes after a name, ascending by the bytes of the names; at most `count_max`."""
        sound = 1 <= count_max <= most and (not after or valid_name(after))
        if refusal := self._refusal(sound, log_id, reads=True):
            return refusal
        found = [each for name, each in sorted(named.items()) if name > after]
        return answered(method, len(found) > count_max, tuple(found[:count_max]))

    def view_propose(self, base: int, view: View) -> Answer:
        """view_propose: compare-and-swap on the newest view, in epoch order, of a sound view.

        The newest view proposed again, byte for byte, is the retry of one whose reply was lost.
        """
        if not self.exists:
            return _MISSING
        if not well_formed(view):
            return _INVALID
        if self.views and requests.view(view) == requests.view(self.views[-1]):
            return _OK
        if view.epoch <= self.newest:
            return Answer(Code.INVALID_EPOCH, self.newest)
        if view.epoch > self.counter:
            return Answer(Code.INVALID_EPOCH, self.counter)
        if self.newest != base:
            return Answer(Code.STALE_EPOCH, self.newest)
        left = self._left(view) if view.log_id == self.log_id else None
        made = view.stripes[-1] if view.stripes[-1].id == view.epoch else None
        if left is None or (made is not None and self.loose.get(made.id) != made.width):
            return _INVALID
        self.loose.pop(view.epoch, None)
        if made is not None:
            self.tail_floor = min(self.tail_floor, made.start)
        for stripe in left:
            if stripe.end <= self.trim_point or stripe.end == stripe.start:
                self.loose[stripe.id] = stripe.width
            else:
                self.archived.append(stripe)
        self.views.append(view)
        self.views = [each for each in self.views if each.epoch > view.epoch - VIEWS_KEPT_MAX]
        return _OK

    def _left(self, view: View) -> list[StripeView] | None:
        """The stripes that `view` leaves behind, with their ends; None: it may not follow."""
        last = view.stripes[-1]
        makes = last.id == view.epoch
        if not self.views:
            return [] if makes and len(view.stripes) == 1 and last.start == 0 else None
        base = self.views[-1]
        if base.removed and not view.removed:
            return None
        stripes, empty = list(base.stripes), []
        if makes:
            ended = stripes.pop()._replace(end=last.start)
            if ended.end < ended.start:
                return None
            (stripes if ended.end > ended.start else empty).append(ended)
            stripes.append(last)
        cut = len(stripes) - len(view.stripes)
        return stripes[:cut] + empty if cut >= 0 and tuple(stripes[cut:]) == view.stripes else None

    def stripes_read(self, log_id: int, position: int = 0, count_max: int = 100) -> Answer:
        """stripes_read: archived stripes that end above `position`."""
        sound = 1 <= count_max <= PAGE_STRIPES_MAX and position <= POSITION_MAX
        if refusal := self._refusal(sound, log_id, reads=True):
            return refusal
        found = [stripe for stripe in self.archived if stripe.end > position]
        return answered("stripes_read", len(found) > count_max, tuple(found[:count_max]))

    def stripes_loose(self, log_id: int, after_id: int = 0, count_max: int = 100) -> Answer:
        """stripes_loose: by id."""
        if refusal := self._refusal(1 <= count_max <= PAGE_STRIPES_MAX, log_id, reads=True):
            return refusal
        found = sorted(each for each in self.loose.items() if each[0] > after_id)
        more = len(found) > count_max
        return answered("stripes_loose", self.newest, more, tuple(found[:count_max]))

    def stripe_forget(self, log_id: int, id: int) -> Answer:
        """stripe_forget: once the view that it was announced for can't come any more."""
        if self._absent(log_id):
            return _MISSING
        if id in self.loose and id >= self.newest:
            return Answer(Code.INVALID_EPOCH, self.newest)
        self.loose.pop(id, None)
        return _OK

    def view_read(self, from_epoch: int = 0, count_max: int = 100, latest: bool = False) -> Answer:
        """view_read: the newest, or all from an epoch on, at most `count_max`."""
        if not self.exists:
            return _MISSING
        if not 1 <= count_max <= PAGE_VIEWS_MAX:
            return _INVALID
        found = self.views[-1:] if latest else [v for v in self.views if v.epoch >= from_epoch]
        shown = found if latest else found[:count_max]
        encoded = tuple(requests.view(view) for view in shown)
        return answered("view_read", *self._state(), len(shown) < len(found), encoded)

    def remove(self, epoch: int) -> Answer:
        """head_remove: only under a `removed` view of that epoch."""
        if not self.exists:
            return _MISSING
        if not (self.views and self.views[-1].removed and self.newest == epoch):
            return Answer(Code.INVALID_EPOCH, self.newest)
        self.__init__()  # type: ignore[misc]
        return _OK


def valid_name(name: str) -> bool:
    """1 to 128 letters, digits, `_`, `.` or `-`, the first none of the last two."""
    return re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}", name) is not None


def _deliverable(part: Part) -> bool:
    return valid_name(part.producer) and part.sequence != SEQUENCE_ALL


def well_formed(view: View) -> bool:
    """Stripes ascend without a gap, the last is open, and every width is within the limits."""
    stripes = view.stripes
    if view.epoch < 1:
        return False
    if not 1 <= len(stripes) <= VIEW_STRIPES_MAX or stripes[-1].end != OPEN_END:
        return False
    joined = all(a.end == b.start and a.id < b.id for a, b in pairwise(stripes))
    return joined and all(_sound(stripe, view) for stripe in stripes)


def _sound(stripe: StripeView, view: View) -> bool:
    in_order = stripe.start < stripe.end and stripe.start <= POSITION_MAX
    return in_order and 1 <= stripe.width <= WIDTH_MAX and 1 <= stripe.id <= view.epoch
