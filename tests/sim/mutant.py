"""What a broken variant of the protocol is."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from unittest import mock

from .cluster import Execute, Objects
from .run import Kind


@dataclass(frozen=True)
class Mutant:
    """A broken variant.

    Attributes:
        broken: the broken rule, in words.
        patches: what the clients do differently: an owner, an attribute's name, its other value.
        execute: what the objects do instead.
        kinds: of runs, each of which notices it.
        shows: how the complaint begins: with a property of docs/correctness.md.
        tried_first: a seed that noticed it when this was written; it saves the others.
        seeds_max: within that many seeds it must be noticed.
    """

    broken: str
    patches: tuple[tuple[object, str, object], ...] = ()
    execute: Execute = Objects.execute
    kinds: tuple[Kind, ...] = (Kind.NOTHING,)
    shows: str = "P"
    tried_first: int = 0
    seeds_max: int = 40

    @contextlib.contextmanager
    def patch(self) -> Iterator[None]:
        """Break the clients for the length of a ``with`` block."""
        with contextlib.ExitStack() as stack:
            for owner, name, value in self.patches:
                stack.enter_context(mock.patch.object(owner, name, value))
            yield
