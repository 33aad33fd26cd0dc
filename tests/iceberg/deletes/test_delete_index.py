"""Which deletes apply to a data file: as Iceberg Java plans, and rule by rule."""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from committer.errors import InvalidMetadataError
from committer.iceberg.deletes.delete_index import DeleteIndex
from committer.iceberg.entry.data_file import (
    DataFile,
    DataFileContent,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
)
from committer.iceberg.manifest.manifest import decode_manifest
from committer.iceberg.manifest.manifest_list import decode_manifest_list
from committer.iceberg.metadata.table_metadata import parse_table_metadata
from committer.iceberg.schema.partition_spec import parse_partition_spec
from committer.iceberg.schema.schema import Schema, parse_schema
from tests.support.builders.fixtures import expected, read_bytes, table_names

WITH_DELETES = [name for name in table_names() if expected(name)["live_delete_files"]]


def live_entries(table: str) -> tuple[list[ManifestEntry], list[ManifestEntry], DeleteIndex]:
    """Return the current snapshot's data and delete entries, and an index of the latter."""
    metadata = parse_table_metadata(read_bytes(expected(table)["metadata_location"]))
    snapshot = next(s for s in metadata.snapshots if s.snapshot_id == metadata.current_snapshot_id)
    assert snapshot.manifest_list is not None
    entries: dict[ManifestContent, list[ManifestEntry]] = {
        ManifestContent.DATA: [],
        ManifestContent.DELETES: [],
    }
    for row in decode_manifest_list(read_bytes(snapshot.manifest_list)).rows:
        manifest = decode_manifest(read_bytes(row.manifest_path), manifest_file=row)
        entries[row.content] += [entry for entry in manifest.entries if entry.is_live]
    deletes = entries[ManifestContent.DELETES]
    specs = {spec.spec_id: spec for spec in metadata.partition_specs}
    return (
        entries[ManifestContent.DATA],
        deletes,
        DeleteIndex(deletes, specs=specs, schemas=metadata.schemas),
    )


def key(file: DataFile) -> tuple[str, int | None]:
    return file.file_path, file.content_offset


@pytest.mark.parametrize("table", WITH_DELETES)
def test_a_full_scan_has_the_deletes_of_the_reference(table: str) -> None:
    said = expected(table)
    data, _, index = live_entries(table)
    keys = [(file["file_path"], file["content_offset"]) for file in said["live_delete_files"]]
    scan = next(scan for scan in said["scans"] if scan["filter"] is True)
    wanted = {
        said["live_data_files"][task["file"]]["file_path"]: [
            keys[place] for place in task.get("deletes", [])
        ]
        for task in scan["tasks"]
    }
    found = {
        entry.data_file.file_path: [key(file) for file in index.for_data_file(entry)]
        for entry in data
    }
    assert found == wanted
    assert any(wanted.values())


# --- Rules ---------------------------------------------------------------------------------------

SCHEMA = parse_schema(
    {
        "type": "struct",
        "schema-id": 0,
        "fields": [
            {"id": 1, "name": "id", "required": True, "type": "long"},
            {"id": 2, "name": "n", "required": False, "type": "double"},
            {"id": 3, "name": "u", "required": False, "type": "uuid"},
            {
                "id": 4,
                "name": "s",
                "required": False,
                "type": {
                    "type": "list",
                    "element-id": 5,
                    "element": "int",
                    "element-required": True,
                },
            },
        ],
    }
)
SPECS = {
    spec_id: parse_partition_spec({"spec-id": spec_id, "fields": fields})
    for spec_id, fields in enumerate(
        (
            [],
            [{"name": "n", "transform": "identity", "source-id": 2, "field-id": 1000}],
            [{"name": "n", "transform": "void", "source-id": 2, "field-id": 1000}],
        )
    )
}
PATH = 2147483546


def entry(number: int | None, path: str, **changes: Any) -> ManifestEntry:
    """Build a live entry of a file with data sequence number `number`, in partition n = 1.0."""
    file = DataFile(
        file_path=path, partition=(1.0,), spec_id=1, record_count=9, file_size_in_bytes=1
    )
    return ManifestEntry(
        ManifestEntryStatus.EXISTING,
        1,
        number,
        number,
        replace(file, **changes),
    )


