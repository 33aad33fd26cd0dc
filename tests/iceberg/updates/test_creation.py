"""A table made of updates is the table that an engine makes, and says so when something lacks."""

from __future__ import annotations

import pytest

from committer.errors import InvalidMetadataError
from committer.iceberg.metadata.table_metadata import parse_table_metadata, print_table_metadata
from committer.iceberg.schema.partition_spec import UNPARTITIONED, PartitionField, PartitionSpec
from committer.iceberg.schema.sort_order import UNSORTED, SortField, SortOrder
from committer.iceberg.updates.creation import updates_that_create
from committer.iceberg.updates.metadata_update import (
    AddPartitionSpec,
    AddSchema,
    AddSortOrder,
    AssignUUID,
    SetLocation,
    Update,
    UpgradeFormatVersion,
)
from committer.iceberg.updates.metadata_update_json import print_update
from committer.iceberg.values.transforms import parse_transform
from tests.support.builders.fixtures import table_dir, table_names
from tests.support.iceberg.created_table import table_of_updates
from tests.support.iceberg.metadata_builders import SCHEMA, START_MS, TABLE_UUID, build_table
from tests.support.iceberg.update_reader import parse_update

SPEC = PartitionSpec(0, (PartitionField((1,), 1000, "b", parse_transform("bucket[4]")),))
ORDER = SortOrder(1, (SortField((2,), parse_transform("identity"), "asc", "nulls-first"),))

FIXED_PARTITIONS = "v2_identity_fixed_java_quirk"


@pytest.mark.parametrize("format_version", [1, 2, 3])
def test_the_updates_that_create_a_table_make_that_very_table(format_version: int) -> None:
    table = build_table(
        format_version=format_version, partition_spec=SPEC, sort_order=ORDER, properties={"a": "1"}
    )
    updates = [parse_update(print_update(each)) for each in updates_that_create(table)]
    made = table_of_updates(updates, now_ms=START_MS)
    assert made == table
    assert print_table_metadata(made) == print_table_metadata(table)


@pytest.mark.parametrize("name", sorted({*table_names()} - {FIXED_PARTITIONS}))
def test_the_first_file_of_every_table_of_iceberg_java_is_made_of_updates(name: str) -> None:
    for path in table_dir(name).rglob("*.metadata.json"):
        java = parse_table_metadata(path.read_bytes())
        if not java.metadata_log and not java.snapshots:
            made = table_of_updates(updates_that_create(java), now_ms=java.last_updated_ms)
            assert made == java


NEEDED: tuple[Update, ...] = (
    AssignUUID(TABLE_UUID),
    AddSchema(SCHEMA),
    AddPartitionSpec(UNPARTITIONED),
    AddSortOrder(UNSORTED),
    SetLocation("s3://lake/db/flights"),
)


def test_what_is_added_first_is_current_and_the_format_version_is_2() -> None:
    made = table_of_updates(NEEDED, now_ms=START_MS)
    assert (made.format_version, made.current_schema_id, made.default_spec_id) == (2, 0, 0)


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("missing", range(len(NEEDED)))
def test_a_table_that_lacks_something_is_refused(missing: int, version: int) -> None:
    updates = [UpgradeFormatVersion(version), *NEEDED[:missing], *NEEDED[missing + 1 :]]
    with pytest.raises(InvalidMetadataError, match="expected"):
        table_of_updates(updates, now_ms=START_MS)
