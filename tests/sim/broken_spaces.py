"""Ways to break the rules of a space, one each; see :mod:`tests.sim.mutants`."""

from __future__ import annotations

import random
from functools import partial

from zlog.entry import GapKind
from zlog.objects import _replica, _restore
from zlog.objects._decided import Decided
from zlog.objects._feed import Feed
from zlog.objects._machine import Machine
from zlog.objects._replica import Replica

from .mutant import Mutant
from .run import Kind

_replica_commit = Replica.commit
_HIDING_BUT_LOST = tuple(each for each in _replica.HIDING if each is not GapKind.LOST)


async def _commit_as_seen(self, ops, *words):  # type: ignore[no-untyped-def]
    """Decide by the state that was read, and not by that at the entry's position."""
    outcome = await _replica_commit(self, ops, *words)
    return outcome._replace(code="committed") if outcome.code == "conflict" else outcome


async def _play_what_is_known(self, _=0.0):  # type: ignore[no-untyped-def]
    """Take the state for up to date."""
    self.check()


_load_checkpoint = _restore._load


async def _load_too_early(port, manifest, types):  # type: ignore[no-untyped-def]
    """Play on from before the mark of the checkpoint."""
    machine = await _load_checkpoint(port, manifest, types)
    if machine is not None:
        machine.position = max(port.trim_point, machine.position - 20)
    return machine


async def _load_too_late(port, manifest, types):  # type: ignore[no-untyped-def]
    """Play on from behind the pieces of the checkpoint, and not from its mark."""
    machine = await _load_checkpoint(port, manifest, types)
    if machine is not None:
        machine.position = max([machine.position, *(at + 1 for at in manifest.pieces)])
    return machine


_feed_next = Feed.next


async def _next_without_gaps(self, tail):  # type: ignore[no-untyped-def]
    """Tell of no gap."""
    return [window._replace(gaps=[]) for window in await _feed_next(self, tail)]


def lose_sometimes(objects, object, method, payload):  # type: ignore[no-untyped-def]
    """Now and then the keys of entries are gone from the copy of an object that is read."""
    chance = objects.__dict__.setdefault("chance", random.Random(1))
    found = None
    if method in ("read", "select") and chance.random() < 0.02:
        found = objects.memory.peek(object)
    if found is None:
        return objects.execute(object, method, payload)
    attrs, omap, stream = found
    kept = {key: value for key, value in omap.items() if key[:2] != b"e."}
    objects.memory.poke(object, attrs, kept, stream)
    answer = objects.execute(object, method, payload)
    objects.memory.poke(object, *found)
    return answer


_SpaceMutant = partial(Mutant, kinds=(Kind.OBJECTS,))

SPACES = {
    "read-set-ignored": _SpaceMutant(
        "a transaction commits whatever others have changed of what it has read",
        patches=((Machine, "invalid", lambda *_: []),),
        shows="P22",
    ),
    "decided-as-seen": _SpaceMutant(
        "a client decides its transaction by what it has read, and not at the entry's position",
        patches=((Replica, "commit", _commit_as_seen),),
        shows="P22",
    ),
    "tail-not-checked": _SpaceMutant(
        "a read does not ask for the tail",
        patches=((Replica, "sync", _play_what_is_known),),
        shows="P22",
    ),
    "applied-twice": _SpaceMutant(
        "a replica plays on from before the checkpoint that it has begun with",
        patches=((_restore, "_load", _load_too_early),),
        shows="P23",
        tried_first=3,
    ),
    "not-applied": _SpaceMutant(
        "a replica plays on from behind the pieces of the checkpoint that it has begun with",
        patches=((_restore, "_load", _load_too_late),),
        shows="P22",
    ),
    "ids-forgotten": _SpaceMutant(
        "a space does not know which transactions it has decided",
        patches=((Decided, "find", lambda *_: None),),
        shows="P23",
        tried_first=3,
    ),
    "results-forgotten": _SpaceMutant(
        "a checkpoint has no results of commands",
        patches=((Decided, "results", lambda *_: ""),),
        shows="P24",
        tried_first=10,
    ),
    "lost-passed": _SpaceMutant(
        "a replica passes an entry that is lost as if it were nothing of its own",
        execute=lose_sometimes,
        patches=((_replica, "HIDING", _HIDING_BUT_LOST),),
        shows="P2",
        tried_first=3,
    ),
    "gaps-passed": _SpaceMutant(
        "a replica passes what was trimmed, or is not there yet, as if it were nothing of its own",
        patches=((Feed, "next", _next_without_gaps),),
        shows="P2",
    ),
}
