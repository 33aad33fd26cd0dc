"""The ids of the fields of a new partition spec: given where they are missing, checked elsewhere.

Source: the specification, "Partition Evolution"; docs/reference/iceberg-notes.md 2.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import count

from committer.errors import InvalidMetadataError
from committer.iceberg.schema.partition_spec import (
    PARTITION_FIELD_ID_START,
    PartitionField,
    PartitionSpec,
)
from committer.iceberg.values.transforms import VoidTransform

# Of a field that has no id yet.
NEW_FIELD_ID = 0
_Meaning = tuple[tuple[int, ...], str]


def with_field_ids(
    spec: PartitionSpec, known_specs: Iterable[PartitionSpec], last_partition_id: int
) -> PartitionSpec:
    """Assign ids to the fields that have `NEW_FIELD_ID`, from format version 2 on.

    An equivalent field (same sources and transform) of any spec of the table gives its id, else it
    is the next one. Errors: `InvalidMetadataError` for an id that means something else.
    """
    known = [field for each in known_specs for field in each.fields]
    by_meaning = {_meaning(field): field.field_id for field in known}
    fields = tuple(_numbered(spec.fields, by_meaning, last_partition_id + 1))
    taken: dict[int, set[_Meaning]] = {}
    for field in known:
        taken.setdefault(field.field_id, set()).add(_meaning(field))
    for field in fields:
        others = taken.get(field.field_id)
        # A void field keeps the id of the field that it replaces.
        is_void = isinstance(field.transform, VoidTransform)
        if others and not is_void and _meaning(field) not in others:
            raise InvalidMetadataError(
                f"partition spec: field `{field.name}`: id {field.field_id} is another field's"
            )
    if len({field.field_id for field in fields}) < len(fields):
        raise InvalidMetadataError("partition spec: expected each field id once")
    return replace(spec, fields=fields)


def _numbered(
    fields: Iterable[PartitionField], by_meaning: Mapping[_Meaning, int], free: int
) -> Iterator[PartitionField]:
    fields = tuple(fields)
    given = {field.field_id for field in fields}
    for field in fields:
        known = by_meaning.get(_meaning(field))
        if field.field_id != NEW_FIELD_ID:
            free = max(free, field.field_id + 1)
            yield field
        elif known is not None and known not in given:
            yield replace(field, field_id=known)
        else:
            free = next(each for each in count(free) if each not in given)
            yield replace(field, field_id=free)
            free += 1


def _meaning(field: PartitionField) -> _Meaning:
    return field.source_ids, str(field.transform)


def with_field_ids_by_position(spec: PartitionSpec) -> PartitionSpec:
    """Assign ids to the fields as readers of format version 1 do, which find them by position.

    Errors: `InvalidMetadataError` if a field has another id.
    """
    expected = range(PARTITION_FIELD_ID_START, PARTITION_FIELD_ID_START + len(spec.fields))
    pairs = list(zip(spec.fields, expected, strict=True))
    if any(field.field_id not in (NEW_FIELD_ID, field_id) for field, field_id in pairs):
        found = [field.field_id for field in spec.fields]
        raise InvalidMetadataError(
            f"partition spec: expected the field ids {list(expected)} in format version 1, found"
            f" {found}"
        )
    return replace(spec, fields=tuple(replace(field, field_id=each) for field, each in pairs))
