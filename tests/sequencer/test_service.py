"""The sequencer as a process: signals, sudden death, and what its clients see of it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading

import pytest

import zlog
from zlog._base.deadline import Deadline
from zlog._base.sequencer import LogAddress
from zlog._io import BlockingIo, drive
from zlog._layout.head import Directory
from zlog._sequencer import BlockingSequencer
from zlog.errors import SequencerUnavailable
from zlog.seqr import service

PROGRAM = "import sys; from zlog.seqr import service; service.run(sys.argv[1], store=sys.argv[2])"


class Process:
    """A sequencer in a process of its own; ``address`` is known once it listens."""

    def __init__(self, url: str, listen: str = "127.0.0.1:0") -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, listen, url], stderr=subprocess.PIPE, text=True
        )
        self.lines: list[str] = []
        for line in self._process.stderr:
            self.lines.append(line)
            if "listening" in line:
                self.address = line.split("address=")[1].split()[0]
                break
        else:
            pytest.fail("it did not start: " + "".join(self.lines))

    @property
    def listen(self) -> str:
        return self.address.removeprefix("tcp://")

    def signal(self, number: int) -> None:
        self._process.send_signal(number)

    def wait(self) -> int:
        """Wait for its end; its exit status."""
        _, rest = self._process.communicate(timeout=30)
        self.lines += rest.splitlines(keepends=True)
        return self._process.returncode

    def end(self) -> None:
        if not self._process.stderr.closed:
            self._process.kill()
            self.wait()


@pytest.fixture
def url(tmp_path):
    return (tmp_path / "store").as_uri()


@pytest.fixture
def store(url):
    with zlog.connect(url) as store:
        yield store


@pytest.fixture
def start(store):
    started = []

    def start(*args) -> Process:
        started.append(Process(store.url, *args))
        return started[-1]

    yield start
    for process in started:
        process.end()


@pytest.fixture
def log(store):
    with zlog.Log.create(store, "orders") as log:
        yield log


@contextlib.contextmanager
def client_of(process: Process):
    client = BlockingSequencer(process.address)
    try:
        yield client
    finally:
        drive(client.close())


def address_of(log) -> LogAddress:
    return LogAddress("", "", log.name, log.view.log_id)


def lead(process: Process, log) -> None:
    """Have the sequencer take the log over, and ``log`` know it."""
    with client_of(process) as client:
        drive(client.open(address_of(log), 0, Deadline(10)))
    assert log.append(b"lead") >= 0
    assert log.view.sequencer == process.address


def announced(store) -> str:
    return drive(Directory(BlockingIo(store)).sequencer(Deadline(10)))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_cleanly(start, store, log, number):
    process = start()
    assert announced(store) == process.address
    lead(process, log)
    first = log.append(b"x")
    assert [log.append(b"x") for _ in range(3)] == [first + 1, first + 2, first + 3]
    process.signal(number)
    assert process.wait() == 0
    assert announced(store) == ""
    with zlog.Log.open(store, "orders") as other:
        assert other.view.sequencer == ""
    assert log.append(b"x") == first + 4


def test_a_sequencer_restarted_at_once_is_not_noticed_by_writers(start, log):
    process = start()
    lead(process, log)
    before = log.append(b"x")
    process.signal(signal.SIGKILL)
    process.wait()
    again = start(process.listen)
    assert log.append(b"x") > before
    assert log.view.sequencer == again.address


class Writers:
    """Threads that append until told to stop, each through a log of its own."""

    def __init__(self, store, count: int) -> None:
        self.positions: dict[int, bytes] = {}
        self.enough = threading.Semaphore(0)
        self._store = store
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(n,)) for n in range(count)]
        self._lock = threading.Lock()
        self.errors: list[BaseException] = []
        for thread in self._threads:
            thread.start()

    def wait_for(self, appends: int) -> None:
        for _ in range(appends):
            assert self.enough.acquire(timeout=30), self.errors

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(30)

    def _run(self, number: int) -> None:
        try:
            with zlog.Log.open(self._store, "orders") as log:
                count = 0
                while not self._stop.is_set():
                    data = f"{number}:{count}".encode()
                    position = log.append(data)
                    with self._lock:
                        assert position not in self.positions
                        self.positions[position] = data
                    count += 1
                    self.enough.release()
        except BaseException as error:
            self.errors.append(error)
            raise


def check(log, writers: Writers) -> None:
    """Every acknowledged entry is at its position, and none is there twice."""
    assert not writers.errors
    entries = [
        each
        for each in log.read_range(0, log.tail(), hole_timeout=0)
        if isinstance(each, zlog.Entry)
    ]
    found = {entry.position: entry.data for entry in entries}
    assert writers.positions.items() <= found.items()
    assert len(set(found.values())) == len(found)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "frozen"])
def test_writers_go_on_without_a_sequencer_that_is_lost(start, store, log, number):
    """Nothing acknowledged is lost or doubled; a frozen one that wakes up does no harm either."""
    process = start()
    lead(process, log)
    writers = Writers(store, 3)
    try:
        writers.wait_for(30)
        process.signal(number)
        while log.view.sequencer == process.address:
            log.append(os.urandom(8))
        writers.wait_for(30)
        if number == signal.SIGSTOP:
            process.signal(signal.SIGCONT)
            with client_of(process) as client:  # it grants, in its dead epoch or in a new one
                drive(client.next(address_of(log), 1, 0, Deadline(10)))
            writers.wait_for(30)
    finally:
        writers.stop()
    check(log, writers)


def test_a_port_that_is_taken_is_told(start, url):
    process = start()
    with pytest.raises(zlog.ZlogError, match="in use"):
        service.run(process.listen, store=url)


def test_a_store_that_is_not_there_is_told(tmp_path):
    with pytest.raises(ValueError, match="store URL"):
        service.run("127.0.0.1:0", store="nonsense://")
    with pytest.raises(zlog.StoreUnavailable, match="there is no store"):
        service.run("127.0.0.1:0", store=(tmp_path / "typo").as_uri())
    assert not (tmp_path / "typo").exists()


@pytest.mark.parametrize("seconds", [0.1, 3600, float("nan")])
def test_a_lease_of_no_use(seconds):
    with pytest.raises(ValueError, match="lease"):
        service.run("127.0.0.1:0", store="mem://", lease_seconds=seconds)


@pytest.mark.parametrize("listen", ["nonsense", "127.0.0.1"])
def test_an_address_that_is_none(listen):
    with pytest.raises(ValueError, match="HOST:PORT"):
        service.run(listen, store="mem://")


@pytest.mark.parametrize(
    ("advertise", "host", "address"),
    [
        (None, "127.0.0.1", "tcp://127.0.0.1:7777"),
        (None, "::1", "tcp://[::1]:7777"),
        ("seqr.example:7460", "0.0.0.0", "tcp://seqr.example:7460"),
        ("seqr.example:0", "::", "tcp://seqr.example:7777"),
    ],
)
def test_what_clients_are_told(advertise, host, address):
    assert service.client_address(advertise, host, 7777) == address


@pytest.mark.parametrize("advertise", [None, "0.0.0.0:1", "[::]:1"])
def test_clients_are_never_sent_to_a_wildcard(advertise):
    with pytest.raises(ValueError, match="--advertise"):
        service.client_address(advertise, "0.0.0.0", 7777)


def test_nobody_answers_after_the_end(start):
    process = start()
    process.signal(signal.SIGTERM)
    assert process.wait() == 0
    with pytest.raises(SequencerUnavailable):
        drive(BlockingSequencer(process.address).status(Deadline(5)))
