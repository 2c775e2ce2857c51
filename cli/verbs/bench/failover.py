"""The benchmark ``bench failover``."""

from __future__ import annotations

import signal
import statistics
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from urllib.parse import urlsplit

import click

import zlog
from zlog.admin import sequencer_status
from zlog.cli.output import Output, note
from zlog.cli.parameters import json_option
from zlog.cli.render import to_json
from zlog.cli.session import Session, pass_session
from zlog.cli.tables import table
from zlog.cli.verb import Verb
from zlog.cli.verbs.bench.options import count_option, width_option
from zlog.cli.verbs.bench.processes import SequencerProcess
from zlog.cli.verbs.bench.steady import SteadyWriters
from zlog.cli.verbs.bench.testbed import NO_SEQUENCER, new_testbed
from zlog.seqr.election.lease import LEASE_SECONDS_DEFAULT, LEASE_SECONDS_MAX, LEASE_SECONDS_MIN

_FAULTS = {
    "kill": signal.SIGKILL,
    "freeze": signal.SIGSTOP,
    "stop": signal.SIGTERM,
}

_STATUS_SECONDS = 2.0
_READY_SECONDS = 60.0
_LOOK_SECONDS = 0.1


@click.command(
    "failover",
    cls=Verb,
    examples="""
    zlog --store ceph://logs bench failover
    zlog --store ceph://logs bench failover --fault freeze --lease 5
    """,
)
@click.option(
    "--fault",
    type=click.Choice(list(_FAULTS)),
    metavar="|".join(_FAULTS),
    multiple=True,
    help="What happens to the leader: SIGKILL, SIGSTOP or SIGTERM; may be given again."
    "  [default: all of them]",
)
@count_option("--rounds", 10, 1000, "How often, for each fault.")
@count_option("--sequencers", 2, 16, "How many sequencers run.")
@count_option("--writers", 4, 256, "How many threads append meanwhile, one entry at a time.")
@width_option
@click.option(
    "--lease",
    type=click.FloatRange(LEASE_SECONDS_MIN, LEASE_SECONDS_MAX),
    default=LEASE_SECONDS_DEFAULT,
    show_default=True,
    metavar="SECONDS",
    help="The sequencers' lease.",
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

    FIRST is the time from the fault to the first append that was begun after it and was
    acknowledged, of any writer; LAST is the same of the slowest writer.
    """
    if sequencers < 2:
        raise click.UsageError("--sequencers must be 2 or more: one has to take over")
    if urlsplit(session.url).scheme != "ceph":
        raise click.UsageError(f"{session.url} needs no sequencer, so there is no fail-over")
    results = []
    with ExitStack() as stack:
        testbed = stack.enter_context(new_testbed(session, NO_SEQUENCER))
        crew = Crew(testbed.url, sequencers, lease)
        stack.callback(crew.end)
        name = stack.enter_context(testbed.new_log(width))
        crew.wait_until_ready()
        load = stack.enter_context(SteadyWriters(testbed.store, name, writers, session.timeout))
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
    """Some sequencers of one store, one of which leads.

    Args:
        url: of the store.
        count: how many there shall be.
        lease: in seconds.
    """

    def __init__(self, url: str, count: int, lease: float) -> None:
        self._url = url
        self._lease = lease
        self._members = [SequencerProcess(url, lease) for _ in range(count)]

    def wait_until_ready(self) -> None:
        """Wait until one leads and knows of all others.

        Raises:
            SequencerUnavailable: it takes longer than can be.
        """
        end = time.monotonic() + _READY_SECONDS
        while not any(self._leads(member, knowing_all=True) for member in self._members):
            if time.monotonic() > end:
                raise zlog.SequencerUnavailable("the sequencers don't agree who leads")
            time.sleep(_LOOK_SECONDS)

    def hit_leader(self, number: signal.Signals) -> Callable[[], None]:
        """Send the leader a signal. Returns what brings the crew back to its strength."""
        leader = next(member for member in self._members if self._leads(member))
        leader.signal(number)

        def heal() -> None:
            if number == signal.SIGSTOP:
                leader.signal(signal.SIGCONT)
            else:
                leader.end()
                self._members[self._members.index(leader)] = SequencerProcess(
                    self._url, self._lease
                )
            self.wait_until_ready()

        return heal

    def end(self) -> None:
        """Stop all of them."""
        for member in self._members:
            member.end()

    def _leads(self, member: SequencerProcess, *, knowing_all: bool = False) -> bool:
        (namespace,) = sequencer_status(member.address, timeout=_STATUS_SECONDS)["namespaces"]
        others = {other.address for other in self._members if other is not member}
        leads = namespace["role"] == "leader"
        return leads and (not knowing_all or others <= set(namespace["others"]))


def _round(crew: Crew, load: SteadyWriters, number: signal.Signals) -> tuple[float, float]:
    """Return after how many seconds the first writer went on, and the last."""
    load.wait_for_all()
    began = time.monotonic()
    heal = crew.hit_leader(number)
    ends = load.first_since(time.monotonic())
    heal()
    return min(ends) - began, max(ends) - began


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
