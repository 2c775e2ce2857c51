"""A small command language for conversations with an object, and its interpreter.

A transcript is a file of blocks: comment lines (`#`), commands, a line `----`, and the answer that
each of the commands gets, up to an empty line. A line that begins with a space continues a command.
Commands name the method; see `COMMANDS`. A few are about the conversation itself, and have no
answer:

    geometry STRIDE RESIDUE [UNIT]  what later requests claim about this object; 1 0 1 at first
    object NAME                     talk to another object from here on
    raw METHOD HEX                  a payload as it is; shows the reply as it is
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from . import replies
from .directory_model import DirectoryModel
from .head_model import HeadModel
from .model import StripeModel
from .objects import Directory, Head, Store, Stripe
from .replies import Answer, Read
from .requests import TIME, Entry, Grant, Part, View
from .show import show_answer
from .words import Words, stripe_view_of

SEPARATOR = "----"
COMMANDS = """
seal EPOCH [existing] [start=N]
write EPOCH WRITER ENTRIES [time=µs] [crc=WRONG] [tags=TAGS]
read EPOCH POSITIONS [bytes_max=N] [ids] [tags] [without_data]
select EPOCH START END TAGS [every] [reverse] [entries_max=N] [bytes_max=N] [ids] [without_data]
tags_check EPOCH [start=N] [end=N]
tags_rebuild EPOCH [start=N] [end=N]
tags_list EPOCH [start=N] [end=N]
compact EPOCH START END POSITIONS
verify EPOCH POSITIONS [bytes_max=N]
count EPOCH START END
fill EPOCH WRITER POSITIONS [reason=N] [time=µs]
trim EPOCH POSITIONS
trim_to EPOCH POSITION [records_max=N]
max_position EPOCH [start=N]
stat EPOCH
remove EPOCH
damaged
salvage POSITION
heal POSITION
version
head_create NAME LOG_ID
epoch_next [WIDTH] [above=N]
epoch_read
tail_raise EPOCH TAIL [log_id=ID]
trim_point_raise POSITION [past_cursors] [log_id=ID]
view_propose BASE STRIPES epoch=E [log_id=ID] [sequencer=ADDRESS] [removed] [option.KEY=VALUE]
view_read FROM_EPOCH [count=N] [latest]
head_remove EPOCH
stripes_read POSITION [log_id=ID] [count=N]
stripes_loose AFTER_ID [log_id=ID] [count=N]
stripe_forget ID [log_id=ID]
cursor_commit NAME MODE POSITION [time=µs] [log_id=ID]
cursor_read NAME [log_id=ID]
cursor_list [AFTER] [count=N] [log_id=ID]
cursor_remove NAME [log_id=ID]
retention_read [log_id=ID]
retention_write VERSION STATE [log_id=ID]
delivery_begin PRODUCER SEQUENCE PART [time=µs] [log_id=ID]
delivery_grant PRODUCER SEQUENCE PART ATTEMPT EPOCH FIRST COUNT [reserve] [incarnation=N] [log_id=ID]
delivery_read PRODUCER SEQUENCE PART [log_id=ID]
delivery_done PRODUCER SEQUENCE [incarnation=N] [time=µs] [log_id=ID]
delivery_list [AFTER] [count=N] [log_id=ID]
directory_add NAME [LOG_ID]
directory_remove NAME [LOG_ID]
directory_list [AFTER] [count=N]
sequencer_announce ADDRESS
sequencer_withdraw ADDRESS
sequencer_find
"""  # noqa: E501
"""Each method's words, by the names of what they are (see `words`), and its options.

