"""What a release stores: a log of each kind, how it is made, what it reads as, how it goes on.

A part is never changed once it is frozen (`freeze`): later versions have to read what it has made.
"""

from __future__ import annotations

import contextlib
import random
import zlib

import zlog

from ..client.faulty import Died, FaultyStore
from ..client.transfers import mirrored
from ..support.logs import by_position, data_of, leave_hole
from .part import Part, sound
from .services import Objects

LARGE = [bytes([65 + i]) * 20_000 for i in range(4)]
"""So much for one object at once goes to its bytestream."""
KEY = bytes(range(32))
LINES = [b"a line that compresses, number %d" % number for number in range(300)]
FAR_APART = (random.Random(1).randbytes(11_500) + bytes(54_500)) * 3
"""What LZ4, which looks back 64 KiB, compresses so little that the block goes to the bytestream."""

ORDERS = {
    **dict.fromkeys((0, 1, 3), zlog.GapKind.TRIMMED),
    2: b"entry 2",
    **{p: b"entry %d" % p for p in range(4, 10)},
    **{10 + i: data for i, data in enumerate(LARGE)},
    14: zlog.GapKind.FILLED,
    15: zlog.GapKind.TRIMMED,
    16: b"delivered",
    17: b"in the second stripe",
    18: zlog.GapKind.TRIMMED,
    19: b"tagged",
}
LEFT = {p: b"%d" % p for p in range(56, 60)}
SIGNED = [b"plain", b"with tags", b"one", b"two"]
MANY = [
    next(name for n in range(1000) if zlib.crc32((name := f"many-{n}").encode()) % 16 == shard)
    for shard in range(16)
]
"""One for each shard of the directory."""


class Orders(Part):
    """Every kind of record, archived and pending stripes, options, cursors and producers."""

    name = "orders"

    def make(self, store: zlog.Store) -> None:
        with zlog.Log.create(
            store, self.name, width=2, stripe_unit=1, options={"owner": "shop"}
        ) as log:
            log.append_many([b"entry %d" % i for i in range(10)])
            log.append_many(LARGE)
            log.trim(3)
            log.fill(leave_hole(log))
            log.trim(leave_hole(log))
            log.cursor("reader", create=5)
            log.append_once([b"delivered"], producer="query", sequence=1, part=0)
            log.reconfigure(width=4, stripe_unit=4)
            log.append(b"in the second stripe")
            log.append(b"not for long")
            log.append(b"tagged", tags=("eu", "paid"))
            log.trim(18)
            log.trim_to(2)

    def reads(self, store: zlog.Store) -> None:
        with self.open(store) as log:
            assert log.view.options["owner"] == "shop"
            assert [(each.width, each.stripe_unit) for each in log.stripes()] == [(2, 1), (4, 4)]
            assert by_position(log.read_range(0)) == ORDERS
            assert log.read(19).tags == ("eu", "paid")
            assert [(c.name, c.position) for c in log.cursors()] == [("reader", 5)]
            assert [(s.name, s.parts) for s in log.producers()] == [("query", 1)]
            sound(log)

    def goes_on(self, store: zlog.Store) -> None:
        with self.open(store) as log:
            assert log.append(b"now") == 20
            assert (
                log.append_once([b"delivered", b"more"], producer="query", sequence=1, part=0) == 1
            )
            log.cursor("reader").commit(7)
            log.trim_to(5)
            log.reconfigure(width=1)
            end = log.append(b"on")
            expected = {**ORDERS, 20: b"now", 21: b"more", end: b"on"}
            expected.update(dict.fromkeys(range(5), zlog.GapKind.TRIMMED))
            assert by_position(log.read_range(0)) == expected
            sound(log)


class Rolled(Part):
    """So many stripes that the first ones are archived, and one whose maker died."""

    name = "rolled"
    ENTRIES = tuple(b"%d" % number for number in range(36))

    def make(self, store: zlog.Store) -> None:
        with zlog.Log.create(store, self.name, width=1) as log:
            for entry in self.ENTRIES[:-1]:
                log.append(entry)
                log.roll()
            log.append(self.ENTRIES[-1])
        dies = FaultyStore(store, lambda _, method: "die" if method == "view_propose" else None)
        with contextlib.suppress(Died), self.open(dies) as log:
            log.reconfigure(width=2)

    def reads(self, store: zlog.Store) -> None:
        with self.open(store) as log:
            assert len(log.view.stripes) < len(log.stripes()) == len(self.ENTRIES)
            assert data_of(log.read_range(0)) == [*self.ENTRIES]
            sound(log)

    def goes_on(self, store: zlog.Store) -> None:
        with self.open(store) as log:
            log.append(b"sealed, or not")
            log.reconfigure(width=3)
            log.append(b"in a new stripe")
            log.trim_to(2)
            assert data_of(log.read_range(2))[:34] == [*self.ENTRIES[2:]]
            assert log.view.live_stripe.width == 3
            sound(log)


