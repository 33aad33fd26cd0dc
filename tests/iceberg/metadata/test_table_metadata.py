"""Table metadata files: everything that other engines wrote is read, checked and printed back."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from committer.errors import InvalidMetadataError, UnsupportedError
from committer.iceberg.metadata.metadata_model import TableMetadata
from committer.iceberg.metadata.snapshot import SnapshotRef
from committer.iceberg.metadata.table_metadata import parse_table_metadata, print_table_metadata
from committer.iceberg.metadata.table_statistics import StatisticsFile
from committer.iceberg.schema.partition_spec import print_partition_spec
from committer.iceberg.schema.schema import print_schema
from committer.iceberg.schema.sort_order import print_sort_order
from committer.iceberg.updates.metadata_update import RemoveSnapshots, apply_updates
from committer.iceberg.values.fragments import Fragments
from tests.support.builders.fixtures import expected, read_bytes, table_dir, table_names
from tests.support.iceberg.metadata_builders import (
    MINUTE_MS,
    START_MS,
    append,
    as_json,
    build_history,
    build_table,
    read_back,
)

EMBEDDED = "v1_embedded_manifests"


def metadata_files(name: str) -> list[Path]:
    return sorted(table_dir(name).rglob("*.metadata.json"))


def unzipped(content: bytes) -> bytes:
    return gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content


@pytest.mark.parametrize("name", [name for name in table_names() if name != EMBEDDED])
def test_every_metadata_file_of_iceberg_java_is_printed_back_byte_for_byte(name: str) -> None:
    files = metadata_files(name)
    assert files
    for path in files:
        content = path.read_bytes()
        assert print_table_metadata(parse_table_metadata(content)) == unzipped(content), path.name


def test_the_oldest_form_of_version_1_is_printed_in_todays_form() -> None:
    """That file was made by hand, with spaces and without the keys that came later."""
    (path,) = metadata_files(EMBEDDED)
    before = orjson.loads(path.read_bytes())
    after = as_json(parse_table_metadata(path.read_bytes()))
    added = {
        "current-schema-id": 0,
        "schemas": [before["schema"]],
        "default-spec-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": before["partition-spec"]}],
        "last-partition-id": 1000,
        "default-sort-order-id": 0,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "refs": {"main": {"snapshot-id": before["current-snapshot-id"], "type": "branch"}},
    }
    assert after == {**before, **added}
    known = as_json(append(build_table(format_version=1), snapshot_id=1))
    assert list(after) == list(known)


@pytest.mark.parametrize("name", table_names())
def test_what_is_read_is_what_iceberg_java_says_of_the_table(name: str) -> None:
    facts = expected(name)
    metadata = parse_table_metadata(read_bytes(facts["metadata_location"]))
    assert _facts(metadata) == {key: facts[key] for key in _facts(metadata)}


def _facts(metadata: TableMetadata) -> dict[str, object]:
    return {
        "format_version": metadata.format_version,
        "table_uuid": str(metadata.table_uuid),
        "location": metadata.location,
        "last_sequence_number": metadata.last_sequence_number,
        "last_column_id": metadata.last_column_id,
        "last_partition_id": metadata.last_partition_id,
        "next_row_id": metadata.next_row_id or 0,
        "current_schema_id": metadata.current_schema_id,
        "default_spec_id": metadata.default_spec_id,
        "default_sort_order_id": metadata.default_sort_order_id,
        "current_snapshot_id": metadata.current_snapshot_id,
        "properties": metadata.properties,
    }


# --- Nothing is lost -----------------------------------------------------------------------------

_PLACES: Mapping[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "top": lambda top: top,
    "snapshot": lambda top: top["snapshots"][0],
    "ref": lambda top: top["refs"]["main"],
    "snapshot log": lambda top: top["snapshot-log"][0],
    "metadata log": lambda top: top["metadata-log"][0],
    "statistics": lambda top: top["statistics"][0],
    "blob": lambda top: top["statistics"][0]["blob-metadata"][0],
    "partition statistics": lambda top: top["partition-statistics"][0],
    "schema": lambda top: top["schemas"][0],
    "column": lambda top: top["schemas"][0]["fields"][0],
    "spec": lambda top: top["partition-specs"][0],
    "partition field": lambda top: top["partition-specs"][0]["fields"][0],
    "sort order": lambda top: top["sort-orders"][0],
    "key": lambda top: top["encryption-keys"][0],
}


def build_full_json() -> dict[str, Any]:
    """Build a file with something in every section."""
    path = metadata_files("v3_row_lineage")[-1]
    document: dict[str, Any] = orjson.loads(path.read_bytes())
    snapshot_id = document["current-snapshot-id"]
    file = {"snapshot-id": snapshot_id, "statistics-path": "p", "file-size-in-bytes": 1}
    blob = {"type": "t", "snapshot-id": 1, "sequence-number": 1, "fields": [1]}
    keys = [{"key-id": "k", "encrypted-key-metadata": "AQ=="}]
    field = {"name": "id", "transform": "identity", "source-id": 1, "field-id": 1000}
    document["statistics"] = [{**file, "file-footer-size-in-bytes": 1, "blob-metadata": [blob]}]
    document["partition-statistics"] = [file]
    document["partition-specs"] = [{"spec-id": 0, "fields": [field]}]
    document["encryption-keys"] = keys
    return document


@pytest.mark.parametrize("place", _PLACES)
def test_an_unknown_key_survives_reading_changing_and_printing(place: str) -> None:
    document = build_full_json()
    _PLACES[place](document)["x-of-tomorrow"] = {"deep": [1, None]}
    metadata = read_back(document)
    assert as_json(metadata) == document
    changed = as_json(append(metadata, snapshot_id=77, branch="other"))
    assert _PLACES[place](changed)["x-of-tomorrow"] == {"deep": [1, None]}


def test_an_unknown_key_of_a_schema_that_was_read_does_not_leak_into_a_changed_one() -> None:
    document = build_full_json()
    document["schemas"][0]["x-of-tomorrow"] = 1
    metadata = read_back(document)
    schema = replace(metadata.schemas[0], schema_id=0)
    other = replace(metadata, schemas=(schema, *metadata.schemas[1:]))
    assert as_json(other)["schemas"] == [print_schema(each) for each in metadata.schemas]


# --- What other writers leave out or spell otherwise ---------------------------------------------


@pytest.mark.parametrize("absent", [None, -1, "nothing"])
def test_no_current_snapshot_is_read_in_all_its_spellings(absent: object) -> None:
    for format_version in (1, 2, 3):
        document = as_json(build_table(format_version=format_version))
        document["current-snapshot-id"] = absent
        if absent == "nothing":
            del document["current-snapshot-id"]
        assert read_back(document).current_snapshot_id is None


def test_main_is_made_up_where_a_file_has_no_refs() -> None:
    document = as_json(append(build_table(), snapshot_id=5))
    del document["refs"]
    assert read_back(document).refs == {"main": SnapshotRef(5, "branch")}


def test_empty_sections_may_be_missing() -> None:
    document = as_json(build_table())
    for key in (
        "refs",
        "snapshots",
        "statistics",
        "partition-statistics",
        "snapshot-log",
        "metadata-log",
        "properties",
    ):
        del document[key]
    metadata = read_back(document)
    assert (metadata.snapshots, metadata.properties, metadata.metadata_log) == ((), {}, ())


def test_a_summary_without_operation_is_an_overwrite_and_an_empty_one_is_none() -> None:
    document: dict[str, Any] = as_json(build_history(2))
    document["snapshots"][0]["summary"] = {"added-records": "1"}
    document["snapshots"][1]["summary"] = {}
    first, second = read_back(document).snapshots
    assert first.summary == {"operation": "overwrite", "added-records": "1"}
    assert first.operation == "overwrite"
    assert second.summary is None
    assert second.operation is None


def test_an_old_table_without_uuid_is_read_and_printed_and_has_no_identity() -> None:
    document = as_json(build_table(format_version=1))
    del document["table-uuid"]
    metadata = read_back(document)
    assert metadata.table_uuid is None
    assert as_json(metadata) == document
    with pytest.raises(UnsupportedError, match=r"`table-uuid`.*commit by a current engine"):
        metadata.require_uuid()


# --- What is refused -----------------------------------------------------------------------------


def test_a_format_version_to_come_is_refused_by_name() -> None:
    document = {**as_json(build_table()), "format-version": 4}
    with pytest.raises(UnsupportedError, match="table format version 4 is not supported"):
        read_back(document)


def _sorted_by(source_id: int) -> dict[str, Any]:
    field = {"transform": "identity", "source-id": source_id}
    return {
        "order-id": 1,
        "fields": [{**field, "direction": "asc", "null-order": "nulls-first"}],
    }


Change = Callable[[dict[str, Any]], object]
_REFUSED: Mapping[str, tuple[Change, str]] = {
    "no format version": (
        lambda top: top.pop("format-version"),
        "`format-version`: expected an integer, found nothing",
    ),
    "format version 0": (
        lambda top: top.update({"format-version": 0}),
        "`format-version`: expected 1 or more, found 0",
    ),
    "location is a number": (
        lambda top: top.update(location=1),
        "`location`: expected a string, found a JSON integer",
    ),
    "uuid is no uuid": (
        lambda top: top.update({"table-uuid": "x"}),
        "`table-uuid`: expected a uuid, found a JSON string",
    ),
    "times as text": (
        lambda top: top.update({"last-updated-ms": "1"}),
        "`last-updated-ms`: expected an integer, found a JSON string",
    ),
    "a boolean is no integer": (
        lambda top: top.update({"last-column-id": True}),
        "`last-column-id`: expected an integer, found a JSON boolean",
    ),
    "property is a number": (
        lambda top: top.update(properties={"a": 1}),
        "`properties`: expected an object of strings",
    ),
    "snapshot is no object": (
        lambda top: top.update(snapshots=[1]),
        r"`snapshots`\[0\]: expected an object, found a JSON integer",
    ),
    "snapshot without id": (
        lambda top: top["snapshots"][1].pop("snapshot-id"),
        r"`snapshots`\[1\]: `snapshot-id`: expected an integer, found nothing",
    ),
    "snapshot twice": (
        lambda top: top["snapshots"].append(top["snapshots"][0]),
        "`snapshot-id`: expected each once, found 1 twice",
    ),
    "sequence number above the last": (
        lambda top: top.update({"last-sequence-number": 1}),
        "snapshot 2: `sequence-number`: expected at most `last-sequence-number` 1, found 2",
    ),
    "current snapshot is not there": (
        lambda top: top.update({"current-snapshot-id": 9}),
        "`current-snapshot-id`: expected one of `snapshots`, found 9",
    ),
    "ref to nothing": (
        lambda top: top["refs"].update(tagged={"snapshot-id": 9, "type": "tag"}),
        "`refs`: `tagged`: expected one of `snapshots`, found 9",
    ),
    "main elsewhere": (
        lambda top: top["refs"]["main"].update({"snapshot-id": 1}),
        "`refs`: `main`: expected a branch at `current-snapshot-id` 2, found a branch at 1",
    ),
    "main without current snapshot": (
        lambda top: top.update({"current-snapshot-id": -1}),
        "`refs`: `main`: expected a branch at `current-snapshot-id` None",
    ),
    "main is a tag": (
        lambda top: top["refs"]["main"].update(type="tag"),
        "`refs`: `main`: expected a branch .* found a tag at 2",
    ),
    "ref of another kind": (
        lambda top: top["refs"]["main"].update(type="twig"),
        "ref `main`: `type`: expected branch or tag, found `twig`",
    ),
    "tag keeps snapshots": (
        lambda top: top["refs"].update(
            t={"snapshot-id": 1, "type": "tag", "min-snapshots-to-keep": 1}
        ),
        "ref `t`: expected no `min-snapshots-to-keep`",
    ),
    "ref age of zero": (
        lambda top: top["refs"]["main"].update({"max-ref-age-ms": 0}),
        "ref `main`: `max-ref-age-ms`: expected more than 0, found 0",
    ),
    "current schema is not there": (
        lambda top: top.update({"current-schema-id": 3}),
        "`current-schema-id`: expected one of `schemas`, found 3",
    ),
    "default spec is not there": (
        lambda top: top.update({"default-spec-id": 3}),
        "`default-spec-id`: expected one of `partition-specs`, found 3",
    ),
    "default order is not there": (
        lambda top: top.update({"default-sort-order-id": 3}),
        "`default-sort-order-id`: expected one of `sort-orders`, found 3",
    ),
    "schema id twice": (
        lambda top: top["schemas"].append(top["schemas"][0]),
        "`schemas`: `schema-id`: expected each once, found 0 twice",
    ),
    "default spec of a column that is gone": (
        lambda top: top["partition-specs"][0]["fields"].append(
            {"name": "p", "transform": "identity", "source-id": 9, "field-id": 1000}
        ),
        "spec 0: field `p`: expected a source column with id 9 in schema 0, found none",
    ),
    "default spec with an impossible transform": (
        lambda top: top["partition-specs"][0]["fields"].append(
            {"name": "p", "transform": "day", "source-id": 1, "field-id": 1000}
        ),
        "spec 0: field `p`: transform `day` cannot take the long of column `id`",
    ),
    "default order of a column that is gone": (
        lambda top: top.update(
            {"default-sort-order-id": 1, "sort-orders": [*top["sort-orders"], _sorted_by(9)]}
        ),
        "sort order 1: field 0: expected a source column with id 9 in schema 0, found none",
    ),
    "snapshot log out of order": (
        lambda top: top["snapshot-log"][0].update({"timestamp-ms": START_MS + 2 * MINUTE_MS}),
        "`snapshot-log`: entry 1: expected a `timestamp-ms` not before",
    ),
    "last updated before the log's end": (
        lambda top: top.update({"last-updated-ms": START_MS - 2 * MINUTE_MS}),
        "`last-updated-ms`: expected at least .* the last entry of `snapshot-log`",
    ),
    "metadata log ahead": (
        lambda top: top["metadata-log"].append(
            {"timestamp-ms": START_MS + 2 * MINUTE_MS, "metadata-file": "f"}
        ),
        "`last-updated-ms`: expected at least .* the last entry of `metadata-log`",
    ),
}


@pytest.mark.parametrize("case", _REFUSED)
def test_metadata_that_breaks_the_specification_is_refused_with_key_and_place(case: str) -> None:
    change, message = _REFUSED[case]
    document: dict[str, Any] = as_json(build_history(2))
    change(document)
    with pytest.raises(InvalidMetadataError, match=message):
        read_back(document)


def test_a_dropped_partition_field_of_version_1_may_name_a_column_that_is_gone() -> None:
    document: dict[str, Any] = as_json(build_table(format_version=1))
    field = {"name": "p", "transform": "void", "source-id": 9, "field-id": 1000}
    document["partition-specs"][0]["fields"].append(field)
    assert [each.name for each in read_back(document).default_spec.fields] == ["p"]


@pytest.mark.parametrize(
    "key",
    [
        "table-uuid",
        "last-sequence-number",
        "schemas",
        "current-schema-id",
        "partition-specs",
        "default-spec-id",
        "last-partition-id",
        "sort-orders",
        "default-sort-order-id",
    ],
)
def test_what_version_2_requires_is_required_by_name(key: str) -> None:
    document = as_json(build_table())
    del document[key]
    with pytest.raises(InvalidMetadataError, match=f"`{key}` must exist in format version 2"):
        read_back(document)


def test_version_3_requires_the_next_row_id() -> None:
    document = as_json(build_table(format_version=3))
    del document["next-row-id"]
    with pytest.raises(InvalidMetadataError, match="`next-row-id`: expected an integer"):
        read_back(document)


def test_version_1_has_no_sequence_numbers() -> None:
    document = {**as_json(build_table(format_version=1)), "last-sequence-number": 1}
    with pytest.raises(InvalidMetadataError, match="expected 0 in format version 1, found 1"):
        read_back(document)


def test_a_minute_of_disorder_is_tolerated_as_other_readers_tolerate_it() -> None:
    document: dict[str, Any] = as_json(build_history(2))
    document["snapshot-log"][0]["timestamp-ms"] = START_MS + 2 + MINUTE_MS
    document["last-updated-ms"] = START_MS + 2 - MINUTE_MS
    read_back(document)
    document["last-updated-ms"] -= 1
    with pytest.raises(InvalidMetadataError):
        read_back(document)


@pytest.mark.parametrize("cut", [0, 1, 100, -1])
def test_half_a_file_is_refused(cut: int) -> None:
    content = print_table_metadata(build_history(1))
    for torn in (content[:cut], gzip.compress(content, mtime=0)[:cut] if cut else b"\x1f\x8b"):
        with pytest.raises(InvalidMetadataError, match=r"as JSON|whole gzip file"):
            parse_table_metadata(torn)


def test_a_file_that_is_no_object_is_refused() -> None:
    for content in (b"[]", b"1", b'"text"', b"\xff\xfe"):
        with pytest.raises(InvalidMetadataError):
            parse_table_metadata(content)


# --- Looking things up ---------------------------------------------------------------------------


def test_snapshots_schemas_and_specs_are_found_by_id() -> None:
    metadata = append(build_history(3), snapshot_id=4, branch="audit")
    assert [metadata.snapshot_by_id(number) for number in (1, 2, 3, 4)] == list(metadata.snapshots)
    assert metadata.snapshot_by_id(9) is None
    assert metadata.current_snapshot is metadata.snapshots[2]
    assert metadata.branch_head("main") is metadata.snapshots[2]
    assert metadata.branch_head("audit") is metadata.snapshots[3]
    assert metadata.branch_head("nothing") is None
    assert metadata.current_schema is metadata.schema_by_id(0)
    assert metadata.default_spec is metadata.spec_by_id(0)
    assert metadata.default_sort_order is metadata.sort_order_by_id(0)
    for look_up in (metadata.schema_by_id, metadata.spec_by_id, metadata.sort_order_by_id):
        with pytest.raises(InvalidMetadataError, match="with id 9, found none"):
            look_up(9)


def test_ancestors_are_found_along_the_parents_of_a_branch_only() -> None:
    metadata = build_history(3)
    forked = append(metadata, snapshot_id=4, branch="audit")
    assert [forked.is_ancestor(number, of=3) for number in (1, 2, 3, 4)] == [True] * 3 + [False]
    assert forked.is_ancestor(4, of=4)
    assert not forked.is_ancestor(1, of=4)
    assert not forked.is_ancestor(1, of=9)
    assert not metadata.is_ancestor(4, of=3)


def test_parents_that_run_in_a_circle_end_the_walk() -> None:
    document: dict[str, Any] = as_json(build_history(3))
    document["snapshots"][0]["parent-snapshot-id"] = 3
    metadata = read_back(document)
    assert metadata.is_ancestor(1, of=2)
    assert not metadata.is_ancestor(9, of=3)


def test_a_base_never_sees_the_snapshots_of_what_follows_from_it() -> None:
    base = build_history(2)
    assert base.snapshot_by_id(2) is not None
    first, second = append(base, snapshot_id=3), append(base, snapshot_id=4)
    assert [base.snapshot_by_id(number) for number in (3, 4)] == [None, None]
    assert first.snapshot_by_id(4) is None
    assert second.snapshot_by_id(3) is None
    assert second.snapshot_by_id(4) is second.snapshots[-1]


# --- Printing costs what is new ------------------------------------------------------------------


class CountingMapping(Mapping[str, object]):
    """Unknown keys of a value, which count how often they are printed."""

    def __init__(self) -> None:
        self.printed = 0

    def __getitem__(self, key: str) -> object:
        return {"x-count": True}[key]

    def __iter__(self) -> Iterator[str]:
        self.printed += 1
        return iter(("x-count",))

    def __len__(self) -> int:
        return 1


def test_one_more_snapshot_prints_nothing_again_that_was_printed_before() -> None:
    """Counted where it happens: at 5,000 snapshots, as many log entries and 1,000 properties."""
    counting = CountingMapping()
    base = build_table(
        properties={f"frazil.producer.{number}": "x" * 200 for number in range(1000)}
    )
    grown = append(append(base, snapshot_id=1, base_location="f0"), snapshot_id=2)
    snapshot, log = grown.snapshots[0], grown.snapshot_log[0]
    snapshots = [replace(snapshot, snapshot_id=number, extra=counting) for number in range(1, 5001)]
    grown = replace(
        grown,
        snapshots=tuple(snapshots),
        snapshot_log=tuple(
            replace(log, snapshot_id=number, extra=counting) for number in range(1, 5001)
        ),
        metadata_log=tuple(replace(entry, extra=counting) for entry in grown.metadata_log),
        statistics=tuple(StatisticsFile(number, "s", 1, counting) for number in range(1, 101)),
        partition_statistics=(StatisticsFile(1, "p", 1, counting),),
    )
    first = print_table_metadata(grown)
    assert counting.printed == 10_102
    after = append(grown, snapshot_id=6001, base_location="f1")
    printed = print_table_metadata(after)
    assert counting.printed == 10_102
    assert printed.count(b'"x-count":true') == first.count(b'"x-count":true') == 10_102
    assert b'"snapshot-id":6001' in printed


def test_schemas_specs_and_orders_are_printed_once_for_a_whole_history() -> None:
    metadata = build_history(1)
    for values, print_value in (
        (metadata.schemas, print_schema),
        (metadata.partition_specs, print_partition_spec),
        (metadata.sort_orders, print_sort_order),
    ):
        counted: list[object] = []

        def counting(value: Any, print_value: Any = print_value, counted: Any = counted) -> object:
            counted.append(value)
            return print_value(value)

        following = append(metadata, snapshot_id=9)
        for table in (metadata, following):
            table.fragments.print(values[0], counting)
        assert len(counted) == 1


def test_a_schema_is_parsed_once_for_as_long_as_its_text_stays() -> None:
    document = orjson.loads(print_table_metadata(build_history(1)))
    first = parse_table_metadata(orjson.dumps(document))
    document["properties"] = {"changed": "yes"}
    second = parse_table_metadata(orjson.dumps(document))
    assert second.current_schema is first.current_schema
    document["schemas"][0]["x-unknown"] = 1
    third = parse_table_metadata(orjson.dumps(document))
    assert third.current_schema is not first.current_schema
    assert b"x-unknown" in print_table_metadata(third)
    assert b"x-unknown" not in print_table_metadata(second)


def test_a_changed_copy_of_a_snapshot_is_printed_anew() -> None:
    snapshot = build_history(1).snapshots[0]
    assert b'"snapshot-id":1' in snapshot.json_bytes
    assert b'"snapshot-id":2' in replace(snapshot, snapshot_id=2).json_bytes
    assert snapshot.json_bytes is snapshot.json_bytes


def test_lists_that_grow_shrink_or_change_are_printed_as_if_for_the_first_time() -> None:
    """Of a list only what is new is joined; where it does not continue the last one, all of it."""

    def afresh(metadata: TableMetadata) -> bytes:
        return print_table_metadata(replace(metadata, fragments=Fragments()))

    metadata = build_history(3)
    other = append(metadata, snapshot_id=8)
    last = append(append(metadata, snapshot_id=9), snapshot_id=10)
    removal = (RemoveSnapshots((1, 2)),)
    expired = apply_updates(last, removal, base_location=None, now_ms=last.last_updated_ms)
    again = append(expired, snapshot_id=11)
    for each in (metadata, metadata, other, last, expired, again, build_history(0), metadata):
        same = replace(each, fragments=metadata.fragments)
        assert print_table_metadata(same) == afresh(each)
