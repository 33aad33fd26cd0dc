"""Requirements: when they hold, and the form of the REST catalog description."""

from __future__ import annotations

from typing import Any, get_args
from uuid import UUID

import pytest

from committer.iceberg.updates.metadata_update_json import print_requirement
from committer.iceberg.updates.requirement import (
    AssertCreate,
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
from tests.iceberg.rest_forms import REQUIREMENT_FORMS
from tests.support.iceberg.metadata_builders import TABLE_UUID, build_history, build_table

# A requirement that a table with one snapshot meets, one that it fails, and the error.
CASES: list[tuple[Requirement, Requirement, str]] = [
    (
        AssertTableUUID(TABLE_UUID),
        AssertTableUUID(UUID(int=1)),
        f"table uuid: expected 00000000-0000-0000-0000-000000000001, found {TABLE_UUID}",
    ),
    (
        AssertRefSnapshotId("main", 1),
        AssertRefSnapshotId("main", 2),
        "ref `main`: expected 2, found 1",
    ),
    (
        AssertRefSnapshotId("b", None),
        AssertRefSnapshotId("b", 1),
        "ref `b`: expected 1, found none",
    ),
    (
        AssertRefSnapshotId("main", 1),
        AssertRefSnapshotId("main", None),
        "ref `main`: expected none, found 1",
    ),
    (
        AssertLastAssignedFieldId(2),
        AssertLastAssignedFieldId(1),
        "last assigned field id: expected 1, found 2",
    ),
    (
        AssertCurrentSchemaId(0),
        AssertCurrentSchemaId(1),
        "current schema id: expected 1, found 0",
    ),
    (
        AssertLastAssignedPartitionId(999),
        AssertLastAssignedPartitionId(1000),
        "last assigned partition id: expected 1000, found 999",
    ),
    (AssertDefaultSpecId(0), AssertDefaultSpecId(1), "default spec id: expected 1, found 0"),
    (
        AssertDefaultSortOrderId(0),
        AssertDefaultSortOrderId(1),
        "default sort order id: expected 1, found 0",
    ),
]


@pytest.mark.parametrize(("holds", "fails", "sentence"), CASES)
def test_a_requirement_holds_or_says_why_not(
    holds: Requirement, fails: Requirement, sentence: str
) -> None:
    table = build_history(1)
    assert failed_requirement(holds, table) is None
    assert failed_requirement(fails, table) == sentence


def test_only_a_creation_holds_without_a_table() -> None:
    assert failed_requirement(AssertCreate(), None) is None
    assert failed_requirement(AssertCreate(), build_table()) == "the table exists already"
    for holds, _, _ in CASES:
        assert failed_requirement(holds, None) == "the table does not exist"


@pytest.mark.parametrize(("requirement", "form"), REQUIREMENT_FORMS)
def test_a_requirement_is_printed_in_the_form_of_rest(
    requirement: Requirement, form: dict[str, Any]
) -> None:
    assert print_requirement(requirement) == form


def test_every_requirement_has_its_form_here() -> None:
    assert {type(requirement) for requirement, _ in REQUIREMENT_FORMS} == set(get_args(Requirement))
