"""Changes of a table without files: what each makes of the table, and what none may do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal

import pytest
from pydantic import TypeAdapter

from committer.iceberg.metadata.metadata_model import TableMetadata
from committer.iceberg.metadata.snapshot import SnapshotRef
from committer.iceberg.schema.name_mapping import (
    NAME_MAPPING_PROPERTY,
    create_name_mapping,
    print_name_mapping,
)
from committer.iceberg.schema.partition_spec import PartitionField, PartitionSpec
from committer.iceberg.schema.schema import Schema, print_schema
from committer.iceberg.updates.metadata_update import (
    AddSchema,
    RemoveSnapshots,
    SetCurrentSchema,
    SetSnapshotRef,
    Update,
    apply_updates,
)
from committer.iceberg.values.transforms import parse_transform
from committer.iceberg.values.types import (
    IntegerType,
    LongType,
    NestedField,
    StringType,
    StructType,
)
from committer.plan.operations.alter import plan_alter
from committer.plan.operations.conflict import Conflict, ConflictCode
from committer.request.alterations import TableChanges
from tests.support.iceberg.metadata_builders import (
    START_MS,
    append,
    as_json,
    build_history,
    build_table,
    read_back,
)

LATER_MS = START_MS + 1_000_000
_CHANGES: TypeAdapter[TableChanges] = TypeAdapter(TableChanges)
Document = Mapping[str, object]


def planned(
    metadata: TableMetadata, *documents: Document, branch: str = "main"
) -> tuple[Update, ...] | Conflict:
    changes = _CHANGES.validate_python(documents)
    return plan_alter(changes, metadata, branch, now_ms=LATER_MS)


def altered(metadata: TableMetadata, *documents: Document, branch: str = "main") -> TableMetadata:
    """Return the table after the changes, as it is read back from its file."""
    updates = planned(metadata, *documents, branch=branch)
    assert not isinstance(updates, Conflict), updates.message
    after = apply_updates(metadata, updates, base_location=None, now_ms=LATER_MS)
    return read_back(as_json(after))


def refused(metadata: TableMetadata, *documents: Document, branch: str = "main") -> Conflict:
    found = planned(metadata, *documents, branch=branch)
    assert isinstance(found, Conflict), found
    return found


def names(metadata: TableMetadata) -> list[str]:
    return [field.name for field in metadata.current_schema.fields]


def forked() -> TableMetadata:
    """Return a table with 1 - 2 - 3 on main, and 4 - 5 on branch `audit`, which left at 2."""
    table = build_history(2)
    table = apply_updates(
        table,
        (SetSnapshotRef("audit", SnapshotRef(2)),),
        base_location=None,
        now_ms=table.last_updated_ms,
    )
    table = append(table, snapshot_id=3, timestamp_ms=START_MS + 3)
    table = append(table, snapshot_id=4, branch="audit", timestamp_ms=START_MS + 4)
    return append(table, snapshot_id=5, branch="audit", timestamp_ms=START_MS + 5)


# --- Branches and tags ---------------------------------------------------------------------------


def test_a_branch_starts_at_the_head_of_the_requests_branch_or_where_it_is_told() -> None:
    table = forked()
    made = altered(
        table,
        {"action": "create-branch", "name": "a", "min-snapshots-to-keep": 3},
        {"action": "create-branch", "name": "b", "snapshot-id": 1, "max-snapshot-age-ms": 9},
        {"action": "create-branch", "name": "c", "ref": "audit", "max-ref-age-ms": 8},
        {"action": "create-tag", "name": "t", "ref": "b", "max-ref-age-ms": 7},
    )
    assert made.refs == {
        **table.refs,
        "a": SnapshotRef(3, "branch", min_snapshots_to_keep=3),
        "b": SnapshotRef(1, "branch", max_snapshot_age_ms=9),
        "c": SnapshotRef(5, "branch", max_ref_age_ms=8),
        "t": SnapshotRef(1, "tag", max_ref_age_ms=7),
    }


@pytest.mark.parametrize(
    ("document", "why"),
    [
        ({"action": "create-branch", "name": "audit"}, "a branch `audit` exists already"),
        ({"action": "create-tag", "name": "audit"}, "a branch `audit` exists already"),
        (
            {"action": "create-tag", "name": "audit", "if-not-exists": True},
            "a branch `audit` exists already",
        ),
        ({"action": "create-tag", "name": "x", "snapshot-id": 99}, "expected a snapshot 99"),
        ({"action": "create-tag", "name": "x", "ref": "no"}, "expected a branch or tag `no`"),
        ({"action": "create-branch", "name": "x", "ref": "AUDIT"}, "there is `audit`"),
        ({"action": "replace-branch", "name": "no"}, "expected a branch `no`, found none"),
        ({"action": "replace-tag", "name": "audit"}, "`audit` is a branch, expected a tag"),
        ({"action": "replace-branch", "name": "audit", "snapshot-id": 99}, "a snapshot 99"),
        ({"action": "remove-snapshot-ref", "ref-name": "main"}, "cannot be removed"),
        ({"action": "remove-snapshot-ref", "ref-name": "no"}, "`no`, found none"),
        (
            {"action": "remove-snapshot-ref", "ref-name": "audit", "type": "tag"},
            "`audit` is a branch, expected a tag",
        ),
        (
            {"action": "set-snapshot-ref", "ref-name": "audit", "type": "tag", "snapshot-id": 1},
            "`audit` is a branch, expected a tag",
        ),
        (
            {"action": "set-snapshot-ref", "ref-name": "main", "type": "tag", "snapshot-id": 1},
            "`main` is a branch, expected a tag",
        ),
        (
            {"action": "set-snapshot-ref", "ref-name": "x", "type": "tag", "snapshot-id": 99},
            "expected a snapshot 99",
        ),
        (
            {
                "action": "set-snapshot-ref",
                "ref-name": "x",
                "type": "tag",
                "snapshot-id": 1,
                "min-snapshots-to-keep": 1,
            },
            "which only a branch has",
        ),
        ({"action": "fast-forward", "branch": "audit", "to": "no"}, "`no`, found none"),
        ({"action": "rollback-to-snapshot", "snapshot-id": 99}, "expected a snapshot 99"),
        (
            {"action": "rollback-to-timestamp", "timestamp-ms": 5},
            "older than 1970-01-01T00:00:00.005Z",
        ),
        ({"action": "set-current-snapshot", "snapshot-id": 99}, "expected a snapshot 99"),
    ],
)
def test_a_change_of_refs_that_does_not_fit_is_refused_with_a_sentence(
    document: Document, why: str
) -> None:
    found = refused(forked(), document)
    assert found.code is ConflictCode.INCOMPATIBLE
    assert why in found.message
    assert not found.message.startswith("change ")


def test_a_tag_is_never_moved_as_a_branch() -> None:
    table = altered(forked(), {"action": "create-tag", "name": "t", "snapshot-id": 2})
    for document in (
        {"action": "fast-forward", "branch": "t", "to": "main"},
        {"action": "replace-branch", "name": "t", "ref": "main"},
        {"action": "set-snapshot-ref", "ref-name": "t", "type": "branch", "snapshot-id": 3},
    ):
        assert "`t` is a tag, expected a branch" in refused(table, document).message
    for document in (
        {"action": "rollback-to-snapshot", "snapshot-id": 1},
        {"action": "set-current-snapshot", "snapshot-id": 3},
    ):
        found = refused(table, document, branch="t")
        assert "`t` is a tag, expected a branch" in found.message


def test_repeated_with_leave_a_change_of_refs_changes_nothing() -> None:
    table = altered(forked(), {"action": "create-tag", "name": "t"})
    assert (
        planned(
            table,
            {"action": "create-tag", "name": "t", "if-not-exists": True, "snapshot-id": 1},
            {"action": "create-branch", "name": "audit", "if-not-exists": True},
            {"action": "remove-snapshot-ref", "ref-name": "no", "if-exists": True},
        )
        == ()
    )


def test_a_replaced_ref_keeps_its_retention_and_a_set_one_has_what_is_said() -> None:
    table = altered(
        forked(),
        {"action": "create-branch", "name": "b", "min-snapshots-to-keep": 3, "snapshot-id": 1},
        {"action": "create-tag", "name": "t", "max-ref-age-ms": 7},
    )
    replaced = altered(
        table,
        {"action": "replace-branch", "name": "b", "snapshot-id": 5},
        {"action": "replace-tag", "name": "t", "ref": "audit"},
    )
    assert replaced.refs["b"] == SnapshotRef(5, "branch", min_snapshots_to_keep=3)
    assert replaced.refs["t"] == SnapshotRef(5, "tag", max_ref_age_ms=7)
    document = {"action": "set-snapshot-ref", "ref-name": "b", "type": "branch", "snapshot-id": 1}
    assert altered(replaced, document).refs["b"] == SnapshotRef(1)


def test_a_branch_is_fast_forwarded_to_its_descendants_only() -> None:
    table = altered(forked(), {"action": "create-branch", "name": "old", "snapshot-id": 1})
    ahead = altered(table, {"action": "fast-forward", "branch": "old", "to": "audit"})
    assert ahead.refs["old"].snapshot_id == 5
    assert altered(table, {"action": "fast-forward", "branch": "new", "to": "audit"}).refs[
        "new"
    ] == SnapshotRef(5)
    found = refused(table, {"action": "fast-forward", "to": "audit"})
    assert (found.code, found.snapshot_id) == (ConflictCode.NO_ANCESTOR, 3)
    assert "`main` cannot be fast-forwarded to `audit`" in found.message
    # A link that has expired proves nothing.
    gap = apply_updates(table, (RemoveSnapshots((2, 4)),), base_location=None, now_ms=LATER_MS)
    assert (
        refused(gap, {"action": "fast-forward", "branch": "old", "to": "audit"}).code
        is ConflictCode.NO_ANCESTOR
    )


def test_main_moves_with_the_time_of_the_change_and_numbers_never_go_back() -> None:
    table = build_history(3)
    for document in (
        {"action": "rollback-to-snapshot", "snapshot-id": 2},
        {"action": "rollback-to-timestamp", "timestamp-ms": START_MS + 3},
        {"action": "set-current-snapshot", "snapshot-id": 2},
    ):
        back = altered(table, document)
        assert back.current_snapshot_id == 2
        assert back.last_sequence_number == table.last_sequence_number == 3
        assert [one.snapshot_id for one in back.snapshots] == [1, 2, 3]
        last = back.snapshot_log[-1]
        assert (last.timestamp_ms, last.snapshot_id) == (LATER_MS, 2)


def test_a_rollback_goes_to_an_ancestor_and_any_other_move_is_asked_for_by_name() -> None:
    table = forked()
    found = refused(table, {"action": "rollback-to-snapshot", "snapshot-id": 4})
    assert found.code is ConflictCode.NO_ANCESTOR
    assert altered(
        table, {"action": "rollback-to-snapshot", "snapshot-id": 4}, branch="audit"
    ).refs["audit"] == SnapshotRef(4)
    assert altered(table, {"action": "set-current-snapshot", "ref": "audit"}).refs[
        "main"
    ] == SnapshotRef(5)


def test_a_rollback_to_a_time_takes_the_last_snapshot_before_it() -> None:
    table = build_history(3)
    to = {"action": "rollback-to-timestamp"}
    assert altered(table, {**to, "timestamp-ms": START_MS + 2}).current_snapshot_id == 1
    assert altered(table, {**to, "timestamp-ms": LATER_MS}).current_snapshot_id == 3
    refused(table, {**to, "timestamp-ms": START_MS + 1})


def test_a_table_without_snapshots_has_nothing_to_name() -> None:
    for document in (
        {"action": "create-branch", "name": "b"},
        {"action": "create-tag", "name": "t", "ref": "main"},
    ):
        assert "no snapshot yet" in refused(build_table(), document).message


# --- Schema --------------------------------------------------------------------------------------


def test_columns_are_added_with_ids_that_no_column_had() -> None:
    table = altered(
        build_table(),
        {"action": "add-column", "name": "at", "type": "timestamptz", "doc": "when"},
    )
    table = altered(table, {"action": "drop-column", "name": "at"})
    place = {
        "type": "struct",
        "fields": [{"id": 1, "name": "city", "required": False, "type": "string"}],
    }
    table = altered(
        table,
        {"action": "add-column", "name": "place", "type": place},
        {"action": "add-column", "name": "zip", "parent": "place", "type": "string"},
        {"action": "move-column", "name": "place", "first": True},
    )
    ids = {name: field.field_id for name, field in table.current_schema.walk()}
    assert ids == {"place": 4, "place.city": 5, "place.zip": 6, "id": 1, "name": 2}
    assert names(table) == ["place", "id", "name"]
    assert table.last_column_id == 6


def test_one_request_adds_one_schema_whatever_it_changes() -> None:
    updates = planned(
        build_table(),
        {"action": "add-column", "name": "a", "type": "int"},
        {"action": "add-column", "name": "b", "type": "int"},
        {"action": "update-column-type", "name": "b", "type": "long"},
        {"action": "rename-column", "name": "name", "new-name": "label"},
        {"action": "update-column-doc", "name": "a", "doc": "first"},
        {"action": "move-column", "name": "b", "before": "a"},
    )
    assert not isinstance(updates, Conflict)
    assert [type(one) for one in updates] == [AddSchema, SetCurrentSchema]
    after = apply_updates(build_table(), updates, base_location=None, now_ms=LATER_MS)
    assert names(after) == ["id", "label", "b", "a"]
    assert after.current_schema.find("b") == NestedField(4, "b", LongType(), required=False)
    assert len(after.schemas) == 2


def test_a_change_that_another_engine_made_first_is_planned_on_its_schema() -> None:
    """The request says what to change, not the schema that its client saw."""
    foreign = altered(build_table(), {"action": "add-column", "name": "theirs", "type": "int"})
    both = altered(foreign, {"action": "add-column", "name": "ours", "type": "int"})
    assert names(both) == ["id", "name", "theirs", "ours"]


def required_id() -> TableMetadata:
    schema = Schema(
        (
            NestedField(1, "id", IntegerType(), required=True),
            NestedField(2, "name", StringType(), required=False),
            NestedField(3, "day", IntegerType(), required=False),
        )
    )
    spec = PartitionSpec(0, (PartitionField((3,), 1000, "day", parse_transform("identity")),))
    return build_table(schema=schema, partition_spec=spec)


@pytest.mark.parametrize(
    ("document", "why"),
    [
        ({"action": "add-column", "name": "id", "type": "int"}, "expected a name that is free"),
        (
            {"action": "add-column", "name": "ID", "type": "int", "case-sensitive": False},
            "expected a name that is free",
        ),
        (
            {"action": "add-column", "name": "x", "type": "int", "required": True},
            "needs a default value",
        ),
        (
            {"action": "add-column", "name": "x", "type": "int", "default": "no"},
            "`default`",
        ),
        ({"action": "add-column", "name": "x", "type": "int", "default": 1}, "format version 3"),
        ({"action": "add-column", "name": "x", "type": "variant"}, "needs format version 3"),
        ({"action": "add-column", "name": "x", "parent": "no", "type": "int"}, "`no`"),
        ({"action": "add-column", "name": "x", "parent": "id", "type": "int"}, "a struct"),
        (
            {"action": "add-column", "name": "id", "type": "string", "if-not-exists": True},
            "exists as int, expected string",
        ),
        ({"action": "drop-column", "name": "no"}, "expected a column `no`, found none"),
        (
            {"action": "drop-column", "name": "day"},
            "column `day` is used by partition field `day`: ",
        ),
        ({"action": "rename-column", "name": "no", "new-name": "x"}, "`no`"),
        (
            {"action": "rename-column", "name": "name", "new-name": "id"},
            "there is a column `id` already",
        ),
        (
            {
                "action": "rename-column",
                "name": "NAME",
                "new-name": "ID",
                "case-sensitive": False,
            },
            "there is a column `id` already",
        ),
        ({"action": "rename-column", "name": "name", "new-name": "day"}, "`day`"),
        (
            {"action": "update-column-type", "name": "name", "type": "int"},
            "string cannot become int",
        ),
        (
            {"action": "update-column-type", "name": "id", "type": "short"},
            "",
        ),
        ({"action": "set-identifier-fields", "names": ["name"]}, "required primitive"),
        ({"action": "set-identifier-fields", "names": ["no"]}, "`no`"),
        ({"action": "move-column", "name": "id", "before": "no"}, "`no`"),
        ({"action": "move-column", "name": "id", "after": "id"}, "another field"),
        ({"action": "make-column-optional", "name": "no"}, "`no`"),
        ({"action": "add-partition-field", "source": "no"}, "`no`"),
        ({"action": "add-partition-field", "source": "day"}, "in the spec already"),
        (
            {"action": "add-partition-field", "source": "name", "transform": "day"},
            "cannot take the string",
        ),
        (
            {"action": "add-partition-field", "source": "name", "name": "id"},
            "another column than its source",
        ),
        ({"action": "remove-partition-field", "name": "no"}, "`no`"),
        ({"action": "rename-partition-field", "name": "no", "new-name": "x"}, "`no`"),
        ({"action": "replace-sort-order", "fields": [{"source": "no"}]}, "`no`"),
        (
            {"action": "replace-sort-order", "fields": [{"source": "name", "transform": "day"}]},
            "cannot take the string",
        ),
        ({"action": "upgrade-format-version", "format-version": 1}, "expected 2 or above"),
    ],
)
def test_a_change_that_the_format_forbids_is_refused_with_a_sentence(
    document: Document, why: str
) -> None:
    if document.get("type") == "short":
        with pytest.raises(ValueError, match="unknown type"):
            planned(required_id(), document)
        return
    found = refused(required_id(), document)
    assert found.code is ConflictCode.INCOMPATIBLE
    assert why in found.message


def test_an_identifier_column_can_be_neither_dropped_nor_null() -> None:
    table = altered(required_id(), {"action": "set-identifier-fields", "names": ["id"]})
    assert table.current_schema.identifier_field_ids == (1,)
    for action in ("drop-column", "make-column-optional"):
        assert "identifier field 1" in refused(table, {"action": action, "name": "id"}).message
    freed = altered(
        table,
        {"action": "set-identifier-fields", "names": []},
        {"action": "make-column-optional", "name": "id"},
    )
    assert freed.current_schema.identifier_field_ids == ()


def test_no_change_of_a_request_is_made_if_one_does_not_fit() -> None:
    found = refused(
        build_table(),
        {"action": "add-column", "name": "a", "type": "int"},
        {"action": "drop-column", "name": "no"},
    )
    assert found.message.startswith("change 2 (`drop-column`): expected a column `no`")


@pytest.mark.parametrize("version", [1, 2])
def test_a_default_of_rows_to_come_needs_format_version_3(version: int) -> None:
    table = build_table(format_version=version)
    change = {"action": "update-column-default", "name": "name"}
    found = refused(table, {**change, "default": "x"})
    assert found.message == f"column `name`: a default needs format version 3, found {version}"
    assert altered(table, change).current_schema == table.current_schema


def test_a_default_of_rows_to_come_leaves_existing_rows_null() -> None:
    upgraded = {"action": "upgrade-format-version", "format-version": 3}
    change = {"action": "update-column-default", "name": "name", "default": "x"}
    field = altered(build_table(), upgraded, change).current_schema.find("name")
    assert field is not None
    assert (field.initial_default, field.write_default) == (None, "x")


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        ("decimal(9, 2)", "1.10", Decimal("1.10")),
        ("decimal(9, 2)", "0", Decimal("0.00")),
        ("float", "1", 1.0),
        ("double", "-2.5e3", -2500.0),
        ("long", "7", 7),
        ("boolean", "TRUE", True),
        ("string", "1", "1"),
    ],
)
def test_a_default_may_be_text_and_is_read_as_the_type_of_its_column(
    kind: str, text: str, expected: object
) -> None:
    table = altered(
        build_table(),
        {"action": "upgrade-format-version", "format-version": 3},
        {"action": "add-column", "name": "new", "type": kind, "default": text},
        {"action": "add-column", "name": "old", "type": kind},
        {"action": "update-column-default", "name": "old", "default": text},
    )
    for name in ("new", "old"):
        field = table.current_schema.find(name)
        assert field is not None
        assert (type(field.write_default), field.write_default) == (type(expected), expected)


@pytest.mark.parametrize(
    ("kind", "text", "why"),
    [
        ("decimal(9, 2)", "1.105", "expected 2 digits behind the point, found `1.105`"),
        ("decimal(9, 2)", "NaN", "expected a decimal, found `NaN`"),
        ("double", "1e400", "expected a value of type double"),
        ("double", "true", "expected a value of type double, found a JSON bool"),
        ("int", "1.5", "expected a value of type int, found a JSON float"),
        ("int", "one", "expected a value of type int, found a JSON str"),
    ],
)
def test_text_that_is_no_value_of_the_type_of_its_column_is_refused(
    kind: str, text: str, why: str
) -> None:
    change = {"action": "add-column", "name": "x", "type": kind, "default": text}
    assert why in refused(build_table(format_version=3), change).message


def test_a_column_that_new_files_are_sorted_by_cannot_be_dropped() -> None:
    table = altered(build_table(), {"action": "replace-sort-order", "fields": [{"source": "name"}]})
    found = refused(table, {"action": "drop-column", "name": "name"})
    assert found.message == ("column `name` is used by the sort order: replace the sort order too")
    unsorted = {"action": "replace-sort-order", "fields": []}
    assert "name" not in names(altered(table, unsorted, {"action": "drop-column", "name": "name"}))


def test_a_column_is_renamed_to_another_case_of_its_name() -> None:
    change = {"action": "rename-column", "name": "name", "new-name": "NAME"}
    assert "NAME" in names(altered(build_table(), {**change, "case-sensitive": False}))


def test_settings_of_a_column_follow_its_name() -> None:
    table = build_table(properties={"write.metadata.metrics.column.name": "full", "k": "v"})
    renamed = altered(table, {"action": "rename-column", "name": "name", "new-name": "label"})
    assert renamed.properties["write.metadata.metrics.column.label"] == "full"
    assert "write.metadata.metrics.column.name" not in renamed.properties
    dropped = altered(table, {"action": "drop-column", "name": "name"})
    assert "write.metadata.metrics.column.name" not in dropped.properties
    assert dropped.properties["k"] == "v"


def test_case_counts_unless_it_is_told_not_to() -> None:
    table = build_table()
    assert "`NAME`" in refused(table, {"action": "drop-column", "name": "NAME"}).message
    dropped = altered(table, {"action": "drop-column", "name": "NAME", "case-sensitive": False})
    assert names(dropped) == ["id"]


# --- Union by name -------------------------------------------------------------------------------


def wanted(*fields: NestedField) -> dict[str, object]:
    return print_schema(Schema((*build_table().current_schema.fields, *fields)))


def test_a_union_by_name_adds_what_is_missing_once_for_all() -> None:
    union = {
        "action": "union-by-name",
        "schema": wanted(NestedField(3, "x", LongType(), required=True)),
        "with-ids": True,
    }
    table = altered(build_table(), union)
    assert table.current_schema.find("x") == NestedField(3, "x", LongType(), required=False)
    assert planned(table, union) == ()


def test_a_union_whose_files_have_other_ids_is_refused() -> None:
    """Two writers took the next id for different columns: the later one's files would be read as
    the earlier one's column."""
    union = {"action": "union-by-name", "with-ids": True}
    x, y = (
        {**union, "schema": wanted(NestedField(3, name, LongType(), required=False))}
        for name in "xy"
    )
    table = altered(build_table(), x)
    found = refused(table, y)
    assert found.code is ConflictCode.INCOMPATIBLE
    assert "column `y`: the data files have it as field 3, the table as 4" in found.message
    assert names(altered(table, {**y, "with-ids": False})) == ["id", "name", "x", "y"]


