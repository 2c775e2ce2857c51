"""What the directory of a store's logs must do, in plain Python."""

from __future__ import annotations

import errno
from dataclasses import dataclass, field

from .head_model import valid_name
from .replies import Answer, Code, answered

PAGE_NAMES_MAX = 4096
_OK = Answer(Code.OK)
_MISSING = Answer(-errno.ENOENT)
_INVALID = Answer(-errno.EINVAL)


@dataclass
class DirectoryModel:
    """The directory: the id of each log by its name, and at most one address."""

    logs: dict[str, int] = field(default_factory=dict)
    exists: bool = False
    address: str = ""

    def add(self, name: str, log_id: int = 7) -> Answer:
        """directory_add: idempotent, makes the directory; a new log takes a name over."""
        if not valid_name(name):
            return _INVALID
        self.exists = True
        self.logs[name] = log_id
        return _OK

    def remove(self, name: str, log_id: int = 7) -> Answer:
        """directory_remove: idempotent; a new log of that name stays."""
        if self.logs.get(name) == log_id:
            del self.logs[name]
        return _OK

    def list(self, after: str = "", count_max: int = 1000) -> Answer:
        """directory_list: ascending by bytes."""
        if not self.exists:
            return _MISSING
        if not 1 <= count_max <= PAGE_NAMES_MAX:
            return _INVALID
        found = sorted(name for name in self.logs if name > after)
        return answered("directory_list", len(found) > count_max, tuple(found[:count_max]))

    def announce(self, address: str) -> Answer:
        """sequencer_announce: the last one wins; makes the directory."""
        self.exists, self.address = True, address
        return _OK

    def withdraw(self, address: str) -> Answer:
        """sequencer_withdraw: only the one that is announced; else, and without one, nothing."""
        if self.address == address:
            self.address = ""
        return _OK

    def find(self) -> Answer:
        """sequencer_find: the address announced, or nothing."""
        return Answer(Code.OK, self.address) if self.exists else _MISSING
