"""The package's door to its C++ side: codec, embedded and in-memory stores, completions.

The codec's functions encode requests and decode replies of the class methods (docs/formats/). Those
that encode raise ValueError for values that no valid request holds (OverflowError for integers
out of range); those that decode raise `zlog.CorruptEntry` for bytes that are no such reply.
"""

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine, Generator, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import Any, ClassVar, Generic, NamedTuple, TypeAlias, TypeVar, overload

from typing_extensions import Buffer, Self

from zlog.entry import Gap
from zlog.errors import ReentrantCall

class Payload:
    """A large reply, where the store put it: bytes-like, read-only."""

    def __len__(self) -> int: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...

ReplyBytes: TypeAlias = bytes | Payload
"""What a method answered. Large replies of submitted operations are not copied."""

def crc32c(data: Buffer, seed: int = 0) -> int:
    """Return the CRC-32C (Castagnoli) of ``data``, continuing from ``seed``."""

def newest(name: bytes, values: Sequence[bytes]) -> int | None:
    """Return which of several sound copies of a stored value is the newest.

    None where two contradict each other, so that neither is newer by all that only grows; and, of
    values other than a stripe object's header and a log's head, where they are not the same.
    """

# Stripe objects ---------------------------------------------------------------------------------

def fullest(replies: Iterable[tuple[int, ReplyBytes]]) -> tuple[int, int]:
    """Return the most ``(records, bytes)`` that any object holds, from OK replies of writes.

    OK alone acknowledges a write: a reply that can't be read is no error, and tells nothing.
    """

def encode_write(
    epoch: int,
    timestamp: int,
    writer: bytes,
    spacing: int,
    positions: Sequence[int],
    numbers: Sequence[int],
    data: Sequence[Buffer | Tagged],
    compression: str = "none",
    mac: MacKey | None = None,
) -> bytes:
    """Encode a write of entries, one per position, with their checksums.

    Args:
        epoch: epoch of the writer's view.
        timestamp: µs since 1970-01-01 UTC.
        writer: the writer's id, 16 bytes.
        spacing: of the stripe, packed: see :class:`zlog.Spacing`.
        positions: ascending, of one object, at most 65536.
        numbers: each append's number, within 2**32 of each other; with ``writer`` its identity.
        data: each entry.
        compression: zstd or lz4, to compress the data where that pays.
        mac: the log's key, if its entries have MACs.

    Raises:
        ValueError: that is no valid write, or the key is not known.
    """

class Request:
    """A request that is encoded when a store takes it, and sent from there; nothing copies it.

    Stores take it as they take ``bytes``, one thread at a time. Its memory is there for as long as
    it is needed, also by a store that goes on with an operation whose caller has given up.
    """

    def __len__(self) -> int: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...

def encode_writes(
    epoch: int,
    timestamp: int,
    writer: bytes,
    spacing: int,
    position: int,
    number: int,
    entries: Sequence[Buffer | Tagged],
    start: int,
    end: int,
    compression: str = "none",
    mac: MacKey | None = None,
) -> list[tuple[int, Request]]:
    """Encode ``entries[start:end]`` as one write per stripe object, at positions in a row.

    The first entry stands at ``position`` and has append number ``number``, both ascend by one.
    Data is copied, gets its MAC, is compressed and checksummed when a store takes the request,
    while the interpreter's lock is free.

    Returns:
        ``(index of the stripe object, request)`` for each object that gets an entry.
    """

class Tagged:
    """An entry on its way in that has tags: an item of a list of entries, as bytes are.

    Two are equal if data and tags are, in whatever order these come. Its length is that of the
    data.

    Args:
        data: the entry.
        tags: see :func:`tags_checked`.
    """

    data: bytes
    tags: tuple[str, ...]

    def __init__(self, data: Buffer, tags: Iterable[str]) -> None: ...
    def __len__(self) -> int: ...
    def __hash__(self) -> int: ...

NewEntry: TypeAlias = bytes | Tagged
"""An entry on its way in."""

