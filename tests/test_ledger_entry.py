"""The durable text form of a ledger entry, and the set of epochs in it."""

from __future__ import annotations

import json
from dataclasses import replace
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from committer.errors import InvalidMetadataError
from committer.ledger_entry import (
    LATEST_MAX,
    RANGES_MAX,
    EpochRanges,
    Freeze,
    Landed,
    ProducerEntry,
    parse_entry,
    parse_property_key,
    print_entry,
    property_key,
    short_fingerprint,
)

TABLE = UUID(int=7)


def landed(epoch: int) -> Landed:
    return Landed(epoch, "spark-offsets", short_fingerprint(f"o{epoch}"), UUID(int=epoch), 10, 3)


@given(st.lists(st.integers(0, 60), max_size=50))
def test_ranges_hold_exactly_the_epochs_that_were_added(epochs: list[int]) -> None:
    ranges = EpochRanges()
    for epoch in epochs:
        ranges = ranges.with_epoch(epoch)
    assert [epoch for epoch in range(62) if epoch in ranges] == sorted(set(epochs))
    assert EpochRanges.parse(str(ranges)) == ranges


def test_an_epoch_that_arrives_late_closes_its_gap() -> None:
    ranges = EpochRanges()
    for epoch in (0, 1, 3, 2):
        ranges = ranges.with_epoch(epoch)
    assert str(ranges) == "0-3"


def test_too_many_gaps_are_closed_from_the_oldest_on() -> None:
    ranges = EpochRanges()
    for epoch in range(0, 2 * RANGES_MAX + 4, 2):
        ranges = ranges.with_epoch(epoch)
    assert len(ranges.ranges) == RANGES_MAX
    assert 1 in ranges
    assert 2 * RANGES_MAX + 1 not in ranges


@pytest.mark.parametrize("text", ["3-1", "1-4,2", "x", "5,5", "1--2"])
def test_ranges_out_of_order_are_refused(text: str) -> None:
    with pytest.raises(ValueError):
        EpochRanges.parse(text)


@given(st.sets(st.integers(0, 40)), st.sets(st.integers(0, 40)))
def test_epochs_that_are_taken_out_are_the_only_ones_that_go(
    held: set[int], gone: set[int]
) -> None:
    ranges, taken = EpochRanges(), EpochRanges()
    for epoch in held:
        ranges = ranges.with_epoch(epoch)
    for epoch in gone:
        taken = taken.with_epoch(epoch)
    left = ranges.without(taken)
    assert [epoch for epoch in range(42) if epoch in left] == sorted(held - gone)
    assert EpochRanges.parse(str(left)) == left


def test_an_entry_survives_its_text_form_in_three_hundred_bytes() -> None:
    entry, gone = ProducerEntry(TABLE), set[UUID]()
    for epoch in range(100_000, 100_005):
        entry = entry.with_landed(landed(epoch)).without_settled(gone)
        gone.add(UUID(int=epoch))
    text = print_entry(entry)
    assert parse_entry(text) == entry
    assert [found.epoch for found in entry.latest] == [100_004, 100_003]
    assert entry.landed(100_000) is None
    assert 100_000 in entry.epochs
    assert len(text) < 300


def test_what_has_landed_is_remembered_until_its_request_has_left_the_inbox() -> None:
    entry = ProducerEntry(TABLE).with_landed(*map(landed, range(300)))
    text = print_entry(entry)
    assert parse_entry(text) == entry
    assert [found.epoch for found in entry.latest] == [*reversed(range(300))]
    assert len(text) < 300 * 65
    left = entry.without_settled({UUID(int=epoch) for epoch in range(300) if epoch != 17})
    assert [found.epoch for found in left.latest] == [299, 298, 17]
    assert left.without_settled({UUID(int=299), UUID(int=298)}) is left
    assert str(left.epochs) == "0-299"


def test_of_an_epoch_that_landed_twice_the_older_details_do_not_outlive_the_newer() -> None:
    again = replace(landed(0), attempt=UUID(int=100), fingerprint="other", snapshot_id=100)
    entry = ProducerEntry(TABLE).with_landed(landed(0), again, landed(1), landed(2))
    shorter = entry.without_settled({again.attempt})
    assert shorter.landed(0) == again
    assert shorter.without_settled({again.attempt, landed(0).attempt}).landed(0) is None