def data(number: int | None = 5, path: str = "data", **changes: Any) -> ManifestEntry:
    return entry(number, path, **changes)


def positions(number: int, path: str = "p", **changes: Any) -> ManifestEntry:
    return entry(number, path, **{"content": DataFileContent.POSITION_DELETES, **changes})


def equalities(number: int, path: str = "e", **changes: Any) -> ManifestEntry:
    base = {"content": DataFileContent.EQUALITY_DELETES, "equality_ids": (1,)}
    return entry(number, path, **{**base, **changes})


def vector(number: int, path: str = "v", **changes: Any) -> ManifestEntry:
    place = {"file_format": "PUFFIN", "content_offset": 4, "content_size_in_bytes": 40}
    return positions(number, path, **{"referenced_data_file": "data", **place, **changes})


def index(*deletes: ManifestEntry, schemas: tuple[Schema, ...] = (SCHEMA,)) -> DeleteIndex:
    return DeleteIndex(deletes, specs=SPECS, schemas=schemas)


def applied(target: ManifestEntry, *deletes: ManifestEntry) -> list[str]:
    return [file.file_path for file in index(*deletes).for_data_file(target)]


def test_position_deletes_apply_to_data_of_their_own_number_and_older() -> None:
    deletes = [positions(number, f"p{number}") for number in (6, 4, 5)]
    assert applied(data(5), *deletes) == ["p5", "p6"]
    assert applied(data(4), *deletes) == ["p4", "p5", "p6"]
    assert applied(data(7), *deletes) == []


def test_equality_deletes_apply_to_older_data_only() -> None:
    deletes = [equalities(number, f"e{number}") for number in (6, 4, 5)]
    assert applied(data(5), *deletes) == ["e6"]
    assert applied(data(3), *deletes) == ["e4", "e5", "e6"]
    assert applied(data(6), *deletes) == []


@pytest.mark.parametrize("delete", [positions(9), equalities(9)])
def test_deletes_stay_in_their_partition(delete: ManifestEntry) -> None:
    assert applied(data(), delete)
    assert not applied(data(partition=(2.0,)), delete)
    assert not applied(data(partition=(None,)), delete)
    assert not applied(data(spec_id=2), delete)


@pytest.mark.parametrize(("spec_id", "partition"), [(0, ()), (2, (None,))])
def test_unpartitioned_equality_deletes_apply_everywhere(
    spec_id: int, partition: tuple[object, ...]
) -> None:
    everywhere: dict[str, Any] = {"spec_id": spec_id, "partition": partition}
    assert applied(data(), equalities(9, **everywhere)) == ["e"]
    assert applied(data(), positions(9, **everywhere)) == []
    assert applied(data(**everywhere), equalities(9)) == []
    deletes = (equalities(9, "b"), equalities(9, "a", **everywhere))
    assert applied(data(), *deletes) == ["a", "b"]


def test_float_partitions_are_equal_by_their_bits() -> None:
    nan, other_nan = (
        struct.unpack("<d", bits) for bits in (b"\1\0\0\0\0\0\xf8\x7f", b"\2\0\0\0\0\0\xf8\xff")
    )
    assert applied(data(partition=nan), positions(9, partition=other_nan)) == ["p"]
    assert applied(data(partition=(0.0,)), positions(9, partition=(-0.0,))) == []
    assert applied(data(partition=(-0.0,)), equalities(9, partition=(-0.0,))) == ["e"]


def test_a_delete_file_that_names_its_data_file_applies_to_that_alone() -> None:
    for named in (
        positions(9, referenced_data_file="data"),
        positions(9, lower_bounds={PATH: b"data"}, upper_bounds={PATH: b"data"}),
    ):
        assert applied(data(), named) == ["p"]
        assert applied(data(path="other"), named) == []
        with pytest.raises(InvalidMetadataError, match=r"^data: the deletes in p name this file"):
            applied(data(partition=(2.0,)), named)


def test_cut_path_bounds_name_no_file() -> None:
    cut = positions(9, lower_bounds={PATH: b"da"}, upper_bounds={PATH: b"db"})
    assert applied(data(), cut) == ["p"]
    assert applied(data(path="zebra"), cut) == ["p"]