def tags_checked(tags: Iterable[str]) -> tuple[str, ...]:
    """Return the tags of an entry, each once.

    Raises:
        InvalidTag: they are more than 64, or one has not 1 to 128 bytes in UTF-8.
        TypeError: they are one text, or no texts.
    """

def with_tags(data: bytes, tags: Iterable[str]) -> NewEntry:
    """Return an entry that has these tags; ``data`` itself where there are none."""

def tagged(entries: Sequence[Buffer], tags: Iterable[str]) -> Sequence[NewEntry]:
    """Return entries that all have these tags: ``entries`` itself where there are none."""

def tagged_each(entries: Sequence[Buffer], tags: Sequence[Iterable[str]]) -> list[NewEntry]:
    """Return entries with the tags of each. ValueError: these are not as many."""

def tags_bytes(entries: Sequence[Buffer | Tagged]) -> int:
    """Return what the tags of entries take in a write at most: of each its bytes, and one more."""

class EntryColumn(Sequence[bytes]):
    """Entries that lie one after the other, as in a column of Arrow: no object for each of them.

    Wherever a list of entries is appended it can be. Nothing is copied: the memory must not change.

    Args:
        offsets: (n + 1) × int32; entry i is ``data[offsets[i]:offsets[i + 1]]``.
        data: the bytes.

    Raises:
        ValueError: the offsets do not ascend, or are not all in the data.
    """

    def __init__(self, offsets: Buffer, data: Buffer) -> None: ...
    def __len__(self) -> int: ...
    @overload
    def __getitem__(self, which: int, /) -> bytes: ...
    @overload
    def __getitem__(self, which: slice, /) -> EntryColumn: ...

def entries_cut(
    entries: Sequence[Buffer | Tagged], start: int, count_max: int, bytes_max: int
) -> int:
    """Return the end of the longest ``entries[start:end]`` within both limits, one at least.

    Their tags are within what one write takes.
    """

def entries_owned(entries: Sequence[Buffer | Tagged]) -> Sequence[NewEntry]:
    """Return the same entries as immutable bytes or Tagged: ``entries`` itself if it can be.

    Raises:
        TypeError: an entry is not bytes-like.
    """

def entries_check(entries: Sequence[Buffer | Tagged], bytes_max: int) -> tuple[int, int] | None:
    """Return index and size of the first entry that is too large; None when all fit.

    Raises:
        TypeError: an entry is not bytes-like.
    """

class ReadReply:
    """What a read answered about the first ``len()`` of the positions that were asked for."""

    @property
    def count(self) -> int:
        """How many positions the reply is about; the same as ``len()``."""

    def __len__(self) -> int: ...
    def state(self, i: int) -> int:
        """Return 0 written, 1 unwritten, 2 filled, 3 trimmed, 4 lost, 5 unreadable.

        An entry whose checksum is wrong is lost too.
        """

    def taken_end(self) -> int:
        """Return one past the last one that is not unwritten; 0 where all are."""

    def timestamp(self, i: int) -> int:
        """Return when it was written or filled, in µs since 1970-01-01 UTC; 0 when unknown."""

    def data(self, i: int) -> bytes:
        """Return the entry; empty unless its state is 0."""

    def tags(self, i: int) -> tuple[str, ...]:
        """Return the entry's tags; none unless the read asked for them."""

    def entry(self, i: int) -> NewEntry:
        """Return the entry as it could be appended: its data, and its tags if it has any."""

    def at_position(self, i: int, position: int) -> Entry:
        """Return the entry as readers get it."""

    def writer(self, i: int) -> bytes:
        """Return the writer's id (only after a read ``with_ids``)."""

    def number(self, i: int) -> int:
        """Return the append's number (only after a read ``with_ids``)."""

    def reason(self, i: int) -> int:
        """Return why it was filled (only after a read ``with_ids``)."""

FORGED: int
"""The state of an entry whose checksum fits and whose MAC does not: only clients tell it."""

class MacKey:
    """The key of one log's MACs, which can't be got out of it, printed or pickled.

    Args:
        key: of any length; None: the client does not have it. Then entries are counted, and their
            data is withheld.

    Raises:
        RuntimeError: there is no OpenSSL.
    """

    def __init__(self, key: bytes | None) -> None: ...

