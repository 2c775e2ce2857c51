"""What a broken variant of the protocol is."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from .cluster import Execute, Objects
from .run import Kind


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
        seeds_max: within that many seeds it must be noticed.
        wrap: what the objects do then.
        patch: what the clients do then.
        kinds: of runs, each of which notices it.
        shows: how the complaint begins: with a property of docs/correctness.md.
        tried_first: one of the seeds that noticed it when this was written, which saves the others.
    """

    broken: str
    seeds_max: int
    wrap: Callable[[Objects], Execute] = _as_it_is
    patch: Callable[[], contextlib.AbstractContextManager[object]] = _nothing
    kinds: tuple[Kind, ...] = (Kind.NOTHING,)
    shows: str = "P"
    tried_first: int = 0
