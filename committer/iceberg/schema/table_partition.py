"""The partition type of a table: the fields of all its specs in one struct.

Source: Iceberg Java, `Partitioning.partitionType`, the type of `_partition`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from committer.iceberg.schema.partition_spec import PartitionSpec, partition_type
from committer.iceberg.schema.schema import Schema
from committer.iceberg.values.transforms import VoidTransform
from committer.iceberg.values.types import NestedField, StructType


def table_partition_type(specs: Iterable[PartitionSpec], schema: Schema) -> StructType:
    """Return the fields of all specs in the order of their ids, each as its newest spec has it.

    A field that is void now has the type that it had before.
    """
    found: dict[int, NestedField] = {}
    voids: set[int] = set()
    for spec in sorted(specs, key=lambda spec: spec.spec_id, reverse=True):
        for part, field in zip(spec.fields, partition_type(spec, schema).fields, strict=True):
            is_void = isinstance(part.transform, VoidTransform)
            if field.field_id not in found:
                found[field.field_id] = field
                voids |= {field.field_id} if is_void else set()
            elif field.field_id in voids and not is_void:
                voids.discard(field.field_id)
                known = found[field.field_id]
                found[field.field_id] = replace(known, field_type=field.field_type)
    return StructType(tuple(found[field_id] for field_id in sorted(found)))


def partition_in(kind: StructType, spec: PartitionSpec, partition: tuple[object, ...]) -> object:
    """Return a file's partition as a value of the table's partition type; null where its spec has
    no such field. The partition of a table without any field is null."""
    if not kind.fields:
        return None
    values = {field.field_id: value for field, value in zip(spec.fields, partition, strict=True)}
    return tuple(values.get(field.field_id) for field in kind.fields)