def decode_read(
    reply: ReplyBytes, positions: Sequence[int], mac: MacKey | None, with_data: bool = True
) -> ReadReply:
    """Decode the reply to a read of these positions, and check every entry's checksum and MAC.

    Args:
        reply: the reply.
        positions: that were asked for.
        mac: of the log; None: its entries have no MACs.
        with_data: whether the read asked for data. Otherwise nothing is checked, and what an older
            class sends anyway is not looked at.
    """

def decode_fills(reply: ReplyBytes, positions: Sequence[int]) -> list[tuple[int, bytes, int, int]]:
    """Return the filled positions in the reply to a read with ids of these positions.

    Each with the id of who filled it, when, in µs since 1970-01-01 UTC, and why.
    """

class Selected(NamedTuple):
    """What a select answered (docs/formats/wire.md).

    Attributes:
        highest: the highest position that is taken in the object, if any is.
        end: all was looked at below it; in reverse, from it on.
        gaps: first position, last position and state of what could not be looked into.
        entries: that have the tags, in the order that was asked for.
        damaged: positions of entries that are lost, unreadable or forged.
    """

    highest: int | None
    end: int
    gaps: list[tuple[int, int, int]]
    entries: list[Entry]
    damaged: list[int]

def decode_select(reply: ReplyBytes, mac: MacKey | None, with_data: bool = True) -> Selected:
    """Decode the reply to a select, and check entries as :func:`decode_read` does."""

def entry_columns(
    entries: list[Entry],
) -> tuple[memoryview, memoryview, memoryview, memoryview]:
    """Return positions, timestamps, offsets and data of entries, as :class:`ColumnWindow` does."""

class NewestOfTags:
    """Where the newest entry with each tag is, as far as objects told (``tags_list``).

    Its length is how many tags it knows.

    Attributes:
        doubtful: whether an entry that was asked about had a newer one for some of its tags, and
            others that are not known.
    """

    @property
    def doubtful(self) -> bool: ...
    def __len__(self) -> int: ...
    def note(self, reply: ReplyBytes, room: int = ...) -> int:
        """Take over what a reply tells, of so many tags; returns how far that goes."""

    def superseded(self, reply: ReplyBytes) -> tuple[int, list[int]]:
        """Return how far a reply goes, and its entries that have a newer one of each tag."""

def from_timestamp(us: int) -> datetime:
    """Turn stored time (µs since 1970, UTC) into an aware datetime; too large becomes the last."""

class Entry:
    """One entry of a log, as a named tuple is: fields, indexing, unpacking, comparing, hashing.

    Attributes:
        position: where it stands, 0 ≤ position < 2**63.
        data: its bytes, as appended.
        timestamp: when its writer appended it, by the writer's clock, UTC, in microseconds.
        end: one past its position: where a reader goes on, as after a Gap.
        tags: its tags, each once, in no order; they are no part of the named tuple, but of what
            makes two entries equal.
    """

    __match_args__ = ("position", "data", "timestamp")
    _fields: ClassVar = ("position", "data", "timestamp")

    def __init__(
        self, position: int, data: bytes, timestamp: datetime, tags: Iterable[str] = ()
    ) -> None: ...
    @property
    def tags(self) -> tuple[str, ...]: ...
    @property
    def position(self) -> int: ...
    @property
    def data(self) -> bytes: ...
    @property
    def timestamp(self) -> datetime: ...
    @property
    def end(self) -> int: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __getitem__(self, index: Any) -> Any: ...
    def __lt__(self, other: Entry | tuple[Any, ...]) -> bool: ...
    def __hash__(self) -> int: ...
    def _asdict(self) -> dict[str, Any]: ...
    def _replace(self, **fields: Any) -> Entry: ...