Most are the arguments of the calls in `objects`. ENTRIES are words `POSITIONS[#NUMBER]=DATA`, an
entry's number is its position unless that says otherwise. STRIPES are words
`ID:START-END/WIDTH[*UNIT]`, without END when the stripe is open.
"""
_GRAMMAR = {name: words for name, *words in map(str.split, COMMANDS.strip().splitlines())}
_OPTIONS = {"[count=N]": "count_max", "[time=µs]": "timestamp", "[ids]": "with_ids"}
"""Those that are called otherwise in `objects`."""
_SILENT = ("object", "geometry")


@dataclass
class Block:
    """A command with its comment and the answer that the file expects."""

    comment: list[str]
    command: str
    expected: list[str]
    line: int

    @property
    def silent(self) -> bool:
        """Whether the command has no answer."""
        return self.command.startswith(_SILENT)


def parse_file(content: str) -> tuple[list[Block], list[str]]:
    """The commands of a transcript and the comment lines after the last one."""
    blocks: list[Block] = []
    comment: list[str] = []
    first = 0  # of the commands whose answer follows
    lines = content.splitlines()
    at = 0
    while at < len(lines):
        line, at = lines[at], at + 1
        if line == SEPARATOR:
            end = lines.index("", at) if "" in lines[at:] else len(lines)
            for block in blocks[first:]:
                block.expected = [] if block.silent else lines[at:end]
            first, at = len(blocks), end + 1
        elif line.startswith(" "):
            blocks[-1].command += "\n" + line
        elif not line or line.startswith("#"):
            comment.append(line)
        else:
            blocks.append(Block(comment, line, [], at))
            comment = []
    if first < len(blocks):
        raise ValueError(f"line {at}: `{blocks[-1].command}` is not followed by {SEPARATOR}")
    return blocks, comment


def format_file(blocks: Iterable[Block], rest: Sequence[str]) -> str:
    """The file's text again; commands after each other with the same answer are one block."""
    lines: list[str] = []
    answer: list[str] = []  # of the block that is open; none yet after commands without one
    for block in blocks:
        if lines and (block.comment or block.silent or (answer and answer != block.expected)):
            if answer or block.comment:
                lines += [SEPARATOR, *answer, ""]
            answer = []
        lines += [*block.comment, block.command]
        answer = block.expected or answer
    return "\n".join([*lines, SEPARATOR, *answer, "", *rest]).rstrip("\n") + "\n"


Objects = tuple[Stripe | StripeModel, Head | HeadModel, Directory | DirectoryModel]


class World(Protocol):
    """Where a transcript's objects live."""

    counts_records: bool  # whether trim_to can tell that records are left

    def open(self, name: str) -> Objects:
        """The object of that name, as each of the three things that it may be."""
        ...

    def raw(self, name: str, method: str, payload: bytes) -> tuple[int, bytes] | None:
        """Run a method as it is; None where bytes mean nothing."""
        ...


class HostWorld:
    """Objects of a store, under names that start with `prefix`."""

    counts_records = True

    def __init__(self, store: Store, prefix: str) -> None:
        self._store = store
        self._prefix = prefix
        self._objects: dict[str, Objects] = {}

    def open(self, name: str) -> Objects:
        """See `World`."""
        store, full = self._store, f"{self._prefix}.{name}"
        made = Stripe(store, full), Head(store, full), Directory(store, full)
        return self._objects.setdefault(name, made)

    def raw(self, name: str, method: str, payload: bytes) -> tuple[int, bytes]:
        """See `World`."""
        return self._store.execute(f"{self._prefix}.{name}", method, payload)


class ModelWorld:
    """Objects of the models, so that the transcripts check the models too."""

    counts_records = False

    def __init__(self) -> None:
        self._objects: dict[str, tuple[StripeModel, HeadModel, DirectoryModel]] = {}

    def open(self, name: str) -> Objects:
        """See `World`."""
        made = (StripeModel(), HeadModel(), DirectoryModel())
        return self._objects.setdefault(name, made)

    def raw(self, name: str, method: str, payload: bytes) -> None:
        """See `World`."""


