"""Recorders with which applications of the library ``eventsourcing`` keep their events in logs.

    PERSISTENCE_MODULE=zlog.eventsourcing ZLOG_STORE=ceph://logs ZLOG_LOG=school

The logs must be ordered by their objects, because recorders append under conditions.
docs/event-sourcing.md describes the variables, costs and limits.

An entry's data is a JSON list on one line, the header, followed by the data of one event. The event
can be found by the entry's tags. The library's ids and positions are zlog's positions plus 1.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from heapq import merge
from itertools import islice
from operator import attrgetter
from typing import Any, NoReturn
from uuid import UUID

from eventsourcing import persistence
from eventsourcing.dcb import api as dcb
from eventsourcing.dcb.persistence import DCBInfrastructureFactory
from eventsourcing.dcb.popo import SimpleDCBReadResponse
from eventsourcing.persistence import IntegrityError, Notification, StoredEvent
from eventsourcing.utils import Environment, EnvType, strtobool
from typing_extensions import Self

import zlog
from zlog.extension import ThreadPort, drive, no_entry
from zlog.limits import UNLESS_SETS_MAX

__all__ = ["ZlogApplicationRecorder", "ZlogDCBRecorder", "ZlogFactory"]

Query = dcb.DCBQuery | None
TagSets = list[list[str]]
"""Sets of tags. An entry matches them if it has all tags of one set. The entries that match the
sets called ``wide`` include all wanted ones; there are fewer of these sets."""

_TAG_BYTES_MAX = 128
_TAGS_MAX = 64
"""Limits of tags: their size, and how many one call can search for."""

_KNOWN_MAX = 10_000
"""How many originators' newest known events a recorder remembers."""

_STOP_SECONDS = 0.25
"""How often a subscription that waits for events checks whether it was stopped."""


@contextmanager
def _library_errors() -> Iterator[None]:
    """Raise zlog's errors as those of the library."""
    try:
        yield
    except zlog.Conflict as error:
        raise IntegrityError(str(error)) from error
    except zlog.ZlogError as error:
        kind = persistence.OperationalError if error.retryable else persistence.DatabaseError
        raise kind(f"{error}. {error.hint}") from error


def _tag(kind: str, text: str) -> str:
    """Return the tag for a text. If the text is long, the tag contains its hash instead."""
    tag = f"{kind}:{text}"
    if len(tag.encode()) <= _TAG_BYTES_MAX:
        return tag
    return f"{kind}#{hashlib.sha256(text.encode()).hexdigest()}"


def _encode(header: list[Any], data: bytes) -> bytes:
    return json.dumps(header).encode() + b"\n" + data


def _decode(entry: zlog.Entry, build: Callable[[list[Any], bytes], Any]) -> Any:
    header, _, data = entry.data.partition(b"\n")
    try:
        return build(json.loads(header), data)
    except (TypeError, ValueError) as error:
        message = f"the entry at position {entry.position} was not appended by such a recorder"
        raise persistence.DataError(message) from error


