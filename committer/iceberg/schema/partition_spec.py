"""Partition specs: which transforms of which columns make up a partition tuple, and its path.

Source: the specification, "Partitioning" and Appendix C; docs/reference/iceberg-notes.md 2.1, 2.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import quote_plus

from committer.errors import InvalidMetadataError
from committer.iceberg.schema.schema import Schema
from committer.iceberg.values.json_reader import is_integer
from committer.iceberg.values.transforms import Transform, VoidTransform, parse_transform
from committer.iceberg.values.types import (
    FixedType,
    IcebergType,
    NestedField,
    StructType,
    UnknownType,
)

PARTITION_FIELD_ID_START = 1000


@dataclass(frozen=True, slots=True)
class PartitionField:
    """One part of the partition tuple. More than one source only for transforms that take them."""

    source_ids: tuple[int, ...]
    field_id: int
    name: str
    transform: Transform

    @property
    def source_id(self) -> int:
        return self.source_ids[0]


@dataclass(frozen=True, slots=True)
class PartitionSpec:
    """A numbered list of partition fields."""

    spec_id: int = 0
    fields: tuple[PartitionField, ...] = ()

    @property
    def is_unpartitioned(self) -> bool:
        return all(isinstance(field.transform, VoidTransform) for field in self.fields)

    @property
    def highest_field_id(self) -> int:
        """The highest partition field id, 999 without fields."""
        return max((field.field_id for field in self.fields), default=PARTITION_FIELD_ID_START - 1)


UNPARTITIONED = PartitionSpec()


def find_spec(specs: Iterable[PartitionSpec], spec_id: int) -> PartitionSpec:
    """Return the spec of this id. Errors: `InvalidMetadataError` if there is none."""
    for spec in specs:
        if spec.spec_id == spec_id:
            return spec
    raise InvalidMetadataError(
        f"table metadata: expected a partition spec with id {spec_id}, found none"
    )


def same_fields(first: PartitionSpec, second: PartitionSpec) -> bool:
    """Return whether two specs have equal fields, ids included, under any spec ids."""
    return first.fields == second.fields


def partition_type(spec: PartitionSpec, schema: Schema) -> StructType:
    """Return the struct of partition tuples: every field optional, in spec order.

    A field whose source column was dropped (and is void now) has type unknown.
    """
    return StructType(
        tuple(
            NestedField(field.field_id, field.name, _result_type(field, schema), False)
            for field in spec.fields
        )
    )


def _result_type(field: PartitionField, schema: Schema) -> IcebergType:
    source = schema.field(field.source_id)
    return UnknownType() if source is None else field.transform.result_type(source.field_type)


def fixed_field(spec: PartitionSpec, schema: Schema) -> PartitionField | None:
    """Return the first field whose values have the type `fixed`, if there is one.

    Iceberg Java writes and reads these values with a length that the manifest's own Avro schema
    does not have, so no manifest of such a spec is right for Java and for all other readers.
    `void` has no values.
    """
    for field in spec.fields:
        is_void = isinstance(field.transform, VoidTransform)
        if not is_void and isinstance(_result_type(field, schema), FixedType):
            return field
    return None


def partition_path(spec: PartitionSpec, schema: Schema, partition: tuple[object, ...]) -> str:
    """Return `name=value/…`, each part escaped as in a URL form;
    empty for an unpartitioned spec."""
    parts = []
    for field, value in zip(spec.fields, partition, strict=True):
        source = schema.field(field.source_id)
        kind = UnknownType() if source is None else source.field_type
        parts.append(f"{_escape(field.name)}={_escape(field.transform.human(kind, value))}")
    return "/".join(parts)


def _escape(text: str) -> str:
    """Escape as java.net.URLEncoder: `*` stays, `~` does not."""
    return quote_plus(text, safe="*", errors="replace").replace("~", "%7E")


# --- JSON form -----------------------------------------------------------------------------------


def parse_partition_spec(json_value: object, *, where: str = "partition spec") -> PartitionSpec:
    """Read a spec: an object with id and fields, or the bare fields of a manifest header.

    Errors: `InvalidMetadataError` naming the place.
    """
    if isinstance(json_value, list):
        return PartitionSpec(0, parse_partition_fields(json_value, where=where))
    if not isinstance(json_value, Mapping) or not is_integer(json_value.get("spec-id"), 32):
        raise InvalidMetadataError(f"{where}: expected an object with an integer `spec-id`")
    return PartitionSpec(
        json_value["spec-id"], parse_partition_fields(json_value.get("fields"), where=where)
    )


def parse_partition_fields(
    json_value: object, *, where: str = "partition spec"
) -> tuple[PartitionField, ...]:
    """Read bare fields. Old version 1 files have no field ids: they count from 1000."""
    if not isinstance(json_value, list):
        raise InvalidMetadataError(f"{where}: expected a list of fields")
    return tuple(
        _parse_field(field, PARTITION_FIELD_ID_START + position, where)
        for position, field in enumerate(json_value)
    )


def _parse_field(json_value: object, default_id: int, where: str) -> PartitionField:
    if not isinstance(json_value, Mapping):
        raise InvalidMetadataError(f"{where}: expected an object for each field")
    name, transform = json_value.get("name"), json_value.get("transform")
    field_id = json_value.get("field-id", default_id)
    if not isinstance(name, str) or not isinstance(transform, str):
        raise InvalidMetadataError(f"{where}: expected a `name` and a `transform` for each field")
    place = f"{where}: field `{name}`"
    if not is_integer(field_id, 32):
        raise InvalidMetadataError(f"{place}: expected an integer `field-id` of 32 bits")
    return PartitionField(
        parse_source_ids(json_value, place),
        field_id,
        name,
        parse_transform(transform, where=place),
    )


def parse_source_ids(json_value: Mapping[str, object], where: str) -> tuple[int, ...]:
    """Parse `source-id`, or `source-ids` of a transform that takes several."""
    found = json_value.get("source-ids", [json_value.get("source-id")])
    if not isinstance(found, list) or not found or not all(is_integer(i, 32) for i in found):
        raise InvalidMetadataError(f"{where}: expected an integer `source-id`")
    return tuple(found)


def print_source_ids(source_ids: tuple[int, ...]) -> dict[str, object]:
    """Print the sources: the list form is written for several only."""
    if len(source_ids) == 1:
        return {"source-id": source_ids[0]}
    return {"source-ids": list(source_ids)}


def print_partition_spec(spec: PartitionSpec) -> dict[str, object]:
    """Print the JSON form, keys in the reference's order."""
    return {"spec-id": spec.spec_id, "fields": print_partition_fields(spec)}


def print_partition_fields(spec: PartitionSpec) -> list[dict[str, object]]:
    """Print the bare fields, as manifests and version 1 metadata have them."""
    return [
        {
            "name": field.name,
            "transform": str(field.transform),
            **print_source_ids(field.source_ids),
            "field-id": field.field_id,
        }
        for field in spec.fields
    ]