class Window:
    """Positions ``[start, end)``, put together from the replies of several stripe objects.

    A sequence of what each position holds: an Entry, the State that it is in (a number), or None
    while no answer has come. Entries are made each time they are asked for, from the replies,
    which the window keeps.

    Args:
        start: the first.
        end: one past the last.
        mac: key of the log's MACs; None: its entries have none.

    Attributes:
        entries: how many positions hold entries.
        unanswered: how many are None.
        data_bytes: data of the entries together.
    """

    start: int
    end: int
    entries: int
    unanswered: int
    data_bytes: int

    def __init__(self, start: int, end: int, mac: MacKey | None) -> None: ...
    def __len__(self) -> int: ...
    def __getitem__(self, at: int) -> Entry | int | None: ...
    def add(self, reply: ReplyBytes, first: int, spacing: int) -> int:
        """Take in the reply to a read of an object's positions from ``first`` on.

        An object may answer a prefix of what it was asked. Returns how many it answered.

        Raises:
            CorruptEntry: the reply is malformed. (An entry with a wrong checksum is LOST.)
        """

    def found(self) -> dict[int, Entry | int]:
        """Return what has been answered, by position."""

class ColumnWindow:
    """Positions of one stripe, as columns.

    Args:
        spacing: of the stripe, packed.
        mac: key of the log's MACs; None: its entries have none.
        tags: whether :meth:`columns` tells them.
        data: whether the reads ask for data, as in :func:`decode_read`.
    """

    def __init__(
        self, spacing: int, mac: MacKey | None, tags: bool = False, data: bool = True
    ) -> None: ...
    def add(self, reply: ReplyBytes | None, first: int, stop: int) -> None:
        """Take in the reply to a read of an object's positions below ``stop``; None: no reply.

        Objects are added in the order of their first positions, all of them below the first
        object's second.

        Raises:
            CorruptEntry: the reply is malformed. (An entry with a wrong checksum is LOST.)
        """

    def open(self) -> list[int]:
        """Return the positions that more must be asked about, object by object.

        Those that are unwritten, filled, lost or forged, or without an answer.
        """

    def columns(
        self, settled: Mapping[int, Entry | Gap], start: int, end: int, bytes_max: int
    ) -> tuple[
        memoryview,
        memoryview,
        memoryview,
        memoryview,
        list[list[Gap | range]],
        int | None,
        list[tuple[str, ...]] | None,
    ]:
        """Return the columns of positions in ``[start, end)``.

        Args:
            settled: what the open positions hold by now.
            start: one of the positions.
            end: above ``start``.
            bytes_max: bytes of data to stop before, below 2 GiB; one entry comes in any case.

        Returns:
            Positions (int64), timestamps (int64), offsets (int32) and data of the entries; the
            positions without, a list for each of their rows between two entries: settled gaps as
            they were given, and ranges of trimmed positions, which cover all read ones in them;
            where to go on, None at the end; and the tags of each entry, None unless asked for.
        """

_Item = TypeVar("_Item")

class Items(Generic[_Item]):
    """An iterator over the items of batches; ``operator.length_hint``: those that are in hand.

    Args:
        more: returns the next batch, which may be empty; None ends the iteration, and so
            does an exception, which comes out of the iterator.
    """

    def __init__(self, more: Callable[[], Sequence[_Item] | None]) -> None: ...
    def __iter__(self) -> Items[_Item]: ...
    def __length_hint__(self) -> int: ...
    def __next__(self) -> _Item: ...

# Audits ------------------------------------------------------------------------------------------

AppendId: TypeAlias = tuple[int, int, int]
"""The identity of an append: its writer's id as two numbers, and its number."""

class AuditCount(NamedTuple):
    """Positions by what they hold; ``bytes`` is the entries' data, ``unknown`` has no answer."""

    entries: int
    bytes: int
    filled: int
    trimmed: int
    unwritten: int
    lost: int
    unreadable: int
    unknown: int