@pytest.mark.parametrize("with_ids", [False, True])
def test_a_union_relaxes_required_columns_only_for_files_that_are_written(with_ids: bool) -> None:
    def schema(required: bool) -> Schema:
        inner = StructType((NestedField(3, "zip", StringType(), required),))
        return Schema(
            (NestedField(1, "id", LongType(), required), NestedField(2, "place", inner, required))
        )

    union = {"action": "union-by-name", "schema": print_schema(schema(False)), "with-ids": with_ids}
    columns = altered(build_table(schema=schema(True)), union).current_schema.walk()
    assert {column.required for _, column in columns} == {not with_ids}


def test_a_union_with_another_type_is_refused() -> None:
    other = Schema((NestedField(1, "id", StringType(), required=False),))
    found = refused(build_table(), {"action": "union-by-name", "schema": print_schema(other)})
    assert "long cannot become string" in found.message


# --- Partitions, order, properties ---------------------------------------------------------------


def test_partition_fields_change_with_ids_of_former_ones_taken_up() -> None:
    table = altered(
        build_table(),
        {"action": "add-partition-field", "source": "id", "transform": "bucket[16]"},
    )
    assert [(one.name, one.field_id) for one in table.default_spec.fields] == [
        ("id_bucket_16", 1000)
    ]
    without = altered(table, {"action": "remove-partition-field", "name": "id_bucket_16"})
    assert without.default_spec.fields == ()
    again = altered(
        without,
        {"action": "add-partition-field", "source": "id", "transform": "bucket[16]"},
        {"action": "add-partition-field", "source": "name", "name": "n"},
        {"action": "rename-partition-field", "name": "n", "new-name": "by_name"},
    )
    assert [(one.name, one.field_id) for one in again.default_spec.fields] == [
        ("id_bucket_16", 1000),
        ("by_name", 1001),
    ]
    assert planned(again, {"action": "add-partition-field", "source": "id"}) != ()


