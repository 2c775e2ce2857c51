"""A small command language for conversations with an object, and its interpreter.

A transcript is a file of blocks: comment lines (`#`), one command (which goes on in lines that
begin with a space), a line `----`, the expected answer up to an empty line. Commands name the
method. `POSITIONS` are `3`, `0,2,4` or `0..8` (8 not included, in steps of the object's stride);
data is a word, `"a text"`, `""`, `x*1000` or `0xff00`; a writer is a letter, and an entry's number
its position unless `#NUMBER` says otherwise.

    seal EPOCH [existing]
    write EPOCH WRITER POSITIONS[#NUMBER]=DATA… [time=µs] [crc=WRONG]
    read EPOCH POSITIONS [bytes_max=N] [ids]
    verify EPOCH POSITIONS [bytes_max=N]
    fill EPOCH WRITER POSITIONS [reason=N] [time=µs]
    trim EPOCH POSITIONS
    trim_to EPOCH POSITION [records_max=N]
    max_position EPOCH · stat EPOCH · remove EPOCH

    head_create NAME LOG_ID · head_remove EPOCH
    epoch_next [WIDTH] · epoch_read · tail_raise EPOCH TAIL [log_id=ID]
    trim_point_raise POSITION [past_cursors] [log_id=ID]
    cursor_commit NAME advance|create|set POSITION [time=µs] [log_id=ID]
    cursor_read NAME [log_id=ID] · cursor_remove NAME [log_id=ID]
    cursor_list [AFTER] [count=N] [log_id=ID]
    delivery_begin SOURCE BATCH PART [time=µs] [log_id=ID]
    delivery_read SOURCE BATCH PART [log_id=ID]
    delivery_grant SOURCE BATCH PART ATTEMPT EPOCH FIRST COUNT [reserve] [incarnation=N] [log_id=ID]
    delivery_done SOURCE BATCH [incarnation=N] [time=µs] [log_id=ID]
    delivery_list [AFTER] [count=N] [log_id=ID]
    view_propose BASE epoch=E [log_id=ID] [sequencer=ADDRESS] [removed] [option.KEY=VALUE]
        ID:START-END/WIDTH…                     (END is left out when the stripe is open)
    view_read FROM [count=N] [latest]
    stripes_read POSITION [log_id=ID] [count=N] · stripes_loose AFTER [log_id=ID] [count=N]
    stripe_forget ID [log_id=ID]

    directory_add NAME [LOG_ID] · directory_remove NAME [LOG_ID] · directory_list [AFTER] [count=N]
    sequencer_announce ADDRESS · sequencer_withdraw ADDRESS · sequencer_find

    geometry STRIDE RESIDUE     what later requests claim about the object; 1 0 at first
    object NAME                 talk to another object from here on
    raw METHOD HEX              a payload as it is; shows the reply as it is
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from . import replies
from .head_model import DirectoryModel, HeadModel
from .model import StripeModel
from .objects import BYTES_MAX, RECORDS_MAX, TIME, Directory, Head, Store, Stripe, writer_id
from .replies import Answer, Read
from .requests import Grant, Part, View
from .show import show_answer
from .words import Words, entries_of, stripe_view_of

SEPARATOR = "----"
_MODES = ("advance", "create", "set")  # of cursor_commit, by their values


@dataclass
class Block:
    """A command with its comment and the answer that the file expects."""

    comment: list[str]
    command: str
    expected: list[str]
    line: int


def parse_file(content: str) -> tuple[list[Block], list[str]]:
    """The blocks of a transcript and the comment lines after the last one."""
    blocks: list[Block] = []
    comment: list[str] = []
    lines = content.splitlines()
    at = 0
    while at < len(lines):
        line = lines[at]
        at += 1
        if not line or line.startswith("#"):
            comment.append(line)
            continue
        start = at
        while at < len(lines) and lines[at].startswith(" "):
            line += "\n" + lines[at]
            at += 1
        if at >= len(lines) or lines[at] != SEPARATOR:
            raise ValueError(f"line {start}: `{line}` is not followed by {SEPARATOR}")
        end = at + 1
        while end < len(lines) and lines[end]:
            end += 1
        blocks.append(Block(comment, line, lines[at + 1 : end], start))
        comment = []
        at = end + 1
    return blocks, comment


def format_file(blocks: Iterable[Block], rest: Sequence[str]) -> str:
    """The file's text again, with each block's `expected` as it is now."""
    lines: list[str] = []
    for block in blocks:
        lines += [*block.comment, block.command, SEPARATOR, *block.expected, ""]
    return "\n".join([*lines, *rest]).rstrip("\n") + "\n"


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

    def open(self, name: str) -> Objects:
        """See `World`."""
        store, full = self._store, f"{self._prefix}.{name}"
        return Stripe(store, full), Head(store, full), Directory(store, full)

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
            self._stripe.stride, self._stripe.residue = int(words[0]), int(words[1])
            return []
        if name == "raw":
            payload = bytes.fromhex("".join(words[1:]))
            answer = self._world.raw(self._name, words[0], payload)
            if answer is None:
                return None
            return [f"{replies.code_name(answer[0])} {answer[1].hex()}".rstrip()]
        if name not in replies.METHODS:
            raise ValueError(f"no command `{name}`")
        answered: Answer = getattr(self, f"_{name}")(Words(words))
        if answered.value is not None and name == "trim_to" and not self._world.counts_records:
            return None
        return show_answer(name, answered)

    def _seal(self, words: Words) -> Answer:
        existing = words.flag("existing")
        return self._stripe.seal(words.number(), create=not existing)

    def _write(self, words: Words) -> Answer:
        epoch, writer = words.number(), writer_id(words.next())
        entries = [e for word in words.plain() for e in entries_of(word, self._stripe.stride)]
        time, crc = int(words.option("time", TIME)), words.option("crc")
        crcs = None if crc is None else [int(crc, 0)] * len(entries)
        return self._stripe.write(epoch, entries, writer, time, crcs)

    def _read(self, words: Words) -> Answer:
        epoch, positions = words.number(), words.positions(self._stripe.stride)
        bytes_max = int(words.option("bytes_max", BYTES_MAX))
        answer = self._stripe.read(epoch, positions, bytes_max, words.flag("ids"))
        if not isinstance(answer.value, Read):
            return answer
        return Answer(answer.code, (positions, self._stripe.stride, answer.value))

    def _verify(self, words: Words) -> Answer:
        epoch, positions = words.number(), words.positions(self._stripe.stride)
        return self._stripe.verify(epoch, positions, int(words.option("bytes_max", BYTES_MAX)))

    def _fill(self, words: Words) -> Answer:
        epoch, writer = words.number(), writer_id(words.next())
        positions = words.positions(self._stripe.stride)
        time, reason = int(words.option("time", TIME)), int(words.option("reason", 0))
        return self._stripe.fill(epoch, positions, writer, time, reason)

    def _trim(self, words: Words) -> Answer:
        return self._stripe.trim(words.number(), words.positions(self._stripe.stride))

    def _trim_to(self, words: Words) -> Answer:
        records_max = int(words.option("records_max", RECORDS_MAX))
        return self._stripe.trim_to(words.number(), words.number(), records_max)

    def _max_position(self, words: Words) -> Answer:
        return self._stripe.max_position(words.number())

    def _stat(self, words: Words) -> Answer:
        return self._stripe.stat(words.number())

    def _remove(self, words: Words) -> Answer:
        return self._stripe.remove(words.number())

    def _head_create(self, words: Words) -> Answer:
        return self._head.create(words.next(), words.number())

    def _epoch_next(self, words: Words) -> Answer:
        return self._head.epoch_next(int(words.next("0")))

    def _epoch_read(self, _words: Words) -> Answer:
        return self._head.epoch_read()

    def _tail_raise(self, words: Words) -> Answer:
        log_id = int(words.option("log_id", 7))
        return self._head.tail_raise(words.number(), words.number(), log_id)

    def _trim_point_raise(self, words: Words) -> Answer:
        past_cursors, log_id = words.flag("past_cursors"), int(words.option("log_id", 7))
        return self._head.trim_point_raise(words.number(), log_id, past_cursors)

    def _cursor_commit(self, words: Words) -> Answer:
        time, log_id = int(words.option("time", TIME)), int(words.option("log_id", 7))
        name, mode = words.next(), _MODES.index(words.next())
        return self._head.cursor_commit(name, mode, words.number(), time, log_id)

    def _cursor_read(self, words: Words) -> Answer:
        log_id = int(words.option("log_id", 7))
        return self._head.cursor_read(words.next(), log_id)

    def _cursor_list(self, words: Words) -> Answer:
        count, log_id = int(words.option("count", 1000)), int(words.option("log_id", 7))
        return self._head.cursor_list(words.next(""), count, log_id)

    def _cursor_remove(self, words: Words) -> Answer:
        log_id = int(words.option("log_id", 7))
        return self._head.cursor_remove(words.next(), log_id)

    def _delivery_begin(self, words: Words) -> Answer:
        time, log_id = int(words.option("time", TIME)), int(words.option("log_id", 7))
        part = Part(words.next(), words.number(), words.number(), log_id)
        return self._head.delivery_begin(part, time)

    def _delivery_grant(self, words: Words) -> Answer:
        reserve, log_id = words.flag("reserve"), int(words.option("log_id", 7))
        incarnation = int(words.option("incarnation", 1))
        part = Part(words.next(), words.number(), words.number(), log_id)
        numbers = [words.number() for _ in range(4)]
        return self._head.delivery_grant(Grant(part, *numbers, reserve, incarnation))

    def _delivery_read(self, words: Words) -> Answer:
        log_id = int(words.option("log_id", 7))
        return self._head.delivery_read(Part(words.next(), words.number(), words.number(), log_id))

    def _delivery_done(self, words: Words) -> Answer:
        time, log_id = int(words.option("time", TIME)), int(words.option("log_id", 7))
        incarnation = int(words.option("incarnation", 1))
        source, batch = words.next(), words.number()
        return self._head.delivery_done(source, batch, incarnation, time, log_id)

    def _delivery_list(self, words: Words) -> Answer:
        count, log_id = int(words.option("count", 1000)), int(words.option("log_id", 7))
        return self._head.delivery_list(words.next(""), count, log_id)

    def _view_propose(self, words: Words) -> Answer:
        base = words.number()
        removed = words.flag("removed")
        epoch, log_id = int(words.option("epoch", 0)), int(words.option("log_id", 7))
        sequencer, options = words.option("sequencer", ""), words.prefixed("option.")
        stripes = tuple(stripe_view_of(word) for word in words.plain())
        view = View(epoch, log_id, removed, sequencer, stripes, options)
        return self._head.view_propose(base, view)

    def _view_read(self, words: Words) -> Answer:
        latest, count = words.flag("latest"), int(words.option("count", 100))
        return self._head.view_read(words.number(), count, latest)

    def _stripes_read(self, words: Words) -> Answer:
        log_id, count = int(words.option("log_id", 7)), int(words.option("count", 100))
        return self._head.stripes_read(log_id, words.number(), count)

    def _stripes_loose(self, words: Words) -> Answer:
        log_id, count = int(words.option("log_id", 7)), int(words.option("count", 100))
        return self._head.stripes_loose(log_id, words.number(), count)

    def _stripe_forget(self, words: Words) -> Answer:
        log_id = int(words.option("log_id", 7))
        return self._head.stripe_forget(log_id, words.number())

    def _head_remove(self, words: Words) -> Answer:
        return self._head.remove(words.number())

    def _directory_add(self, words: Words) -> Answer:
        return self._directory.add(words.next(), int(words.next("7")))

    def _directory_remove(self, words: Words) -> Answer:
        return self._directory.remove(words.next(), int(words.next("7")))

    def _directory_list(self, words: Words) -> Answer:
        count = int(words.option("count", 1000))
        return self._directory.list(words.next(""), count)

    def _sequencer_announce(self, words: Words) -> Answer:
        return self._directory.announce(words.next())

    def _sequencer_withdraw(self, words: Words) -> Answer:
        return self._directory.withdraw(words.next())

    def _sequencer_find(self, _words: Words) -> Answer:
        return self._directory.find()
