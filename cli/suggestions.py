"""Suggestions for unknown commands and options, such as those of other tools."""

from __future__ import annotations

from collections.abc import Collection
from difflib import get_close_matches

import click

_COMMANDS = {
    "create": "add make mk new",
    "ls": "list logs",
    "info": "describe show stat stats status",
    "rm": "del delete destroy drop remove",
    "append": "add produce publish push put send write",
    "read": "cat dump fetch get print query",
    "tail": "consume follow listen poll stream subscribe watch",
    "trim": "delete prune purge truncate",
    "retention": "expire policy",
    "reconfigure": "alter config configure edit resize set update",
    "export": "backup copy cp dump save",
    "mirror": "clone copy cp replicate sync",
    "import": "load",
    "check": "audit fsck scrub verify",
    "doctor": "diagnose health ping status",
    "cursor": "consumer consumers group groups offset offsets",
    "seqr": "sequencer server",
    "console": "gui serve ui web",
    "exporter": "metrics prometheus",
    "top": "monitor",
    "bench": "benchmark perf",
    "put": "add set update",
    "set": "commit reset seek update",
}

_MOVED = {
    "writer": "access show",
    "fence": "access fence",
    "read-only": "access read-only",
    "promote": "access promote",
    "compact": "store compact",
    "restore": "store restore",
    "delivery": "producer",
}
"""Commands of older versions, and their present names."""

_OPTIONS = {
    "--from": "--after --begin --offset --since --start",
    "--to": "--before --end --until",
    "--count": "--head --limit --max -n",
    "-n": "--last --limit --lines",
    "--format": "--output --template -f -o",
    "--json": "--output -j -o",
    "--follow": "--stream --wait --watch",
    "--cursor": "--consumer --group",
    "--message": "--body --data --text",
    "--tag": "--filter --key --label",
    "--match": "--filter --glob --pattern",
    "--yes": "--assume-yes --force -f",
    "--exist-ok": "--if-not-exists",
    "--long": "--all --verbose -a -v",
    "--mac-key-file": "--key --key-file",
    "--null": "--print0 -0",
    "--debug": "--trace --verbose -v",
}

_BOUNDS = {"--from", "--to", "--count", "-n"}
"""`zlog read` has a RANGE instead of these options."""


def suggested_commands(word: str, known: Collection[str]) -> str:
    """Return the new name of a command, or the commands that the user may have meant."""
    if moved := _MOVED.get(word) if "access" in known else None:
        return f" It is now `zlog {moved}`."
    meant = [name for name in known if word.lower() in _COMMANDS.get(name, "").split()]
    return _question(meant or get_close_matches(word, known))


def suggested_options(word: str, command: click.Command) -> str:
    """Return a question with the options that the user may have meant, or nothing."""
    names = {name for param in command.params for name in param.opts}
    meant = [own for own, others in _OPTIONS.items() if word == own or word in others.split()]
    known = [name for name in meant if name in names]
    if (
        not known
        and _BOUNDS.intersection(meant)
        and any(p.name == "wanted" for p in command.params)
    ):
        known = ["a RANGE such as @5m: or -10:"]
    return _question(known)


def _question(names: Collection[str]) -> str:
    return f" Did you mean {' or '.join(names)}?" if names else ""