class Tags(Part):
    """Entries with tags, enough of them for chunks of the index."""

    name = "tags"
    COUNT = 350

    def tags_of(self, number: int) -> list[str]:
        """The tags of an entry: 60 that many have, and one that few have."""
        return [*(f"t{i:02}" for i in range(60)), f"rare{number % 100}"]

    def make(self, store: zlog.Store) -> None:
        with zlog.Log.create(store, self.name, width=1, stripe_unit=1) as log:
            for first in range(0, self.COUNT, 50):
                numbers = range(first, first + 50)
                tags = [self.tags_of(number) for number in numbers]
                log.append_many([b"%d" % number for number in numbers], tags_each=tags)

    def reads(self, store: zlog.Store) -> None:
        with self.open(store) as log:
            assert log.tail() == self.COUNT
            self._found(log)
            sound(log)

    def _found(self, log: zlog.Log) -> None:
        expected = [b"7", b"107", b"207", b"307"]
        assert data_of(log.read_range(0, self.COUNT, tags=["rare7"])) == expected
        assert (
            data_of(log.read_range(0, self.COUNT, tags=["rare7"], reverse=True)) == expected[::-1]
        )
        assert data_of(log.read_range(0, self.COUNT, tags=["t07"])) == [
            b"%d" % n for n in range(self.COUNT)
        ]

    def goes_on(self, store: zlog.Store) -> None:
        with self.open(store) as log:
            assert log.append(b"again", tags=["rare7"]) == self.COUNT
            last = log.last("rare7")
            assert last is not None
            assert last.data == b"again"
            self._found(log)
            sound(log)


class Compacted(Part):
    """Compaction by key: what is left of records is sparse."""

    name = "compacted"

    def make(self, store: zlog.Store) -> None:
        with zlog.Log.create(store, self.name, width=1, stripe_unit=1) as log:
            for first in range(0, 60, 10):
                numbers = range(first, first + 10)
                data = [b"%d" % number for number in numbers]
                log.append_many(data, tags_each=[[f"key{number % 4}"] for number in numbers])
            log.set_retention(zlog.Retention(compact_after=0.0))
            log.apply_retention()

    def reads(self, store: zlog.Store) -> None:
        with self.open(store) as log:
            assert log.retention.compact_after == 0.0
            self._found(log, LEFT)

    def _found(self, log: zlog.Log, left: dict[int, bytes]) -> None:
        items = by_position(log.read_range(0)).items()
        found = {p: data for p, data in items if isinstance(data, bytes)}
        assert found == left
        assert log.stat().entries == len(left)
        sound(log)

    def goes_on(self, store: zlog.Store) -> None:
        with self.open(store) as log:
            assert log.append(b"newer", tags=["key0"]) == 60
            log.apply_retention()
            self._found(log, {**{p: LEFT[p] for p in range(57, 60)}, 60: b"newer"})


class Compressed(Part):
    """Blocks of both kinds."""

    name = "compressed"

    def make(self, store: zlog.Store) -> None:
        with zlog.Log.create(store, self.name, width=2, compression="zstd") as log:
            log.append_many(LINES)
            log.reconfigure(compression="lz4")
            log.append_many(LINES)
            log.append(FAR_APART)

    def reads(self, store: zlog.Store) -> None:
        with self.open(store) as log:
            assert data_of(log.read_range(0)) == [*LINES * 2, FAR_APART]
            assert log.read(301).data == LINES[1]
            stat = log.stat()
            assert stat.stored_bytes < stat.bytes
            sound(log)

    def goes_on(self, store: zlog.Store) -> None:
        with self.open(store) as log:
            log.append_many(LINES)
            log.reconfigure(compression="zstd")
            log.append_many(LINES)
            log.trim(0)
            assert data_of(log.read_range(0)) == [*LINES * 2, FAR_APART, *LINES * 2][1:]
            sound(log)


