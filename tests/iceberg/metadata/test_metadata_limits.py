"""Values that Python can hold and other readers cannot are refused where they are read."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from committer.errors import InvalidMetadataError
from committer.iceberg.metadata.metadata_model import TableMetadata
from committer.iceberg.metadata.table_metadata import (
    parse_table_metadata_json,
    print_table_metadata,
)
from committer.iceberg.metadata.table_statistics import EncryptedKey
from committer.iceberg.schema.partition_spec import UNPARTITIONED, PartitionField, PartitionSpec
from committer.iceberg.schema.schema import Schema
from committer.iceberg.updates.metadata_update import (
    LAST_ADDED,
    AddEncryptionKey,
    AddPartitionSpec,
    AddSchema,
    AddSnapshot,
    SetCurrentSchema,
    SetDefaultPartitionSpec,
    SetLocation,
    Update,
    UpgradeFormatVersion,
    apply_updates,
)
from committer.iceberg.values.transforms import parse_transform
from committer.iceberg.values.types import LongType, NestedField
from tests.support.iceberg.metadata_builders import (
    SCHEMA,
    START_MS,
    as_json,
    build_snapshot,
    build_table,
)
from tests.support.iceberg.update_reader import parse_update

LONG_LIMIT = 2**63
INT_LIMIT = 2**31


def apply(base: TableMetadata, update: Update) -> TableMetadata:
    return apply_all(base, update)


def apply_all(base: TableMetadata, *updates: Update) -> TableMetadata:
    return apply_updates(base, updates, base_location=None, now_ms=START_MS)


def nested(depth: int) -> object:
    value: object = 1
    for _ in range(depth):
        value = [value]
    return value


def nested_column(depth: int) -> dict[str, object]:
    kind: object = "int"
    for level in range(depth):
        field = {"id": depth - level + 1, "name": "f", "required": False, "type": kind}
        kind = {"type": "struct", "fields": [field]}
    return {"id": 1, "name": "c", "required": False, "type": kind}


def schema_json(*fields: object, **changed: object) -> list[object]:
    return [{"type": "struct", "schema-id": 0, "fields": list(fields), **changed}]


def field_json(**changed: object) -> dict[str, object]:
    return {"id": 1, "name": "c", "required": False, "type": "int", **changed}


def spec_json(**changed: object) -> list[object]:
    field = {"name": "p", "transform": "identity", "source-id": 1, "field-id": 1000, **changed}
    return [{"spec-id": 0, "fields": [field]}]


def order_json(order_id: object, *source_ids: object) -> list[object]:
    rest = {"transform": "identity", "direction": "asc", "null-order": "nulls-first"}
    return [{"order-id": order_id, "fields": [{**rest, "source-id": each} for each in source_ids]}]


REFUSED_WHEN_READ: dict[str, tuple[dict[str, Any], str]] = {
    "time of more than 64 bits": (
        {"last-updated-ms": LONG_LIMIT},
        "`last-updated-ms`: expected an integer of 64 bits, found a JSON integer",
    ),
    "last column id": (
        {"last-column-id": INT_LIMIT},
        "`last-column-id`: expected an integer of 32 bits",
    ),
    "last partition id": (
        {"last-partition-id": INT_LIMIT},
        "`last-partition-id`: expected an integer of 32 bits",
    ),
    "schema id is true": ({"schemas": schema_json(**{"schema-id": False})}, "`schema-id`"),
    "schema id": ({"schemas": schema_json(**{"schema-id": INT_LIMIT})}, "`schema-id`"),
    "identifier is true": (
        {"schemas": schema_json(field_json(required=True), **{"identifier-field-ids": [True]})},
        "`identifier-field-ids`",
    ),
    "column without an id": ({"schemas": schema_json(field_json(id=-1))}, "id -1"),
    "spec id is false": ({"partition-specs": [{"spec-id": False, "fields": []}]}, "`spec-id`"),
    "source is true": ({"partition-specs": spec_json(**{"source-id": True})}, "`source-id`"),
    "partition field id": (
        {"partition-specs": spec_json(**{"field-id": INT_LIMIT})},
        "field `p`: expected an integer `field-id`",
    ),
    "no buckets": (
        {"partition-specs": spec_json(transform="bucket[0]")},
        r"`partition-specs`\[0\]: field `p`: expected a number from 1 to 2147483647",
    ),
    "default of too large a fraction": (
        {"schemas": schema_json(field_json(type="float", **{"initial-default": 1e300}))},
        r"`schemas`\[0\].c: initial-default: out of range for float",
    ),
    "default of a geometry": (
        {"schemas": schema_json(field_json(type="geometry", **{"write-default": "00"}))},
        "write-default: the default of a geometry",
    ),
    "order id is false": ({"sort-orders": order_json(False)}, "`order-id`"),
    "a sorted order 0": ({"sort-orders": order_json(0, 1)}, "order 0: expected no fields"),
    "an unsorted order 3": (
        {"sort-orders": [*order_json(0), *order_json(3)]},
        "order 3: expected fields",
    ),
    "type nested too deeply": (
        {"schemas": schema_json(nested_column(90))},
        "types nested deeper",
    ),
}


@pytest.mark.parametrize("case", REFUSED_WHEN_READ)
def test_a_file_that_other_readers_refuse_is_refused(case: str) -> None:
    changed, words = REFUSED_WHEN_READ[case]
    with pytest.raises(InvalidMetadataError, match=words):
        parse_table_metadata_json({**as_json(build_table()), **changed})


def test_the_deepest_type_that_is_read_is_printed() -> None:
    changed = {"schemas": schema_json(nested_column(59)), "last-column-id": 60}
    document = {**as_json(build_table()), **changed}
    assert as_json(parse_table_metadata_json(document))["schemas"] == changed["schemas"]


@pytest.mark.parametrize("depth", [240, 600, 1000])
@pytest.mark.parametrize("where", ["schemas", "partition-specs", "sort-orders"])
def test_an_unknown_key_of_any_depth_is_printed_or_refused(where: str, depth: int) -> None:
    document: dict[str, Any] = as_json(build_table())
    document[where][0]["x"] = nested(depth)
    metadata = parse_table_metadata_json(document)
    if depth < 250:
        printed: dict[str, Any] = as_json(metadata)
        assert printed[where][0]["x"] == nested(depth)
        return
    with pytest.raises(InvalidMetadataError, match="unknown keys nested too deeply"):
        print_table_metadata(metadata)


@pytest.mark.parametrize(
    ("update", "words"),
    [
        ({"action": "add-schema", "last-column-id": INT_LIMIT}, "`last-column-id`"),
        ({"action": "remove-snapshots", "snapshot-ids": [LONG_LIMIT]}, "`snapshot-ids`"),
        ({"action": "remove-schemas", "schema-ids": [INT_LIMIT]}, "`schema-ids`"),
        ({"action": "set-default-spec", "spec-id": INT_LIMIT}, "`spec-id`"),
        (
            {"action": "set-snapshot-ref", "ref-name": "b", "snapshot-id": 1, "type": "branch"}
            | {"min-snapshots-to-keep": INT_LIMIT},
            "`min-snapshots-to-keep`",
        ),
    ],
)
def test_an_update_with_a_number_too_large_is_refused(update: dict[str, Any], words: str) -> None:
    if update["action"] == "add-schema":
        update = {**update, "schema": schema_json()[0]}
    with pytest.raises(InvalidMetadataError, match=f"{words}: expected"):
        parse_update(update)


def test_row_ids_end_where_64_bits_end() -> None:
    base = build_table(format_version=3)
    last = build_snapshot(base, snapshot_id=1, first_row_id=LONG_LIMIT - 6, added_rows=5)
    assert apply(base, AddSnapshot(last)).next_row_id == LONG_LIMIT - 1
    with pytest.raises(InvalidMetadataError, match="snapshot 1: `added-rows`: expected at most 5"):
        apply(base, AddSnapshot(replace(last, added_rows=6)))


@pytest.mark.parametrize("format_version", [1, 2, 3])
def test_a_snapshot_names_its_manifests(format_version: int) -> None:
    """Iceberg Java reads no table that has a snapshot without them."""
    base = build_table(format_version=format_version)
    bare = replace(build_snapshot(base, snapshot_id=1), manifest_list=None)
    with pytest.raises(InvalidMetadataError, match="`manifest-list`: expected a file, found None"):
        apply(base, AddSnapshot(bare))
    embedded = replace(bare, manifests=("s3://lake/m.avro",))
    if format_version == 1:
        assert apply(base, AddSnapshot(embedded)).snapshots == (embedded,)
    else:
        with pytest.raises(InvalidMetadataError, match="`manifest-list`"):
            apply(base, AddSnapshot(embedded))


@pytest.mark.parametrize("location", ["", "/", "//"])
def test_a_table_lies_somewhere(location: str) -> None:
    with pytest.raises(InvalidMetadataError, match="`location`: expected a path"):
        apply(build_table(), SetLocation(location))
    with pytest.raises(InvalidMetadataError, match="`location`: expected a path"):
        build_table(location=location)


def test_the_slashes_of_a_scheme_stay() -> None:
    assert apply(build_table(), SetLocation("file:///")).location == "file://"
    assert apply(build_table(), SetLocation("s3://lake/t//")).location == "s3://lake/t"


@pytest.mark.parametrize(
    ("details", "words"),
    [
        ({"encrypted-by-id": 5}, "`encrypted-by-id`: expected a string"),
        ({"properties": {"a": 1}}, "`properties`: expected an object of strings"),
    ],
)
def test_an_encryption_key_that_no_reader_accepts_is_refused(
    details: dict[str, object], words: str
) -> None:
    with pytest.raises(InvalidMetadataError, match=f"encryption key `k`: {words}"):
        apply(build_table(format_version=3), AddEncryptionKey(EncryptedKey("k", "AA==", details)))


def test_what_a_file_of_version_2_says_of_row_ids_is_not_taken_over() -> None:
    """Nor may it hide what an upgrade sets."""
    document = {**as_json(build_table()), "next-row-id": None}
    upgraded = apply(parse_table_metadata_json(document), UpgradeFormatVersion(3))
    assert as_json(upgraded)["next-row-id"] == 0


def test_no_column_of_the_current_schema_takes_the_name_of_a_former_partition_field() -> None:
    """Iceberg Java binds every spec of a table to its current schema, whichever is the default."""
    spec = PartitionSpec(0, (PartitionField((1,), 1000, "shard", parse_transform("bucket[4]")),))
    unpartitioned = (AddPartitionSpec(UNPARTITIONED), SetDefaultPartitionSpec(LAST_ADDED))
    base = apply_all(build_table(partition_spec=spec), *unpartitioned)
    shard = NestedField(3, "shard", LongType(), False)
    add = AddSchema(Schema((*SCHEMA.fields, shard)))
    assert len(apply_all(base, add).schemas) == 2
    with pytest.raises(InvalidMetadataError, match="partition field `shard`: another column"):
        apply_all(base, add, SetCurrentSchema(LAST_ADDED))
    without_source = AddSchema(Schema((*SCHEMA.fields[1:], shard)))
    assert apply_all(base, without_source, SetCurrentSchema(LAST_ADDED)).current_schema_id == 1
