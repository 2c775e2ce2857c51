"""The command work: runs another command for each entry that a worker of a queue gets."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import click

import zlog
from zlog.cli import ranges
from zlog.cli.command import Command
from zlog.cli.exit_codes import ExitCode, Failure
from zlog.cli.group_tail import worker_name
from zlog.cli.groups import GROUP_NAME, group_stat, groups_module
from zlog.cli.names import log_argument
from zlog.cli.output import note, say
from zlog.cli.parameters import number_option, seconds_option
from zlog.cli.ranges import PositionSpec
from zlog.cli.session import Session, pass_session, usage_errors
from zlog.cli.signals import Terminated
from zlog.cli.template import iso

if TYPE_CHECKING:
    from zlog.groups import Job, Queue

_EXTENSIONS = 3
"""How often the lease of a job is extended before it would end."""

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

_WAIT_SECONDS = 0.5
"""How long a thread waits for a job before it checks whether it should stop."""


@click.command(
    cls=Command,
    examples="""
    zlog work orders --group mail -- ./send-mail
    zlog work orders --group mail --dead-letters undelivered --attempts 5 --jobs 4 -- ./send-mail
    zlog work orders --group mail --exit-when-empty -- sh -c 'echo "$ZLOG_POSITION: $(cat)"'
    """,
)
@log_argument
@click.argument("words", metavar="-- COMMAND...", nargs=-1, required=True, type=click.UNPROCESSED)
@click.option(
    "--group",
    "name",
    type=GROUP_NAME,
    required=True,
    metavar="NAME",
    help="The queue, which is created if it does not exist.",
)
@seconds_option(
    "--lease", 30.0, 1.0, None, "Let others take the jobs if this worker seems dead for this time."
)
@click.option(
    "--attempts",
    type=click.IntRange(min=1),
    metavar="N",
    help="Move an entry to the dead letters after N failures.  [default: as stored, or 5]",
)
@click.option(
    "--dead-letters",
    metavar="LOG",
    help="The log for dead letters, which is created if necessary. Without one, entries are tried"
    " until they succeed.  [default: as stored, or none]",
)
@seconds_option("--delay", 1.0, 0.0, None, "Try an entry again this long after a failure.")
@number_option("--jobs", 1, 1, 256, "Run up to N commands at the same time.")
@ranges.from_option(help="Where a new queue starts, as for `zlog read`.  [default: earliest]")
@click.option(
    "-e",
    "--exit-when-empty",
    is_flag=True,
    help="Stop if no entry is ready. Failed entries that wait for --delay stay in the queue.",
)
@pass_session
def work(
    session: Session,
    log: str,
    words: tuple[str, ...],
    name: str,
    lease: float,
    attempts: int | None,
    dead_letters: str | None,
    delay: float,
    jobs: int,
    begin: PositionSpec | None,
    exit_when_empty: bool,
) -> None:
    """Run a command for each entry of a queue.

    COMMAND gets the entry's data on stdin. If its exit code is 0, the entry is acknowledged.
    Otherwise the entry is tried again after --delay, perhaps by another worker, or becomes a dead
    letter. While COMMAND runs, zlog extends the job's lease. If zlog is killed, another worker runs
    the command for the entry again, so each entry is processed at least once.

    The environment has ZLOG_STORE, ZLOG_LOG, ZLOG_GROUP, ZLOG_POSITION, ZLOG_ATTEMPT (1 for the
    first), ZLOG_TIMESTAMP, and ZLOG_TAGS, a JSON list.

    After SIGINT, SIGTERM or SIGHUP, zlog starts no more commands, waits for those that run, and
    exits with 128 plus the number of the signal. A second signal sends SIGTERM to them, and a third
    one SIGKILL; their entries are given back without counting the attempt.
    """
    program = shutil.which(words[0])
    if program is None:
        raise click.UsageError(f"no such command: {words[0]!r}")
    groups = groups_module()
    with session.open_log(log) as opened:
        stat = group_stat(opened, name)
        if stat is not None and stat.mode == "ordered":
            hint = "Use `zlog tail LOG --group NAME`, or a program with zlog.groups."
            message = f"group {name!r} is not a queue, but ordered"
            raise Failure(message, ExitCode.FAILURE, hint)
        letters = stat.dead_letters if dead_letters is None and stat else dead_letters
        if attempts is not None and not letters:
            raise click.UsageError("--attempts needs --dead-letters LOG")
        with usage_errors():
            queue = groups.Queue(
                opened,
                name,
                lease=lease,
                attempts=attempts,
                dead_letters=dead_letters,
                start="earliest" if begin is None else ranges.beginning(opened, begin),
                worker=worker_name(),
            )
        environment = {"ZLOG_STORE": session.url, "ZLOG_LOG": log, "ZLOG_GROUP": name}
        with queue:
            worker = _Worker(queue, [program, *words[1:]], environment, lease, delay)
            worker.run(jobs, once=exit_when_empty)


@dataclass
class _Worker:
    """Runs a command for the jobs of a queue, in several threads."""

    queue: Queue
    words: list[str]
    environment: Mapping[str, str]
    lease: float
    delay: float
    _running: set[subprocess.Popen[bytes]] = field(default_factory=set)
    _signals: list[int] = field(default_factory=list)
    _stopping: threading.Event = field(default_factory=threading.Event)

    def run(self, jobs: int, *, once: bool) -> None:
        """Process jobs until a signal, a failure or, if ``once``, until there are none.

        Raises:
            Terminated, KeyboardInterrupt: a signal has stopped the worker.
        """
        with self._listening(), ThreadPoolExecutor(jobs) as pool:
            threads = [pool.submit(self._process, once) for _ in range(jobs)]
            while wait(threads, _WAIT_SECONDS).not_done:
                pass  # signals are handled here
        for thread in threads:
            thread.result()
        if self._signals[:1] == [signal.SIGINT]:
            raise KeyboardInterrupt
        if self._signals:
            raise Terminated(self._signals[0])

    @contextmanager
    def _listening(self) -> Iterator[None]:
        numbers = [each for each in _SIGNALS if signal.getsignal(each) is not signal.SIG_IGN]
        before = {each: signal.signal(each, lambda got, _: self._signal(got)) for each in numbers}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _signal(self, number: int) -> None:
        """Stop taking jobs at the first signal, and end the commands at later ones."""
        if number == signal.SIGHUP:  # a lost terminal sends it twice
            signal.signal(number, signal.SIG_IGN)
        self._signals.append(number)
        self._stopping.set()
        if len(self._signals) == 1:
            note("waiting for the running commands; a second signal ends them")
            return
        for process in [*self._running]:
            with suppress(ProcessLookupError):
                stop = signal.SIGTERM if len(self._signals) == 2 else signal.SIGKILL
                os.killpg(process.pid, stop)

    def _process(self, once: bool) -> None:
        try:
            while not self._stopping.is_set():
                jobs = self.queue.take(1, wait=_WAIT_SECONDS)
                if once and not (jobs or self._running):  # a job that runs may fail and return
                    return
                for job in jobs:
                    if self._stopping.is_set():
                        job.release()
                    else:
                        self._do(job)
        except BaseException:
            self._stopping.set()  # the other threads finish their jobs
            raise

    def _do(self, job: Job) -> None:
        try:
            failure = self._run(job, job.entry)
        except zlog.ZlogError as error:  # the entry cannot be read
            failure = str(error)
        if len(self._signals) > 1 and failure:
            job.release(flush=True)
        elif failure:
            say(f"position {job.position}, attempt {job.attempt}: {failure}")
            job.nack(delay=self.delay, error=failure, flush=True)
        else:
            job.ack(flush=True)

    def _run(self, job: Job, entry: zlog.Entry) -> str:
        """Run the command for a job. Returns why it has failed, or an empty text."""
        about = {
            "ZLOG_POSITION": str(job.position),
            "ZLOG_ATTEMPT": str(job.attempt),
            "ZLOG_TIMESTAMP": iso(entry.timestamp),
            "ZLOG_TAGS": json.dumps(sorted(entry.tags), ensure_ascii=False),
        }
        how: dict[str, Any] = {
            "stdin": subprocess.PIPE,
            "env": {**os.environ, **self.environment, **about},
        }
        # A terminal's Ctrl-C is for zlog, which waits for the command.
        process = subprocess.Popen(self.words, start_new_session=True, **how)  # noqa: S603
        self._running.add(process)
        try:
            given: bytes | None = entry.data
            while True:
                try:
                    process.communicate(given, timeout=self.lease / _EXTENSIONS)
                    break
                except subprocess.TimeoutExpired:
                    given = None  # it is sent already, or is being sent
                    job.extend()
        finally:
            self._running.discard(process)
        code = process.returncode
        return f"exit code {code}" if code > 0 else f"signal {-code}" if code else ""
