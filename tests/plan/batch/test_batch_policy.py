"""When a batch goes, and what is in it."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from committer.plan.batch import batch_policy as batching
from committer.plan.batch.batch_policy import (
    INTERVAL_MS_MAX,
    INTERVAL_PROPERTY,
    BatchPolicy,
    interval_ms,
    next_batch,
    wait_ms,
)
from committer.plan.batch.request_check import CheckBasis, CheckedRequest, Checker
from committer.plan.scheduling.backoff import CAP_S, backoff_s
from tests.support.builders.flights import build_flights
from tests.support.builders.operation_requests import build_operation
from tests.support.builders.request_builders import build_request

TABLE = build_flights()
POLICY = BatchPolicy(min_interval_ms=1_000)


def checked(
    producer: str = "query-1", epoch: int = 0, *, files: int = 1, branch: str = "main"
) -> CheckedRequest:
    sealed = build_request(
        TABLE, producer=producer, epoch=epoch, files_count=files, partition=("AA",)
    )
    checker = Checker(CheckBasis.of("frazil", TABLE.metadata), TABLE.metadata.current_schema)
    found = checker.check(sealed)
    assert isinstance(found, CheckedRequest)
    if branch == "main":
        return found
    request = sealed.request.model_copy(update={"branch": branch})
    moved = type(sealed)(request, sealed.content, sealed.body)
    return CheckedRequest(moved, found.basis, found.manifests)


# --- When ----------------------------------------------------------------------------------------


def test_the_first_commit_of_a_quiet_table_goes_at_once() -> None:
    assert wait_ms(POLICY, last_start_ms=None, now_ms=5) == 0
    assert wait_ms(POLICY, last_start_ms=0, now_ms=1_000) == 0
    assert wait_ms(POLICY, last_start_ms=0, now_ms=99_000) == 0


def test_the_next_one_waits_for_the_rest_of_the_interval() -> None:
    assert wait_ms(POLICY, last_start_ms=10_000, now_ms=10_000) == 1_000
    assert wait_ms(POLICY, last_start_ms=10_000, now_ms=10_300) == 700


@given(st.integers(0, 2**45), st.integers(0, 2**45))
def test_no_clock_makes_a_table_wait_longer_than_one_interval(last: int, now: int) -> None:
    assert 0 <= wait_ms(POLICY, last_start_ms=last, now_ms=now) <= 1_000


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, 700),
        ("0", 0),
        ("250", 250),
        (" 250 ", 250),
        ("00250", 250),
        ("3600000", INTERVAL_MS_MAX),
        ("3600001", INTERVAL_MS_MAX),
        ("9" * 15, INTERVAL_MS_MAX),
        ("9" * 5_000, INTERVAL_MS_MAX),
        ("", 700),
        ("-1", 700),
        ("+1", 700),
        ("1.5", 700),
        ("1e3", 700),
        ("1_000", 700),
        ("0x10", 700),
        ("soon", 700),
        ("٣", 700),
        ("²", 700),
        ("NaN", 700),
    ],
)
def test_a_tables_own_interval_counts_if_it_can_be_read(text: str | None, expected: int) -> None:
    properties = {} if text is None else {INTERVAL_PROPERTY: text}
    assert interval_ms(properties, 700) == expected


@given(st.integers(0, 10_000), st.floats(0, 1, exclude_max=True))
def test_back_off_stays_below_its_cap(attempt: int, jitter: float) -> None:
    assert 0 <= backoff_s(attempt, jitter) <= CAP_S


# --- What ----------------------------------------------------------------------------------------


def test_requests_go_in_their_order_of_arrival() -> None:
    waiting = [checked(producer) for producer in ("c", "a", "b")]
    assert next_batch(waiting, POLICY) == tuple(waiting)
    assert next_batch([], POLICY) == ()


def test_of_two_attempts_of_one_epoch_the_first_goes() -> None:
    first, second, other = checked(epoch=1), checked(epoch=1), checked(epoch=2)
    assert next_batch([first, second, other], POLICY) == (first, other)


def test_one_epoch_of_two_producers_or_two_branches_is_two_epochs() -> None:
    waiting = [checked("a"), checked("b"), checked("a", branch="audit")]
    assert next_batch(waiting, POLICY) == tuple(waiting)


def test_a_batch_ends_with_the_request_that_reaches_a_bound() -> None:
    waiting = [checked(epoch=epoch, files=3) for epoch in range(5)]
    size = waiting[0].size_bytes
    assert next_batch(waiting, BatchPolicy(requests_max=2)) == tuple(waiting[:2])
    assert next_batch(waiting, BatchPolicy(files_max=4)) == tuple(waiting[:2])
    assert next_batch(waiting, BatchPolicy(files_max=6)) == tuple(waiting[:2])
    assert next_batch(waiting, BatchPolicy(bytes_max=size + 1)) == tuple(waiting[:2])


def test_producers_take_turns_where_not_all_fit_and_keep_their_places() -> None:
    long = [checked("long", epoch, files=4) for epoch in range(6)]
    short, last = checked("short", 0), checked("last", 0)
    waiting = [*long[:5], short, long[5], last]
    assert next_batch(waiting, BatchPolicy(files_max=100)) == tuple(waiting)
    assert next_batch(waiting, BatchPolicy(files_max=10)) == (*long[:2], short, last)
    assert next_batch(waiting, BatchPolicy(requests_max=3)) == (long[0], short, last)


def test_a_change_of_the_table_does_not_pass_what_came_before_it() -> None:
    long = [checked("long", epoch) for epoch in range(3)]
    alter = altering(checked("operator", 0))
    after = checked("operator", 1)
    waiting = [*long, alter, after]
    assert next_batch(waiting, BatchPolicy(requests_max=3)) == tuple(long)
    assert next_batch(waiting, BatchPolicy(requests_max=4)) == (*long, alter)


def altering(one: CheckedRequest) -> CheckedRequest:
    sealed = one.sealed
    request = sealed.request.model_copy(update={"operation": "alter"})
    changed = type(sealed)(request, sealed.content, sealed.body)
    return CheckedRequest(changed, one.basis, one.manifests)


def test_a_request_beyond_every_bound_goes_alone() -> None:
    large, small = checked(epoch=0, files=50), checked(epoch=1)
    policy = BatchPolicy(files_max=1, bytes_max=1, requests_max=10)
    assert next_batch([large, small], policy) == (large,)


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 3)), max_size=8))
def test_a_batch_holds_each_epoch_once_and_leaves_none_out(epochs: list[tuple[str, int]]) -> None:
    waiting = [CACHE[one] for one in epochs]
    batch = next_batch(waiting, POLICY)
    keys = [(one.request.producer.id, one.request.epoch) for one in batch]
    assert len(keys) == len(set(keys))
    assert set(keys) == set(epochs)


CACHE = {(producer, epoch): checked(producer, epoch) for producer in "ab" for epoch in range(4)}


# --- Requests that remove many files -------------------------------------------------------------


def removing(
    producer: str, files: int, epoch: int = 0, operation: str = "rewrite-files"
) -> CheckedRequest:
    """Build a request that removes so many data files by name."""
    removed = [f"{TABLE.metadata.location}/data/{producer}-{number}" for number in range(files)]
    needs = {"removed-data-files": removed, "base-sequence-number": 1}
    sealed = build_operation(TABLE, operation, producer=producer, epoch=epoch, needs=needs)
    return replace(checked(), sealed=sealed, manifests=())


def drained(waiting: list[CheckedRequest], arriving: list[CheckedRequest]) -> list[list[str]]:
    """Return the producers of each batch, if these arrive between any two."""
    batches = []
    while waiting:
        batch = next_batch(waiting, BatchPolicy(removed_files_max=10))
        assert batch
        batches.append([one.request.producer.id for one in batch])
        waiting = [one for one in waiting if one not in batch] + arriving[:2]
        arriving = arriving[2:]
    return batches


def test_small_requests_do_not_wait_for_what_a_large_compaction_has_left() -> None:
    parts = [removing(f"part-{number}", 4) for number in range(5)]
    waiting = [*parts, removing("update", 1, operation="overwrite"), checked("append")]
    assert drained(waiting, []) == [
        ["part-0", "part-1", "update", "append"],
        ["part-2", "part-3"],
        ["part-4"],
    ]


def test_a_request_that_removes_many_files_waits_for_none_that_came_after_it() -> None:
    """However many smaller ones arrive, and however many of them would fit."""
    later = [removing(f"small-{number}", 2) for number in range(12)]
    waiting = [removing("first", 8), removing("large", 30), *later[:2]]
    batches = drained(waiting, later[2:])
    assert batches[:2] == [["first", "small-0"], ["large"]]
    assert sum(map(len, batches)) == 14


def test_what_follows_a_request_that_has_to_wait_waits_with_it() -> None:
    first = removing("other", 8)
    query = [removing("query-1", 8, epoch) for epoch in (5, 4)]
    later = [checked("query-1", 6), checked("query-1", 4), checked("query-1", 3)]
    found = next_batch([first, *query, *later], BatchPolicy(removed_files_max=10))
    assert [(one.request.producer.id, one.request.epoch) for one in found] == [
        ("other", 0),
        ("query-1", 3),
    ]


def test_a_request_does_not_wait_while_a_later_one_of_its_producer_lands() -> None:
    waiting = [removing("query-1", 8, 6), removing("query-1", 8, 5), removing("other", 1)]
    found = next_batch(waiting, BatchPolicy(removed_files_max=10))
    assert [one.request.epoch for one in found] == [6, 5]


def test_files_are_counted_over_all_manifests() -> None:
    one = checked(files=7)
    assert one.files_count == 7
    assert one.size_bytes == len(one.sealed.content)
    assert one.request.attempt != UUID(int=0)


def test_behind_a_commit_of_several_requests_the_next_gathers_for_a_moment() -> None:
    at_once = BatchPolicy(min_interval_ms=0)
    assert wait_ms(at_once, last_start_ms=10_000, now_ms=10_040) == 0
    assert wait_ms(at_once, last_start_ms=10_000, now_ms=10_040, several=True) == 2
    assert wait_ms(POLICY, last_start_ms=10_000, now_ms=10_300, several=True) == 700


def test_of_one_producer_a_batch_takes_what_its_entry_has_room_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(batching, "PRODUCER_REQUESTS_MAX", 3)
    many = [checked(epoch=epoch) for epoch in range(5)]
    found = next_batch([*many, checked("another")], POLICY)
    assert [(one.request.producer.id, one.request.epoch) for one in found] == [
        *(("query-1", epoch) for epoch in range(3)),
        ("another", 0),
    ]