class Signed(Part):
    """Entries with MACs."""

    name = "signed"

    def make(self, store: zlog.Store) -> None:
        with zlog.Log.create(store, self.name, width=2, mac_key=KEY) as log:
            log.append(b"plain")
            log.append(b"with tags", tags=["a", "b"])
            log.append_many([b"one", b"two"])

    def reads(self, store: zlog.Store) -> None:
        with self.open(store, mac_key=KEY) as log:
            assert data_of(log.read_range(0)) == SIGNED
            assert log.read(1).tags == ("a", "b")
            assert log.check().summary.forged == 0
            sound(log)

    def goes_on(self, store: zlog.Store) -> None:
        with self.open(store, mac_key=KEY) as log:
            log.append(b"more")
            assert data_of(log.read_range(0)) == [*SIGNED, b"more"]
            assert log.check().summary.forged == 0


class Ledger(Part):
    """A log of an exclusive writer, which is gone."""

    name = "ledger"

    def make(self, store: zlog.Store) -> None:
        log = zlog.Log.create(store, self.name, width=2)
        with log, log.writer("ann") as writer:
            writer.append_many([b"first", b"second"])

    def reads(self, store: zlog.Store) -> None:
        with self.open(store) as log:
            assert log.view.writer is not None
            assert log.view.writer.name == "ann"
            assert data_of(log.read_range(0, 2)) == [b"first", b"second"]
            sound(log)

    def goes_on(self, store: zlog.Store) -> None:
        with self.open(store) as log:
            with log.writer("bob") as writer:
                assert data_of(writer.recover()) == [b"first", b"second"]
                assert writer.append(b"third") == 2
                writer.release()
            assert log.append(b"of any client") >= 3
            assert data_of(log.read_range(0)) == [b"first", b"second", b"third", b"of any client"]
            sound(log)


class Closed(Part):
    """A log that takes no appends, of which as much is kept as was set."""

    name = "closed"
    KEPT = zlog.Retention(age=86400.0, bytes=1 << 20, entries=2)

    def make(self, store: zlog.Store) -> None:
        with zlog.Log.create(store, self.name, width=1) as log:
            log.append_many([b"one", b"two", b"three"])
            log.set_retention(self.KEPT)
            log.read_only()

    def reads(self, store: zlog.Store) -> None:
        with self.open(store) as log:
            assert log.view.read_only
            assert log.retention == self.KEPT
            assert data_of(log.read_range(0)) == [b"one", b"two", b"three"]

    def goes_on(self, store: zlog.Store) -> None:
        with self.open(store) as log:
            log.writable()
            assert log.append(b"four") == 3
            assert log.apply_retention() == 2
            assert data_of(log.read_range(0)) == [b"three", b"four"]
            sound(log)


class Many(Part):
    """A log in each shard of the directory."""

    def make(self, store: zlog.Store) -> None:
        for name in MANY:
            zlog.Log.create(store, name, width=1).close()

    def reads(self, store: zlog.Store) -> None:
        assert [name for name in zlog.Log.list(store) if name.startswith("many-")] == sorted(MANY)

    def goes_on(self, store: zlog.Store) -> None:
        gone, *others = MANY
        zlog.Log.remove(store, gone)
        zlog.Log.create(store, "many-more", width=1).close()
        found = [name for name in zlog.Log.list(store) if name.startswith("many-")]
        assert found == sorted([*others, "many-more"])


class Copy(Part):
    """A mirror that is not complete."""

    name = "copy"

    def make(self, store: zlog.Store) -> None:
        with zlog.Log.create(store, "original", width=1) as original:
            original.append_many([b"one", b"two"])
            mirrored(original, store, self.name)
            original.append(b"three")

    def reads(self, store: zlog.Store) -> None:
        with self.open(store) as log:
            assert log.view.mirror
            assert data_of(log.read_range(0)) == [b"one", b"two"]

    def goes_on(self, store: zlog.Store) -> None:
        with zlog.Log.open(store, "original") as original, self.open(store) as log:
            assert mirrored(original, store, self.name) == 3
            assert list(log.read_range(0)) == list(original.read_range(0))
            log.promote()
            assert log.append(b"its own") == 3


PARTS: tuple[Part, ...] = (
    Orders(),
    Rolled(),
    Tags(),
    Compacted(),
    Compressed(),
    Signed(),
    Ledger(),
    Closed(),
    Many(),
    Copy(),
    Objects(),
)
