"""Measure a store's speed and compare it with its raw limits: ``python -m bench COMMAND``."""

from __future__ import annotations

import importlib

import click

from zlog.cli.command import global_options
from zlog.cli.main import Zlog
from zlog.cli.output import hold_descriptors

_COMMANDS = ("append", "read", "tail", "sequencer", "failover", "growth", "spark")


class _Bench(Zlog):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*_COMMANDS]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        found: click.Command = getattr(importlib.import_module(f"bench.{cmd_name}"), cmd_name)
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        click.Group.format_commands(self, ctx, formatter)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        pass


if __name__ == "__main__":
    hold_descriptors()
    _Bench(
        name="bench",
        help="Measure how fast a store is compared with its raw limits. Each benchmark uses its own"
        " part of the store, a namespace of the pool or a folder inside the store's folder, and"
        " removes it at the end.",
        params=global_options(hidden=False),
    ).main(prog_name="python -m bench")