def test_path_bounds_that_are_no_text_are_refused() -> None:
    broken = positions(9, lower_bounds={PATH: b"\xff"}, upper_bounds={PATH: b"\xff"})
    with pytest.raises(InvalidMetadataError, match=r"^p: the bounds of `file_path` are not text"):
        index(broken)


def test_a_vector_hides_position_deletes_but_not_equality_deletes() -> None:
    deletes = (vector(5), positions(9), positions(9, "n", referenced_data_file="data"))
    assert applied(data(), *deletes) == ["v"]
    assert applied(data(), *deletes, equalities(9)) == ["e", "v"]
    assert applied(data(path="other"), *deletes) == ["p"]


def test_a_vector_that_cannot_be_its_files_is_refused() -> None:
    with pytest.raises(InvalidMetadataError, match=r"sequence number 4, expected at least 5"):
        applied(data(5), vector(4))
    with pytest.raises(InvalidMetadataError, match="of another partition"):
        applied(data(), vector(9, partition=(2.0,)))
    with pytest.raises(InvalidMetadataError, match=r"^data: two deletion vectors, in v and w"):
        index(vector(6), vector(7, "w"))
    with pytest.raises(InvalidMetadataError, match=r"^v: .* without `referenced_data_file`"):
        index(vector(6, referenced_data_file=None))


def test_entries_that_break_the_specification_are_refused() -> None:
    with pytest.raises(InvalidMetadataError, match=r"^e: .* needs ids"):
        index(equalities(9, equality_ids=None))
    with pytest.raises(InvalidMetadataError, match=r"^e: equality field 77 is in no schema"):
        index(equalities(9, equality_ids=(1, 77)))
    with pytest.raises(InvalidMetadataError, match=r"^e: partition spec 7 is not in"):
        index(equalities(9, spec_id=7))
    with pytest.raises(InvalidMetadataError, match=r"^data: a data file among the deletes"):
        index(data())
    with pytest.raises(InvalidMetadataError, match=r"^data: expected an entry with a sequence"):
        applied(data(None), positions(9))


def test_an_empty_index_says_so() -> None:
    assert index().is_empty
    assert not index().has_equality_deletes
    assert index(equalities(9)).has_equality_deletes
    assert not index(equalities(9)).is_empty
    assert not index(vector(9)).is_empty
    assert not index(vector(9)).has_equality_deletes
    assert applied(data()) == []


# --- Metrics of equality deletes -----------------------------------------------------------------


def long(value: int) -> bytes:
    return struct.pack("<q", value)


def double(value: float) -> bytes:
    return struct.pack("<d", value)


def ranged(field_id: int, lower: bytes, upper: bytes) -> dict[str, Any]:
    """Return bounds of a column without NaN."""
    return {
        "lower_bounds": {field_id: lower},
        "upper_bounds": {field_id: upper},
        "nan_value_counts": {field_id: 0},
    }


def nulls(field_id: int, count: int, values: int = 9) -> dict[str, Any]:
    return {"null_value_counts": {field_id: count}, "value_counts": {field_id: values}}


def test_ranges_that_do_not_overlap_need_no_delete() -> None:
    delete = equalities(9, **ranged(1, long(5), long(10)))
    assert applied(data(**ranged(1, long(10), long(12))), delete) == ["e"]
    assert applied(data(**ranged(1, long(-3), long(5))), delete) == ["e"]
    assert applied(data(**ranged(1, long(11), long(12))), delete) == []
    assert applied(data(**ranged(1, long(-3), long(4))), delete) == []
    assert applied(data(), delete) == ["e"]
    assert applied(data(lower_bounds={1: long(99)}), delete) == ["e"]


def test_bounds_of_before_a_promotion_are_compared_as_numbers() -> None:
    delete = equalities(9, **ranged(1, long(5), long(10)))
    assert applied(data(**ranged(1, struct.pack("<i", 7), struct.pack("<i", 8))), delete) == ["e"]
    assert applied(data(**ranged(1, struct.pack("<i", 1), struct.pack("<i", 4))), delete) == []


def test_null_equals_null() -> None:
    far = ranged(2, double(1), double(2)), ranged(2, double(8), double(9))
    mixed = equalities(9, equality_ids=(2,), **nulls(2, 1), **far[1])
    assert applied(data(**nulls(2, 3), **far[0]), mixed) == ["e"]
    assert applied(data(**nulls(2, 0), **far[0]), mixed) == []
    assert applied(data(**far[0]), mixed) == ["e"]


