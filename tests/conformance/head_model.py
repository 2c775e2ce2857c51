"""What a head object must do, in plain Python; see `model` for stripe objects."""

from __future__ import annotations

import errno
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from . import requests
from .messages import STRUCTS
from .model import EPOCH_MAX, EPOCHS_AHEAD_MAX, POSITION_MAX, WIDTH_MAX
from .producers_model import PRODUCERS_MAX, Delivery, ProducersModel, Source, valid_name
from .replies import Answer, Code, answered
from .requests import ADVANCE, CREATE, SET, TIME, Offload, Part, StripeView, View
from .wire import OPEN_END

OBJECT_TAIL_MAX = 2**24
PAGE_VIEWS_MAX = 1024
CURSORS_MAX = 1024
RETENTION_BYTES_MAX = 8192
PAGE_STRIPES_MAX = 1024
PAGE_OFFLOADS_MAX = 128
OFFLOAD_URL_BYTES_MAX = 1024
OFFLOAD_SEGMENTS_MAX = 4096
STRIPES_MOVED_MAX = 256
VIEW_STRIPES_MAX = 32
VIEWS_KEPT_MAX = 128
Cursor: Any = STRUCTS["NamedCursor"].type
_OK = Answer(Code.OK)
_MISSING = Answer(-errno.ENOENT)
_INVALID = Answer(-errno.EINVAL)


@dataclass
class HeadModel(ProducersModel):
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
    offloads: dict[int, Offload] = field(default_factory=dict)
    """By end."""

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
        if (base.removed and not view.removed) or (base.offloads and not view.offloads):
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

    def offload_put(self, record: Offload, log_id: int = 7) -> Answer:
        """offload_put: one file for each ended stripe, whose state only goes up."""
        if refusal := self._refusal(_sound_offload(record), log_id):
            return refusal
        view = self.views[-1] if self.views else None
        if view is not None and view.removed:
            return _MISSING
        if view is None or not view.offloads:
            return _INVALID
        if record.end <= self.trim_point:
            return Answer(Code.BELOW_TRIM_POINT, self.trim_point)
        if record[:3] not in [stripe[:3] for stripe in (*self.archived, *view.stripes)]:
            return _INVALID
        known = self.offloads.get(record.end)
        if known is None and record.state != 1:
            return _INVALID
        if known and (known.url, *known[5:7]) != (record.url, *record[5:7]):
            return Answer(Code.EXISTS, known.id)
        if known is None or record.state > known.state:
            self.offloads[record.end] = (known or record)._replace(state=record.state)
        return _OK

    def offload_list(self, position: int, count_max: int = 100, log_id: int = 7) -> Answer:
        """offload_list: records that end above `position`."""
        sound = 1 <= count_max <= PAGE_OFFLOADS_MAX and position <= POSITION_MAX
        if refusal := self._refusal(sound, log_id, reads=True):
            return refusal
        found = [each for end, each in sorted(self.offloads.items()) if end > position]
        return answered("offload_list", len(found) > count_max, tuple(found[:count_max]))

    def offload_forget(self, end: int, url: bytes, log_id: int = 7) -> Answer:
        """offload_forget: once the stripe is trimmed, or before the file is placed."""
        sound = 1 <= end <= POSITION_MAX + 1 and 1 <= len(url) <= OFFLOAD_URL_BYTES_MAX
        if refusal := self._refusal(sound, log_id):
            return refusal
        known = self.offloads.get(end)
        if known and known.url != url:
            return Answer(Code.EXISTS, known.id)
        if known and known.state > 1 and end > self.trim_point:
            return _INVALID
        self.offloads.pop(end, None)
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


def well_formed(view: View) -> bool:
    """Stripes ascend without a gap, the last is open, and every width is within the limits.

    The live stripe of an ordered view has one object, which alone assigns positions.
    """
    stripes = view.stripes
    if view.epoch < 1:
        return False
    if not 1 <= len(stripes) <= VIEW_STRIPES_MAX or stripes[-1].end != OPEN_END:
        return False
    if view.ordered and (view.sequencer or view.writer or view.mac or stripes[-1].width != 1):
        return False
    joined = all(a.end == b.start and a.id < b.id for a, b in pairwise(stripes))
    return joined and all(_sound(stripe, view) for stripe in stripes)


def _sound_offload(record: Offload) -> bool:
    ends = [record.start, *(each.end for each in record.segments)]
    spans = [b - a for a, b in pairwise(ends)]
    own = zip(record.segments, spans, strict=True)
    sums = [sum(each[column] for each in record.segments) for column in (1, 2)]
    return (
        record.id >= 1
        and record.start <= POSITION_MAX
        and ends[-1] == record.end <= POSITION_MAX + 1
        and 1 <= record.state <= 3
        and 1 <= len(record.url) <= OFFLOAD_URL_BYTES_MAX
        and 1 <= len(spans) <= OFFLOAD_SEGMENTS_MAX
        and sums == [*record[8:10]]
        and all(span > 0 and each.entries <= span for each, span in own)
        and all(each.oldest <= each.newest for each in record.segments)
        and all(each.entries or not (each.bytes or each.newest) for each in record.segments)
    )


def _sound(stripe: StripeView, view: View) -> bool:
    in_order = stripe.start < stripe.end and stripe.start <= POSITION_MAX
    return in_order and 1 <= stripe.width <= WIDTH_MAX and 1 <= stripe.id <= view.epoch
