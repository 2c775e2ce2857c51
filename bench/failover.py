"""The benchmark ``bench failover``."""

from __future__ import annotations

import math
import signal
import statistics
import time
from collections.abc import Callable, Sequence
from concurrent import futures
from functools import partial
from urllib.parse import urlsplit

import click

import zlog
from bench.options import width_option
from bench.servers import ServerProcess, start_sequencer
from bench.testbed import Testbed, new_testbed
from zlog.admin import sequencer_status
from zlog.cli.command import Command
from zlog.cli.output import Output, note
from zlog.cli.parameters import json_option, number_option, seconds_option
from zlog.cli.render import to_json
from zlog.cli.session import Session, pass_session
from zlog.cli.tables import table
from zlog.seqr.election.lease import LEASE_SECONDS_DEFAULT, LEASE_SECONDS_MAX, LEASE_SECONDS_MIN

_FAULTS = {
    "kill": signal.SIGKILL,
    "freeze": signal.SIGSTOP,
    "stop": signal.SIGTERM,
}

_STATUS_SECONDS = 2.0
_READY_SECONDS = 60.0
_LOOK_SECONDS = 0.1
_STALL_SECONDS_MAX = 60.0
_ENTRY = b"x" * 100


@click.command(
    "failover",
    cls=Command,
    examples="""
    python -m bench --store ceph://logs failover
    python -m bench --store ceph://logs failover --fault freeze --lease 5
    """,
)
@click.option(
    "--fault",
    type=click.Choice(list(_FAULTS)),
    metavar="|".join(_FAULTS),
    multiple=True,
    help="Signal to send to the leader: SIGKILL, SIGSTOP or SIGTERM; may be repeated."
    "  [default: all]",
)
@number_option("--rounds", 10, 1, 1000, "Repeat each fault N times.")
@number_option("--sequencers", 2, 1, 16, "Number of sequencers.")
@number_option("--writers", 4, 1, 256, "Threads that append, one entry at a time.")
@width_option
@seconds_option(
    "--lease",
    LEASE_SECONDS_DEFAULT,
    LEASE_SECONDS_MIN,
    LEASE_SECONDS_MAX,
    "Lease of the sequencers.",
)
@json_option("Print one JSON object for each fault.")
@pass_session
def failover(
    session: Session,
    fault: tuple[str, ...],
    rounds: int,
    sequencers: int,
    writers: int,
    width: int,
    lease: float,
    as_json: bool,
) -> None:
    """Measure how long appends stall when the leading sequencer is lost.

    FIRST is the time from the fault until any writer's append that began after the fault is
    acknowledged. LAST is the same time for the slowest writer.
    """
    if sequencers < 2:
        raise click.UsageError("--sequencers must be 2 or more, because one has to take over")
    if urlsplit(session.url).scheme != "ceph":
        raise click.UsageError(f"{session.url} needs no sequencer, so there is no fail-over")
    results = []
    with new_testbed(session, sequencer=False) as testbed:
        crew = Crew(testbed, sequencers, lease)
        load = Writers(testbed, testbed.enter(testbed.new_log(width)), writers)
        for each in fault or _FAULTS:
            note(f"measuring: {each}")
            stalls = [_round(crew, load, _FAULTS[each]) for _ in range(rounds)]
            results.append((each, stalls))
    with Output() as out:
        if as_json:
            workload = {
                "sequencers": sequencers,
                "writers": writers,
                "width": width,
                "lease_s": lease,
                "store": session.url,
            }
            for each, stalls in results:
                fields = {"benchmark": "failover", "fault": each, "workload": workload}
                out.line(to_json(fields | _fields(stalls)))
        else:
            head = ("FAULT", "ROUNDS", "FIRST: MEDIAN S", "MAX", "LAST: MEDIAN S", "MAX")
            table(out, head, [_row(*each) for each in results], head_always=True)