def test_an_entry_remembers_no_more_than_it_has_room_for() -> None:
    entry = ProducerEntry(TABLE)
    for start in range(0, 3 * LATEST_MAX, LATEST_MAX // 2):
        entry = entry.with_landed(*map(landed, range(start, start + LATEST_MAX // 2)))
    assert [found.epoch for found in entry.latest] == [
        *reversed(range(2 * LATEST_MAX, 3 * LATEST_MAX))
    ]
    assert len(print_entry(entry)) < 65 * LATEST_MAX


def test_epochs_of_several_snapshots_and_kinds_stand_in_their_order() -> None:
    entry = ProducerEntry(TABLE).with_landed(
        landed(1), replace(landed(2), fingerprint_kind="user"), replace(landed(3), snapshot_id=11)
    )
    (third, second, first) = json.loads(print_entry(entry))["latest"]
    assert (third[0], second[2], first[3]) == (11, "user", 1)
    assert parse_entry(print_entry(entry)) == entry


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", "null", '{"v":1}', '{"v":1,"table":"x","epochs":"","latest":[]}', '{"v":2}'],
)
def test_a_text_that_is_no_entry_is_invalid_metadata(text: str) -> None:
    with pytest.raises(InvalidMetadataError):
        parse_entry(text)


# --- Decisions of an operator --------------------------------------------------------------------


def test_an_entry_that_nobody_froze_is_what_it_was_before_there_were_operators() -> None:
    text = print_entry(ProducerEntry(TABLE, sequential=True).with_landed(landed(3)))
    assert set(json.loads(text)) == {"v", "table", "epochs", "latest", "sequential"}
    assert json.loads(text)["v"] == 1


@pytest.mark.parametrize("freeze", [Freeze("to look at it", 17), Freeze("rolled back", 17, 99)])
def test_a_frozen_entry_has_a_version_that_older_committers_refuse(freeze: Freeze) -> None:
    """They freeze a producer whose entry they cannot read, and never write it anew."""
    entry = replace(ProducerEntry(TABLE).with_landed(landed(3)), frozen=freeze)
    assert json.loads(print_entry(entry))["v"] == 2
    assert parse_entry(print_entry(entry)) == entry


def test_leave_to_land_is_for_one_attempt_and_used_up_by_its_landing() -> None:
    entry = replace(ProducerEntry(TABLE), accepted=((3, UUID(int=3)), (3, UUID(int=9))))
    text = print_entry(entry)
    assert json.loads(text)["v"] == 1
    assert parse_entry(text) == entry
    assert entry.with_landed(landed(3)).accepted == ((3, UUID(int=9)),)
    assert entry.with_landed(landed(4)).accepted == entry.accepted


@pytest.mark.parametrize("frozen", ["true", '{"why":"x"}', '{"why":"x","since-ms":"soon"}', "[]"])
def test_a_freeze_that_cannot_be_read_is_invalid_metadata(frozen: str) -> None:
    text = f'{{"v":2,"table":"{TABLE}","epochs":"","latest":[],"frozen":{frozen}}}'
    with pytest.raises(InvalidMetadataError):
        parse_entry(text)


@pytest.mark.parametrize("producer", ["q", "a.b@c", "1/x"])
@pytest.mark.parametrize("branch", ["main", "audit", "a.b", "x@y"])
def test_a_property_key_names_producer_and_branch_without_ambiguity(
    producer: str, branch: str
) -> None:
    assert parse_property_key(property_key(producer, branch)) == (producer, branch)


def test_other_properties_are_not_ledger_entries() -> None:
    assert parse_property_key("frazil.commit.min-interval-ms") is None


def test_the_name_that_a_producer_gave_last_stays_and_is_only_printed_if_there_is_one() -> None:
    entry = ProducerEntry(TABLE)
    assert "name" not in print_entry(entry)
    named = entry.with_name("first").with_name("flights of 2013").with_name(None).with_name("")
    assert named.name == "flights of 2013"
    assert parse_entry(print_entry(named)) == named