def test_files_of_nulls_only_meet_deleted_nulls_only() -> None:
    values = equalities(9, equality_ids=(2,), **nulls(2, 0))
    only_null = equalities(9, equality_ids=(2,), **nulls(2, 9))
    assert applied(data(**nulls(2, 9)), values) == []
    assert applied(data(**nulls(2, 8)), values) == ["e"]
    assert applied(data(**nulls(2, 0)), only_null) == []
    assert applied(data(**nulls(2, 1)), only_null) == ["e"]
    assert applied(data(), only_null) == ["e"]


def test_each_column_alone_can_rule_a_delete_out() -> None:
    delete = equalities(
        9,
        equality_ids=(1, 2),
        lower_bounds={1: long(1), 2: double(1)},
        upper_bounds={1: long(2), 2: double(2)},
        nan_value_counts={2: 0},
    )
    far = {1: long(1), 2: double(3)}, {1: long(1), 2: double(4)}
    counts: dict[str, Any] = {"null_value_counts": {1: 0, 2: 0}, "nan_value_counts": {2: 0}}
    assert applied(data(lower_bounds=far[0], upper_bounds=far[1], **counts), delete) == []


def test_required_columns_have_no_nulls_whatever_the_counts_say() -> None:
    delete = equalities(9, **nulls(1, 9), **ranged(1, long(5), long(10)))
    assert applied(data(**nulls(1, 9), **ranged(1, long(11), long(12))), delete) == []


def test_a_required_column_may_be_null_with_its_struct() -> None:
    """Or because it was optional when the file was written."""
    inner = {"id": 2, "name": "zip", "required": True, "type": "long"}
    place = {
        "id": 1,
        "name": "place",
        "required": False,
        "type": {"type": "struct", "fields": [inner]},
    }
    nested = parse_schema({"type": "struct", "schema-id": 0, "fields": [place]})
    optional, required = (
        parse_schema(
            {"type": "struct", "schema-id": number, "fields": [{**inner, "required": bool(number)}]}
        )
        for number in (0, 1)
    )
    delete = equalities(9, equality_ids=(2,), **nulls(2, 1), **ranged(2, long(5), long(10)))
    target = data(**nulls(2, 1), **ranged(2, long(11), long(12)))
    for schemas in ((nested,), (optional, required)):
        assert index(delete, schemas=schemas).for_data_file(target) == (delete.data_file,)
    assert index(delete, schemas=(required,)).for_data_file(target) == ()


def test_nan_lies_outside_of_bounds() -> None:
    delete = equalities(9, equality_ids=(2,), **nulls(2, 0), **ranged(2, double(1), double(2)))
    far = data(**nulls(2, 0), **ranged(2, double(8), double(9)))
    for count, found in (({2: 0}, []), ({2: 1}, ["e"]), (None, ["e"])):
        deleted = replace(delete.data_file, nan_value_counts=count)
        target = replace(far.data_file, nan_value_counts=count)
        assert applied(replace(far, data_file=target), replace(delete, data_file=deleted)) == found


def test_ranges_that_are_none_rule_nothing_out() -> None:
    low, high = bytes(16), b"\xff" * 16
    signed = equalities(9, equality_ids=(3,), **nulls(3, 0), **ranged(3, high, low))
    assert applied(data(**nulls(3, 0), **ranged(3, b"\1" * 16, b"\2" * 16)), signed) == ["e"]
    nan = double(float("nan"))
    hostile = equalities(9, equality_ids=(2,), **nulls(2, 0), **ranged(2, nan, nan))
    assert applied(data(**nulls(2, 0), **ranged(2, double(1), double(2))), hostile) == ["e"]


def test_nested_columns_rule_nothing_out() -> None:
    delete = equalities(9, equality_ids=(4,), **ranged(4, b"a", b"b"))
    assert applied(data(**nulls(4, 0)), delete) == ["e"]


def test_a_column_that_was_dropped_still_counts() -> None:
    later = parse_schema({"type": "struct", "schema-id": 1, "fields": []})
    delete = equalities(9, **ranged(1, long(5), long(10)))
    found = index(delete, schemas=(later, SCHEMA)).for_data_file(
        data(**ranged(1, long(11), long(12)))
    )
    assert found == ()


