"""Fixtures of the sequencer's tests."""

from __future__ import annotations

import asyncio

import pytest

from zlog.seqr.limits import Limits
from zlog.seqr.security import Security

from ..support.certificates import Authority
from .callers import Caller
from .fakes import FakeStore, ServerThread


@pytest.fixture
def store():
    return FakeStore()


@pytest.fixture
def server(store):
    """A server over the fake store, in a thread of its own."""
    running = ServerThread(store)
    yield running
    running.stop()


@pytest.fixture(params=["blocking", "aio"])
def call(request):
    caller = Caller(request.param)
    yield caller
    caller.close()


@pytest.fixture(params=["asyncio", "uvloop"])
def serve(request, store):
    """Starts servers; without TLS each test runs with both event loops."""
    loops = asyncio if request.param == "asyncio" else pytest.importorskip("uvloop")
    running = []

    def serve(security: Security, limits: Limits | None = None) -> ServerThread:
        new_loop = (asyncio if security.certificate else loops).new_event_loop
        running.append(ServerThread(store, limits=limits, new_loop=new_loop, security=security))
        return running[-1]

    yield serve
    for server in running:
        server.stop()


@pytest.fixture
def token(tmp_path):
    """Writes a token file of these lines; returns its path."""

    def token(*lines: str) -> str:
        path = tmp_path / f"token{len([*tmp_path.iterdir()])}"
        path.write_text("\n".join(lines) + "\n")
        return str(path)

    return token


@pytest.fixture(scope="session")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("certificates"), "authority")


@pytest.fixture(scope="session")
def untrusted(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("certificates"), "untrusted")