class _Recorder:
    """Searches a log, and appends to it under conditions."""

    def __init__(self, log: zlog.Log) -> None:
        """Use a log, which must stay open.

        Raises:
            ProgrammingError: the log is not ordered by its object.
        """
        if not log.view.ordered:
            raise persistence.ProgrammingError(
                f"log {log.name!r} is ordered by a sequencer, so appends cannot have conditions."
                f" Let its object order it: `zlog reconfigure {log.name} --ordering object`"
            )
        self.log = log

    def _entries(self, start: int, end: int | None, **options: Any) -> Iterator[zlog.Entry]:
        """Read entries as ``log.read_range`` does. A gap that may hide an entry is an error."""
        if end is not None and start >= end:
            return
        with _library_errors():
            for item in self.log.read_range(start, end, **options):
                if isinstance(item, zlog.Entry):
                    yield item
                elif item.kind not in (zlog.GapKind.FILLED, zlog.GapKind.TRIMMED):
                    raise no_entry(item, self.log.name)

    def _search(
        self, sets: TagSets, wide: TagSets, start: int, end: int | None
    ) -> Iterator[zlog.Entry]:
        """Read the entries that match ``sets``, in order, up to the present tail."""
        if end is None:
            with _library_errors():
                end = self.log.tail()
        searches = min(_searches(sets), _searches(wide), key=len)
        last = -1
        found = [self._entries(start, end, **each) for each in searches]
        for entry in merge(*found, key=attrgetter("position")):
            tags = {*entry.tags}
            if entry.position > last and any(tags.issuperset(each) for each in sets):
                last = entry.position
                yield entry

    def _append(
        self, data: list[bytes], tags: TagSets, sets: TagSets, wide: TagSets, after: int = 0
    ) -> list[int]:
        """Append entries unless an entry at or above the position ``after`` matches ``sets``."""
        if all(sets) and len(sets) <= UNLESS_SETS_MAX:
            last = after - 1 if sets else None
            return self.log.append_many(data, tags_each=tags, unless=sets, after=last)
        while True:  # search, and append unless there are newer entries
            tail = self.log.tail()
            for entry in self._search(sets, wide, after, tail):
                raise IntegrityError(f"the event at position {entry.position + 1} conflicts")
            guard: dict[str, Any] = {"expect": tail}
            if tail and all(wide) and len(wide) <= UNLESS_SETS_MAX:
                guard = {"unless": wide, "after": tail - 1}
            with suppress(zlog.Conflict):
                return self.log.append_many(data, tags_each=tags, **guard)
            after = max(after, tail)


def _searches(sets: TagSets) -> list[dict[str, Any]]:
    """Return the arguments of ``log.read_range`` for a few searches that find all matches."""
    searches: list[dict[str, Any]] = [{"tags": tags, "match": "all"} for tags in sets if tags[1:]]
    single = [*{tags[0]: None for tags in sets if len(tags) == 1}]
    searches += [{"tags": single[i : i + _TAGS_MAX]} for i in range(0, len(single), _TAGS_MAX)]
    return searches if all(sets) else [{}]


class _Following:
    """The part of subscriptions that both kinds share."""

    _recorder: Any
    _has_been_stopped: Any  # a bool that other threads change
    _items: Iterator[Any]

    def begin(self, start: int, query: Any) -> Self:
        self._items = self._follow(start, query)
        return self

    def __next__(self) -> Any:
        return next(self._items)

    def _follow(self, start: int, query: Any) -> Iterator[Any]:
        port = ThreadPort(self._recorder.log)
        while not self._has_been_stopped:
            with _library_errors():
                tail = drive(port.wait(start, _STOP_SECONDS))
            if tail is not None:
                for item in self._recorder._events(start, tail, query):
                    if self._has_been_stopped:
                        return
                    yield item
                start = tail


