"""What a head object must do with producers of exactly-once appends; see `head_model`."""

from __future__ import annotations

import errno
import re
from collections.abc import Sequence
from typing import Any

from .messages import STRUCTS
from .model import POSITION_MAX
from .replies import Answer, Code, answered
from .requests import TIME, Grant, Part

SEQUENCE_ALL = 2**64 - 1
PRODUCERS_MAX = 1024
PARTS_MAX = 65536
GRANTS_MAX = 4096
PARTS_REMOVED_MAX = 256
PARTS_PAGE_MAX = 256
Delivery: Any = STRUCTS["DeliveryReadReply"].type
Source: Any = STRUCTS["NamedProducer"].type
Numbered: Any = STRUCTS["NumberedPart"].type


class ProducersModel:
    """The part of a head's model that has its producers, and the parts of their sequences."""

    log_id: int
    counter: int
    tail_floor: int
    producers: dict[str, Source]
    incarnations: dict[str, int]
    incarnation: int
    parts: dict[Part, Delivery]

    def _source(self, name: str, timestamp: int) -> Source | None:
        """A producer, perhaps a new one, at this time; None: there is no space for one."""
        known = self.producers.get(name)
        if known is None and len(self.producers) >= PRODUCERS_MAX:
            return None
        if known is None:
            self.incarnation += 1
            self.incarnations[name] = self.incarnation
        made = Source(name, 0, 0, timestamp, 0, self.incarnation)
        return (known or made)._replace(updated=timestamp)

    def _count_parts(self, producer: str) -> int:
        return sum(part.producer == producer for part in self.parts)

    def delivery_begin(self, part: Part, timestamp: int = TIME) -> Answer:
        """delivery_begin: one attempt more, unless the batch is done."""
        if refusal := self._refusal(_deliverable(part), part.log_id):
            return refusal
        state = self._source(part.producer, timestamp)
        if state is None:
            return Answer(Code.LIMIT_REACHED, PRODUCERS_MAX)
        if part.sequence < state.sequence:
            return Answer(Code.SEQUENCE_DONE, state.sequence)
        begun = Delivery(self.incarnations[part.producer], 0, (), 0)
        known = self.parts.get(part, begun)
        self.parts[part] = known._replace(attempt=known.attempt + 1)
        self.producers[part.producer] = state._replace(parts=self._count_parts(part.producer))
        grants = len(known.grants) + bool(known.open_from)
        incarnation = known.incarnation
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
        if grant.open:
            self.parts[part] = known._replace(open_from=_lower(known.open_from, first + 1))
            return Answer(Code.OK, first)
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
        epoch: int = 0,
    ) -> Answer:
        """delivery_done: parts go in the order of their batches, that many at a time.

        Of the producer of that incarnation only, and of one that is not there if it is the next
        one.
        """
        if refusal := self._refusal(valid_name(producer), log_id):
            return refusal
        if epoch not in (0, self.counter):
            return Answer(Code.STALE_EPOCH, self.counter)
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

    def producer_parts(self, part: Part) -> Answer:
        """producer_parts: a producer's, from this one on."""
        if refusal := self._refusal(_deliverable(part), part.log_id, reads=True):
            return refusal
        start = part.sequence, part.part
        own = (each for each in self.parts.items() if each[0].producer == part.producer)
        numbered = sorted(Numbered(each.sequence, each.part, *known) for each, known in own)
        parts = [each for each in numbered if each[:2] >= start]
        more = len(parts) > PARTS_PAGE_MAX
        return answered("producer_parts", more, tuple(parts[:PARTS_PAGE_MAX]))

    def producer_copy(
        self,
        producer: str,
        incarnation: int,
        epoch: int,
        parts: Sequence[tuple[Any, ...]] = (),
        created: int = TIME,
        updated: int = TIME,
        log_id: int = 7,
    ) -> Answer:
        """producer_copy: in the newest epoch, and nothing that is done or forgotten here."""
        numbers = [(sequence, part) for sequence, part, *_ in parts]
        sound = valid_name(producer) and incarnation > 0 and numbers == sorted({*numbers})
        sound = sound and all(sequence != SEQUENCE_ALL for sequence, _ in numbers)
        if refusal := self._refusal(sound, log_id):
            return refusal
        if epoch != self.counter:
            return Answer(Code.STALE_EPOCH, self.counter)
        known = self.producers.get(producer)
        if known is None and incarnation > self.incarnation:
            self.incarnation = self.incarnations[producer] = incarnation
            known = Source(producer, 0, 0, created, 0, incarnation)
        if known is None or known.incarnation != incarnation:
            return Answer(Code.SUPERSEDED, known.incarnation if known else 0)
        for sequence, number, _, attempt, grants, open_from in parts:
            if sequence >= known.sequence:
                key = Part(producer, sequence, number, self.log_id)
                old = self.parts.get(key, Delivery(incarnation, 0, (), 0))
                merged = dict(old.grants)
                for first, count in grants:
                    merged[first] = max(count, merged.get(first, 0))
                attempts = max(attempt, old.attempt)
                open_from = _lower(old.open_from, open_from)
                self.parts[key] = Delivery(incarnation, attempts, tuple(merged.items()), open_from)
        self.producers[producer] = known._replace(
            parts=self._count_parts(producer), updated=max(updated, known.updated)
        )
        return Answer(Code.OK)


def _lower(one: int, other: int) -> int:
    """The lower of two positions; 0 is none."""
    return min(one or other, other or one)


def _deliverable(part: Part) -> bool:
    return valid_name(part.producer) and part.sequence != SEQUENCE_ALL


def valid_name(name: str) -> bool:
    """1 to 128 letters, digits, `_`, `.` or `-`, the first none of the last two."""
    return re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}", name) is not None
