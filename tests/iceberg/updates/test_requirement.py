"""Requirements in the form of the REST catalog description."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from committer.iceberg.updates.requirement import (
    AssertCurrentSchemaId,
    AssertDefaultSortOrderId,
    AssertDefaultSpecId,
    AssertLastAssignedFieldId,
    AssertLastAssignedPartitionId,
    AssertRefSnapshotId,
    AssertTableUUID,
    Requirement,
    print_requirement,
)
from tests.iceberg.metadata_builders import TABLE_UUID

FORMS: list[tuple[Requirement, dict[str, Any]]] = [
    (AssertTableUUID(TABLE_UUID), {"type": "assert-table-uuid", "uuid": str(TABLE_UUID)}),
    (
        AssertRefSnapshotId("main", 1),
        {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": 1},
    ),
    (
        AssertRefSnapshotId("main", None),
        {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": None},
    ),
    (
        AssertLastAssignedFieldId(2),
        {"type": "assert-last-assigned-field-id", "last-assigned-field-id": 2},
    ),
    (
        AssertCurrentSchemaId(3),
        {"type": "assert-current-schema-id", "current-schema-id": 3},
    ),
    (
        AssertLastAssignedPartitionId(1000),
        {"type": "assert-last-assigned-partition-id", "last-assigned-partition-id": 1000},
    ),
    (AssertDefaultSpecId(4), {"type": "assert-default-spec-id", "default-spec-id": 4}),
    (
        AssertDefaultSortOrderId(5),
        {"type": "assert-default-sort-order-id", "default-sort-order-id": 5},
    ),
]


@pytest.mark.parametrize(("requirement", "form"), FORMS)
def test_a_requirement_is_printed_in_the_form_of_rest(
    requirement: Requirement, form: dict[str, Any]
) -> None:
    assert print_requirement(requirement) == form


def test_every_requirement_has_its_form_here() -> None:
    assert {type(requirement) for requirement, _ in FORMS} == set(get_args(Requirement))