class ZlogApplicationRecorder(_Recorder, persistence.ApplicationRecorder):
    """Records the events of originators, such as aggregates, and numbers them in one sequence.

    An originator's versions must ascend, as those of the library's aggregates do.
    """

    def __init__(self, log: zlog.Log) -> None:
        """Use a log as :class:`ZlogDCBRecorder` does."""
        super().__init__(log)
        self._known: dict[str, tuple[int, int]] = {}  # versions and positions, by originator

    @_library_errors()
    def insert_events(self, stored_events: Sequence[StoredEvent], **_: Any) -> Sequence[int] | None:
        """Append all events or none, and return their ids.

        Raises:
            IntegrityError: an event with the same originator and version exists.
            DatabaseError: the events are too large, or too many for one append.
        """
        data, tags, starts = [], [], []
        for each in stored_events:
            id_, version = str(each.originator_id), each.originator_version
            starts.append(self._start_of(id_, version))
            header = [each.topic, id_, isinstance(each.originator_id, UUID), version]
            data.append(_encode(header, each.state))
            key = _tag("version", f"{version} {id_}")
            tags.append([key, _tag("id", id_), _tag("type", each.topic)])
        keys = {each[0] for each in tags}
        if len(keys) < len(tags):
            raise IntegrityError("two of the events have the same originator and version")
        originators = {each[1] for each in tags}
        sets, wide = [[key] for key in keys], [[tag] for tag in originators]
        positions = self._append(data, tags, sets, wide, min(starts, default=0))
        for each, position in zip(stored_events, positions, strict=True):
            self._note(str(each.originator_id), each.originator_version, position)
        return [position + 1 for position in positions]

    def _note(self, id_: str, version: int, position: int) -> None:
        if len(self._known) >= _KNOWN_MAX:
            self._known.clear()
        if version > self._known.get(id_, (-1, 0))[0]:
            self._known[id_] = version, position

    def _start_of(self, id_: str, version: int) -> int:
        """Return a position below which no event has this version or a higher one.

        The log then need not search its ended stripes. A trim above the position would conflict.
        """
        known, position = self._known.get(id_, (version, 0))
        return position + 1 if known < version and position + 1 >= self.log.view.trim_point else 0

    def select_events(
        self,
        originator_id: UUID | str,
        *,
        gt: int | None = None,
        lte: int | None = None,
        desc: bool = False,
        limit: int | None = None,
    ) -> Sequence[StoredEvent]:
        """Return an originator's events by version. With ``gt``, older events are not read."""
        reverse = desc or gt is not None
        found: list[StoredEvent] = []
        tag = _tag("id", str(originator_id))
        for entry in self._entries(0, None, tags=[tag], reverse=reverse):
            event = StoredEvent(*_decode(entry, _stored_fields))
            self._note(str(originator_id), event.originator_version, entry.position)
            if gt is not None and event.originator_version <= gt:
                break
            if reverse == desc and len(found) == limit:
                break
            if lte is None or event.originator_version <= lte:
                found.append(event)
            elif not reverse:
                break
        return found if reverse == desc else found[::-1][:limit]

    def select_notifications(
        self,
        start: int | None,
        limit: int,
        stop: int | None = None,
        topics: Sequence[str] = (),
        *,
        inclusive_of_start: bool = True,
    ) -> Sequence[Notification]:
        """Return up to ``limit`` events with ids from ``start`` to ``stop``."""
        first = 0 if start is None else max(0, start - inclusive_of_start)
        return [*islice(self._events(first, stop, topics), limit)]

    def _events(self, start: int, end: int | None, topics: Sequence[str]) -> Iterator[Notification]:
        types = [[_tag("type", each)] for each in topics] or [[]]
        for entry in self._search(types, types, start, end):
            fields: tuple[UUID | str, int, str, bytes] = _decode(entry, _stored_fields)
            yield Notification(*fields, entry.position + 1)

    @_library_errors()
    def max_notification_id(self) -> int | None:
        """Return the id of the newest event, or None without events."""
        return self.log.tail() or None

    def subscribe(
        self, gt: int | None = None, topics: Sequence[str] = ()
    ) -> persistence.Subscription[persistence.ApplicationRecorder]:
        """Return an iterator of the events with ids above ``gt``, which waits for new events."""
        return _Notifications(self, gt, topics).begin(gt or 0, topics)


class _Notifications(_Following, persistence.Subscription[persistence.ApplicationRecorder]):
    pass


def _stored_fields(header: list[Any], state: bytes) -> tuple[UUID | str, int, str, bytes]:
    """Return the fields of a stored event, in the order of its class."""
    topic, id_, is_uuid, version = header
    return UUID(id_) if is_uuid else id_, version, topic, state


