"""The state of a lock: its holder and the waiting clients. It uses no clock."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from zlog.objects._states import NEVER, Change, Parts, State
from zlog.objects.errors import Rejected


class Holder(NamedTuple):
    """The holder of a lock.

    Attributes:
        token: the position of the entry that requested the lock. It is higher than the tokens of
            all earlier holders, so a protected resource can recognise the newest holder.
        owner: a value by which others can recognise the holder.
        lease: the number of seconds without a renewal after which others may take the lock away.
        version: the position of the last renewal or, before that, of the entry that granted the
            lock.
    """

    token: int
    owner: Any
    lease: float
    version: int


class LockState(State):
    """The state of a lock, which clients get in the order of their requests in the log.

    Its commands are ``["acquire", owner, lease]``, ``["renew", token]``, ``["release", token]`` and
    ``["expire", token, version]``. The last one takes the lock away from its holder, if the holder
    has not renewed it since that version.
    """

    __slots__ = ("holder", "waiting")

    kind = "lock"

    def __init__(self) -> None:
        super().__init__()
        self.holder: Holder | None = None
        self.waiting: dict[int, Holder] = {}

    def apply(self, position: int, command: Any) -> Any:
        name, *arguments = command
        return getattr(self, _COMMANDS[name])(position, *arguments)

    def version_of(self, key: str | None) -> int:
        """Return the version of the lock, or with a key the token of the holder."""
        if key is None:
            return self.version
        return NEVER if self.holder is None else self.holder.token

    def _acquire(self, position: int, owner: Any, lease: float) -> bool:
        asked = Holder(position, owner, float(lease), position)
        if position in self.waiting or (self.holder and self.holder.token == position):
            raise Rejected("an entry can request a lock only once")
        if self.holder is None:
            self.holder = asked
        else:
            self.waiting[position] = asked
        self.version = position
        return self.holder is asked

    def _renew(self, position: int, token: int) -> None:
        self.holder = self._held(token)._replace(version=position)
        self.version = position

    def _release(self, position: int, token: int) -> None:
        if self.waiting.pop(token, None) is None:
            self._held(token)
            self._pass_on(position)
        self.version = position

    def _expire(self, position: int, token: int, version: int) -> None:
        if self._held(token).version != version:
            raise Rejected("the holder has renewed its lease")
        self._pass_on(position)
        self.version = position

    def _held(self, token: int) -> Holder:
        if self.holder is None or self.holder.token != token:
            raise Rejected(f"token {token} does not hold the lock")
        return self.holder

    def _pass_on(self, position: int) -> None:
        token = next(iter(self.waiting), None)
        self.holder = None if token is None else self.waiting.pop(token)._replace(version=position)

    def change(self, name: str, _command: Any, _result: Any) -> Change | None:
        return Change(name, None, self.holder)

    def freeze(self) -> Parts:
        state = (self.holder, list(self.waiting.values()))
        return lambda: iter([state])

    def load(self, part: msgspec.Raw) -> None:
        self.holder, waiting = _lock.decode(part)
        self.waiting = {each.token: each for each in waiting}


_lock = msgspec.msgpack.Decoder(tuple[Holder | None, list[Holder]])

_COMMANDS = {"acquire": "_acquire", "renew": "_renew", "release": "_release", "expire": "_expire"}
