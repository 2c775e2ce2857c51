"""Who may do what: bearer tokens from a file, and limits for each token."""

from __future__ import annotations

import hashlib
import logging
import re
import time
from base64 import b64decode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from zlog.names import check_pattern
from zlog.web._errors import Refusal

LOGGER = logging.getLogger("zlog.web")

RIGHTS = ("read", "append", "create", "trim", "remove")

_HASH = re.compile(r"sha256:([0-9a-f]{64})")
_CHECK_SECONDS = 1.0
"""How often the file of tokens is checked for changes."""


@dataclass
class Grant:
    """What the holder of a token may do. Its name is not secret."""

    name: str
    rights: frozenset[str]
    patterns: tuple[str, ...]
    waits: int = 0
    _allowance: float = 1.0
    _counted_at: float = 0.0

    def allows(self, right: str, log: str) -> bool:
        """Whether the token grants a right on the log with this name."""
        return right in self.rights and any(fnmatchcase(log, each) for each in self.patterns)

    def require(self, right: str, log: str) -> None:
        """Raise Refusal if the token does not grant a right."""
        if not self.allows(right, log):
            message = f"the token {self.name!r} does not grant {right} on {log!r}"
            raise Refusal(403, "Forbidden", message)

    def count(self, rate: float) -> None:
        """Count a request. Raises Refusal if there are more than ``rate`` in a second."""
        passed, self._counted_at = time.monotonic() - self._counted_at, time.monotonic()
        self._allowance = min(rate, self._allowance + passed * rate)
        if self._allowance < 1:
            message = f"the token {self.name!r} allows {rate:g} requests in a second"
            raise Refusal(429, "TooManyRequests", message, Retry_After=1)
        self._allowance -= 1

    @contextmanager
    def waiting(self, most: int) -> Iterator[None]:
        """Count a waiting reader. Raises Refusal if there are ``most`` already."""
        if self.waits >= most:
            message = f"the token {self.name!r} allows {most} waiting readers"
            raise Refusal(429, "TooManyWaits", message, Retry_After=1)
        self.waits += 1
        try:
            yield
        finally:
            self.waits -= 1


class Access:
    """The tokens of a file, which is read again when it changes.

    Args:
        path: the file; None means that no token is needed.

    Raises:
        ValueError: a line of the file is invalid.
        OSError: the file cannot be read.
    """

    def __init__(self, path: str | None) -> None:
        self._path = Path(path) if path is not None else None
        self._all = Grant("-", frozenset(RIGHTS), ("*",))
        self._grants: dict[str, Grant] = {}
        self._stamp: tuple[int, int] | None = None
        self._checked_at = time.monotonic()
        self._problem = ""
        self._renew()

    @property
    def open(self) -> bool:
        """Whether no token is needed."""
        return self._path is None

    def grant_of(self, headers: Mapping[str, str]) -> Grant:
        """Return what a request may do. Raises Refusal if its token is missing or unknown."""
        if self._path is None:
            return self._all
        if time.monotonic() >= self._checked_at + _CHECK_SECONDS:
            self._check()
        if self._problem:
            hint = "The server's own log says why."
            raise Refusal(503, "TokensUnreadable", "the file of tokens is unreadable", hint)
        token = _token(headers.get("authorization", ""))
        grant = self._grants.get(hashlib.sha256(token.encode()).hexdigest()) if token else None
        if grant is None:
            hint = "Send the header Authorization: Bearer TOKEN."
            challenge = {"WWW_Authenticate": 'Bearer realm="zlog"'}
            raise Refusal(401, "Unauthorized", "the token is missing or wrong", hint, **challenge)
        return grant

    def _check(self) -> None:
        """Read the file if it has changed. An invalid file is logged once, not for each request."""
        self._checked_at, problem = time.monotonic(), ""
        try:
            self._renew()
        except (OSError, ValueError) as error:
            # Tokens that the broken file may have revoked must not stay valid.
            self._grants, self._stamp, problem = {}, None, str(error)
            if problem != self._problem:
                LOGGER.error("all requests are refused until this is corrected: %s", problem)
        self._problem = problem

    def _renew(self) -> None:
        if self._path is None:
            return
        stat = self._path.stat()
        if self._stamp != (stat.st_mtime_ns, stat.st_ino):
            grants: dict[str, Grant] = {}
            for i, line in enumerate(self._path.read_text(errors="replace").splitlines(), 1):
                if line.strip() and not line.startswith("#"):
                    token, grant = _parse(line, where := f"{self._path}, line {i}")
                    if token in grants:
                        raise ValueError(f"{where}: an earlier line has this hash")
                    grants[token] = grant
            self._grants, self._stamp = grants, (stat.st_mtime_ns, stat.st_ino)


def _token(authorization: str) -> str:
    """Return the token of a request. Senders that only have a URL put it there as the password."""
    kind, _, rest = authorization.partition(" ")
    if kind.lower() == "basic":
        with suppress(ValueError):
            return b64decode(rest).decode().partition(":")[2]
    return rest.strip() if kind.lower() == "bearer" else ""


def _parse(line: str, where: str) -> tuple[str, Grant]:
    """Return the hash of a token, and what it grants."""
    fields = line.split()
    found = _HASH.fullmatch(fields[1]) if len(fields) == 4 else None
    rights = frozenset(RIGHTS if fields[2:3] == ["all"] else "".join(fields[2:3]).split(","))
    if found is None or not rights <= {*RIGHTS}:
        known = ", ".join(RIGHTS)
        raise ValueError(f"{where}: write NAME sha256:HEX RIGHTS PATTERNS; rights: {known}, all")
    try:
        patterns = tuple(check_pattern(each) for each in fields[3].split(","))
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None
    return found[1], Grant(fields[0], rights, patterns)
