"""Updates folded into metadata: Iceberg Java's outcome, and never an unreadable table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from committer.errors import InvalidMetadataError, UnsupportedError
from committer.iceberg.metadata.metadata_check import RESERVED_PROPERTIES
from committer.iceberg.metadata.metadata_model import TableMetadata
from committer.iceberg.metadata.snapshot import (
    MAIN,
    MetadataLogEntry,
    SnapshotLogEntry,
    SnapshotRef,
)
from committer.iceberg.metadata.table_metadata import parse_table_metadata, print_table_metadata
from committer.iceberg.metadata.table_statistics import EncryptedKey, StatisticsFile
from committer.iceberg.schema.partition_spec import PartitionField, PartitionSpec
from committer.iceberg.schema.schema import Schema
from committer.iceberg.schema.sort_order import SortField, SortOrder
from committer.iceberg.updates.metadata_builder import MetadataBuilder
from committer.iceberg.updates.metadata_update import (
    LAST_ADDED,
    AddEncryptionKey,
    AddPartitionSpec,
    AddSchema,
    AddSnapshot,
    AddSortOrder,
    AssignUUID,
    RemoveEncryptionKey,
    RemovePartitionSpecs,
    RemovePartitionStatistics,
    RemoveProperties,
    RemoveSchemas,
    RemoveSnapshotRef,
    RemoveSnapshots,
    RemoveStatistics,
    SetCurrentSchema,
    SetDefaultPartitionSpec,
    SetDefaultSortOrder,
    SetLocation,
    SetPartitionStatistics,
    SetProperties,
    SetSnapshotRef,
    SetStatistics,
    Update,
    UpgradeFormatVersion,
    apply_updates,
)
from committer.iceberg.values.transforms import parse_transform
from committer.iceberg.values.types import (
    DateType,
    LongType,
    NestedField,
    TimestampNanoType,
    VariantType,
)
from tests.support.builders.fixtures import read_bytes, table_dir, table_names
from tests.support.iceberg.metadata_builders import (
    MINUTE_MS,
    SCHEMA,
    START_MS,
    TABLE_UUID,
    append,
    as_json,
    build_history,
    build_snapshot,
    build_statistics,
    build_table,
)


def apply(
    base: TableMetadata,
    *updates: Update,
    now_ms: int = START_MS + 1000,
    base_location: str | None = None,
) -> TableMetadata:
    return apply_updates(base, updates, base_location=base_location, now_ms=now_ms)


# --- As Iceberg Java -----------------------------------------------------------------------------


def java_steps(name: str) -> Iterator[tuple[str, TableMetadata, TableMetadata]]:
    """Yield each metadata file of a table whose named predecessor still exists."""
    for path in sorted(table_dir(name).rglob("*.metadata.json")):
        after = parse_table_metadata(path.read_bytes())
        previous = after.metadata_log[-1].metadata_file if after.metadata_log else None
        if previous is not None:
            try:
                yield previous, parse_table_metadata(read_bytes(previous)), after
            except FileNotFoundError:
                continue


def difference(before: TableMetadata, after: TableMetadata) -> list[Update]:
    """Return additions, settings and removals. The fold finds logs, numbers and times."""
    added = [each for each in after.snapshots if before.snapshot_by_id(each.snapshot_id) is None]
    removed = [each for each in before.snapshots if after.snapshot_by_id(each.snapshot_id) is None]
    known_schemas = {each.schema_id for each in before.schemas}
    known_specs = {each.spec_id for each in before.partition_specs}
    known_orders = {each.order_id for each in before.sort_orders}
    return [
        UpgradeFormatVersion(after.format_version),
        *(AddSchema(each) for each in after.schemas if each.schema_id not in known_schemas),
        SetCurrentSchema(after.current_schema_id),
        *(
            AddPartitionSpec(each)
            for each in after.partition_specs
            if each.spec_id not in known_specs
        ),
        SetDefaultPartitionSpec(after.default_spec_id),
        *(AddSortOrder(each) for each in after.sort_orders if each.order_id not in known_orders),
        SetDefaultSortOrder(after.default_sort_order_id),
        *(AddSnapshot(each) for each in added),
        *(
            SetSnapshotRef(ref_name, ref)
            for ref_name, ref in after.refs.items()
            if before.refs.get(ref_name) != ref
        ),
        *(RemoveSnapshotRef(ref_name) for ref_name in before.refs if ref_name not in after.refs),
        RemoveSnapshots(tuple(each.snapshot_id for each in removed)),
        *(SetStatistics(each) for each in after.statistics if each not in before.statistics),
        *(
            SetPartitionStatistics(each)
            for each in after.partition_statistics
            if each not in before.partition_statistics
        ),
        *_key_changes(before, after),
        *_property_changes(before.properties, after.properties),
        SetLocation(after.location),
    ]


def _key_changes(before: TableMetadata, after: TableMetadata) -> list[Update]:
    keys = {key.key_id for key in after.encryption_keys}
    return [
        *(AddEncryptionKey(key) for key in after.encryption_keys),
        *(
            RemoveEncryptionKey(key.key_id)
            for key in before.encryption_keys
            if key.key_id not in keys
        ),
    ]


def _property_changes(before: Mapping[str, str], after: Mapping[str, str]) -> list[Update]:
    changed = {key: text for key, text in after.items() if before.get(key) != text}
    return [SetProperties(changed), RemoveProperties(tuple(before.keys() - after.keys()))]


@pytest.mark.parametrize("name", table_names())
def test_the_fold_reaches_the_metadata_that_iceberg_java_wrote_next(name: str) -> None:
    for location, before, after in java_steps(name):
        found = apply_updates(
            before,
            difference(before, after),
            base_location=location,
            now_ms=after.last_updated_ms,
        )
        assert _unordered(found) == _unordered(after), location


def _unordered(metadata: TableMetadata) -> dict[str, object]:
    """Return JSON without the order of statistics, refs and properties: the reference has none."""
    ordered = replace(
        metadata,
        statistics=_by_snapshot(metadata.statistics),
        partition_statistics=_by_snapshot(metadata.partition_statistics),
    )
    return as_json(ordered)


def _by_snapshot(files: tuple[StatisticsFile, ...]) -> tuple[StatisticsFile, ...]:
    return tuple(sorted(files, key=lambda file: file.snapshot_id))


def test_java_wrote_enough_steps_to_prove_something() -> None:
    steps = [step for name in table_names() for step in java_steps(name)]
    assert len(steps) > 200
    assert any(len(after.metadata_log) == len(before.metadata_log) for _, before, after in steps)
    assert any(len(after.snapshot_log) < len(before.snapshot_log) for _, before, after in steps)
    assert any(after.format_version > before.format_version for _, before, after in steps)


# --- No change, and what every change does -------------------------------------------------------

_NOTHING: Sequence[Update] = (
    AssignUUID(TABLE_UUID),
    UpgradeFormatVersion(2),
    AddSchema(SCHEMA),
    SetCurrentSchema(0),
    AddPartitionSpec(PartitionSpec(7, ())),
    SetDefaultPartitionSpec(0),
    AddSortOrder(SortOrder(7, ())),
    SetDefaultSortOrder(0),
    SetSnapshotRef(MAIN, SnapshotRef(2)),
    RemoveSnapshots((9,)),
    RemoveSnapshotRef("nothing"),
    SetLocation("s3://lake/db/flights/"),
    SetProperties({}),
    RemoveProperties(()),
    RemoveStatistics(2),
    RemovePartitionStatistics(2),
    RemovePartitionSpecs((9,)),
    RemoveSchemas((9,)),
    RemoveEncryptionKey("nothing"),
)


@pytest.mark.parametrize("update", _NOTHING, ids=lambda update: type(update).__name__)
def test_a_change_that_changes_nothing_answers_the_base_itself(update: Update) -> None:
    base = build_history(2)
    assert apply(base, update, base_location="f") is base


def test_no_updates_answer_the_base_itself() -> None:
    base = build_history(1)
    assert apply(base, base_location="f") is base


def test_each_change_of_a_file_logs_that_file() -> None:
    base = build_table()
    first = apply(base, SetProperties({"a": "1"}), base_location="f0", now_ms=START_MS + 5)
    second = apply(first, SetProperties({"a": "2"}), base_location="f1", now_ms=START_MS + 7)
    assert second.metadata_log == (
        MetadataLogEntry(START_MS, "f0"),
        MetadataLogEntry(START_MS + 5, "f1"),
    )
    assert second.last_updated_ms == START_MS + 7
    assert apply(base, SetProperties({"a": "1"})).metadata_log == ()


@pytest.mark.parametrize(
    ("limit", "kept"), [("3", 3), ("1", 1), ("0", 1), ("-5", 1), ("many", 20), (None, 20)]
)
def test_the_metadata_log_is_trimmed_as_the_property_says(limit: str | None, kept: int) -> None:
    name = "write.metadata.previous-versions-max"
    table = build_table(properties={} if limit is None else {name: limit})
    for number in range(20):
        table = apply(table, SetProperties({"n": str(number)}), base_location=f"f{number}")
    assert [entry.metadata_file for entry in table.metadata_log] == [
        f"f{number}" for number in range(20 - kept, 20)
    ]


def test_the_default_log_holds_a_hundred_files() -> None:
    table = build_table()
    for number in range(105):
        table = apply(table, SetProperties({"n": str(number)}), base_location=f"f{number}")
    assert len(table.metadata_log) == 100
    assert table.metadata_log[-1].metadata_file == "f104"


def test_a_new_limit_counts_for_the_change_that_sets_it() -> None:
    table = build_table()
    for number in range(5):
        table = apply(table, SetProperties({"n": str(number)}), base_location=f"f{number}")
    limit = SetProperties({"write.metadata.previous-versions-max": "2"})
    assert len(apply(table, limit, base_location="f5").metadata_log) == 2


# --- Snapshots -----------------------------------------------------------------------------------


def test_a_snapshot_becomes_current_with_its_own_time_in_the_log() -> None:
    base = build_table()
    after = append(base, snapshot_id=1, timestamp_ms=START_MS + 3, now_ms=START_MS + 9)
    assert after.current_snapshot_id == 1
    assert after.last_sequence_number == 1
    assert after.snapshot_log == (SnapshotLogEntry(START_MS + 3, 1),)
    assert after.last_updated_ms == START_MS + 9
    assert (base.snapshots, base.refs) == ((), {})


def test_a_commit_to_another_branch_leaves_main_and_its_log_alone() -> None:
    base = build_history(2)
    after = append(base, snapshot_id=3, branch="audit")
    assert after.current_snapshot_id == 2
    assert after.snapshot_log == base.snapshot_log
    assert after.last_sequence_number == 3
    assert after.branch_head("audit") is after.snapshots[-1]


def test_of_several_snapshots_of_one_change_only_the_last_stays_in_the_log() -> None:
    base = build_history(1)
    second = build_snapshot(base, snapshot_id=2, parent=1)
    third = replace(second, snapshot_id=3, parent_snapshot_id=2, sequence_number=3)
    after = apply(
        base,
        AddSnapshot(second),
        SetSnapshotRef(MAIN, SnapshotRef(2)),
        AddSnapshot(third),
        SetSnapshotRef(MAIN, SnapshotRef(3)),
    )
    assert [entry.snapshot_id for entry in after.snapshot_log] == [1, 3]
    assert after.last_sequence_number == 3
    assert [each.snapshot_id for each in after.snapshots] == [1, 2, 3]


def test_a_rollback_is_logged_with_the_time_of_the_change() -> None:
    base = build_history(3)
    now_ms = base.last_updated_ms + 500
    after = apply(base, SetSnapshotRef(MAIN, SnapshotRef(1)), now_ms=now_ms)
    assert after.current_snapshot_id == 1
    assert after.snapshot_log == (*base.snapshot_log, SnapshotLogEntry(now_ms, 1))
    assert after.last_sequence_number == 3


def test_a_snapshot_id_is_used_once() -> None:
    base = build_history(2)
    again = build_snapshot(base, snapshot_id=1, parent=2)
    with pytest.raises(InvalidMetadataError, match="snapshot 1 exists already"):
        apply(base, AddSnapshot(again))
    new = build_snapshot(base, snapshot_id=9, parent=2)
    with pytest.raises(InvalidMetadataError, match="snapshot 9 exists already"):
        apply(base, AddSnapshot(new), AddSnapshot(new))


@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_sequence_number_that_was_given_already_is_refused(number: int) -> None:
    base = build_history(2)
    stale = build_snapshot(base, snapshot_id=9, parent=2, sequence_number=number)
    with pytest.raises(InvalidMetadataError, match="`sequence-number`: expected more than 2"):
        apply(base, AddSnapshot(stale))


def test_a_snapshot_without_parent_never_lowers_the_last_sequence_number() -> None:
    """Iceberg Java sets it back to 1: later snapshots get numbers that were given before, and
    equality deletes of then apply to their files."""
    base = build_history(3)
    root = build_snapshot(base, snapshot_id=9, sequence_number=1)
    assert apply(base, AddSnapshot(root)).last_sequence_number == 3


def test_version_1_gives_no_sequence_numbers() -> None:
    base = build_history(2, format_version=1)
    assert base.last_sequence_number == 0
    numbered = replace(build_snapshot(base, snapshot_id=9, parent=2), sequence_number=1)
    with pytest.raises(InvalidMetadataError, match="expected 0 in format version 1, found 1"):
        apply(base, AddSnapshot(numbered))


def test_a_ref_to_a_snapshot_that_is_not_there_is_refused() -> None:
    with pytest.raises(InvalidMetadataError, match="ref `x`: expected a snapshot 9, found none"):
        apply(build_history(1), SetSnapshotRef("x", SnapshotRef(9)))


@pytest.mark.parametrize(
    "ref",
    [
        SnapshotRef(1, "tag", min_snapshots_to_keep=1),
        SnapshotRef(1, "tag", max_snapshot_age_ms=1),
        SnapshotRef(1, min_snapshots_to_keep=0),
        SnapshotRef(1, max_snapshot_age_ms=-1),
        SnapshotRef(1, "tag", max_ref_age_ms=0),
    ],
)
def test_a_retention_that_no_reader_accepts_is_refused(ref: SnapshotRef) -> None:
    with pytest.raises(InvalidMetadataError, match="ref `t`: "):
        apply(build_history(1), SetSnapshotRef("t", ref))


def test_main_is_a_branch() -> None:
    with pytest.raises(InvalidMetadataError, match="ref `main`: expected a branch, found a tag"):
        apply(build_history(1), SetSnapshotRef(MAIN, SnapshotRef(1, "tag")))


def test_without_main_there_is_no_current_snapshot_and_the_log_stays() -> None:
    base = build_history(2)
    after = apply(base, RemoveSnapshotRef(MAIN))
    assert after.current_snapshot_id is None
    assert after.refs == {}
    assert after.snapshot_log == base.snapshot_log
    assert as_json(after)["current-snapshot-id"] == -1


def test_removed_snapshots_take_their_refs_and_statistics_along() -> None:
    base = apply(
        build_history(3),
        SetSnapshotRef("old", SnapshotRef(1, "tag")),
        SetStatistics(build_statistics(1, "s1")),
        SetStatistics(build_statistics(3, "s3")),
        SetPartitionStatistics(StatisticsFile(1, "p1", 1)),
    )
    after = apply(base, RemoveSnapshots((1,)))
    assert [each.snapshot_id for each in after.snapshots] == [2, 3]
    assert after.snapshot_by_id(1) is None
    assert list(after.refs) == [MAIN]
    assert after.statistics == (build_statistics(3, "s3"),)
    assert after.partition_statistics == ()
    assert base.snapshot_by_id(1) is not None


def test_a_gap_in_the_snapshot_log_takes_everything_before_it() -> None:
    after = apply(build_history(5), RemoveSnapshots((3,)))
    assert [entry.snapshot_id for entry in after.snapshot_log] == [4, 5]
    after = apply(build_history(5), RemoveSnapshots((1, 2)))
    assert [entry.snapshot_id for entry in after.snapshot_log] == [3, 4, 5]


def test_the_snapshot_log_ends_with_the_current_snapshot_after_a_removal() -> None:
    base = apply(build_history(3), SetSnapshotRef(MAIN, SnapshotRef(1)))
    after = apply(base, RemoveSnapshots((2, 3)))
    assert [entry.snapshot_id for entry in after.snapshot_log] == [1]
    headless = replace(build_history(3), snapshot_log=())
    assert [each.snapshot_id for each in apply(headless, RemoveSnapshots((1,))).snapshot_log] == [3]


def test_a_removed_head_of_main_leaves_no_current_snapshot() -> None:
    after = apply(build_history(2), RemoveSnapshots((2,)))
    assert after.current_snapshot_id is None
    assert after.snapshot_log == ()


# --- Row lineage ---------------------------------------------------------------------------------


def test_row_ids_are_given_on_by_every_snapshot_of_any_branch() -> None:
    table = build_table(format_version=3)
    table = append(table, snapshot_id=1)
    table = append(table, snapshot_id=2, branch="audit")
    assert table.next_row_id == 20
    assert [(each.first_row_id, each.added_rows) for each in table.snapshots] == [(0, 10), (10, 10)]


@pytest.mark.parametrize("first", [None, 0, 9])
def test_a_snapshot_that_would_give_row_ids_twice_is_refused(first: int | None) -> None:
    base = append(build_table(format_version=3), snapshot_id=1)
    stale = replace(build_snapshot(base, snapshot_id=2, parent=1), first_row_id=first)
    with pytest.raises(InvalidMetadataError, match="`first-row-id`: expected at least"):
        apply(base, AddSnapshot(stale))


def test_a_snapshot_without_its_count_of_row_ids_is_refused() -> None:
    base = build_table(format_version=3)
    bad = replace(build_snapshot(base, snapshot_id=1), added_rows=None)
    with pytest.raises(InvalidMetadataError, match="`added-rows`: expected 0 or more, found None"):
        apply(base, AddSnapshot(bad))


def test_row_ids_that_were_skipped_are_never_given_later() -> None:
    base = build_table(format_version=3)
    ahead = build_snapshot(base, snapshot_id=1, first_row_id=100)
    assert apply(base, AddSnapshot(ahead)).next_row_id == 110


def test_an_upgrade_to_version_3_starts_row_ids_at_0() -> None:
    base = build_history(2)
    after = apply(base, UpgradeFormatVersion(3))
    assert (after.format_version, after.next_row_id) == (3, 0)
    assert after.snapshots == base.snapshots
    assert append(after, snapshot_id=9).next_row_id == 10


def test_format_versions_go_up_only_and_to_3_at_most() -> None:
    with pytest.raises(InvalidMetadataError, match="expected 2 or above, found 1"):
        apply(build_table(), UpgradeFormatVersion(1))
    with pytest.raises(UnsupportedError, match="version 4"):
        apply(build_table(), UpgradeFormatVersion(4))


# --- Properties, location, identity, keys --------------------------------------------------------


def test_properties_are_set_and_removed() -> None:
    base = build_table(properties={"a": "1", "b": "2"})
    after = apply(base, SetProperties({"a": "9", "c": "3"}), RemoveProperties(("b", "x")))
    assert after.properties == {"a": "9", "write.parquet.compression-codec": "zstd", "c": "3"}
    assert base.properties["a"] == "1"


@pytest.mark.parametrize("key", sorted(RESERVED_PROPERTIES))
def test_reserved_properties_are_refused(key: str) -> None:
    with pytest.raises(InvalidMetadataError, match=f"properties: {key}: reserved"):
        apply(build_table(), SetProperties({key: "1"}))


def test_the_location_loses_its_last_slash() -> None:
    assert apply(build_table(), SetLocation("s3://other/t/")).location == "s3://other/t"


def test_a_table_without_uuid_stays_in_version_1_until_it_gets_one() -> None:
    base = replace(build_table(format_version=1), table_uuid=None)
    with pytest.raises(InvalidMetadataError, match="version 2: expected a table with a uuid"):
        apply(base, UpgradeFormatVersion(2))
    after = apply(base, AssignUUID(TABLE_UUID), UpgradeFormatVersion(2))
    assert (after.table_uuid, after.format_version) == (TABLE_UUID, 2)


def test_the_table_gets_another_identity() -> None:
    uuid = UUID(int=7)
    assert apply(build_table(), AssignUUID(uuid)).table_uuid == uuid


def test_encryption_keys_are_added_once_and_removed() -> None:
    base, key = build_table(format_version=3), EncryptedKey("k", "AQ==")
    after = apply(base, AddEncryptionKey(key))
    assert after.encryption_keys == (key,)
    assert apply(after, AddEncryptionKey(key)) is after
    with pytest.raises(InvalidMetadataError, match="`k` exists with other content"):
        apply(after, AddEncryptionKey(EncryptedKey("k", "Ag==")))
    with pytest.raises(InvalidMetadataError, match="need format version 3"):
        apply(build_table(), AddEncryptionKey(key))
    assert apply(after, RemoveEncryptionKey("k")).encryption_keys == ()


def test_a_snapshot_has_one_statistics_file_of_each_kind() -> None:
    base, first, second = build_history(2), build_statistics(1, "a"), build_statistics(1, "b")
    after = apply(base, SetStatistics(first), SetPartitionStatistics(first))
    after = apply(after, SetStatistics(second), SetPartitionStatistics(second))
    assert (after.statistics, after.partition_statistics) == ((second,), (second,))
    assert apply(after, RemoveStatistics(1)).statistics == ()
    assert apply(after, RemovePartitionStatistics(1)).partition_statistics == ()


@pytest.mark.parametrize(
    ("details", "message"),
    [
        ({"blob-metadata": []}, "`file-footer-size-in-bytes`: expected an integer"),
        ({"file-footer-size-in-bytes": 1}, "`blob-metadata`: expected a list, found nothing"),
        (
            {"file-footer-size-in-bytes": 1, "blob-metadata": [{"type": "t"}]},
            r"`blob-metadata`\[0\]: `snapshot-id`: expected an integer",
        ),
    ],
)
def test_statistics_that_no_reader_accepts_are_refused(
    details: dict[str, object], message: str
) -> None:
    with pytest.raises(InvalidMetadataError, match=message):
        apply(build_history(1), SetStatistics(StatisticsFile(1, "a", 1, details)))


# --- Schemas, specs, orders ----------------------------------------------------------------------

_WIDER = Schema((*SCHEMA.fields, NestedField(3, "day", DateType(), required=False)), 50)


def by_day(field_id: int = 1000, *, name: str = "day_month", spec_id: int = 0) -> PartitionSpec:
    return PartitionSpec(spec_id, (PartitionField((3,), field_id, name, parse_transform("month")),))


def test_an_added_schema_gets_the_next_id_and_becomes_current_when_told() -> None:
    after = apply(build_table(), AddSchema(_WIDER), SetCurrentSchema(LAST_ADDED))
    assert [each.schema_id for each in after.schemas] == [0, 1]
    assert (after.current_schema_id, after.last_column_id) == (1, 3)
    assert after.current_schema.fields == _WIDER.fields
    again = apply(after, AddSchema(SCHEMA), SetCurrentSchema(LAST_ADDED))
    assert (again.current_schema_id, len(again.schemas), again.last_column_id) == (0, 2, 3)


def test_the_last_column_id_never_falls() -> None:
    after = apply(build_table(), AddSchema(_WIDER, last_column_id=9))
    assert after.last_column_id == 9
    assert apply(after, AddSchema(Schema(SCHEMA.fields[:1]), last_column_id=1)).last_column_id == 9


def test_a_higher_last_column_id_alone_is_a_change() -> None:
    assert apply(build_table(), AddSchema(SCHEMA, last_column_id=9)).last_column_id == 9


def test_types_and_defaults_of_version_3_need_version_3() -> None:
    kinds = (TimestampNanoType(), VariantType())
    for field in (
        *(NestedField(3, "x", kind, required=False) for kind in kinds),
        NestedField(3, "x", LongType(), required=False, initial_default=5),
    ):
        schema = Schema((*SCHEMA.fields, field))
        with pytest.raises(InvalidMetadataError, match=r"column `x`: .* needs format version 3"):
            apply(build_table(), AddSchema(schema))
        assert len(apply(build_table(format_version=3), AddSchema(schema)).schemas) == 2


def test_an_equivalent_spec_is_found_again_whatever_its_ids() -> None:
    base = apply(build_table(), AddSchema(_WIDER), SetCurrentSchema(LAST_ADDED))
    after = apply(base, AddPartitionSpec(by_day()), SetDefaultPartitionSpec(LAST_ADDED))
    assert after.default_spec == by_day(spec_id=1)
    assert after.last_partition_id == 1000
    other = AddPartitionSpec(by_day(1005, spec_id=9))
    assert apply(after, other, SetDefaultPartitionSpec(LAST_ADDED)) is after
    renamed = apply(after, AddPartitionSpec(by_day(1001, name="m")))
    assert [each.spec_id for each in renamed.partition_specs] == [0, 1, 2]
    assert renamed.last_partition_id == 1001


def test_version_1_numbers_partition_fields_by_position() -> None:
    base = build_table(format_version=1)
    base = apply(base, AddSchema(_WIDER), SetCurrentSchema(LAST_ADDED))
    with pytest.raises(InvalidMetadataError, match=r"field ids \[1000\] in format version 1"):
        apply(base, AddPartitionSpec(by_day(1001)))


def test_a_spec_of_a_column_that_is_not_there_is_refused() -> None:
    with pytest.raises(InvalidMetadataError, match="source column with id 3 in schema 0"):
        apply(build_table(), AddPartitionSpec(by_day()))


def test_a_schema_that_lacks_a_column_of_the_default_spec_cannot_become_current() -> None:
    base = apply(
        build_table(),
        AddSchema(_WIDER),
        SetCurrentSchema(LAST_ADDED),
        AddPartitionSpec(by_day()),
        SetDefaultPartitionSpec(LAST_ADDED),
    )
    with pytest.raises(InvalidMetadataError, match="field `day_month`"):
        apply(base, SetCurrentSchema(0))


def test_sort_orders_count_from_1_and_are_found_again() -> None:
    order = SortOrder(40, (SortField((1,), parse_transform("identity"), "asc", "nulls-first"),))
    after = apply(build_table(), AddSortOrder(order), SetDefaultSortOrder(LAST_ADDED))
    assert [each.order_id for each in after.sort_orders] == [0, 1]
    assert after.default_sort_order.fields == order.fields
    assert apply(after, AddSortOrder(order), SetDefaultSortOrder(LAST_ADDED)) is after
    back = apply(after, AddSortOrder(SortOrder()), SetDefaultSortOrder(LAST_ADDED))
    assert back.default_sort_order_id == 0


def test_an_order_that_cannot_be_sorted_by_is_refused() -> None:
    for source_id, transform, message in (
        (9, "identity", "source column with id 9"),
        (1, "day", "transform `day` cannot take the long"),
    ):
        field = SortField((source_id,), parse_transform(transform), "asc", "nulls-first")
        with pytest.raises(InvalidMetadataError, match=message):
            apply(build_table(), AddSortOrder(SortOrder(1, (field,))))


def test_a_schema_that_lacks_a_column_of_the_default_order_cannot_become_current() -> None:
    order = SortOrder(1, (SortField((2,), parse_transform("identity"), "asc", "nulls-first"),))
    base = apply(build_table(), AddSortOrder(order), SetDefaultSortOrder(LAST_ADDED))
    with pytest.raises(InvalidMetadataError, match="sort order 1: field 0"):
        apply(base, AddSchema(Schema(SCHEMA.fields[:1])), SetCurrentSchema(LAST_ADDED))


def test_an_id_of_a_partition_field_is_not_given_twice() -> None:
    base = apply(build_table(), AddSchema(_WIDER), SetCurrentSchema(LAST_ADDED))
    base = apply(base, AddPartitionSpec(by_day()))
    bucket = PartitionField((1,), 1000, "b", parse_transform("bucket[4]"))
    with pytest.raises(InvalidMetadataError, match="id 1000 is another field's"):
        apply(base, AddPartitionSpec(PartitionSpec(0, (bucket,))))
    after = apply(base, AddPartitionSpec(PartitionSpec(0, (replace(bucket, field_id=0),))))
    assert (after.partition_specs[-1].fields[0].field_id, after.last_partition_id) == (1001, 1001)


@pytest.mark.parametrize(
    "update",
    [
        SetCurrentSchema(LAST_ADDED),
        SetDefaultPartitionSpec(LAST_ADDED),
        SetDefaultSortOrder(LAST_ADDED),
    ],
)
def test_the_last_added_of_nothing_is_refused(update: Update) -> None:
    with pytest.raises(InvalidMetadataError, match="none was added"):
        apply(build_table(), update)


@pytest.mark.parametrize(
    "update", [SetCurrentSchema(9), SetDefaultPartitionSpec(9), SetDefaultSortOrder(9)]
)
def test_an_id_that_is_not_there_cannot_be_chosen(update: Update) -> None:
    with pytest.raises(InvalidMetadataError, match="with id 9, found none"):
        apply(build_table(), update)


def test_what_is_in_use_cannot_be_removed() -> None:
    base = apply(build_table(), AddSchema(_WIDER), SetCurrentSchema(LAST_ADDED))
    base = apply(base, AddPartitionSpec(by_day()), SetDefaultPartitionSpec(LAST_ADDED))
    assert [each.schema_id for each in apply(base, RemoveSchemas((0, 7))).schemas] == [1]
    assert [each.spec_id for each in apply(base, RemovePartitionSpecs((0,))).partition_specs] == [1]
    with pytest.raises(InvalidMetadataError, match="current schema 1 cannot be removed"):
        apply(base, RemoveSchemas((1,)))
    with pytest.raises(InvalidMetadataError, match="default partition spec 1 cannot be removed"):
        apply(base, RemovePartitionSpecs((1,)))


# --- Clocks --------------------------------------------------------------------------------------


def test_a_clock_two_hours_back_costs_true_times_and_not_the_table() -> None:
    base = append(build_history(2), snapshot_id=3, base_location="f0")
    back_ms = START_MS - 120 * MINUTE_MS
    after = append(base, snapshot_id=4, timestamp_ms=back_ms, now_ms=back_ms, base_location="f1")
    assert after.last_updated_ms >= base.last_updated_ms
    assert after.snapshot_log[-1].timestamp_ms >= base.snapshot_log[-1].timestamp_ms
    assert parse_table_metadata(print_table_metadata(after)) == after


def test_a_rollback_under_a_clock_gone_back_is_logged_with_the_time_of_the_last_change() -> None:
    base = apply(build_history(3), SetProperties({"a": "1"}), now_ms=START_MS + 5 * MINUTE_MS)
    after = apply(base, SetSnapshotRef(MAIN, SnapshotRef(1)), now_ms=START_MS)
    assert after.snapshot_log[-1] == SnapshotLogEntry(base.last_updated_ms, 1)
    assert after.last_updated_ms == base.last_updated_ms


def test_the_metadata_log_stays_in_order_where_the_base_was_written_a_little_out_of_order() -> None:
    base = append(build_history(2), snapshot_id=3, base_location="f0")
    ahead_ms = base.last_updated_ms + MINUTE_MS // 2
    base = replace(base, metadata_log=(MetadataLogEntry(ahead_ms, "f0"),))
    after = apply(base, SetProperties({"a": "1"}), base_location="f1", now_ms=START_MS)
    assert [entry.timestamp_ms for entry in after.metadata_log] == [ahead_ms, ahead_ms]
    assert after.last_updated_ms == ahead_ms


def test_a_snapshot_from_the_future_drags_last_updated_along() -> None:
    future_ms = START_MS + 120 * MINUTE_MS
    after = append(build_table(), snapshot_id=1, timestamp_ms=future_ms, now_ms=START_MS)
    assert after.last_updated_ms == future_ms


def test_a_staged_snapshot_from_the_future_is_no_younger_than_the_table_once_it_is_published() -> (
    None
):
    base, future_ms = build_history(1), START_MS + 120 * MINUTE_MS
    staged = replace(build_snapshot(base, snapshot_id=2, parent=1), timestamp_ms=future_ms)
    after = apply(base, AddSnapshot(staged), now_ms=START_MS)
    assert after.last_updated_ms == future_ms
    published = apply(after, SetSnapshotRef(MAIN, SnapshotRef(2)), now_ms=START_MS)
    assert published.last_updated_ms == published.snapshot_log[-1].timestamp_ms == future_ms


_JUMPS = st.integers(-10_000_000, 10_000_000)
_STEPS = st.lists(
    st.tuples(_JUMPS, _JUMPS, st.sampled_from(["main", "audit", "rollback", "expire", "property"])),
    min_size=1,
    max_size=12,
)


@pytest.mark.simulation
@settings(max_examples=150, deadline=None)
@given(_STEPS, st.sampled_from([1, 2, 3]))
def test_no_jumping_clock_ever_makes_metadata_that_readers_refuse(
    steps: list[tuple[int, int, str]], format_version: int
) -> None:
    table = append(build_table(format_version=format_version), snapshot_id=1)
    for number, (jump_ms, other_jump_ms, action) in enumerate(steps, start=2):
        now_ms, other_ms = START_MS + jump_ms, START_MS + other_jump_ms
        before, location = table, f"f{number}"
        if action in ("main", "audit"):
            table = append(
                table,
                snapshot_id=number,
                branch=action,
                timestamp_ms=other_ms,
                now_ms=now_ms,
                base_location=location,
            )
        else:
            update = _step(table, action, number)
            table = apply(table, update, now_ms=now_ms, base_location=location)
        assert table.last_updated_ms >= before.last_updated_ms
        _assert_sorted([entry.timestamp_ms for entry in table.snapshot_log], table)
        _assert_sorted([entry.timestamp_ms for entry in table.metadata_log], table)
        assert parse_table_metadata(print_table_metadata(table)) == table


def _step(table: TableMetadata, action: str, number: int) -> Update:
    if action == "rollback":
        return SetSnapshotRef(MAIN, SnapshotRef(table.snapshots[0].snapshot_id))
    if action == "expire":
        return RemoveSnapshots(
            tuple(
                each.snapshot_id
                for each in table.snapshots[:-1]
                if each.snapshot_id != table.current_snapshot_id
            )
        )
    return SetProperties({"n": str(number)})


def _assert_sorted(times_ms: list[int], table: TableMetadata) -> None:
    assert [*times_ms, table.last_updated_ms] == sorted([*times_ms, table.last_updated_ms])


def test_snapshots_that_are_removed_one_by_one_are_not_listed_anew_for_each() -> None:
    """So Iceberg Java asks for it: one update a snapshot, thousands in an expiry."""
    base = build_history(3)
    builder = MetadataBuilder(base, START_MS)
    builder.remove_snapshots([1])
    index = builder.snapshots
    builder.remove_snapshots([2])
    assert builder.snapshots is index
    assert builder.build(None).snapshots == base.snapshots[2:]
    assert list(base.snapshots_by_id) == [1, 2, 3]


def test_a_snapshot_that_is_removed_and_added_again_comes_last() -> None:
    base = build_history(2)
    again = build_snapshot(base, snapshot_id=1, parent=2)
    changed = apply(base, RemoveSnapshots((1,)), AddSnapshot(again))
    assert [each.snapshot_id for each in changed.snapshots] == [2, 1]
    assert changed.snapshot_by_id(1) is again
