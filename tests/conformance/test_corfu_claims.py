"""The claims of the CORFU paper, one test each, on every host.

M. Balakrishnan, D. Malkhi, V. Prabhakaran, T. Wobber, M. Wei, J. D. Davis: "CORFU: A Shared Log
Design for Flash Clusters", NSDI '12. Its flash units are stripe objects here, its projections are
views, and its auxiliary is the head object. Each docstring names the part of the paper that makes
the claim (flash units, mapping, changing the mapping, finding the tail, fill, trim) and gives it in
our own words. Replication chains have no test: RADOS replicates.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from .miniature import MiniLog, Sequencer
from .objects import Store
from .replies import Code, State
from .requests import Entry, StripeView
from .wire import OPEN_END

ALICE, BOB = b"a" * 16, b"b" * 16


@pytest.fixture
def log(store: Store, prefix: str) -> MiniLog:
    """A new log, four objects wide."""
    made = MiniLog(store, prefix)
    made.create(width=4)
    return made


def another_client(log: MiniLog) -> MiniLog:
    """A second client that holds the same view."""
    return MiniLog(log.store, log.prefix, log.view)


# Flash units


def test_a_written_position_never_changes(log: MiniLog) -> None:
    """Flash units: an address takes a single write; a second one gets an error and no effect."""
    assert log.write(0, b"first", ALICE).code == Code.OK
    second = log.write(0, b"second", BOB)
    assert (second.code, second.value) == (Code.READ_ONLY, 0)
    assert log.read(0).data == b"first"


def test_reading_tells_unwritten_from_written_and_trimmed(log: MiniLog) -> None:
    """Flash units: a read gives the data, or the error that says whether there was none or is
    none."""
    assert log.read(4).state == State.UNWRITTEN
    log.write(4, b"x")
    assert (log.read(4).state, log.read(4).data) == (State.WRITTEN, b"x")
    log.locate(4).trim(log.view.epoch, [4])
    assert (log.read(4).state, log.read(4).data) == (State.TRIMMED, b"")


def test_addresses_are_sparse_and_without_end(log: MiniLog) -> None:
    """Flash units: each exposes an infinite address space; any position may be written at any
    time."""
    for position in (2**40, 3, 2**62):
        assert log.write(position, b"x").code == Code.OK
    assert log.read(2**40 - 4).state == State.UNWRITTEN
    assert log.read(2**40).data == b"x"


# Mapping


def test_every_client_maps_a_position_to_the_same_place(log: MiniLog) -> None:
    """Mapping: positions go round robin over the units by a function that all clients share."""
    for position in range(8):
        log.write(position, b"%d" % position)
    other = another_client(log)
    assert [other.read(p).data for p in range(8)] == [b"%d" % p for p in range(8)]
    held = [o.stat(log.view.epoch).value.entries for o in log.objects(log.view.stripes[0])]
    assert held == [2, 2, 2, 2]


def test_a_unit_takes_no_position_that_is_not_mapped_to_it(log: MiniLog) -> None:
    """Mapping: a position lives in one unit only, so that no two units can hold it differently."""
    wrong = log.objects(log.view.stripes[0])[1]
    assert wrong.put(log.view.epoch, 4, b"x").code < 0
    assert log.read(4).state == State.UNWRITTEN


# Mapping: changing it


def test_sealed_units_refuse_everything_of_older_epochs(log: MiniLog) -> None:
    """Changing the mapping: once sealed, a unit rejects every message that carries a lower
    epoch."""
    stale = another_client(log)
    log.write(0, b"x")
    log.seal(log.view.stripes[0], log.next_epoch())
    unit, old = stale.locate(0), stale.view.epoch
    answers = [
        unit.put(old, 4, b"late"),
        unit.read(old, [0]),
        unit.fill(old, [4]),
        unit.trim(old, [0]),
        unit.trim_to(old, 4),
        unit.max_position(old),
        unit.stat(old),
        unit.remove(old),
    ]
    assert {(answer.code, answer.value) for answer in answers} == {(Code.STALE_EPOCH, old + 1)}
    now = unit.read(old + 1, [0, 4]).value
    assert [slot.state for slot in now.slots] == [State.WRITTEN, State.UNWRITTEN]


def test_seal_tells_the_highest_address_issued(log: MiniLog) -> None:
    """Changing the mapping: sealing a unit answers with the highest address used under older
    epochs."""
    stripe, log_epoch = log.view.stripes[0], log.next_epoch()
    assert log.seal(stripe, log_epoch) is None
    unit = log.objects(stripe)[2]
    uses = (
        (2, lambda epoch: unit.put(epoch, 2, b"x")),
        (10, lambda epoch: unit.fill(epoch, [10])),
        (18, lambda epoch: unit.trim(epoch, [18])),
    )
    for position, use in uses:
        assert use(log_epoch).code == Code.OK
        log_epoch = log.next_epoch()
        assert log.seal(stripe, log_epoch) == position


def test_an_epoch_is_sealed_by_one_client_only(log: MiniLog) -> None:
    """Changing the mapping: epochs only grow; who comes with one that is no longer newer has
    lost."""
    unit = log.locate(0)
    assert unit.seal(5).code == Code.OK
    for epoch in (5, 4, 1):
        answer = unit.seal(epoch)
        assert (answer.code, answer.value) == (Code.INVALID_EPOCH, 5)


def test_a_slow_client_writes_nothing_across_a_reconfiguration(log: MiniLog) -> None:
    """Changing the mapping: a write in flight under the old projection lands before the seal or
    never.

    The position that it was granted is cut off by the new projection, which starts elsewhere.
    """
    sequencer, slow = Sequencer(), another_client(log)
    for _ in range(6):
        log.append(sequencer, b"x")
    granted = sequencer.next()  # 6: the slow client's, and it sleeps on it

    epoch, old = log.next_epoch(width=2), log.view.stripes[0]
    highest = log.seal(old, epoch)
    assert highest == 5
    new = StripeView(epoch, highest + 1, OPEN_END, 2)
    log.seal(new, epoch, create=True)
    closed = old._replace(end=highest + 1)
    assert log.propose(replace(log.view, epoch=epoch, stripes=(closed, new))).code == Code.OK

    assert slow.write(granted, b"late").code == Code.STALE_EPOCH
    assert log.read(granted).state == State.UNWRITTEN
    assert log.write(granted, b"new").code == Code.OK
    assert [log.read(p).data for p in range(7)] == [b"x"] * 6 + [b"new"]


def test_of_two_reconfigurations_one_wins_and_the_other_sees_it(log: MiniLog) -> None:
    """Changing the mapping: projections are totally ordered at the auxiliary, each after the last.

    The loser is told the winner's epoch, adopts that projection and builds on it.
    """
    rival = another_client(log)
    mine, theirs = log.next_epoch(), rival.next_epoch()
    assert rival.propose(replace(rival.view, epoch=theirs, sequencer="theirs")).code == Code.OK
    lost = log.propose(replace(log.view, epoch=mine, sequencer="mine"))
    assert (lost.code, lost.value) == (Code.INVALID_EPOCH, theirs)
    again = log.next_epoch()
    lost = log.propose(replace(log.view, epoch=again, sequencer="mine"))
    assert (lost.code, lost.value) == (Code.STALE_EPOCH, theirs)
    log.view = rival.view
    assert log.propose(replace(log.view, epoch=again, sequencer="mine")).code == Code.OK


def test_projections_stay_readable_in_their_order(log: MiniLog) -> None:
    """Changing the mapping: a client that was away finds the projections it missed at the
    auxiliary."""
    for _ in range(3):
        assert log.propose(replace(log.view, epoch=log.next_epoch())).code == Code.OK
    views = log.head.view_read(from_epoch=2).value
    assert (views.newest, len(views.views), views.more) == (4, 3, False)


def test_a_client_that_seals_and_dies_blocks_nobody(log: MiniLog) -> None:
    """Changing the mapping: any client can finish or overtake a reconfiguration that another
    began."""
    log.write(0, b"x")
    log.seal(log.view.stripes[0], log.next_epoch())  # and the client is gone
    epoch = log.next_epoch()
    assert log.seal(log.view.stripes[0], epoch) == 0
    assert log.propose(replace(log.view, epoch=epoch)).code == Code.OK
    assert log.read(0).data == b"x"
    assert log.write(1, b"y").code == Code.OK


# Finding the tail


def test_the_sequencer_is_only_a_hint(log: MiniLog) -> None:
    """Finding the tail: the sequencer is an optimisation; two that hand out the same lose no entry.

    Write-once units arbitrate: of two clients with one position one wins, the other tries the next.
    """
    twins = Sequencer(), Sequencer()
    other = another_client(log)
    mine = [log.append(twins[0], b"a%d" % i, ALICE) for i in range(5)]
    theirs = [other.append(twins[1], b"b%d" % i, BOB) for i in range(5)]
    assert not set(mine) & set(theirs)
    assert [log.read(p).data for p in mine] == [b"a%d" % i for i in range(5)]
    assert [log.read(p).data for p in theirs] == [b"b%d" % i for i in range(5)]


def test_the_tail_is_found_without_a_sequencer(log: MiniLog) -> None:
    """Finding the tail: the units know it: one past the highest address in any of them."""
    assert log.slow_tail() == 0
    sequencer = Sequencer()
    for expected in range(1, 7):
        log.append(sequencer, b"x")
        assert log.slow_tail() == expected
    log.fill(20)
    assert log.slow_tail() == 21


def test_a_new_sequencer_starts_above_everything_that_was_written(log: MiniLog) -> None:
    """Finding the tail: a sequencer that takes over seals the units before it asks for the tail.

    A grant of the old one that is not written by then is dead, so no position is handed out twice.
    """
    old = Sequencer()
    for _ in range(5):
        log.append(old, b"x")
    stale, granted = another_client(log), old.next()
    epoch = log.next_epoch()
    highest = log.seal(log.view.stripes[0], epoch)
    assert log.propose(replace(log.view, epoch=epoch, sequencer="new")).code == Code.OK
    new = Sequencer(5 if highest is None else highest + 1)
    assert log.append(new, b"new", BOB) == 5
    assert stale.write(granted, b"old", ALICE).code == Code.STALE_EPOCH
    assert log.read(granted).data == b"new"


def test_the_epoch_counter_gives_no_epoch_twice(log: MiniLog) -> None:
    """Finding the tail: a sequencer keeps nothing; what it must not repeat is counted at the
    auxiliary."""
    epochs = [client.next_epoch() for client in (log, another_client(log)) for _ in range(3)]
    assert epochs == sorted(set(epochs))
    assert log.head.epoch_read().value.counter == epochs[-1]


# Holes


def test_a_hole_is_filled_so_that_readers_can_pass(log: MiniLog) -> None:
    """Fill: a position that a client took and never wrote is completed with junk by any client."""
    sequencer = Sequencer()
    log.append(sequencer, b"before")
    hole = sequencer.next()
    log.append(sequencer, b"after")
    assert log.read(hole).state == State.UNWRITTEN
    assert log.fill(hole).code == Code.OK
    assert log.fill(hole).code == Code.OK  # by a second reader, at the same time
    assert log.read(hole).state == State.FILLED


def test_fill_loses_against_a_write_that_came_first(log: MiniLog) -> None:
    """Fill: junk never replaces data; the filler is told and reads the data instead."""
    log.write(0, b"just in time")
    answer = log.fill(0)
    assert (answer.code, answer.value) == (Code.READ_ONLY, 0)
    assert log.read(0).data == b"just in time"


def test_a_write_loses_against_a_fill_that_came_first(log: MiniLog) -> None:
    """Fill: the slow client is told that its position is gone, and appends elsewhere."""
    sequencer = Sequencer()
    slow = sequencer.next()
    log.fill(slow)
    assert log.write(slow, b"late").code == Code.READ_ONLY
    assert log.append(sequencer, b"late") == slow + 1
    assert log.read(slow).state == State.FILLED


# Trim


def test_trim_frees_a_position_for_good(log: MiniLog) -> None:
    """Trim: an address that is no longer needed is marked and freed, and can never be written
    again."""
    log.write(0, b"x" * 1000)
    unit, epoch = log.locate(0), log.view.epoch
    assert unit.stat(epoch).value.data_bytes == 1000
    assert unit.trim(epoch, [0]).code == Code.OK
    assert unit.stat(epoch).value.data_bytes == 0
    assert log.write(0, b"again", BOB).code == Code.READ_ONLY
    assert log.read(0).state == State.TRIMMED


def test_trim_works_on_any_position_alone(log: MiniLog) -> None:
    """Trim: garbage is collected by entry, not only from the front: neighbours are not touched."""
    unit, epoch = log.locate(0), log.view.epoch
    unit.write(epoch, [Entry(p, p, b"%d" % p) for p in (0, 4, 8)])
    unit.trim(epoch, [4])
    assert [log.read(p).state for p in (0, 4, 8)] == [State.WRITTEN, State.TRIMMED, State.WRITTEN]
    assert (log.read(0).data, log.read(8).data) == (b"0", b"8")


def test_a_prefix_is_trimmed_in_one_step(log: MiniLog) -> None:
    """Trim: a unit keeps the front of the log as one watermark, below which all is trimmed for
    ever."""
    unit, epoch = log.locate(0), log.view.epoch
    unit.write(epoch, [Entry(p, p, b"x") for p in (0, 4, 12)])
    assert unit.trim_to(epoch, 12).code == Code.OK
    assert [log.read(p).state for p in (0, 4, 8, 12)] == [State.TRIMMED] * 3 + [State.WRITTEN]
    assert log.write(8, b"late").code == Code.READ_ONLY
    assert unit.stat(epoch).value.trim_point == 12


def test_a_trimmed_position_still_counts_for_the_tail(log: MiniLog) -> None:
    """Trim: an address that was given up is a used one; the tail never goes back behind it."""
    log.write(8, b"x")
    log.locate(8).trim_to(log.view.epoch, 12)
    assert log.slow_tail() == 9
    assert log.seal(log.view.stripes[0], log.next_epoch()) == 8


# Beyond the paper: what zlog adds so that a retry is always decided


def test_a_retry_after_a_lost_reply_finds_its_own_entry(log: MiniLog) -> None:
    """Append: at most once needs more than write-once: the unit knows whose write it holds.

    Without that, a client whose reply was lost would see its own entry as another's.
    """
    assert log.write(0, b"mine", ALICE).code == Code.OK
    assert log.write(0, b"mine", ALICE).code == Code.OK
    log.seal(log.view.stripes[0], log.next_epoch())
    assert log.write(0, b"mine", ALICE).code == Code.OK  # identity before epoch
    assert log.write(4, b"mine", ALICE).code == Code.STALE_EPOCH
    assert log.write(0, b"not mine", BOB).code == Code.STALE_EPOCH


def test_the_tail_never_goes_back_over_a_fail_over(log: MiniLog) -> None:
    """Finding the tail: what a reader was told must hold under the next sequencer too, written or
    not.

    The head keeps a floor that is raised in the newest epoch only and handed out with the next one.
    """
    epoch = log.next_epoch()
    assert log.head.tail_raise(epoch, 9).code == Code.OK
    newer, floor = log.head.epoch_next().value
    assert (newer, floor) == (epoch + 1, 9)
    assert log.head.tail_raise(epoch, 12).code == Code.STALE_EPOCH
    assert log.head.epoch_read().value.tail_floor == 9