class Crew:
    """The sequencers of a testbed, one of which leads."""

    def __init__(self, testbed: Testbed, count: int, lease: float) -> None:
        self._testbed = testbed
        self._lease = lease
        self._members = [self._start() for _ in range(count)]
        self._wait_until_ready()

    def _start(self) -> ServerProcess:
        return self._testbed.enter(start_sequencer(self._testbed.url, self._lease))

    def hit_leader(self, number: signal.Signals) -> None:
        """Send the leader a signal."""
        self._hit = next(member for member in self._members if self._leads(member))
        self._hit.signal(number)

    def repair(self, number: signal.Signals) -> None:
        """Restore the number of sequencers after the leader has received a signal."""
        if number == signal.SIGSTOP:
            self._hit.signal(signal.SIGCONT)
        else:
            self._hit.end()
            self._members[self._members.index(self._hit)] = self._start()
        self._wait_until_ready()

    def _wait_until_ready(self) -> None:
        """Wait until one sequencer leads and knows all others."""
        end = time.monotonic() + _READY_SECONDS
        while not any(self._leads(member, knowing_all=True) for member in self._members):
            if time.monotonic() > end:
                raise zlog.SequencerUnavailable("the sequencers don't agree who leads")
            time.sleep(_LOOK_SECONDS)

    def _leads(self, member: ServerProcess, *, knowing_all: bool = False) -> bool:
        (namespace,) = sequencer_status(member.address, timeout=_STATUS_SECONDS)["namespaces"]
        others = {other.address for other in self._members if other is not member}
        leads = namespace["role"] == "leader"
        return leads and (not knowing_all or others <= set(namespace["others"]))


class Writers:
    """Threads that append one entry after another, each through its own handle."""

    def __init__(self, testbed: Testbed, name: str, count: int) -> None:
        self._logs = [
            testbed.enter(zlog.Log.open(testbed.store, name, timeout=testbed.timeout))
            for _ in range(count)
        ]
        self._threads = testbed.enter(futures.ThreadPoolExecutor(count))
        self._fault = math.inf

    def wait_for_all(self) -> None:
        """Have every writer append one entry."""
        list(self._threads.map(lambda log: log.append(_ENTRY), self._logs))

    def stalls(self, fault: Callable[[], None]) -> list[float]:
        """Append continuously during a fault.

        Returns:
            For each writer, the seconds from the fault to the acknowledgement of its first append
            that began after the fault.

        Raises:
            StoreTimeout: a writer did not complete such an append in time.
            ZlogError: an append failed.
        """
        self._fault = math.inf
        running = [self._threads.submit(self._append_past_fault, log) for log in self._logs]
        try:
            began = time.monotonic()
            fault()
            self._fault = time.monotonic()
            if futures.wait(running, _STALL_SECONDS_MAX).not_done:
                raise zlog.StoreTimeout(f"nothing was appended for {_STALL_SECONDS_MAX:g} s")
        finally:
            self._fault = -math.inf
        return [each.result() - began for each in running]

    def _append_past_fault(self, log: zlog.Log) -> float:
        while True:
            began = time.monotonic()
            log.append(_ENTRY)
            if began > self._fault:
                return time.monotonic()


def _round(crew: Crew, load: Writers, number: signal.Signals) -> tuple[float, float]:
    """Return the seconds until the first and until the last writer continued."""
    load.wait_for_all()
    stalls = load.stalls(partial(crew.hit_leader, number))
    crew.repair(number)
    return min(stalls), max(stalls)


def _fields(stalls: Sequence[tuple[float, float]]) -> dict[str, object]:
    return {
        name: {
            "median": round(statistics.median(seconds), 3),
            "max": round(max(seconds), 3),
            "all": [round(each, 3) for each in seconds],
        }
        for name, seconds in zip(("first_s", "last_s"), zip(*stalls, strict=True), strict=True)
    }


def _row(fault: str, stalls: Sequence[tuple[float, float]]) -> tuple[str, ...]:
    row = [fault, str(len(stalls))]
    for seconds in zip(*stalls, strict=True):
        row += [f"{statistics.median(seconds):.3f}", f"{max(seconds):.3f}"]
    return tuple(row)