class Audit:
    """What an audit learns of a log's positions, one window of them after the other, upwards.

    A window is :meth:`begin`, then :meth:`add` or :meth:`rest` for each object until all positions
    were told of, then :meth:`finish`.

    Attributes:
        counts: of all windows in passes for ``all``.
        lost: lost positions of the last window, each range of one object.
        unreadable: the same of those that a newer version stored.
        holes: unwritten ones of the last window.
        found: the last window's appends that were met before, further down; in passes for
            ``search`` all that are searched for. With their positions, ascending.
    """

    counts: AuditCount
    lost: list[range]
    unreadable: list[range]
    holes: list[range]
    found: list[tuple[AppendId, int]]

    def __init__(self, intervals_max: int = 1_000_000) -> None:
        """Make one that keeps a bounded number of intervals of appends, of some 80 bytes each."""

    def begin(self, purpose: str, start: int, end: int, spacing: int) -> None:
        """Begin with positions ``[start, end)`` of a stripe of this spacing.

        Args:
            purpose: ``all`` at first; ``appends`` after :meth:`next_part`, ``search`` after
                :meth:`search_for`.
            start: first position.
            end: one past the last; a window has 2**24 positions at most.
            spacing: of the stripe, packed.
        """

    def add(self, reply: ReplyBytes, first: int) -> int:
        """Take in a reply to verify; returns of how many positions from ``first`` on it told.

        Raises:
            CorruptEntry: it is malformed.
        """

    def rest(self, first: int, state: str) -> None:
        """Take an object's positions from ``first`` on as ``trimmed``, ``lost`` or ``unknown``."""

    def finish(self) -> None:
        """Take stock of the window."""

    def next_part(self) -> bool:
        """Go on to the appends that there was no room for; False when there are none."""

    def search_for(self, appends: Iterable[AppendId]) -> None:
        """Look for these from now on."""

# Stores -----------------------------------------------------------------------------------------

class CompletionQueue:
    """Where a store puts the results of submitted operations, for one consumer.

    Thread-safe. Of no use in a forked child.
    """

    def __init__(self) -> None: ...
    def fileno(self) -> int:
        """Return a descriptor that is readable exactly while results wait."""

    def put(self, token: int, code: int, reply: bytes) -> None:
        """Put a result in, as a store does that is written in Python."""

    def drain(self) -> list[tuple[int, int, ReplyBytes]]:
        """Take all results that wait, as ``(token, code, reply)``. Does not block."""

    def wait(self, timeout: float | None = None) -> bool:
        """Block until results wait; False after ``timeout`` seconds. Ctrl-C interrupts it."""

class Append(Coroutine[Any, Any, int]):
    """An entry on its way: a coroutine that returns its position.

    Awaiting it hands it in, and nothing happens before. To the task that awaits it, it is the
    future as well. Cancelled before it has left, it is not sent.
    """

    def send(self, value: None, /) -> Any: ...
    def throw(self, kind: Any, value: Any = None, trace: Any = None, /) -> Any: ...
    def close(self) -> None: ...
    def __await__(self) -> Generator[Any, Any, int]: ...

class Gathering:
    """Entries of one event loop's concurrent appends that wait to be sent together.

    What is above ``waiting_bytes_max`` is held back, in the order of the calls, until there is
    room. Not thread-safe: everything happens in the loop's thread.

    Attributes:
        waiting_bytes: data that waits, without what is held back.
        alert: whether the loop is to call ``send`` when the next entry is handed in; once.
    """

    waiting_bytes: int
    alert: bool

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        send: Callable[[], object],
        check: Callable[[Sequence[bytes]], None],
        entry_bytes_max: int,
        waiting_bytes_max: int,
        timeout: float | None,
        clock: Callable[[], float] | None = None,
    ) -> None:
        """Gather for ``loop``; ``check`` raises for an entry that is too large or not bytes-like.

        An entry that was not taken out ``timeout`` seconds after it was handed in comes too late,
        by ``clock`` or else by the machine's own, which costs less.
        """

    def __len__(self) -> int:
        """Return how many appends wait, with those held back."""

    def append(self, data: NewEntry) -> Append:
        """Return the coroutine that appends an entry."""

    def take(
        self, entries_max: int, bytes_max: int
    ) -> tuple[list[bytes], list[Append], list[Append]]:
        """Take out what has waited longest: until a maximum is reached, but one at least.

        Returns:
            The entries, their appends, and the appends that come too late to be sent.
        """

    def complete(self, appends: Sequence[Append], outcomes: Iterable[int | BaseException]) -> None:
        """Give each append its position or its error; their tasks are woken by the event loop."""

    def wake(self) -> None:
        """Wake tasks. For the event loop only, which is asked to call it."""

