"""Tags at fixed times: which snapshot they name, how long they stay, and when none is set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from committer.iceberg.metadata.snapshot import SnapshotRef
from committer.iceberg.updates.metadata_update import SetSnapshotRef
from committer.plan.cleanup import automatic_tags
from committer.plan.cleanup.automatic_tags import TagPolicy, due_tag, parse_period_ms, tag_name
from committer.plan.cleanup.expiry import expirable
from tests.plan.histories import START_MS, History

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
# START_MS is 2027-01-15T08:00Z.
EVERY = {"frazil.tags.every": "1h"}


def history(properties: Mapping[str, str] = EVERY) -> History:
    return History.empty(properties)


def test_the_tag_of_an_hour_names_the_snapshot_that_was_current_then() -> None:
    table = history()
    first = table.commit(step_ms=10 * 60_000)
    assert due_tag(table.metadata, now_ms=table.now_ms) is None  # none was current at 08:00
    table.commit(step_ms=60_000)
    before = table.commit(step_ms=48 * 60_000)
    assert before.timestamp_ms == START_MS + 59 * 60_000
    found = due_tag(table.metadata, now_ms=START_MS + HOUR_MS)
    assert found == SetSnapshotRef(
        "frazil-2027-01-15T09:00Z",
        SnapshotRef(before.snapshot_id, "tag", max_ref_age_ms=7 * DAY_MS + 60_000),
    )
    # Also if another engine has committed since.
    table.commit(step_ms=5 * 60_000)
    assert due_tag(table.metadata, now_ms=table.now_ms) == found
    table.apply(found)
    assert due_tag(table.metadata, now_ms=START_MS + 2 * HOUR_MS - 1) is None
    assert first.snapshot_id != before.snapshot_id


def test_a_quiet_table_has_the_tag_of_the_latest_hour_only_and_it_stays_its_full_time() -> None:
    table = history(EVERY | {"frazil.tags.keep": "2h"})
    only = table.commit()
    found = due_tag(table.metadata, now_ms=START_MS + 5 * HOUR_MS + 17)
    assert found is not None
    assert found.ref_name == "frazil-2027-01-15T13:00Z"
    assert found.ref.snapshot_id == only.snapshot_id
    table.apply(found)
    table.now_ms = START_MS + 5 * HOUR_MS
    table.commit()
    kept_until_ms = START_MS + 7 * HOUR_MS
    for now_ms, dropped in ((kept_until_ms, ()), (kept_until_ms + 1, (found.ref_name,))):
        expired = expirable(table.state, now_ms=now_ms)
        assert (expired.refs if expired else ()) == dropped


def test_a_tag_that_would_be_too_old_at_once_is_not_set() -> None:
    table = history({"frazil.tags.every": "2h", "frazil.tags.keep": "1h"})
    table.commit()
    due_ms = START_MS + 2 * HOUR_MS
    assert due_tag(table.metadata, now_ms=due_ms + HOUR_MS - 1) is not None
    assert due_tag(table.metadata, now_ms=due_ms + HOUR_MS) is None


def test_a_rollback_tags_what_was_current_at_the_hour() -> None:
    table = history()
    first, second = table.commit(), table.commit()
    table.now_ms = START_MS + HOUR_MS + 1
    table.apply(SetSnapshotRef("main", SnapshotRef(first.snapshot_id)))
    found = due_tag(table.metadata, now_ms=table.now_ms)
    assert found is not None
    assert found.ref.snapshot_id == second.snapshot_id


def test_a_snapshot_that_has_expired_gets_no_tag() -> None:
    table = history()
    table.commit()
    table.now_ms = START_MS + HOUR_MS
    table.commit()
    gone = replace(table.metadata, snapshots=table.metadata.snapshots[1:])
    assert due_tag(gone, now_ms=table.now_ms) is None


def test_no_more_tags_are_set_than_a_metadata_file_can_bear(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where nothing expires, nothing removes them."""
    monkeypatch.setattr(automatic_tags, "TAGS_MAX", 2)
    table = history({"frazil.tags.every": "1h", "frazil.tags.keep": "2h"})
    one = table.commit()
    for hour in (1, 2):
        tag = due_tag(table.metadata, now_ms=START_MS + hour * HOUR_MS)
        assert tag is not None
        table.apply(tag)
    assert due_tag(table.metadata, now_ms=START_MS + 3 * HOUR_MS) is None
    # A branch, or a tag of the user, does not count.
    table = history({"frazil.tags.every": "1h", "frazil.tags.keep": "2h"})
    one = table.commit()
    table.tag("mine", one.snapshot_id)
    table.branch("frazil-branch", one.snapshot_id)
    assert due_tag(table.metadata, now_ms=START_MS + 3 * HOUR_MS) is not None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("15m", 15 * 60_000),
        (" 1H ", HOUR_MS),
        ("7 d", 7 * DAY_MS),
        ("0h", None),
        ("1", None),
        ("", None),
        ("1s", None),
        ("-1h", None),
        ("1.5h", None),
        ("١h", None),
        ("9999999d", None),
    ],
)
def test_a_period_is_of_minutes_hours_or_days(text: str, expected: int | None) -> None:
    assert parse_period_ms(text) == expected


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ({}, None),
        ({"frazil.tags.keep": "7d"}, None),
        (EVERY, TagPolicy(HOUR_MS, 7 * DAY_MS)),
        (EVERY | {"frazil.tags.keep": "30d"}, TagPolicy(HOUR_MS, 30 * DAY_MS)),
        (EVERY | {"frazil.tags.keep": "seven"}, None),
        ({"frazil.tags.every": "1m"}, None),  # ten thousand tags
        ({"frazil.tags.every": "1m", "frazil.tags.keep": "16h"}, TagPolicy(60_000, 16 * HOUR_MS)),
    ],
)
def test_a_table_is_tagged_if_its_properties_say_so(
    properties: Mapping[str, str], expected: TagPolicy | None
) -> None:
    assert TagPolicy.of(properties) == expected


def test_a_tag_is_named_by_its_minute_in_utc() -> None:
    assert tag_name(1_795_428_000_000) == "frazil-2026-11-23T10:00Z"
