"""Several sequencers of one store, each behind a proxy."""

from __future__ import annotations

import contextlib
import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass

from ..support.sequencer import SequencerProcess
from .proxy import Proxy

_START_TRIES = 5


@dataclass
class Member:
    """A sequencer and what stands before it."""

    process: SequencerProcess
    proxy: Proxy


class Sequencers:
    """The sequencers of a store. Each is reached through its proxy only.

    Args:
        urls: of the store; one that is started takes the next of these, by turns.
        count: how many there are.
    """

    def __init__(self, urls: Sequence[str], count: int) -> None:
        self._urls = itertools.cycle(urls)
        self._members = [self._start(Proxy()) for _ in range(count)]

    def _start(self, proxy: Proxy) -> Member:
        for left in reversed(range(_START_TRIES)):
            try:
                process = SequencerProcess(next(self._urls), "--advertise", proxy.address)
            except AssertionError:  # Ceph may be in trouble just now
                if not left:
                    raise
            else:
                break
        listening = next(re.finditer(r"listening on=\S+:(\d+)", "".join(process.log)))
        proxy.target = int(listening[1])
        return Member(process, proxy)

    def leader(self) -> Member:
        """Return the one that says that it leads, or any if none does."""
        for member in self._members:
            with contextlib.suppress(Exception):  # it may be as ill as it likes
                if member.process.role() == "leader":
                    return member
        return self._members[0]

    def replace(self, member: Member) -> None:
        """Start a new one in the place of one that was killed, at its address."""
        self._members[self._members.index(member)] = self._start(member.proxy)

    def cut(self) -> None:
        """Break all connections to them."""
        for member in self._members:
            member.proxy.cut()

    def lose_replies(self, lose: bool) -> None:
        """Let nothing come back from them, or let it."""
        for member in self._members:
            member.proxy.loses_replies = lose

    def complaints(self) -> list[str]:
        """Say which have ended by themselves, and what they said."""
        ended = [each.process for each in self._members if each.process.process.poll() is not None]
        return ["a sequencer has ended:\n" + "".join(process.log) for process in ended]

    def end(self) -> None:
        """Stop all of them."""
        for member in self._members:
            member.process.kill()
            member.proxy.close()
