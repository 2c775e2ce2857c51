"""Searching the model of the protocol with spin: exhaustively, or for the shortest way to an error.

`spin -a` makes a C program of the model, which is compiled for each configuration and then visits
every state that the configuration can reach.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

MODEL = Path(__file__).parent / "log.pml"

_SEARCH = ("-O1", "-DSAFETY", "-DCOLLAPSE")
_BREADTH = ("-O0", "-DSAFETY", "-DBFS")
_HASH_BITS = {False: 24, True: 22}
_MEMORY_MIB_MAX = 900
_DEPTH_MAX = 10_000
_SECONDS_MAX = 600

_INCOMPLETE = ("search not completed", "depth too small", "memory", "aborting", "out of")


@dataclass(frozen=True)
class Search:
    """What one search found.

    Attributes:
        states: how many it visited.
        complete: whether these are all that there are.
        violated: the properties that the assertion found wrong names; empty when all holds.
        steps: what happened up to there, one line each.
        reached: the places of the model, named by `reached(...)`, that the search came to.
        output: of the program, word by word.
    """

    states: int
    complete: bool
    violated: str
    steps: tuple[str, ...]
    reached: frozenset[str]
    output: str = field(repr=False)


def exhaust(flags: Sequence[str], *, depth_max: int = _DEPTH_MAX) -> Search:
    """Visit every state of the model with these definitions, and note what is reached."""
    result = _search([*flags, "REACH"], depth_max, breadth=False)
    if result.violated:  # it stands in the way of REACH, which is C, to be replayed
        return shortest(flags)
    return result


def shortest(flags: Sequence[str]) -> Search:
    """Look for the shortest way to an error."""
    return _search([*flags, "BREADTH"], _DEPTH_MAX, breadth=True)


def _search(definitions: Sequence[str], depth_max: int, *, breadth: bool) -> Search:
    for tool in ("spin", "gcc"):
        if shutil.which(tool) is None:
            raise FileNotFoundError(f"{tool} is not installed (`make model` installs it)")
    flags = [f"-D{each}" for each in definitions]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copy(MODEL, folder)
        _run(["spin", "-a", *flags, MODEL.name], folder)
        how = _BREADTH if breadth else _SEARCH
        limits = ("-DVECTORSZ=512", f"-DMEMLIM={_MEMORY_MIB_MAX}")
        _run(["gcc", "-w", *how, *limits, "-o", "pan", "pan.c"], folder)
        search = ["./pan", f"-m{depth_max}", f"-w{_HASH_BITS[breadth]}", "-n"]
        output = _run(search, folder)
        errors = re.search(r"errors: (\d+)", output)
        states = re.search(r"(\d+) states, stored", output)
        if errors is None or states is None:
            raise RuntimeError(f"the search told nothing:\n{output}")
        steps, violated = (), ""
        if int(errors[1]):
            replay = _run(["spin", "-t", *flags, MODEL.name], folder)
            steps = tuple(re.findall(r"^ +(\w+ ?\d*: .*)$", replay, re.MULTILINE))
            violated = _violated(replay, output)
    return Search(
        states=int(states[1]),
        complete=not violated and not any(sign in _complaints(output) for sign in _INCOMPLETE),
        violated=violated,
        steps=steps,
        reached=frozenset(re.findall(r"^reached: (.*)$", output, re.MULTILINE)),
        output=output,
    )


def _complaints(output: str) -> str:
    """What the program says before its report: nothing, unless the search was cut short."""
    lines = output.partition("Full statespace search")[0].lower().splitlines()
    return "\n".join(line for line in lines if not line.startswith(("reached: ", "depth=")))


def _violated(replay: str, output: str) -> str:
    """The word after the assertion that the replay ends at."""
    lines = [int(each) for each in re.findall(r"pml:(\d+), Error: assertion violated", replay)]
    source = MODEL.read_text().splitlines()
    names = [re.search(r"/\* ([A-Z-]+) \*/$", source[line - 1]) for line in lines]
    if not names or names[0] is None:
        raise RuntimeError(f"an error that is no violated property:\n{output}")
    return names[0][1]


def _run(command: Sequence[str], folder: Path) -> str:
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=_SECONDS_MAX, check=False
    )
    output = done.stdout + done.stderr
    if done.returncode and command[0] != "./pan":
        raise RuntimeError(f"{' '.join(command)}:\n{output}")
    return output
