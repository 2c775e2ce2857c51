"""Servers of the command `zlog http`, as processes."""

from __future__ import annotations

import http.client
import os
import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.request import urlopen

import pytest

from ..support.console import Answer
from ..support.programs import REPOSITORY, ZLOG
from ..support.waiting import wait_until

NODE_MODULES = REPOSITORY / "build" / "npm" / "node_modules"


class Server:
    """A server on a free port, which it keeps when it is started again."""

    def __init__(self, url: str, folder: Path, *options: str) -> None:
        self.words = [ZLOG, "--store", url, "http", "--listen", "127.0.0.1:0", *options]
        self.words += ["--metrics", "127.0.0.1:0"]
        self._folder = folder
        self.start()

    def start(self) -> None:
        with (self._folder / "said").open("w") as said:
            self.process = subprocess.Popen(self.words, stderr=said, env={**os.environ})
        found: list[re.Match[str]] = []

        def ready() -> bool:
            found.extend(re.finditer(r"serving https?://\S+:(\d+)/v1/", self.said))
            return bool(found) or self.process.poll() is not None

        wait_until(ready)
        assert found, self.said
        self.port = int(found[0][1])
        metrics = re.search(r"metrics at http://(\S+)/metrics", self.said)
        self.metrics = metrics[1] if metrics else ""
        self.words[self.words.index("--listen") + 1] = f"127.0.0.1:{self.port}"
        self.address = f"http://127.0.0.1:{self.port}"

    @property
    def said(self) -> str:
        return (self._folder / "said").read_text()

    def ask(self, method: str, path: str, body: bytes = b"", **headers: str) -> Answer:
        """Send a request; `_` in the name of a header is `-`."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, body or None, named)
        reply = connection.getresponse()
        given = {name.lower(): value for name, value in reply.getheaders()}
        answer = Answer(reply.status, given, reply.read())
        connection.close()
        return answer

    @contextmanager
    def events(self, path: str) -> Iterator[http.client.HTTPResponse]:
        """Begin to read server-sent events."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request("GET", path)
            yield connection.getresponse()
        finally:
            connection.close()

    def tail(self, path: str) -> str | None:
        """The offset after a stream's last entry; None if there is no stream."""
        return self.ask("HEAD", f"/v1/stream/{path}").headers.get("stream-next-offset")

    @property
    def waits(self) -> int:
        """How many long-polls and event streams are under way."""
        with urlopen(f"http://{self.metrics}/metrics") as reply:
            found = re.search(r"^zlog_http_waiting (\S+)", reply.read().decode(), re.MULTILINE)
        assert found
        return int(float(found[1]))

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=60)


Starter = Callable[..., Server]


@pytest.fixture
def store_at(tmp_path: Path) -> str:
    """The URL of an embedded store."""
    return (tmp_path / "store").as_uri()


@pytest.fixture
def start(store_at: str, tmp_path: Path) -> Iterator[Starter]:
    """Starts servers of one store: (*options, url=…). In the end none may have failed."""
    servers: list[Server] = []
    with ExitStack() as stack:

        def run(*options: str, url: str = store_at) -> Server:
            folder = tmp_path / f"server{len(servers)}"
            folder.mkdir()
            servers.append(Server(url, folder, *options))
            stack.callback(servers[-1].kill)
            return servers[-1]

        yield run
    assert not [server.said for server in servers if "Traceback" in server.said]


@pytest.fixture
def server(start: Starter) -> Server:
    return start()


def events(text: str) -> list[tuple[str, str]]:
    """Parse server-sent events into kinds and data."""
    found = []
    for block in text.split("\n\n"):
        lines = [line.partition(":") for line in block.split("\n")]
        data = "\n".join(value for name, _, value in lines if name == "data")
        found += [(value.strip(), data) for name, _, value in lines if name == "event"]
    return found
