"""Objects on a host, as Python calls: `Stripe`, `Head`, `Directory`.

The models have the same classes without a host, so whatever drives the one drives the other; only
the directory has no model, as its transcript says all that it does.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from . import replies, requests, wire
from .append_model import AppendModel
from .head_model import HeadModel
from .messages import METHODS, STRUCTS, request
from .replies import Answer
from .requests import WRITER, Entry, Grant, Part, View


class Store(Protocol):
    """The one door to storage, as far as this suite needs it."""

    def execute(self, object: str, method: str, payload: bytes) -> tuple[int, bytes]:
        """Run one method on one object; a code (negative: an errno) and its reply."""
        ...


_DEFAULTS: dict[str, Any] = {
    "string": b"",
    "text": "",
    "u8, u64": None,
    "log_id": 7,
    "count_max": 1000,
    "start": 0,
    "end": 2**63,
}
"""Arguments of calls that no model has, by their kind or their name."""


@dataclass
class _Object:
    """An object with the calls of its model, and with the same arguments.

    Methods that the model lacks are called with the fields of their requests.
    """

    MODEL: ClassVar[type] = object
    PREFIXES: ClassVar[tuple[str, ...]] = ("",)
    """What the methods' names have before those of the calls."""

    store: Store
    name: str

    def __getattr__(self, name: str) -> Callable[..., Answer]:
        method = next((each + name for each in self.PREFIXES if each + name in METHODS), None)
        if method is None:
            raise AttributeError(name)
        own = getattr(self.MODEL, name, None)
        parameters = [*inspect.signature(own).parameters.values()][1:] if own else _fields(method)
        signature = inspect.Signature(parameters)

        def call(*arguments: Any, **options: Any) -> Answer:
            bound = signature.bind(*arguments, **options)
            bound.apply_defaults()
            sent = self._payload(method, bound.arguments)
            code, reply = self.store.execute(self.name, method, sent)
            return replies.parse(method, code, reply, bound.arguments)

        return call

    def _payload(self, method: str, arguments: Mapping[str, Any]) -> bytes:
        """A request with the arguments of the model's call."""
        values = vars(self) | self._values(arguments)
        fields = STRUCTS[METHODS[method].request].type._fields
        return request(method, *(values[field] for field in fields))

    def _values(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Arguments of the model as fields of a request, by name."""
        values: dict[str, Any] = {}
        for name, value in arguments.items():
            if isinstance(value, Part):
                values |= vars(value)
            elif isinstance(value, Grant):
                values |= vars(value) | vars(value.part)
            elif name == "record":
                values |= value._asdict()
            elif name == "positions":
                values["runs"] = (self.striping, value)
            else:
                values[name] = requests.view(value) if isinstance(value, View) else value
        return values

    def send(self, method: str, payload: bytes) -> Answer:
        """Run a method with any payload and parse its answer (not that of a good read)."""
        return replies.parse(method, *self.store.execute(self.name, method, payload))


def _fields(method: str) -> list[inspect.Parameter]:
    """A method's arguments if they are the fields of its request."""
    struct = STRUCTS[METHODS[method].request]
    return [
        inspect.Parameter(
            name,
            inspect.Parameter.POSITIONAL_OR_KEYWORD,
            default=_DEFAULTS.get(name, _DEFAULTS.get(kind, inspect.Parameter.empty)),
        )
        for name, kind in zip(struct.type._fields, struct.kinds, strict=True)
    ]


@dataclass
class Stripe(_Object):
    """A stripe object; the other fields are what the requests claim its geometry to be."""

    MODEL = AppendModel

    stride: int = 1
    residue: int = 0
    stripe_unit: int = 1

    @property
    def striping(self) -> int:
        """Its stride and stripe unit as requests have them."""
        return wire.striping_of(self.stride, self.stripe_unit)

    def _payload(self, method: str, arguments: Mapping[str, Any]) -> bytes:
        if method == "write":
            return requests.write(striping=self.striping, **arguments)
        if method == "append":
            return requests.append(**arguments)
        return super()._payload(method, arguments)

    def put(self, epoch: int, position: int, data: bytes, writer: bytes = WRITER) -> Answer:
        """A write of one entry whose number is its position."""
        return self.write(epoch, [Entry(position, position, data)], writer)


class Head(_Object):
    """A log's head object."""

    MODEL = HeadModel
    PREFIXES = ("head_", "")


class Directory(_Object):
    """The directory of logs and the place where a sequencer announces itself."""

    PREFIXES = ("directory_", "sequencer_", "")
