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

import itertools
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from . import replies
from .append_model import AppendModel
from .head_model import HeadModel
from .objects import Directory, Head, Store, Stripe
from .replies import Answer, Read
from .requests import TIME, AppendPart, Entry, Grant, Part, View, offload
from .show import show_answer
from .victims import kind_of
from .words import arguments

SEPARATOR = "----"
COMMANDS = """
seal EPOCH [existing] [start=N]
write EPOCH WRITER ENTRIES [time=µs] [crc=WRONG] [tags=TAGS]
read EPOCH POSITIONS [bytes_max=N] [ids] [tags] [without_data]
select EPOCH START END TAGS [all] [reverse] [entries_max=N] [bytes_max=N] [ids] [without_data]
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
freeze EPOCH
append EPOCH WRITER NUMBER PARTS [since=N] [expect=N] [start=N] [unless=SETS] [tags=TAGS] [time=µs]
damaged
salvage POSITION
heal POSITION
version
head_create NAME LOG_ID
epoch_next [WIDTH] [above=N]
epoch_read
tail_raise EPOCH TAIL [log_id=ID]
trim_point_raise POSITION [past_cursors] [log_id=ID]
view_propose BASE STRIPES epoch=E [log_id=ID] [sequencer=ADDRESS] [removed] [offloads] [ordered] [option.KEY=VALUE]
view_read FROM_EPOCH [count=N] [latest]
head_remove EPOCH
stripes_read POSITION [log_id=ID] [count=N]
stripes_loose AFTER_ID [log_id=ID] [count=N]
stripe_forget ID [log_id=ID]
offload_put ID START END URL [phase=N] [ends=ENDS] [size=N] [entries=N] [bytes=N] [log_id=ID]
offload_list POSITION [count=N] [log_id=ID]
offload_forget END URL [log_id=ID]
cursor_commit NAME MODE POSITION [time=µs] [log_id=ID]
cursor_read NAME [log_id=ID]
cursor_list [AFTER] [count=N] [log_id=ID]
cursor_remove NAME [log_id=ID]
retention_read [log_id=ID]
retention_write VERSION STATE [log_id=ID]
delivery_begin PRODUCER SEQUENCE PART [time=µs] [log_id=ID]
delivery_grant PRODUCER SEQUENCE PART ATTEMPT EPOCH FIRST COUNT [reserve] [open] [incarnation=N] [log_id=ID]
delivery_read PRODUCER SEQUENCE PART [log_id=ID]
delivery_done PRODUCER SEQUENCE [incarnation=N] [time=µs] [epoch=N] [log_id=ID]
delivery_list [AFTER] [count=N] [log_id=ID]
producer_parts PRODUCER SEQUENCE PART [log_id=ID]
producer_copy PRODUCER INCARNATION EPOCH [SEQUENCE] [PART] [ATTEMPT] [FIRST] [COUNT] [log_id=ID]
directory_add NAME [LOG_ID]
directory_remove NAME [LOG_ID]
directory_list [AFTER] [count=N]
sequencer_announce ADDRESS
sequencer_withdraw ADDRESS
sequencer_find
"""  # noqa: E501
"""Each method's words, by the names of what they are (see `words`), and its options.

Most are the arguments of the calls in `objects`. ENTRIES are words `POSITIONS[#NUMBER]=DATA`, an
entry's number is its position unless that says otherwise. PARTS are words `COUNT=DATA`, with one
condition and one set of tags; SETS are TAGS with `+` between them. STRIPES are words
`ID:START-END/WIDTH[*UNIT]`, without END when the stripe is open.
"""
_GRAMMAR = {name: words for name, *words in map(str.split, COMMANDS.strip().splitlines())}
_OPTIONS = {
    "[count=N]": "count_max",
    "[time=µs]": "timestamp",
    "[ids]": "with_ids",
    "[phase=N]": "state",
}
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


Objects = tuple[Stripe | AppendModel, Head | HeadModel, Directory | None]


