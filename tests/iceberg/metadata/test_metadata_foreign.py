"""PyIceberg understands the changes and the metadata that we print."""

from __future__ import annotations

import random

import pytest
from pydantic import TypeAdapter
from pyiceberg.table.metadata import TableMetadataUtil
from pyiceberg.table.update import (
    RemoveSnapshotsUpdate,
    TableRequirement,
    TableUpdate,
    update_table_metadata,
)

from committer.iceberg.metadata.metadata_model import TableMetadata
from committer.iceberg.metadata.table_metadata import print_table_metadata
from committer.iceberg.updates.metadata_update import (
    AddEncryptionKey,
    RemoveEncryptionKey,
    RemoveSnapshots,
    Update,
    apply_updates,
)
from committer.iceberg.updates.metadata_update_json import print_requirement, print_update
from committer.iceberg.updates.requirement import Requirement
from tests.iceberg.random_updates import RandomChanges, is_possible
from tests.iceberg.rest_forms import REQUIREMENT_FORMS, UPDATE_FORMS
from tests.iceberg.table_model import TableModel
from tests.support.faults.foreign_expiry import as_pyiceberg_expires
from tests.support.iceberg.metadata_builders import START_MS, build_history, build_table

# PyIceberg 0.12 has no encryption.
_UNKNOWN_TO_PYICEBERG = (AddEncryptionKey, RemoveEncryptionKey)


@pytest.mark.parametrize(
    "update",
    [update for update, _ in UPDATE_FORMS if not isinstance(update, _UNKNOWN_TO_PYICEBERG)],
    ids=lambda update: type(update).__name__,
)
def test_pyiceberg_understands_every_update(update: Update) -> None:
    found = TypeAdapter(TableUpdate).validate_python(print_update(update))
    assert found.action == print_update(update)["action"]


@pytest.mark.parametrize(
    "requirement",
    [requirement for requirement, _ in REQUIREMENT_FORMS],
    ids=lambda requirement: type(requirement).__name__,
)
def test_pyiceberg_understands_every_requirement(requirement: Requirement) -> None:
    found = TypeAdapter(TableRequirement).validate_python(print_requirement(requirement))
    assert found.type == print_requirement(requirement)["type"]


@pytest.mark.parametrize("format_version", [1, 2, 3])
@pytest.mark.parametrize("seed", range(12))
def test_pyiceberg_reads_what_a_random_history_leads_to(seed: int, format_version: int) -> None:
    ours = random_table(seed, format_version)
    theirs = TableMetadataUtil.parse_raw(print_table_metadata(ours).decode())
    assert theirs.format_version == ours.format_version
    assert theirs.table_uuid == ours.table_uuid
    if format_version > 1:
        assert theirs.last_sequence_number == ours.last_sequence_number
    assert theirs.current_snapshot_id == ours.current_snapshot_id
    assert {name: ref.snapshot_id for name, ref in theirs.refs.items()} == {
        name: ref.snapshot_id for name, ref in ours.refs.items()
    }
    assert [each.snapshot_id for each in theirs.snapshots] == [*ours.snapshots_by_id]
    assert [each.snapshot_id for each in theirs.snapshot_log] == [
        each.snapshot_id for each in ours.snapshot_log
    ]
    assert theirs.schema().highest_field_id == ours.current_schema.highest_field_id
    assert theirs.spec().spec_id == ours.default_spec_id
    assert {each.order_id for each in theirs.sort_orders} == {
        each.order_id for each in ours.sort_orders
    }


@pytest.mark.parametrize("format_version", [1, 2, 3])
@pytest.mark.parametrize("seed", range(12))
def test_what_tests_take_for_an_expiry_of_pyiceberg_is_one(seed: int, format_version: int) -> None:
    base = build_history(6, format_version=format_version)
    gone = tuple(random.Random(seed).sample([*base.snapshots_by_id][:-1], 3))
    after = apply_updates(
        base, (RemoveSnapshots(gone),), base_location="f", now_ms=base.last_updated_ms
    )
    ours = as_pyiceberg_expires(base, after, gone)
    theirs = update_table_metadata(
        TableMetadataUtil.parse_raw(print_table_metadata(base).decode()),
        (RemoveSnapshotsUpdate(snapshot_ids=gone),),
    )
    assert [(each.snapshot_id, each.parent_snapshot_id) for each in theirs.snapshots] == [
        (each.snapshot_id, each.parent_snapshot_id) for each in ours.snapshots
    ]
    assert [each.snapshot_id for each in theirs.snapshot_log] == [
        each.snapshot_id for each in ours.snapshot_log
    ]
    assert any(each.parent_snapshot_id is None for each in ours.snapshots)


def random_table(seed: int, format_version: int) -> TableMetadata:
    changes, table = RandomChanges(seed), build_table(format_version=format_version)
    for number in range(15):
        drawn, model = changes.change_set(TableModel.of(table)), TableModel.of(table)
        if is_possible(model, drawn):
            table = apply_updates(table, drawn, base_location=f"f{number}", now_ms=START_MS)
    return table