def test_a_column_can_be_dropped_once_nothing_is_partitioned_by_it() -> None:
    table = altered(
        required_id(),
        {"action": "remove-partition-field", "name": "day"},
        {"action": "drop-column", "name": "day"},
    )
    assert names(table) == ["id", "name"]
    assert table.default_spec.fields == ()
    assert len(table.partition_specs) == 2


def test_in_format_version_1_a_removed_partition_field_stays_as_void() -> None:
    base = required_id()
    version_1 = replace(base, format_version=1, last_sequence_number=0)
    table = altered(version_1, {"action": "remove-partition-field", "name": "day"})
    assert [str(one.transform) for one in table.default_spec.fields] == ["void"]
    assert names(altered(table, {"action": "drop-column", "name": "day"})) == ["id", "name"]


def test_a_sort_order_is_replaced_and_taken_away() -> None:
    table = altered(
        build_table(),
        {
            "action": "replace-sort-order",
            "fields": [
                {"source": "id", "direction": "desc"},
                {"source": "name", "transform": "truncate[4]", "null-order": "nulls-last"},
            ],
        },
    )
    found = [
        (one.source_ids, str(one.transform), one.direction, one.null_order)
        for one in table.default_sort_order.fields
    ]
    assert found == [
        ((1,), "identity", "desc", "nulls-last"),
        ((2,), "truncate[4]", "asc", "nulls-last"),
    ]
    assert altered(table, {"action": "replace-sort-order", "fields": []}).default_sort_order_id == 0