class Interpreter:
    """Runs commands against the objects of one world."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._name = "object"
        self._use(self._name)

    def _use(self, name: str) -> None:
        self._name = name
        self._stripe, self._head, self._directory = self._world.open(name)

    def run(self, command: str) -> list[str] | None:
        """Run one command; the answer's lines, or None when the world can't tell."""
        name, *words = shlex.split(command)
        if name == "object":
            self._use(words[0])
            return []
        if name == "geometry":
            numbers = [int(word) for word in words]
            stripe = self._stripe
            stripe.stride, stripe.residue, stripe.stripe_unit = (*numbers, 1)[:3]
            return []
        if name == "raw":
            payload = bytes.fromhex("".join(words[1:]))
            answer = self._world.raw(self._name, words[0], payload)
            if answer is None:
                return None
            return [f"{replies.code_name(answer[0])} {answer[1].hex()}".rstrip()]
        if name not in _GRAMMAR:
            raise ValueError(f"no command `{name}`")
        answered = self._answer(name, Words(words))
        if answered.value is not None and name == "trim_to" and not self._world.counts_records:
            return None
        return show_answer(name, answered)

    def _answer(self, name: str, words: Words) -> Answer:
        if name == "view_propose":
            return self._view_propose(words)
        arguments = words.arguments(_GRAMMAR[name], self._stripe.striping, _OPTIONS)
        own = getattr(self, f"_{name}", None)
        return own(**arguments) if own else self._call(name, arguments)

    def _call(self, name: str, arguments: dict[str, Any]) -> Answer:
        """Call a method of the object that has it; some are named after their object."""
        kind, _, rest = name.partition("_")
        if kind in ("directory", "sequencer"):
            call = getattr(self._directory, rest)
        elif kind == "head":
            call = getattr(self._head, rest)
        else:
            call = getattr(self._stripe, name, None) or getattr(self._head, name)
        return call(**arguments)  # type: ignore[no-any-return]

    def _seal(self, epoch: int, existing: bool = False, **options: Any) -> Answer:
        return self._stripe.seal(epoch, create=not existing, **options)

    def _write(
        self,
        epoch: int,
        writer: bytes,
        entries: list[Entry],
        timestamp: int = TIME,
        crc: int = 0,
        tags: tuple[bytes, ...] = (),
    ) -> Answer:
        entries = [replace(entry, tags=tags) for entry in entries]
        crcs = [crc] * len(entries) if crc else None
        return self._stripe.write(epoch, entries, writer, timestamp, crcs=crcs)

    def _read(self, positions: list[int], **arguments: Any) -> Answer:
        answer = self._stripe.read(positions=positions, **arguments)
        if not isinstance(answer.value, Read):
            return answer
        return Answer(answer.code, (positions, self._stripe.striping, answer.value))

    def _damaged(self) -> Answer:
        return self._host().damaged()

    def _salvage(self, position: int) -> Answer:
        return self._host().salvage(position=position)

    def _heal(self, position: int) -> Answer:
        """Put back what is there."""
        name, _, value, data = self._host().salvage(position=position).value
        return self._host().heal(name, value, data)

    def _version(self) -> Answer:
        return self._host().version()

    def _host(self) -> Stripe:
        assert isinstance(self._stripe, Stripe), "models have no stored bytes"
        return self._stripe

    def _delivery_begin(self, timestamp: int = TIME, **part: Any) -> Answer:
        return self._head.delivery_begin(Part(**part), timestamp)

    def _delivery_read(self, **part: Any) -> Answer:
        return self._head.delivery_read(Part(**part))

    def _delivery_grant(
        self, producer: str, sequence: int, part: int, log_id: int = 7, **grant: Any
    ) -> Answer:
        return self._head.delivery_grant(Grant(Part(producer, sequence, part, log_id), **grant))

    def _view_propose(self, words: Words) -> Answer:
        base = words.number()
        removed = words.flag("removed")
        epoch, log_id = int(words.option("epoch", 0)), int(words.option("log_id", 7))
        sequencer, options = words.option("sequencer", ""), words.prefixed("option.")
        stripes = tuple(stripe_view_of(word) for word in words.rest())
        view = View(epoch, log_id, removed, sequencer, stripes, options)
        return self._head.view_propose(base, view)