class SharedSequencer:
    """A sequencer that the processes using one directory share through memory (`mmap`).

    A hint as every sequencer is: what it grants counts only as long as the objects' epochs say so.
    Serves up to 1024 logs. Raises `zlog.SequencerUnavailable`, or `zlog.SequencerTimeout` when a
    stopped process holds it.
    """

    def __init__(self, directory: str | os.PathLike[str] | None = None) -> None:
        """Share the one in ``directory``; None makes one for this process and its children."""

    def activate(self, log_id: int, epoch: int, tail: int) -> bool:
        """Let positions from ``tail`` on be granted; False unless ``epoch`` is above the last."""

    def next(self, log_id: int, epoch: int, count: int) -> int | None:
        """Grant ``count`` positions and return the first; None when not active at ``epoch``."""

    def tail(self, log_id: int, epoch: int) -> int | None:
        """Return the next position to be granted; None when not active at ``epoch``."""

    def wait(
        self, log_id: int, epoch: int, position: int, timeout: float | None = None
    ) -> int | None:
        """Block until the tail is above ``position`` and return it.

        None after ``timeout`` seconds, or once another epoch is active. Ctrl-C interrupts it.
        """

    def release(self, log_id: int) -> None:
        """Forget a log that is gone."""

def begin_call(coroutine: Coroutine[Any, Any, Any] | None = None) -> None:
    """Raise ReentrantCall if this thread holds a brief :class:`Mutex`, and close the coroutine."""

def reentrant_call() -> ReentrantCall:
    """Return the error of a call that would wait for another call of its own thread."""

