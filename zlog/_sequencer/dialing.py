"""One link to a sequencer for all callers: who finds none makes it, and the others wait."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from zlog._base.deadline import Deadline
from zlog._base.sequencer import LogAddress
from zlog._sequencer.credentials import Credentials
from zlog._sequencer.greeting import Refusal
from zlog._sequencer.session import Guard, Link
from zlog.errors import SequencerRefused, SequencerTimeout, SequencerUnavailable


class LosableLink(Link, Protocol):
    """A link that knows its end.

    Attributes:
        lost: why it ended; empty while it lives.
    """

    lost: str


L = TypeVar("L", bound=LosableLink)
G = TypeVar("G", bound=Guard)


class OneLink(ABC, Generic[L, G]):
    """Holds the link, and the locks under which it is made and logs are opened on it.

    Args:
        address: of the sequencer.
        credentials: for it.
        new_guard: makes a lock.
        clock: tells seconds, and never goes back.
    """

    def __init__(
        self,
        address: str,
        credentials: Credentials,
        new_guard: Callable[[], G],
        clock: Callable[[], float],
    ) -> None:
        self._address = address
        self._credentials = credentials
        self._new_guard = new_guard
        self._refusal = Refusal(clock)
        self._closed = False
        self._start()

    def _start(self) -> None:
        self._link: L | None = None
        self._dialing = self._new_guard()
        self._guards: dict[LogAddress, G] = {}

    async def _link_made(self, deadline: Deadline) -> L:
        """Return the live link, made if there is none."""
        if not await self._dialing.acquire(deadline):
            raise SequencerTimeout(f"could not connect to {self._address} in time")
        try:
            if self._closed:
                raise SequencerUnavailable(f"the client of {self._address} is closed")
            if self._link is None or self._link.lost:
                self._refusal.check()
                self._link = await self._dial(deadline)
            return self._link
        except SequencerRefused as error:
            self._refusal.note(error)
            raise
        finally:
            self._dialing.release()

    @abstractmethod
    async def _dial(self, deadline: Deadline) -> L:
        """Connect, and say HELLO."""

    def guard(self, log: LogAddress) -> G:
        """Return the lock under which ``log`` is opened."""
        return self._guards.setdefault(log, self._new_guard())