def test_the_latest_schema_says_what_bounds_are() -> None:
    narrow = {"id": 1, "name": "id", "required": True, "type": "int"}
    first = parse_schema({"type": "struct", "schema-id": 0, "fields": [narrow]})
    delete = equalities(9, **ranged(1, long(5), long(10)))
    latest = replace(SCHEMA, schema_id=1)
    for schemas in ((first, latest), (latest, first)):
        assert index(delete, schemas=schemas).for_data_file(data(**ranged(1, long(9), long(9))))


def test_a_bound_of_a_wrong_length_is_refused_with_its_file() -> None:
    delete = equalities(9, **ranged(1, long(5), long(10)))
    with pytest.raises(InvalidMetadataError, match=r"^data: bounds of field 1: not a long"):
        applied(data(**ranged(1, b"abc", long(3))), delete)
    with pytest.raises(InvalidMetadataError, match=r"^e: bounds of field 1: not a long"):
        index(equalities(9, **ranged(1, b"abc", long(3))))


# --- Any deletes: the scope rules of the specification, one file at a time -----------------------


def applies(delete: ManifestEntry, target: ManifestEntry, has_vector: bool) -> bool:
    """Return whether a delete applies, by the specification (Scan Planning), without metrics."""
    file, deleted = target.data_file, delete.data_file
    number, least = target.sequence_number or 0, delete.sequence_number or 0
    same_partition = (file.spec_id, file.partition) == (deleted.spec_id, deleted.partition)
    if deleted.content == DataFileContent.EQUALITY_DELETES:
        everywhere = SPECS[deleted.spec_id].is_unpartitioned
        return number < least and (same_partition or everywhere)
    named = deleted.referenced_data_file in (None, file.file_path)
    is_in_scope = named and number <= least and same_partition
    return is_in_scope and (deleted.is_deletion_vector or not has_vector)


PARTITIONS = st.sampled_from([(0, ()), (1, (1.0,)), (1, (None,)), (2, (None,))])


@pytest.mark.simulation
@settings(max_examples=200, deadline=None)
@given(
    targets=st.lists(st.tuples(PARTITIONS, st.integers(1, 4)), min_size=1, max_size=4),
    loose=st.lists(st.tuples(PARTITIONS, st.integers(1, 5), st.booleans()), max_size=8),
    named=st.lists(st.tuples(st.integers(0, 3), st.integers(1, 5)), max_size=4),
    vectors=st.dictionaries(st.integers(0, 3), st.integers(0, 2), max_size=3),
)
def test_any_deletes_apply_by_the_scope_rules(
    targets: list[tuple[tuple[int, tuple[object, ...]], int]],
    loose: list[tuple[tuple[int, tuple[object, ...]], int, bool]],
    named: list[tuple[int, int]],
    vectors: dict[int, int],
) -> None:
    data_entries = [
        data(number, f"data{place}", spec_id=spec_id, partition=partition)
        for place, ((spec_id, partition), number) in enumerate(targets)
    ]
    deletes = [
        (positions if is_position else equalities)(
            number, f"loose{place}", spec_id=spec_id, partition=partition
        )
        for place, ((spec_id, partition), number, is_position) in enumerate(loose)
    ]
    for place, (target, number) in enumerate(named):
        file = data_entries[target % len(targets)].data_file
        place_of: dict[str, Any] = {"spec_id": file.spec_id, "partition": file.partition}
        deletes.append(
            positions(number, f"n{place}", referenced_data_file=file.file_path, **place_of)
        )
    for target, younger in vectors.items():
        if target < len(targets):
            found = data_entries[target]
            named_as: dict[str, Any] = {
                "spec_id": found.data_file.spec_id,
                "partition": found.data_file.partition,
                "referenced_data_file": found.data_file.file_path,
            }
            deletes.append(vector(targets[target][1] + younger, f"v{target}", **named_as))
    for place, target_entry in enumerate(data_entries):
        wanted = sorted(
            delete.data_file.file_path
            for delete in deletes
            if applies(delete, target_entry, place in vectors)
        )
        assert applied(target_entry, *deletes) == wanted
