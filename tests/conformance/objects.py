"""Objects on a host, as Python calls: `Stripe`, `Head`, `Directory`.

The models have the same classes without a host, so whatever drives the one drives the other.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from . import replies, requests, wire
from .directory_model import DirectoryModel
from .head_model import HeadModel
from .messages import METHODS, STRUCTS, request
from .model import StripeModel
from .replies import Answer
from .requests import BYTES_MAX, TIME, WRITER, Entry, Grant, Part, View


class Store(Protocol):
    """The one door to storage, as far as this suite needs it."""

    def execute(self, object: str, method: str, payload: bytes) -> tuple[int, bytes]:
        """Run one method on one object; a code (negative: an errno) and its reply."""
        ...


@dataclass
class _Object:
    """An object, whose calls are those of its model, with the same arguments."""

    MODEL: ClassVar[type]
    PREFIXES: ClassVar[tuple[str, ...]] = ("",)
    """What the methods' names have before those of the calls."""

    store: Store
    name: str

    def __getattr__(self, name: str) -> Callable[..., Answer]:
        method = next((each + name for each in self.PREFIXES if each + name in METHODS), None)
        if method is None:
            raise AttributeError(name)
        signature = inspect.signature(getattr(self.MODEL, name))
        fields = STRUCTS[METHODS[method].request].type._fields

        def call(*arguments: Any, **options: Any) -> Answer:
            bound = signature.bind(self, *arguments, **options)
            bound.apply_defaults()
            values = vars(self) | self._values(bound.arguments)
            return self.call(method, *(values[field] for field in fields))

        return call

    def _values(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Arguments of the model as fields of a request, by name."""
        values: dict[str, Any] = {}
        for name, value in arguments.items():
            if isinstance(value, Part):
                values |= vars(value)
            elif isinstance(value, Grant):
                values |= vars(value) | vars(value.part)
            elif name == "positions":
                values["runs"] = (wire.striping_of(self.stride, self.stripe_unit), value)
            else:
                values[name] = requests.view(value) if isinstance(value, View) else value
        return values

    def call(self, method: str, *values: Any) -> Answer:
        """Run a method, with the values of its request's fields, and parse its answer."""
        return self.send(method, request(method, *values))

    def send(self, method: str, payload: bytes) -> Answer:
        """Run a method with any payload and parse its answer (not that of a good read)."""
        return replies.parse(method, *self.store.execute(self.name, method, payload))

    def damaged(self, after: bytes = b"") -> Answer:
        """damaged: OK with (names, next)."""
        return self.call("damaged", after)

    def salvage(self, name: bytes = b"", position: int | None = None) -> Answer:
        """salvage: OK with (name, last position, value, data), or UNREADABLE."""
        return self.call("salvage", name, position)

    def heal(self, name: bytes, value: bytes, data: bytes = b"") -> Answer:
        """heal: OK, READ_ONLY, or BELOW_TRIM_POINT."""
        return self.call("heal", name, value, data)

    def version(self) -> Answer:
        """version: OK with a VersionReply."""
        return self.call("version")


@dataclass
class Stripe(_Object):
    """A stripe object; the other fields are what the requests claim its geometry to be."""

    MODEL = StripeModel

    stride: int = 1
    residue: int = 0
    stripe_unit: int = 1

    @property
    def striping(self) -> int:
        """Its stride and stripe unit as requests have them."""
        return wire.striping_of(self.stride, self.stripe_unit)

    def write(
        self,
        epoch: int,
        entries: Sequence[Entry],
        writer: bytes = WRITER,
        timestamp: int = TIME,
        in_block: int = 0,
        crcs: Sequence[int] | None = None,
    ) -> Answer:
        """write: OK with `replies.Fullness`, STALE_EPOCH, or READ_ONLY with the first one taken.

        `in_block`: so many entries are compressed together; 0: none. SAME_ID comes with the first
        one that may be there.
        """
        payload = requests.write(epoch, timestamp, writer, self.striping, entries, crcs, in_block)
        return self.send("write", payload)

    def put(self, epoch: int, position: int, data: bytes, writer: bytes = WRITER) -> Answer:
        """A write of one entry whose number is its position."""
        return self.write(epoch, [Entry(position, position, data)], writer)

    def read(
        self,
        epoch: int,
        positions: Sequence[int],
        bytes_max: int = BYTES_MAX,
        with_ids: bool = False,
        blocks: bool = True,
        tags: bool = False,
        without_data: bool = False,
    ) -> Answer:
        """read: OK with a `replies.Read`, or STALE_EPOCH."""
        rest = (blocks, tags, without_data)
        asked = request("read", epoch, with_ids, bytes_max, (self.striping, positions), *rest)
        code, payload = self.store.execute(self.name, "read", asked)
        return replies.parse_read(code, payload, positions, with_ids, not without_data)

    def select(
        self,
        epoch: int,
        start: int,
        end: int,
        tags: Sequence[bytes],
        every: bool = False,
        reverse: bool = False,
        entries_max: int = 1000,
        bytes_max: int = BYTES_MAX,
        with_ids: bool = False,
        without_data: bool = False,
    ) -> Answer:
        """select: OK with a `replies.Selected`, or STALE_EPOCH."""
        rest = (every, reverse, entries_max, bytes_max, with_ids, without_data)
        asked = request("select", epoch, start, end, tags, *rest)
        code, payload = self.store.execute(self.name, "select", asked)
        return replies.parse_select(code, payload, with_ids, not without_data)

    def tags_check(self, epoch: int, start: int = 0, end: int = 2**63) -> Answer:
        """tags_check: OK with a TagsCheckReply, or STALE_EPOCH."""
        return self.call("tags_check", epoch, start, end)

    def tags_rebuild(self, epoch: int, start: int = 0, end: int = 2**63) -> Answer:
        """tags_rebuild: OK with how far it came, or STALE_EPOCH."""
        return self.call("tags_rebuild", epoch, start, end)

    def tags_list_bytes(self, epoch: int, start: int = 0, end: int = 2**63) -> tuple[int, bytes]:
        """tags_list, as clients get it."""
        asked = request("tags_list", epoch, start, end)
        return self.store.execute(self.name, "tags_list", asked)

    def tags_list(self, epoch: int, start: int = 0, end: int = 2**63) -> Answer:
        """tags_list: OK with a `replies.Listed`, or STALE_EPOCH."""
        return replies.parse_tags_list(*self.tags_list_bytes(epoch, start, end))

    def verify(
        self,
        epoch: int,
        positions: Sequence[int],
        bytes_max: int = BYTES_MAX,
        keys_only: bool = False,
    ) -> Answer:
        """verify: OK with a `replies.Verified`, or STALE_EPOCH."""
        return self.call("verify", epoch, bytes_max, (self.striping, positions), keys_only)


class Head(_Object):
    """A log's head object."""

    MODEL = HeadModel
    PREFIXES = ("head_", "")


class Directory(_Object):
    """The directory of logs and the place where a sequencer announces itself."""

    MODEL = DirectoryModel
    PREFIXES = ("directory_", "sequencer_")