class ZlogDCBRecorder(_Recorder, dcb.DCBRecorder):
    """Records events under conditions about other events (dynamic consistency boundaries)."""

    def read(
        self, query: Query = None, *, after: int | None = None, limit: int | None = None
    ) -> dcb.DCBReadResponse:
        """Return the events above ``after`` that match a query, while they are being read."""
        if limit is not None:
            found = [*islice(self._events(after or 0, None, query), limit)]
            return SimpleDCBReadResponse(iter(found), found[-1].position if found else None)
        with _library_errors():
            tail = self.log.tail()
        return SimpleDCBReadResponse(self._events(after or 0, tail, query), tail or None)

    def _events(self, start: int, end: int | None, query: Query) -> Iterator[dcb.DCBSequencedEvent]:
        for entry in self._search(*_sets_of(query), start, end):
            yield dcb.DCBSequencedEvent(_decode(entry, _dcb_event), entry.position + 1)

    @_library_errors()
    def append(
        self, events: Sequence[dcb.DCBEvent], condition: dcb.DCBAppendCondition | None = None
    ) -> int:
        """Append all events or none, and return the position of the last one.

        Raises:
            IntegrityError: the condition does not hold.
            DatabaseError: an event has more than 63 tags, or the events are too large.
        """
        if not events:
            raise persistence.ProgrammingError("append needs at least one event")
        data = [_encode([each.type, *each.tags], each.data) for each in events]
        tags = [_tags_of(each.tags, each.type) for each in events]
        sets, wide = _sets_of(condition.fail_if_events_match) if condition else ([], [])
        after = (condition and condition.after) or 0
        return self._append(data, tags, sets, wide, after)[-1] + 1

    def subscribe(
        self, query: Query = None, *, after: int | None = None
    ) -> dcb.DCBSubscription[dcb.DCBRecorder]:
        """Return an iterator of the matching events above ``after``, which waits for new events."""
        return _DCBEvents(self, query, after).begin(after or 0, query)


class _DCBEvents(_Following, dcb.DCBSubscription[dcb.DCBRecorder]):
    pass


def _dcb_event(header: list[Any], data: bytes) -> dcb.DCBEvent:
    type_, *tags = header
    return dcb.DCBEvent(type_, data, tags)


def _tags_of(tags: Sequence[str], *types: str) -> list[str]:
    return [*(_tag("type", each) for each in types), *(_tag("tag", each) for each in tags)]


def _sets_of(query: Query) -> tuple[TagSets, TagSets]:
    """Return the sets that exactly a query's events match, and wide ones."""
    if not (query and query.items):
        return [[]], [[]]
    sets: TagSets = []
    wide: TagSets = []
    for item in query.items:
        tags = _tags_of(item.tags)
        own = [_tags_of(item.tags, each) for each in item.types] or [tags]
        sets += own
        wide += [tags] if tags and len(own) > 1 else own
    return sets, wide


class ZlogFactory(
    persistence.InfrastructureFactory[persistence.TrackingRecorder],
    DCBInfrastructureFactory[persistence.TrackingRecorder],
):
    """Opens logs for recorders, as the environment says (docs/event-sourcing.md)."""

    def __init__(self, env: Environment | EnvType | None) -> None:
        """Connect to the store."""
        super().__init__(env)
        self._opened = ExitStack()
        self._name = self.env.get("ZLOG_LOG") or self.env.name
        if not self._name:
            raise OSError("the environment names no log: set ZLOG_LOG, or name the application")
        with _library_errors():
            self._store = self._opened.enter_context(zlog.connect(self.env.get("ZLOG_STORE")))

    @_library_errors()
    def _log(self, suffix: str = "") -> zlog.Log:
        create = bool(strtobool(self.env.get("CREATE_TABLE") or "yes"))
        ordering = "object" if create else None
        log = zlog.Log.open(self._store, self._name + suffix, create=create, ordering=ordering)
        return self._opened.enter_context(log)

    def aggregate_recorder(self, purpose: str = "events") -> persistence.AggregateRecorder:
        """Return a recorder. Each purpose other than "events" has its own log."""
        return ZlogApplicationRecorder(self._log("" if purpose == "events" else f".{purpose}"))

    def application_recorder(self) -> persistence.ApplicationRecorder:
        """Return a recorder of the log."""
        return ZlogApplicationRecorder(self._log())

    def dcb_recorder(self) -> dcb.DCBRecorder:
        """Return a recorder of the log."""
        return ZlogDCBRecorder(self._log())

    def tracking_recorder(self, tracking_recorder_class: Any = None) -> NoReturn:
        """Raise NotImplementedError."""
        hint = "give projections and process applications another PERSISTENCE_MODULE"
        raise NotImplementedError(f"zlog.eventsourcing records no tracking objects: {hint}")

    def process_recorder(self) -> NoReturn:
        """Raise NotImplementedError."""
        self.tracking_recorder()

    def close(self) -> None:
        """Close the logs and the store."""
        self._opened.close()
