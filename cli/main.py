"""The program: runs a command, and turns failures into exit codes."""

from __future__ import annotations

import importlib
import io
import keyword
import logging
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import click

import zlog
from zlog import ZlogError
from zlog.cli.command import Group, ceph_options, global_options, write_examples
from zlog.cli.exit_codes import ExitCode, exit_code_of
from zlog.cli.hints import hint_of
from zlog.cli.output import (
    OutputClosed,
    OutputFailed,
    hold_descriptors,
    say,
    shortened,
    silence_stdout,
)
from zlog.cli.session import Session
from zlog.cli.signals import Terminated

_SECTIONS = {
    "Logs": ("create", "ls", "info", "views", "reconfigure", "template", "access", "rm"),
    "Entries": ("append", "forward", "read", "tail", "fill", "trim", "retention", "offload"),
    "Clients": ("cursor", "producer", "group", "work", "objects", "spark", "sql", "table"),
    "Copies": ("export", "import", "mirror"),
    "Services": ("seqr", "http", "console", "exporter"),
    "Operation": ("store", "check", "doctor", "top", "bench"),
    "This program": ("completion", "help"),
}
"""The commands in the order of ``zlog --help``. Each has a module of its name in ``commands``."""

_COMMANDS = tuple(name for names in _SECTIONS.values() for name in names)

_EXAMPLES = """
zlog create orders
zlog append orders < orders.txt
zlog read orders --json
zlog --store ceph://logs tail orders --follow
"""


class Zlog(Group):
    """The command ``zlog``. The module of a command is imported when it is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands, in the order of the help."""
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command."""
        if cmd_name not in _COMMANDS:
            return None
        name = f"{cmd_name}_" if keyword.iskeyword(cmd_name) else cmd_name.replace("-", "_")
        module = importlib.import_module(f"zlog.cli.commands.{name}")
        command: click.Command = getattr(module, name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands in sections, with the first sentence of their help."""
        width = max(map(len, _COMMANDS))
        for title, names in _SECTIONS.items():
            found = ((name, self.get_command(ctx, name)) for name in names)
            rows = [
                (name.ljust(width), each.get_short_help_str(66)) for name, each in found if each
            ]
            with formatter.section(title):
                formatter.write_dl(rows)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples."""
        write_examples(_EXAMPLES, formatter)

    def main(  # type: ignore[override]  # click's own also may return, with standalone_mode
        self, args: Sequence[str] | None = None, prog_name: str | None = None, **others: Any
    ) -> NoReturn:
        """Run a command line, and exit with its exit code."""
        logging.lastResort = _Warnings(logging.WARNING)
        session = Session()
        others.setdefault("obj", session)
        others["standalone_mode"] = False
        sys.exit(_run(lambda: super(Zlog, self).main(args, prog_name, **others), session))


class _Warnings(logging.Handler):
    """Prints the library's warnings as messages. A sequencer configures its own log."""

    def emit(self, record: logging.LogRecord) -> None:
        say(self.format(record))


def _run(run: Callable[[], object], session: Session) -> int:
    try:
        if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:  # see zlog_command
            signal.signal(signal.SIGINT, signal.default_int_handler)
        result = run()
    except (click.Abort, KeyboardInterrupt):
        return ExitCode.INTERRUPTED
    except Terminated as end:
        return ExitCode(128 + end.number)
    except OutputClosed:
        silence_stdout()
        return ExitCode.OUTPUT_CLOSED
    except click.ClickException as error:
        _show_traceback(session)
        if isinstance(error, click.UsageError):
            shown = io.StringIO()
            error.show(shown)
            click.echo(shortened(shown.getvalue()), err=True, nl=False)
        else:
            say(error.format_message())
        return error.exit_code
    except (ZlogError, OSError) as error:
        _show_traceback(session)
        say(_in_words(error))
        if isinstance(error, OutputFailed):
            silence_stdout()
        if isinstance(error, ZlogError):
            if session.debug and error.call:
                say(f"call: {error.call}")
            say(f"hint: {hint_of(error, session.log)}")
        return exit_code_of(error)
    except MemoryError:
        _show_traceback(session)
        say("there is not enough memory")
        say("hint: give the command more memory, or process less data at a time")
        return ExitCode.FAILURE
    except Exception as error:  # noqa: BLE001  # any other error is a bug
        if not _show_traceback(session):
            say(f"internal error: {type(error).__name__}: {error}")
            say("hint: run it again with --debug, and report the output")
        return ExitCode.FAILURE
    return result if isinstance(result, int) else ExitCode.OK


def _in_words(error: ZlogError | OSError) -> str:
    if isinstance(error, OSError) and error.filename and error.strerror:
        return f"{error.filename}: {error.strerror}"
    return str(error)


def _show_traceback(session: Session) -> bool:
    if session.debug:
        traceback.print_exc()
    return session.debug


command = Zlog(
    name="zlog",
    help="A distributed shared log on Ceph or in a local directory: many writers append, and all"
    " readers see the same entries in the same order.",
    params=[*global_options(hidden=False), *ceph_options()],
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="",
)
click.version_option(zlog.__version__, message="zlog %(version)s", help="Show the version.")(
    command
)


def main() -> NoReturn:
    """Run the command line of this process."""
    hold_descriptors()
    command.main(prog_name="zlog")
