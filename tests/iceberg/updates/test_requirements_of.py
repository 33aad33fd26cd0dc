"""The requirements of a change: those of Iceberg Java, and what a removal needs beside them."""

from __future__ import annotations

import pytest

from committer.errors import UnsupportedError
from committer.iceberg.metadata.metadata_model import TableMetadata
from committer.iceberg.metadata.snapshot import MAIN, SnapshotRef
from committer.iceberg.schema.partition_spec import UNPARTITIONED
from committer.iceberg.schema.sort_order import UNSORTED
from committer.iceberg.updates.metadata_update import (
    LAST_ADDED,
    AddPartitionSpec,
    AddSchema,
    AddSnapshot,
    AddSortOrder,
    RemovePartitionSpecs,
    RemoveSchemas,
    RemoveSnapshotRef,
    RemoveSnapshots,
    SetCurrentSchema,
    SetDefaultPartitionSpec,
    SetDefaultSortOrder,
    SetProperties,
    SetSnapshotRef,
    Update,
    apply_updates,
)
from committer.iceberg.updates.requirement import (
    AssertCurrentSchemaId,
    AssertDefaultSortOrderId,
    AssertDefaultSpecId,
    AssertLastAssignedFieldId,
    AssertLastAssignedPartitionId,
    AssertRefSnapshotId,
    AssertTableUUID,
    Requirement,
    failed_requirement,
)
from committer.iceberg.updates.requirements_of import (
    requirements_of_update,
)
from tests.support.iceberg.metadata_builders import (
    SCHEMA,
    START_MS,
    TABLE_UUID,
    as_json,
    build_history,
    build_snapshot,
    build_table,
    read_back,
)

UUID_HOLDS = AssertTableUUID(TABLE_UUID)


def build_branched() -> TableMetadata:
    refs = (
        SetSnapshotRef("audit", SnapshotRef(1)),
        SetSnapshotRef("release", SnapshotRef(2, "tag")),
    )
    return apply_updates(build_history(3), refs, base_location=None, now_ms=START_MS)


CASES: list[tuple[tuple[Update, ...], tuple[Requirement, ...]]] = [
    ((), ()),
    ((SetProperties({"a": "1"}),), ()),
    ((RemoveSnapshotRef("audit"),), (AssertRefSnapshotId("audit", 1),)),
    ((AddSchema(SCHEMA), AddSchema(SCHEMA)), (AssertLastAssignedFieldId(2),)),
    ((SetCurrentSchema(LAST_ADDED),), (AssertCurrentSchemaId(0),)),
    ((AddPartitionSpec(UNPARTITIONED),), (AssertLastAssignedPartitionId(999),)),
    ((SetDefaultPartitionSpec(LAST_ADDED),), (AssertDefaultSpecId(0),)),
    ((AddSortOrder(UNSORTED), SetDefaultSortOrder(0)), (AssertDefaultSortOrderId(0),)),
    (
        (SetSnapshotRef(MAIN, SnapshotRef(2)), SetSnapshotRef(MAIN, SnapshotRef(1))),
        (AssertRefSnapshotId(MAIN, 3),),
    ),
    ((SetSnapshotRef("new", SnapshotRef(2)),), (AssertRefSnapshotId("new", None),)),
    (
        (RemoveSchemas((7,)), SetCurrentSchema(0)),
        (AssertCurrentSchemaId(0), AssertRefSnapshotId(MAIN, 3), AssertRefSnapshotId("audit", 1)),
    ),
    (
        (RemoveSnapshots((7,)),),
        tuple(AssertRefSnapshotId(*each) for each in ((MAIN, 3), ("audit", 1), ("release", 2))),
    ),
    (
        (RemovePartitionSpecs((7,)),),
        (AssertDefaultSpecId(0), AssertRefSnapshotId(MAIN, 3), AssertRefSnapshotId("audit", 1)),
    ),
]


@pytest.mark.parametrize(("updates", "requirements"), CASES)
def test_a_change_requires_what_it_was_based_on(
    updates: tuple[Update, ...], requirements: tuple[Requirement, ...]
) -> None:
    base = build_branched()
    found = requirements_of_update(base, updates)
    assert found == (UUID_HOLDS, *requirements)
    assert [failed_requirement(each, base) for each in found] == [None] * len(found)


def test_an_append_requires_the_head_of_its_branch_alone() -> None:
    base = build_history(2)
    appended = AddSnapshot(build_snapshot(base, snapshot_id=3, parent=2))
    found = requirements_of_update(base, (appended, SetSnapshotRef(MAIN, SnapshotRef(3))))
    assert found == (UUID_HOLDS, AssertRefSnapshotId(MAIN, 2))


@pytest.mark.parametrize("removal", [RemoveSchemas((1,)), RemovePartitionSpecs((1,))])
def test_what_a_late_writer_of_main_has_used_is_not_removed(removal: Update) -> None:
    """Iceberg Java requires all branches but main: a snapshot that a late writer has put on main
    meanwhile is of a schema, or lists manifests of a spec, that the table then lacks."""
    base = build_branched()
    found = requirements_of_update(base, (removal,))
    late = AddSnapshot(build_snapshot(base, snapshot_id=4, parent=3))
    moved = apply_updates(
        base,
        (late, SetSnapshotRef(MAIN, SnapshotRef(4))),
        base_location=None,
        now_ms=START_MS,
    )
    failed = [each for each in found if failed_requirement(each, moved) is not None]
    assert failed == [AssertRefSnapshotId(MAIN, 3)]


def test_a_table_without_a_uuid_has_nothing_to_be_told_by() -> None:
    document = as_json(build_table(format_version=1))
    del document["table-uuid"]
    with pytest.raises(UnsupportedError, match="`table-uuid`: expected a uuid"):
        requirements_of_update(read_back(document), ())