class Mutex:
    """A lock that one thread holds, which does not wait for itself and works in no forked child.

    Args:
        brief: it is held for some instructions, and never during a wait. A thread that holds one
            begins no call, and no thread waits for one for longer than a minute.
        reentrant: its holder may take it again.
    """

    def __init__(self, *, brief: bool = True, reentrant: bool = False) -> None: ...
    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Take it, as ``threading.Lock`` is taken.

        Raises:
            ReentrantCall: this thread holds it.
            StoreUnavailable: this is a forked child, and its parent made the lock.
        """

    def release(self) -> None:
        """Give it back."""

    def held(self) -> bool:
        """Whether this thread holds it."""

    def locked(self) -> bool:
        """Whether a thread holds it."""

    def __enter__(self) -> None: ...
    def __exit__(self, kind: object, error: object, trace: object) -> None: ...

class SharedRound:
    """Entries of several threads that leave together. The first one's thread leads: it sends them.

    Attributes:
        outcomes: a position or an error for each entry that was sent; None: none was.
    """

    outcomes: Sequence[int | BaseException] | None

    def __len__(self) -> int:
        """Return how many have come."""

    def wait_for(self, count: int) -> threading.Lock:
        """Return a lock that is released when there are so many entries, or it takes no more."""

    def close(self) -> list[NewEntry]:
        """Take in no more; returns the entries that are to be sent."""

    def finish(self) -> None:
        """Let the threads go on, each with its outcome; without any they gather anew."""

class SharedRounds:
    """Puts the entries of several threads together into rounds.

    Attributes:
        timeout: seconds from the call until an entry comes too late to be sent; infinite: never.
        joined: how many entries have come.
    """

    timeout: float
    joined: int

    def __init__(
        self,
        turn: Mutex,
        lead: Callable[[SharedRound, float], object],
        check: Callable[[Sequence[NewEntry]], None],
        not_sent: Callable[[], BaseException],
        not_known: Callable[[], BaseException],
        timeout: float | None,
        entry_bytes_max: int,
        entries_max: int,
        bytes_max: int,
    ) -> None:
        """Gather rounds of up to ``entries_max``, or as many as have ``bytes_max``.

        ``lead`` sends a round and finishes it, whatever happens; it has until a time of
        ``time.monotonic()``, and holds ``turn`` meanwhile. ``check`` raises for an entry that is
        too large or not bytes-like. ``not_sent`` makes the error of an entry that came too late,
        and ``not_known`` that of one whose round did not end in the time after that.
        """

    def append(self, data: NewEntry) -> int:
        """Append one entry and return its position."""

class UnderWay:
    """Operations that were submitted together."""

    def give_up(self) -> None:
        """Give them up: their replies are dropped, and nothing is kept for them.

        Those that are not over end with -ECANCELED soon, where the store can take them back.
        Whether they take effect is unknown.
        """

class HostStore:
    """What all stores share; `zlog.store.Store` documents it."""

    @property
    def url(self) -> str: ...
    @property
    def pool(self) -> str: ...
    @property
    def namespace(self) -> str: ...
    @property
    def read_only(self) -> bool: ...
    @property
    def identity(self) -> str: ...
    def execute(
        self, object: str, method: str, payload: bytes | Request, timeout: float | None = None
    ) -> tuple[int, bytes]: ...
    def submit(
        self,
        queue: CompletionQueue,
        token: int,
        calls: Sequence[tuple[str, str, bytes | Request]],
    ) -> UnderWay: ...
    def list_objects(
        self, queue: CompletionQueue, token: int, prefix: str, after: bytes = b""
    ) -> None: ...
    def lock(
        self, queue: CompletionQueue, token: int, object: str, method: str, request: bytes
    ) -> UnderWay: ...
    def ask_copy(
        self, queue: CompletionQueue, token: int, object: str, method: str, request: bytes
    ) -> None: ...
    def ask_monitor(self, queue: CompletionQueue, token: int, command: str) -> None: ...
    def notify(self, object: str) -> None: ...
    def watch(self, queue: CompletionQueue, token: int, object: str, seen: int = 0) -> UnderWay: ...
    def remove_watched(self, queue: CompletionQueue, token: int, object: str) -> None: ...
    def sequencer(self) -> SharedSequencer | None: ...
    def compact(self) -> int: ...
    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...

def restore(path: str | os.PathLike[str], backup: str | os.PathLike[str]) -> None:
    """Put the store in a directory back to a backup, a database file; `zlog.store.restore`."""

class MemoryStore(HostStore):
    """Objects in this process's memory, for tests and simulation."""

    def __init__(self) -> None: ...
    def peek(self, object: str) -> tuple[dict[bytes, bytes], dict[bytes, bytes], bytes] | None:
        """Copy an object out: attributes, keys, bytestream. None when there is none."""

    def poke(
        self,
        object: str,
        attrs: dict[bytes, bytes],
        omap: dict[bytes, bytes],
        stream: bytes,
    ) -> None:
        """Put an object in as it is, damaged as a test likes."""

class EmbeddedStore(HostStore):
    """Objects in a local directory (LMDB), for any number of processes at once.

    What was answered is on disk. Writing methods of all threads share transactions and syncs.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        map_bytes: int = ...,
        create: bool = True,
        read_only: bool = False,
    ) -> None:
        """Open the store in a directory.

        Args:
            path: the directory; on a local file system.
            create: make directory and store if they are missing.
            map_bytes: how far the store may grow. Takes address space, not memory or disk; less
                is taken where the process may not have so much. Beyond it writes get ENOSPC.
            read_only: make and change nothing; permission to read is enough. Methods that write
                are answered with EROFS. Beside processes that write, it must be possible to write
                lock.mdb all the same, in which LMDB lists readers; else it does not open, or
                methods are answered with ETXTBSY once such a process has come.

        Raises:
            StoreUnavailable: it is missing, does not open, is damaged, or is no store.
        """

    def room_inside(self) -> int:
        """Return how many bytes of data fit into the file's free pages, as on a full disk.

        Raises:
            StoreUnavailable: the store is closed, or can't be read.
        """

    @property
    def path(self) -> str:
        """The directory's real path."""
