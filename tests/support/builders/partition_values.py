"""Partition values of the fixtures, read from JSON."""

from __future__ import annotations

from committer.iceberg.schema.partition_spec import (
    PartitionSpec,
    partition_type,
)
from committer.iceberg.schema.schema import Schema
from committer.iceberg.values.single_value import parse_json_value
from committer.iceberg.values.types import (
    StringType,
)


def read_partition(
    spec: PartitionSpec, schema: Schema, json_value: dict[str, object]
) -> tuple[object, ...]:
    values = []
    for field in partition_type(spec, schema).fields:
        found = json_value.get(str(field.field_id), json_value.get(field.name))
        not_json = found in ("NaN", "Infinity", "-Infinity") and field.field_type != StringType()
        values.append(float(str(found)) if not_json else parse_json_value(field.field_type, found))
    return tuple(values)
