"""The examples in docs/formats are what is sent, answered and stored, byte for byte."""

from __future__ import annotations

import re
from collections.abc import Iterator

import zlog
from zlog._base.mac import MAC_BYTES, Key
from zlog._native import writes
from zlog.objects._machine import Frozen, Machine
from zlog.objects._pieces import cut
from zlog.objects._records import (
    decode_record,
    digest,
    encode_commit,
    encode_manifest,
    encode_mark,
    encode_write,
)

from ..docs.pages import DOCS
from ..docs.pages import blocks as blocks_in
from . import requests
from .golden import Taped
from .objects import Directory, Head, Stripe
from .replies import Code
from .requests import CREATE, AppendPart, Entry, Grant, Part, StripeView, View
from .stored import Door, MemoryDoor
from .wire import OPEN_END

BYTES = re.compile(r"^(?:[0-9a-f]{2} ?)+(?=\s|$)", re.MULTILINE)  # at the start of a line
LOG_ID = 0x1122334455667788
TIME = 1_700_000_000_000_000
WRITER = b"writer-00000000a"
Example = tuple[str, bytes]


def documented() -> Iterator[Example]:
    """Every example and its name; some pages show the same one."""
    for page in sorted((DOCS / "formats").glob("*.md")):
        for block in blocks_in(page):
            if block.language == "hex":
                shown = "".join(match.group() for match in BYTES.finditer(block.text))
                yield block.words[0], bytes.fromhex(shown)


def test_examples_in_docs() -> None:
    made: dict[str, bytes] = {}
    stripes = stripe, large_and_lost, blocks, tags, appended
    for examples in (*stripes, head, stripe_index, offload, cursor_and_delivery, directory):
        with zlog.connect("mem://") as store:
            made |= dict(examples(Taped(store), MemoryDoor(store)))
    made |= dict(macs())
    made |= dict(objects())
    for name, shown in documented():
        assert made[name].hex(" ") == shown.hex(" "), name
    assert made.keys() == {name for name, _ in documented()}


def appended(store: Taped, door: Door) -> Iterator[Example]:
    del door
    made = Stripe(store, "ordered")
    made.seal(3)
    entry = Entry(0, 41, b"hello", (b"red",))
    made.append(3, [AppendPart((entry,), unless=((b"a", b"red"),))], WRITER, 0, TIME)
    yield "append-request", store.passed.request
    yield "append-reply", store.passed.reply


def stripe(store: Taped, door: Door) -> Iterator[Example]:
    made = Stripe(store, "stripe", 4, 2)
    made.seal(3)
    made.seal(3)
    yield "refusal-reply", store.passed.reply
    made.write(3, [Entry(2, 41, b"hello"), Entry(6, 42, b"log")], WRITER, TIME)
    yield "write-request", store.passed.request
    yield "stored-header", door.load("stripe").attrs[b"zlog.header"]
    yield "record-inline", door.load("stripe").omap[b"e.0000000000000006.2"]
    made.fill(3, [10, 14, 18], WRITER, TIME + 1, reason=1)
    made.trim(3, [6, 14])
    records = door.load("stripe").omap
    yield "record-inline-trimmed", records[b"e.0000000000000006.2"]
    yield "record-fill", records[b"e.000000000000000a.1"]
    yield "record-trim", records[b"e.000000000000000e.1"]
    made.read(3, [2, 6, 10], 4096, with_ids=True)
    yield "read-request", store.passed.request
    yield "read-reply", store.passed.reply


def large_and_lost(store: Taped, door: Door) -> Iterator[Example]:
    """A batch that is large enough for the bytestream; a record that was lost and then trimmed."""
    made = Stripe(store, "stripe", 4, 2)
    made.seal(3)
    entries = [Entry(2, 41, b"a" * 20_000), Entry(6, 42, b"b" * 12_768)]
    made.write(3, entries, WRITER, TIME)
    content = door.load("stripe")
    assert content.stream == b"".join(entry.data for entry in entries)
    key = b"e.0000000000000006.2"
    record = content.omap[key]
    yield "record-stream", record
    door.save("stripe", content.with_value(key, record[:-1] + bytes([record[-1] ^ 1])))
    made.trim(3, [2])
    yield "record-lost", door.load("stripe").omap[b"e.0000000000000006.1"]


def blocks(store: Taped, door: Door) -> Iterator[Example]:
    made = Stripe(store, "stripe", 4, 2)
    made.seal(3)
    made.write(3, [Entry(2, 41, b"a" * 30), Entry(6, 42, b"a" * 10)], WRITER, TIME, in_block=2)
    yield "write-blocks-request", store.passed.request
    yield "record-block", door.load("stripe").omap[b"e.0000000000000006.2"]
    made.read(3, [6], 4096)
    yield "read-blocks-reply", store.passed.reply


def macs() -> Iterator[Example]:
    """An entry's data as a client stores it."""
    key = Key(b"0123456789abcdef")
    mac = key.of_log("orders", LOG_ID)
    write = writes.encode_write(1, TIME, WRITER, 4, [2], [41], [b"hello"], mac=mac)
    yield "mac-stored", write[-len(b"hello") - MAC_BYTES :]
    yield "mac-key-id", bytes.fromhex(key.id)