def test_properties_are_set_and_removed_and_the_last_change_counts() -> None:
    table = build_table(properties={"a": "1", "b": "2"})
    after = altered(
        table,
        {"action": "set-properties", "updates": {"a": "3", "c": "4"}},
        {"action": "remove-properties", "removals": ["b", "c", "unknown"]},
    )
    assert {key: after.properties[key] for key in "a"} == {"a": "3"}
    assert not after.properties.keys() & {"b", "c"}


def test_a_table_is_upgraded_and_may_take_what_its_new_version_knows() -> None:
    table = altered(
        build_history(2),
        {"action": "upgrade-format-version", "format-version": 3},
        {"action": "add-column", "name": "v", "type": "variant"},
        {"action": "add-column", "name": "n", "type": "int", "required": True, "default": 7},
    )
    assert (table.format_version, table.next_row_id) == (3, 0)
    assert table.current_schema.find("n") == NestedField(
        4, "n", IntegerType(), required=True, initial_default=7, write_default=7
    )


def test_changes_that_the_table_has_already_change_nothing() -> None:
    table = forked()
    assert (
        planned(
            table,
            {"action": "fast-forward", "branch": "audit", "to": "audit"},
            {"action": "rollback-to-snapshot", "snapshot-id": 3},
            {"action": "update-column-type", "name": "id", "type": "long"},
            {"action": "drop-column", "name": "no", "if-exists": True},
            {"action": "add-column", "name": "id", "type": "long", "if-not-exists": True},
            {"action": "replace-sort-order", "fields": []},
            {"action": "upgrade-format-version", "format-version": 2},
            {"action": "remove-properties", "removals": ["unknown"]},
        )
        == ()
    )


@pytest.mark.parametrize(
    "change",
    [
        {"action": "rename-column", "name": "name", "new-name": "title"},
        {"action": "drop-column", "name": "name"},
    ],
    ids=["renamed", "dropped"],
)
def test_a_name_of_another_column_in_files_without_ids_is_refused(change: Document) -> None:
    metadata = build_table()
    mapping = print_name_mapping(create_name_mapping(metadata.current_schema))
    updates = {NAME_MAPPING_PROPERTY: mapping}
    before = altered(metadata, {"action": "set-properties", "updates": updates}, change)
    again = {"action": "add-column", "name": "name", "type": "string"}
    conflict = refused(before, again)
    assert conflict.code is ConflictCode.INCOMPATIBLE
    assert "column `name`: files without field ids have field 2" in conflict.message
    free = {"action": "remove-properties", "removals": [NAME_MAPPING_PROPERTY]}
    assert altered(before, free, again).current_schema.find("name") is not None
