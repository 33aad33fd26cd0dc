"""Random histories of a table: as the model says, and whole by the rules of the specification."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from committer.errors import InvalidMetadataError
from committer.iceberg.metadata.metadata_model import TableMetadata
from committer.iceberg.metadata.table_metadata import parse_table_metadata, print_table_metadata
from committer.iceberg.updates.metadata_update import Update, apply_updates
from committer.iceberg.updates.metadata_update_json import print_update
from tests.iceberg.random_updates import RandomChanges
from tests.iceberg.table_model import Refused, TableModel
from tests.support.iceberg.metadata_builders import START_MS, build_table
from tests.support.iceberg.update_reader import parse_update


@pytest.mark.simulation
@settings(max_examples=100)
@given(st.sampled_from([1, 2, 3]), st.integers(0, 2**32))
def test_a_random_history_is_what_the_model_says_and_breaks_no_rule(
    format_version: int, seed: int
) -> None:
    random_changes, clock = RandomChanges(seed), Random(seed)
    table = build_table(format_version=format_version)
    for number in range(12):
        drawn = random_changes.change_set(TableModel.of(table))
        now_ms = START_MS + clock.randint(-3, 3) * 90_000
        changed = commit(table, drawn, base_location=f"f{number}", now_ms=now_ms)
        if changed is not None:
            check_document(orjson.loads(print_table_metadata(changed)))
            check_step(table, changed, f"f{number}")
            table = changed


def commit(
    table: TableMetadata, drawn: list[Update], *, base_location: str, now_ms: int
) -> TableMetadata | None:
    """Commit one change set in three ways that must agree; None if all of them refuse it."""
    try:
        expected = TableModel.of(table).after(drawn)
    except Refused:
        with pytest.raises(InvalidMetadataError):
            apply_updates(table, drawn, base_location=base_location, now_ms=now_ms)
        return None
    changed = apply_updates(table, drawn, base_location=base_location, now_ms=now_ms)
    assert TableModel.of(changed) == expected
    sent = orjson.dumps([print_update(each) for each in drawn])
    elsewhere = apply_updates(
        parse_table_metadata(print_table_metadata(table)),
        [parse_update(each) for each in orjson.loads(sent)],
        base_location=base_location,
        now_ms=now_ms,
    )
    assert elsewhere == changed
    printed = print_table_metadata(changed)
    assert print_table_metadata(elsewhere) == printed
    assert parse_table_metadata(printed) == changed
    assert print_table_metadata(parse_table_metadata(printed)) == printed
    return changed


# --- The rules, told of the JSON that readers see ------------------------------------------------


def check_document(top: dict[str, Any]) -> None:
    check_snapshots(top)
    check_refs(top)
    check_logs(top)
    check_layout(top)


def check_snapshots(top: dict[str, Any]) -> None:
    found = top["snapshots"]
    assert is_each_once(each["snapshot-id"] for each in found)
    numbers = [each.get("sequence-number", 0) for each in found]
    assert max(numbers, default=0) <= top.get("last-sequence-number", 0)
    if top["format-version"] == 1:
        assert "last-sequence-number" not in top and not any(numbers)
    if top["format-version"] == 3:
        with_ids = [each for each in found if "first-row-id" in each]
        spans = sorted((each["first-row-id"], each["added-rows"]) for each in with_ids)
        ends = [first + added for first, added in spans]
        assert all(end <= first for end, (first, _) in zip(ends, spans[1:], strict=False))
        assert max(ends, default=0) <= top["next-row-id"]
    else:
        assert "next-row-id" not in top and "encryption-keys" not in top
    for section in ("statistics", "partition-statistics"):
        assert is_each_once(each["snapshot-id"] for each in top[section])


def check_refs(top: dict[str, Any]) -> None:
    known = {each["snapshot-id"] for each in top["snapshots"]}
    for ref in top["refs"].values():
        assert ref["snapshot-id"] in known
        assert ref["type"] == "branch" or not {"min-snapshots-to-keep", "max-snapshot-age-ms"} & {
            *ref
        }
    current = top["current-snapshot-id"]
    main = top["refs"].get("main")
    assert main is None or main["type"] == "branch"
    none = None if top["format-version"] == 3 else -1
    assert current == (none if main is None else main["snapshot-id"])


def check_logs(top: dict[str, Any]) -> None:
    known = {each["snapshot-id"] for each in top["snapshots"]}
    log = top["snapshot-log"]
    assert {each["snapshot-id"] for each in log} <= known
    if "main" in top["refs"]:
        assert log[-1]["snapshot-id"] == top["current-snapshot-id"]
    for section in ("snapshot-log", "metadata-log"):
        times = [*(each["timestamp-ms"] for each in top[section]), top["last-updated-ms"]]
        assert times == sorted(times)
    limit = top["properties"].get("write.metadata.previous-versions-max", "100")
    assert len(top["metadata-log"]) <= int(limit)


def check_layout(top: dict[str, Any]) -> None:
    by_id = {each["schema-id"]: each for each in top["schemas"]}
    assert len(by_id) == len(top["schemas"])
    columns = {field["id"] for field in by_id[top["current-schema-id"]]["fields"]}
    highest = max((field["id"] for each in top["schemas"] for field in each["fields"]), default=0)
    assert highest <= top["last-column-id"]
    assert is_each_once(each["spec-id"] for each in top["partition-specs"])
    assert is_each_once(each["order-id"] for each in top["sort-orders"])
    (spec,) = [each for each in top["partition-specs"] if each["spec-id"] == top["default-spec-id"]]
    used = [each for each in spec["fields"] if each["transform"] != "void"]
    assert {each["source-id"] for each in used} <= columns
    (order,) = [
        each for each in top["sort-orders"] if each["order-id"] == top["default-sort-order-id"]
    ]
    assert {each["source-id"] for each in order["fields"]} <= columns
    assert all((each["order-id"] == 0) == (not each["fields"]) for each in top["sort-orders"])
    for each in top["partition-specs"]:
        assert is_each_once(field["field-id"] for field in each["fields"])
        assert all(1000 <= one["field-id"] <= top["last-partition-id"] for one in each["fields"])


def is_each_once(values: Any) -> bool:
    return max(Counter(values).values(), default=1) == 1


def check_step(before: TableMetadata, after: TableMetadata, base_location: str) -> None:
    """Check the numbers that never fall, and that each new file names the one before."""
    assert before.format_version <= after.format_version
    assert before.last_sequence_number <= after.last_sequence_number
    assert before.last_updated_ms <= after.last_updated_ms
    assert before.last_column_id <= after.last_column_id
    assert before.last_partition_id <= after.last_partition_id
    assert (before.next_row_id or 0) <= (after.next_row_id or 0)
    if after is not before:
        assert after.metadata_log[-1].metadata_file == base_location
    assert before.snapshots_by_id == {each.snapshot_id: each for each in before.snapshots}
    assert after.snapshots_by_id == {each.snapshot_id: each for each in after.snapshots}