def objects() -> Iterator[Example]:
    """Records of a space, and a checkpoint in one piece."""
    put = encode_write([("map", "limits", ("web", 3))])
    yield "objects-write", put
    read, keys = ("limits", "web", 12), ("limits", "a", "b", 2)
    op = ("map", "limits", ("web", 4))
    yield "objects-commit", encode_commit([op], "order-17", 1, 40, [read], [keys])
    machine = Machine({}, 0)
    machine.apply(12, decode_record(put))
    add = encode_commit([("counter", "hits", 5)], "order-17", 1, 40)
    machine.apply(41, decode_record(add))
    yield "objects-mark", encode_mark("mark")
    (piece,) = cut(Frozen(43, machine).chunks(), 1 << 20)
    yield "objects-piece", piece
    yield (
        "objects-manifest",
        encode_manifest("mark", 43, [44], len(piece), digest(piece).hexdigest(), {}),
    )


def tags(store: Taped, door: Door) -> Iterator[Example]:
    """Entries with tags, and an index of the first ones, which is made anew."""
    made = Stripe(store, "stripe", 4, 2)
    made.seal(3)
    entries = [Entry(2, 41, b"hello", (b"red", b"a")), Entry(6, 42, b"log")]
    made.write(3, entries, WRITER, TIME)
    yield "record-tags", door.load("stripe").omap[b"e.0000000000000006.2"]
    made.select(3, 0, 100, [b"red"], bytes_max=4096)
    yield "select-reply", store.passed.reply
    made.write(3, [Entry(10, 43, b"newer", (b"red",))], WRITER, TIME)
    assert made.compact(3, 0, 11, [2]).code == Code.OK
    yield "record-sparse", door.load("stripe").omap[b"e.000000000000000a.3"]


def head(store: Taped, door: Door) -> Iterator[Example]:
    made = Head(store, "head")
    made.create("orders", LOG_ID)
    made.epoch_next(4)
    stripes = (StripeView(1, 0, OPEN_END, 4),)
    view = View(1, LOG_ID, False, "tcp://10.0.0.1:7878", stripes, {"owner": "shop"})
    yield "view", requests.view(view)
    made.view_propose(0, view)
    made.tail_raise(1, 100, LOG_ID)
    made.trim_point_raise(40, LOG_ID)
    yield "stored-head", door.load("head").attrs[b"zlog.head"]
    yield "stored-view", door.load("head").omap[b"v.0000000000000001"]


def stripe_index(store: Taped, door: Door) -> Iterator[Example]:
    """A stripe that was announced and not made, and one that a view has left out."""
    made = Head(store, "head")
    made.create("orders", LOG_ID)
    for width in (4, 8, 2):
        made.epoch_next(width)
    made.view_propose(0, View(1, LOG_ID, stripes=(StripeView(1, 0, OPEN_END, 4),)))
    made.view_propose(1, View(3, LOG_ID, stripes=(StripeView(3, 100, OPEN_END, 2),)))
    yield "stored-archived-stripe", door.load("head").omap[b"t.0000000000000063"]
    yield "stored-pending-stripe", door.load("head").omap[b"l.0000000000000002"]


def offload(store: Taped, door: Door) -> Iterator[Example]:
    made = Head(store, "head")
    made.create("orders", LOG_ID)
    first, second = StripeView(1, 0, OPEN_END, 4), StripeView(2, 100, OPEN_END, 4)
    for stripes in [(first,), (second,)]:
        epoch = made.epoch_next(4).value.epoch
        made.view_propose(epoch - 1, View(epoch, LOG_ID, stripes=stripes, offloads=True))
    file = {"size": 9000, "checksum": bytes(range(32)), "written": TIME}
    record = requests.offload(1, 0, 100, b"s3://b/1", **file)
    assert made.offload_put(record, LOG_ID).code == Code.OK
    yield "stored-offload", door.load("head").omap[b"o.0000000000000063"]


def cursor_and_delivery(store: Taped, door: Door) -> Iterator[Example]:
    made, part = Head(store, "head"), Part("query", 3, 1, LOG_ID)
    made.create("orders", LOG_ID)
    made.cursor_commit("app", CREATE, 100, TIME, LOG_ID)
    made.delivery_begin(part, TIME)
    made.delivery_grant(Grant(part, 1, 0, 100, 10))
    values = door.load("head").omap
    yield "stored-cursor", values[b"c.app"]
    yield "stored-producer", values[b"s.query"]
    made.retention_write(0, b"seen", LOG_ID)
    yield "stored-retention", door.load("head").omap[b"r."]
    yield "stored-delivery", values[b"p.query/0000000000000003.00000001"]


def directory(store: Taped, door: Door) -> Iterator[Example]:
    made = Directory(store, "directory")
    made.add("orders", LOG_ID)
    made.announce("tcp://10.0.0.1:7878")
    yield "stored-directory-entry", door.load("directory").omap[b"n.orders"]
    yield "stored-sequencer", door.load("directory").attrs[b"zlog.sequencer"]
