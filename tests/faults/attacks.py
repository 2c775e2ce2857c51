"""What a client does to a log of others by calls that documented caps allow, one after another.

Its user appends and reads meanwhile, and has to notice nothing but a change of the layout.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable

import zlog
from zlog._base.codes import (
    EPOCH_MAX,
    EPOCHS_AHEAD_MAX,
    OBJECT_POSITIONS_MAX,
    POSITION_MAX,
    Code,
)
from zlog._base.io import deadline_of
from zlog._base.names import stripe_object
from zlog._io import drive
from zlog._native import messages

from ..client import planted
from ..support.logs import fill_at, raise_tail, write_at

_TRIES = 150
"""How often a move is made, at least, that is refused each time."""

CAPS = "append, with or without one"
"""The documented set that allows all this, of docs/operating.md."""


def attack(log: zlog.Log, hostile: zlog.Log, seed: int, until: float) -> list[str]:
    """Use a log while it is attacked; returns what must not be.

    Args:
        log: its user's, who has appended nothing yet.
        hostile: the same log, opened by the attacker.
        seed: decides what it does.
        until: when to end, by the monotonic clock; later, as long as a move may still succeed that
            never has.
    """
    chance = random.Random(f"{seed}.attacks")
    attacker = _Attacker(hostile, bytes.fromhex(log.writer_id), chance)
    entries: dict[int, bytes] = {}
    try:
        while time.monotonic() < until or attacker.expects_more():
            attacker.attack(len(entries))
            data = b"entry %d" % len(entries)
            entries[log.append(data)] = data
            position = chance.choice([*entries])
            if (found := log.read(position).data) != entries[position]:
                return [f"position {position} of the attacked log holds {found!r}"]
        log.roll()
    except zlog.ZlogError as error:
        return [f"after {len(entries)} entries of the attacked log: {error!r}"]
    return [f"no {move} of the attacker ever succeeded" for move in attacker.refused()]


class _Attacker:
    """Who may write, fill, raise the tail and seal."""

    def __init__(self, log: zlog.Log, victim: bytes, chance: random.Random) -> None:
        self._log = log
        self._victim = victim
        self._chance = chance
        moves = (self._raise_tail, self._fill, self._write, self._seal, self._guess)
        self._moves = {move.__name__: move for move in moves}
        self._tried: Counter[str] = Counter()
        self._succeeded: Counter[str] = Counter()

    def refused(self) -> list[str]:
        """The moves that never succeeded."""
        return [name for name in (*self._moves, "_forge") if not self._succeeded[name]]

    def expects_more(self) -> bool:
        """Whether one of them was not tried often enough to say that it can't."""
        return any(self._tried[name] < _TRIES for name in self.refused())

    def attack(self, number: int) -> None:
        """Do two things; ``number`` is what the victim's next append has."""
        drive(self._log._client.layout.refresh(deadline_of(self._log._client.io, 30)))
        new = [name for name in self._moves if not self._succeeded[name]]
        name = self._chance.choice(new or [*self._moves])
        self._try(name, self._moves[name])
        self._try("_forge", lambda: self._forge(number))

    def _try(self, name: str, move: Callable[[], list[int]]) -> None:
        self._tried[name] += 1
        self._succeeded[name] += Code.OK in move()

    def _far(self) -> int:
        live = self._log.view.live_stripe
        most = OBJECT_POSITIONS_MAX
        near = self._chance.randrange(1, 1000)
        ahead = self._chance.choice((near, most // 2, most - 1, most, 2**40))
        return self._chance.choice((live.start + ahead * live.width, POSITION_MAX))

    def _raise_tail(self) -> list[int]:
        return [raise_tail(self._log, self._far())]

    def _fill(self) -> list[int]:
        return [fill_at(self._log, [self._far()])]

    def _write(self) -> list[int]:
        return [write_at(self._log, self._far())]

    def _call(self, name: str, method: str, request: bytes) -> int:
        return self._log.store.execute(name, method, request)[0]

    def _seal(self) -> list[int]:
        """An object of any stripe that the view names, with any epoch."""
        view = self._log.view
        ref = self._chance.choice([*view.objects(self._chance.choice(view.stripes))])
        ahead = self._chance.choice((1, EPOCHS_AHEAD_MAX // 2, 2**40))
        width, stripe_unit = ref.striping
        request = messages.seal(view.epoch + ahead, width, ref.number, False, None, stripe_unit)
        return [self._call(ref.name, "seal", request)]

    def _guess(self) -> list[int]:
        """Make objects of the stripes that come next."""
        view = self._log.view
        epoch, start = self._chance.choice(((EPOCH_MAX, 0), (1, POSITION_MAX)))
        width, stripe_unit = view.live_stripe.striping
        stripe_unit = self._chance.choice((stripe_unit, 1, 65536))
        request = messages.seal(epoch, width, 0, True, start, stripe_unit)
        return [
            self._call(stripe_object(view.log, view.log_id, id_, 0), "seal", request)
            for id_ in range(view.epoch + 1, view.epoch + 4)
        ]

    def _forge(self, number: int) -> list[int]:
        """Write as the victim's next appends, at the positions that come next."""
        tail = self._log.tail(checked=False)
        codes = []
        for ahead in range(3):
            ref = self._log.view.object_of(tail + ahead)
            request = planted.entry(
                self._log, ref, tail + ahead, self._victim, number + ahead, b"forged"
            )
            codes.append(self._call(ref.name, "write", request))
        return codes
