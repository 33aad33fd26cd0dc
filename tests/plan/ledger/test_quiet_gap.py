"""When a gap is left for other engines, and who counts as another engine."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from committer.iceberg.updates.metadata_update import SetProperties
from committer.plan.batch.batch_policy import (
    INTERVAL_MS_MAX,
    METADATA_BYTES_MAX,
    stretched_ms,
)
from committer.plan.ledger.evidence import COUNT_KEY
from committer.plan.ledger.quiet_gap import (
    GAP_MS_MAX,
    GAP_PROPERTY,
    GapHistory,
    GapPolicy,
    gap_ms,
    is_foreign_change,
    last_foreign_snapshot_ms,
)
from tests.plan.histories import History

POLICY = GapPolicy(length_ms=5_000, period_ms=30_000, lately_ms=600_000)
BUSY = GapHistory(last_foreign_ms=90_000, last_swap_ms=100_000, gap_until_ms=None)


def test_a_table_that_is_ours_alone_waits_for_nobody() -> None:
    alone = GapHistory(None, 100_000, None)
    assert gap_ms(POLICY, alone, now_ms=100_000) is None
    assert gap_ms(POLICY, BUSY, now_ms=90_000 + 600_001) is None
    assert gap_ms(POLICY, GapHistory(), now_ms=5) is None


def test_where_others_commit_a_gap_as_long_as_asked_for_is_left() -> None:
    assert gap_ms(POLICY, BUSY, now_ms=100_000) == 5_000
    assert gap_ms(POLICY, BUSY, now_ms=101_500) == 3_500


def test_a_table_that_was_quiet_has_had_its_gap() -> None:
    assert gap_ms(POLICY, BUSY, now_ms=105_000) == 0
    assert gap_ms(POLICY, BUSY, now_ms=400_000) == 0


def test_between_two_gaps_commits_go_at_once() -> None:
    history = BUSY.had_gap(100_000)
    assert gap_ms(POLICY, history, now_ms=100_100) is None
    assert gap_ms(POLICY, history.swapped(119_999), now_ms=119_999) is None
    assert gap_ms(POLICY, history.swapped(120_000), now_ms=120_000) == 5_000


def test_a_length_of_nothing_leaves_no_gaps() -> None:
    assert gap_ms(GapPolicy(length_ms=0), BUSY, now_ms=100_000) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2000", GapPolicy(2_000, 30_000, 600_000, always=True)),
        (" 2000 ", GapPolicy(2_000, 30_000, 600_000, always=True)),
        ("0", GapPolicy(0, 30_000, 600_000, always=True)),
        ("9" * 5_000, GapPolicy(GAP_MS_MAX, 30_000, 600_000, always=True)),
        ("", POLICY),
        ("soon", POLICY),
        ("-1", POLICY),
        ("²", POLICY),
    ],
)
def test_a_table_that_says_a_length_gets_gaps_always(text: str, expected: GapPolicy) -> None:
    assert POLICY.for_table({GAP_PROPERTY: text}) == expected
    history = GapHistory(None, 100_000, None)
    due = gap_ms(expected, history, now_ms=100_000)
    assert due == (expected.length_ms or None if expected.always else None)


times = st.none() | st.integers(0, 2**45)


@given(times, times, times, st.integers(0, 2**45), st.integers(0, GAP_MS_MAX))
def test_no_clock_makes_a_table_wait_longer_than_one_gap(
    foreign: int | None, swap: int | None, gap: int | None, now: int, length: int
) -> None:
    policy = GapPolicy(length_ms=length)
    waited = gap_ms(policy, GapHistory(foreign, swap, gap), now_ms=now)
    assert waited is None or 0 <= waited <= length


@pytest.mark.thorough
@given(st.integers(1_000, 20_000), st.integers(20, 400))
def test_under_full_load_gaps_come_in_time_and_commits_have_most_of_it(
    length: int, commit_ms: int
) -> None:
    policy = GapPolicy(length_ms=length)
    now, history, gaps = 0, GapHistory(last_foreign_ms=0, last_swap_ms=0), []
    while now < 150_000:
        waited = gap_ms(policy, history, now_ms=now)
        if waited is not None:
            gaps.append((now, now + waited))
            now += waited
            history = history.had_gap(now)
        now += commit_ms
        history = history.swapped(now)
    assert gaps
    for (_, stop), (start, _) in pairwise(gaps):
        between = max(30_000 - 2 * length, 2 * length)
        assert between <= start - stop <= between + commit_ms
    assert sum(stop - start for start, stop in gaps) <= 150_000 // 3 + length


# --- Who is another engine -----------------------------------------------------------------------

OURS = {COUNT_KEY: "1"}


def test_snapshots_without_our_mark_are_of_others() -> None:
    history = History.empty()
    before = history.metadata
    history.commit(added=["a"], summary=OURS)
    ours = history.metadata
    assert not is_foreign_change(before, ours)
    assert last_foreign_snapshot_ms(ours) is None
    foreign = history.commit(added=["b"])
    history.commit(added=["c"], summary=OURS)
    assert is_foreign_change(ours, history.metadata)
    assert last_foreign_snapshot_ms(history.metadata) == foreign.timestamp_ms


def test_a_change_without_any_snapshot_is_of_others() -> None:
    history = History.empty()
    before = history.metadata
    history.apply(SetProperties({"touched": "yes"}))
    assert is_foreign_change(before, history.metadata)


def test_an_operators_change_of_the_ledger_is_not_of_others() -> None:
    history = History.empty()
    before = history.metadata
    history.apply(SetProperties({"frazil.producer.q": "any entry"}))
    assert not is_foreign_change(before, history.metadata)


# --- Large metadata ------------------------------------------------------------------------------


def test_a_metadata_file_that_is_too_large_stretches_the_interval() -> None:
    assert stretched_ms(0, None) == 0
    assert stretched_ms(250, METADATA_BYTES_MAX) == 250
    assert stretched_ms(0, 2 * METADATA_BYTES_MAX) == 2_000
    assert stretched_ms(5_000, 2 * METADATA_BYTES_MAX) == 10_000
    assert stretched_ms(INTERVAL_MS_MAX, 2 * METADATA_BYTES_MAX) == INTERVAL_MS_MAX
