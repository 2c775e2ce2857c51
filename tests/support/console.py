"""`zlog console` as a process, and what it answers."""

from __future__ import annotations

import json
import os
import re
import signal
import ssl
import subprocess
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

from .programs import ZLOG
from .waiting import wait_until

_GREETING = re.compile(r"console at (\w+)://(\S+):(\d+)/(?:#token=(\S+))?")
_FIRST_WORDS = (
    *("zlog: console at", "zlog: on this machine, also at", "zlog: without TLS"),
    "zlog: offloaded stripe",
)


class Answer(NamedTuple):
    """What came back for a request."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def fields(self) -> Any:
        """The body, which is JSON."""
        return json.loads(self.body)


class ConsoleProcess:
    """A console on a free port.

    Args:
        url: of the store.
        folder: for what it says.
        options: of the command.
        listen: the host it listens on.
        globals_: options before the command.

    Attributes:
        address: such as `http://127.0.0.1:7462`.
        token: that was printed.
    """

    def __init__(
        self,
        url: str,
        folder: Path,
        *options: str,
        listen: str = "127.0.0.1",
        globals_: tuple[str, ...] = (),
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._said = folder / "said"
        words = [ZLOG, "--store", url, *globals_, "console", "--listen", f"{listen}:0", *options]
        with self._said.open("w") as said:
            self.process = subprocess.Popen(words, stderr=said, env={**os.environ, "TERM": "dumb"})
        found: list[re.Match[str]] = []

        def listens() -> bool:
            found.extend(_GREETING.finditer(self.said))
            assert self.process.poll() is None, self.said
            return bool(found)

        wait_until(listens, self.said)
        scheme, host, port, self.token = found[0].groups(default="")
        if listen == "0.0.0.0":
            host = "127.0.0.1"  # the name of the machine may mean nothing here
        self.address = f"{scheme}://{host}:{port}"

    @property
    def said(self) -> str:
        """What it has written to stderr."""
        return self._said.read_text()

    def __enter__(self) -> ConsoleProcess:
        """Itself; in the end it has to end well, and to have complained of nothing."""
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        code = self.end()
        if kind is None:
            assert code == 0, self.said
            assert all(line.startswith(_FIRST_WORDS) for line in self.said.splitlines()), self.said

    def end(self, number: int = signal.SIGTERM) -> int:
        """End it; returns its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.process.wait(30)

    def ask(
        self,
        path: str,
        headers: Mapping[str, str] | None = None,
        *,
        body: bytes | None = None,
        **parameters: Any,
    ) -> Answer:
        """Ask for something by GET, or by POST if there is a body."""
        query = f"?{urlencode(parameters, doseq=True)}" if parameters else ""
        request = urllib.request.Request(f"{self.address}{path}{query}", body, dict(headers or {}))
        context = ssl._create_unverified_context() if self.address.startswith("https") else None
        try:
            answer = urllib.request.urlopen(request, timeout=30, context=context)
        except urllib.error.HTTPError as error:
            answer = error
        with answer:
            headers = {name.lower(): value for name, value in answer.headers.items()}
            return Answer(answer.status, headers, answer.read())

    def get(self, path: str, **parameters: Any) -> Any:
        """Return what a GET tells, that has to succeed."""
        answer = self.ask(f"/api/{path}", **parameters)
        assert answer.status == 200, answer
        return answer.fields

    def post(self, path: str, fields: Any, **headers: str) -> Answer:
        """Change something as the page does."""
        body = fields if isinstance(fields, bytes) else json.dumps(fields).encode()
        return self.ask(f"/api/{path}", {"x-zlog-console": "1", **headers}, body=body)