class Interpreter:
    """Runs commands against objects of a store, or of the models, so that they check those too."""

    def __init__(self, store: Store | None = None, prefix: str = "") -> None:
        self._store = store
        self._prefix = prefix
        self._objects: dict[str, Objects] = {}
        self._use("object")

    def _use(self, name: str) -> None:
        self._name = name = f"{self._prefix}.{name}"
        if name not in self._objects:
            self._objects[name] = (
                (Stripe(self._store, name), Head(self._store, name), Directory(self._store, name))
                if self._store
                else (AppendModel(), HeadModel(), None)
            )
        self._stripe, self._head, self._directory = self._objects[name]

    def run(self, command: str) -> list[str] | None:
        """Run one command; the answer's lines, or None if the models can't answer."""
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
            if self._store is None:
                return None
            code, reply = self._store.execute(self._name, words[0], payload)
            return [f"{replies.code_name(code)} {reply.hex()}".rstrip()]
        if name not in _GRAMMAR:
            raise ValueError(f"no command `{name}`")
        named = arguments(words, _GRAMMAR[name], self._stripe.striping, _OPTIONS)
        answered = getattr(self, f"_{name}", partial(self._call, name))(**named)
        if answered.value is not None and name == "trim_to" and self._store is None:
            return None
        return show_answer(name, answered)

    def _call(self, command: str, **arguments: Any) -> Answer:
        """Call a method of the object that has it; some are named after their object."""
        kind, _, rest = command.partition("_")
        if kind in ("directory", "sequencer"):
            call = getattr(self._directory, rest)
        elif kind == "head":
            call = getattr(self._head, rest)
        else:
            call = getattr(self._stripe if kind_of(command) is Stripe else self._head, command)
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

    def _append(
        self,
        epoch: int,
        writer: bytes,
        number: int,
        parts: list[tuple[int, bytes]],
        since: int = 0,
        timestamp: int = TIME,
        tags: tuple[bytes, ...] = (),
        **condition: Any,
    ) -> Answer:
        numbers = itertools.count(number)
        made = [
            AppendPart(tuple(Entry(0, next(numbers), data, tags) for _ in range(n)), **condition)
            for n, data in parts
        ]
        return self._stripe.append(epoch, made, writer, since, timestamp)

    def _read(self, positions: list[int], **arguments: Any) -> Answer:
        answer = self._stripe.read(positions=positions, **arguments)
        if not isinstance(answer.value, Read):
            return answer
        return Answer(answer.code, (positions, self._stripe.striping, answer.value))

    def _heal(self, position: int) -> Answer:
        """Put back what is there."""
        name, _, value, data = self._stripe.salvage(position=position).value
        return self._stripe.heal(name, value, data)

    def _delivery_begin(self, timestamp: int = TIME, **part: Any) -> Answer:
        return self._head.delivery_begin(Part(**part), timestamp)

    def _delivery_read(self, **part: Any) -> Answer:
        return self._head.delivery_read(Part(**part))

    def _delivery_grant(
        self, producer: str, sequence: int, part: int, log_id: int = 7, **grant: Any
    ) -> Answer:
        return self._head.delivery_grant(Grant(Part(producer, sequence, part, log_id), **grant))

    def _producer_parts(self, **part: Any) -> Answer:
        return self._head.producer_parts(Part(**part))

    def _producer_copy(
        self, producer: str, incarnation: int, epoch: int, log_id: int = 7, **part: int
    ) -> Answer:
        parts = ()
        if part:
            sequence, number, attempt, first, count = part.values()
            grants = [(first, count)] if count else []
            parts = ((sequence, number, incarnation, attempt, grants, 0),)
        return self._head.producer_copy(producer, incarnation, epoch, parts, log_id=log_id)

    def _offload_put(self, id: int, log_id: int, **record: Any) -> Answer:
        return self._head.offload_put(offload(id, **record), log_id)

    def _view_propose(self, base: int, **view: Any) -> Answer:
        return self._head.view_propose(base, View(**view))
