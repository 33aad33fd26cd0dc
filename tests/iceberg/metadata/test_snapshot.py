"""Snapshots, refs and log entries as values and as JSON."""

from __future__ import annotations

import sys
import tracemalloc

import orjson
import pytest

from committer.errors import InvalidMetadataError
from committer.iceberg.metadata.snapshot import (
    MetadataLogEntry,
    Snapshot,
    SnapshotLogEntry,
    SnapshotRef,
    parse_snapshot,
    parse_snapshot_ref,
    print_snapshot,
    print_snapshot_ref,
)

FULL = {
    "sequence-number": 4,
    "snapshot-id": 9,
    "parent-snapshot-id": 8,
    "timestamp-ms": 5,
    "summary": {"operation": "append", "a": "1"},
    "manifest-list": "l",
    "schema-id": 0,
    "first-row-id": 0,
    "added-rows": 0,
    "key-id": "k",
}


def test_a_full_snapshot_is_printed_back_in_order() -> None:
    snapshot = parse_snapshot(FULL)
    assert snapshot.extra == {}
    assert list(print_snapshot(snapshot)) == list(FULL)
    assert orjson.loads(snapshot.json_bytes) == FULL


def test_a_small_snapshot_prints_only_what_it_has() -> None:
    snapshot = Snapshot(snapshot_id=1, timestamp_ms=2, manifest_list="l")
    assert print_snapshot(snapshot) == {
        "snapshot-id": 1,
        "timestamp-ms": 2,
        "manifest-list": "l",
    }
    assert parse_snapshot(print_snapshot(snapshot)) == snapshot


def test_nulls_of_other_writers_are_absent_values() -> None:
    snapshot = parse_snapshot({**FULL, "parent-snapshot-id": None, "key-id": None})
    assert (snapshot.parent_snapshot_id, snapshot.key_id) == (None, None)
    assert "parent-snapshot-id" not in print_snapshot(snapshot)


def test_inline_manifests_of_version_1_are_kept() -> None:
    found = {"snapshot-id": 1, "timestamp-ms": 2, "manifests": ["a", "b"]}
    snapshot = parse_snapshot(found)
    assert (snapshot.manifests, snapshot.manifest_list) == (("a", "b"), None)
    assert orjson.loads(snapshot.json_bytes) == found


def test_the_printed_form_does_not_count_for_equality() -> None:
    first, second = parse_snapshot(FULL), parse_snapshot(FULL)
    assert first.json_bytes
    assert first == second


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("snapshot-id", "9", "`snapshot-id`: expected an integer, found a JSON string"),
        ("timestamp-ms", None, "`timestamp-ms`: expected an integer, found nothing"),
        ("summary", {"a": 1}, "`summary`: expected an object of strings"),
        ("manifest-list", 1, "`manifest-list`: expected a string"),
        ("manifests", [1], "`manifests`: expected a list of strings"),
        ("sequence-number", 1.5, "`sequence-number`: expected an integer, found a JSON fraction"),
    ],
)
def test_a_malformed_snapshot_is_refused_with_its_place(
    key: str, value: object, message: str
) -> None:
    with pytest.raises(InvalidMetadataError, match=f"here: {message}"):
        parse_snapshot({**FULL, key: value}, where="here")


@pytest.mark.parametrize(
    "found",
    [
        {"snapshot-id": 1, "type": "tag", "max-ref-age-ms": 5},
        {
            "snapshot-id": 1,
            "type": "branch",
            "min-snapshots-to-keep": 3,
            "max-snapshot-age-ms": 4,
            "max-ref-age-ms": 5,
        },
    ],
)
def test_refs_are_printed_back_in_order(found: dict[str, object]) -> None:
    printed = print_snapshot_ref(parse_snapshot_ref(found))
    assert (printed, list(printed)) == (found, list(found))


def test_the_kind_of_a_ref_is_read_in_any_case_and_written_in_small_letters() -> None:
    ref = parse_snapshot_ref({"snapshot-id": 1, "type": "BRANCH"})
    assert ref == SnapshotRef(1, "branch")
    assert print_snapshot_ref(ref)["type"] == "branch"


def test_log_entries_keep_what_they_do_not_know() -> None:
    assert SnapshotLogEntry(1, 2, {"x": 3}).json_bytes == (
        b'{"timestamp-ms":1,"snapshot-id":2,"x":3}'
    )
    assert MetadataLogEntry(1, "f").json_bytes == b'{"timestamp-ms":1,"metadata-file":"f"}'


def test_what_is_printed_to_keep_takes_no_more_room_than_its_text() -> None:
    """A table may have ten thousand snapshots; the buffer of what orjson returns has 4 KiB."""
    entries = [SnapshotLogEntry(timestamp_ms, timestamp_ms) for timestamp_ms in range(100)]
    tracemalloc.start()
    try:
        kept = [entry.json_bytes for entry in entries]
        room_bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert room_bytes < 3 * sum(map(sys.getsizeof, kept))
