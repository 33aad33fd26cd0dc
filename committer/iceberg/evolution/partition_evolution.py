"""Partition evolution: fields of a partition spec added, removed and renamed.

Format version 1 knows fields by position: there a removed field stays as `void`. From version 2 on
it is removed, and a field that any spec of the table had (source, transform and, if one is asked
for, the name) gets its id again. Source: the specification, "Partition Evolution";
docs/reference/iceberg-notes.md 2.2.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Self

from committer.errors import InvalidMetadataError, UnsupportedError
from committer.iceberg.evolution.schema_changes import existing_column
from committer.iceberg.metadata.metadata_check import check_new_spec
from committer.iceberg.schema.partition_spec import PartitionField, PartitionSpec
from committer.iceberg.schema.schema import Schema
from committer.iceberg.values.transforms import (
    IDENTITY,
    VOID,
    BucketTransform,
    IdentityTransform,
    TimeTransform,
    Transform,
    TruncateTransform,
    UnknownTransform,
    VoidTransform,
)

_Key = tuple[int, Transform]


@dataclass(frozen=True, slots=True)
class EvolvedSpec:
    """A new spec and the highest partition field id that was ever given.

    The spec has the id of its source: the table assigns another.
    """

    spec: PartitionSpec
    last_partition_id: int


class PartitionSpecUpdate:
    """Changes of one spec. Mutable; lives as long as one change set.

    Names of fields are those before the changes. `specs`: all of the table.
    Errors of every method: `InvalidMetadataError` for a change that the rules forbid;
    `UnsupportedError` where a transform is not known, or would give `fixed` values.
    """

    def __init__(
        self,
        spec: PartitionSpec,
        schema: Schema,
        *,
        specs: Iterable[PartitionSpec],
        last_partition_id: int,
        format_version: int,
        case_sensitive: bool = True,
    ) -> None:
        self._spec, self._schema = spec, schema
        self._specs = tuple(specs)
        self._last_partition_id = last_partition_id
        self._format_version = format_version
        self._case_sensitive = case_sensitive
        self._by_name = {field.name: field for field in spec.fields}
        self._by_key = {_key(field): field for field in spec.fields}
        self._removed: set[int] = set()
        self._renamed: dict[str, str] = {}
        self._added: list[PartitionField] = []
        for field in spec.fields:
            _check_known(field.transform)

    def apply(self) -> EvolvedSpec:
        """Return the spec with all changes. Errors also for names that collide."""
        fields = [self._kept(each) for each in self._spec.fields if self._stays(each)]
        changed = PartitionSpec(self._spec.spec_id, (*fields, *self._added))
        check_new_spec(changed, self._schema)
        return EvolvedSpec(changed, self._last_partition_id)

    def _stays(self, field: PartitionField) -> bool:
        return self._format_version == 1 or field.field_id not in self._removed

    def _kept(self, field: PartitionField) -> PartitionField:
        transform = VOID if field.field_id in self._removed else field.transform
        return replace(field, name=self._renamed.get(field.name, field.name), transform=transform)

    # --- Add -------------------------------------------------------------------------------------

    def add_field(
        self, source: str, transform: Transform = IDENTITY, name: str | None = None
    ) -> Self:
        """Partition by a transform of a column. Without a name it gets Java's."""
        _check_known(transform)
        column = existing_column(self._schema, source, case_sensitive=self._case_sensitive)
        key = (column.field_id, transform)
        existing = self._by_key.get(key)
        if existing is not None and existing.field_id in self._removed:
            self._removed.remove(existing.field_id)
            is_renamed = name is not None and name != existing.name
            return self.rename_field(existing.name, name or "") if is_renamed else self
        if existing is not None or any(_key(each) == key for each in self._added):
            raise InvalidMetadataError(
                f"partition field: {transform} of `{source}` is in the spec already"
            )
        self._check_one_time_field(key, source)
        field = self._field(key, name)
        if any(each.name == field.name for each in self._added):
            raise InvalidMetadataError(f"partition field `{field.name}` is added already")
        self._free_name(field.name)
        self._added.append(field)
        return self

    def _check_one_time_field(self, key: _Key, source: str) -> None:
        source_id, transform = key
        for each in self._added:
            both = isinstance(transform, TimeTransform) and isinstance(
                each.transform, TimeTransform
            )
            if both and each.source_id == source_id:
                raise InvalidMetadataError(
                    f"partition field: {transform} and {each.transform} of `{source}` divide the"
                    " same time"
                )

    def _field(self, key: _Key, name: str | None) -> PartitionField:
        source_id, transform = key
        if self._format_version > 1:
            # The latest comes first, so that its name is the one that is taken up.
            for spec in sorted(self._specs, key=lambda each: each.spec_id, reverse=True):
                for field in spec.fields:
                    if _key(field) == key and name in (None, field.name) and self._is_free(field):
                        return field
        self._last_partition_id += 1
        given = name or _default_name(self._schema.column_name(source_id) or "", transform)
        return PartitionField((source_id,), self._last_partition_id, given, transform)

    def _is_free(self, former: PartitionField) -> bool:
        """Return whether no field holds its id: one that version 1 dropped may, as void."""
        held = (each for each in self._spec.fields if each.field_id not in self._removed)
        return former.field_id not in {each.field_id for each in held}

    def _free_name(self, name: str) -> None:
        """Append its id to the name of a field that is void, or removed in this update."""
        existing = self._by_name.get(name)
        if existing is None:
            return
        is_removed = existing.field_id in self._removed
        if not is_removed and not isinstance(existing.transform, VoidTransform):
            raise InvalidMetadataError(f"partition field `{name}` is in the spec already")
        self._renamed[name] = f"{name}_{existing.field_id}"

    # --- Remove, rename --------------------------------------------------------------------------

    def remove_field(self, name: str) -> Self:
        field = self._existing(name)
        if name in self._renamed:
            raise InvalidMetadataError(f"partition field `{name}` is renamed and removed")
        self._removed.add(field.field_id)
        return self

    def rename_field(self, name: str, new_name: str) -> Self:
        field = self._existing(name)
        if field.field_id in self._removed:
            raise InvalidMetadataError(f"partition field `{name}` is removed and renamed")
        taken = self._by_name.get(new_name)
        if taken is not None and isinstance(taken.transform, VoidTransform):
            self._free_name(new_name)
        self._renamed[name] = new_name
        return self

    def _existing(self, name: str) -> PartitionField:
        field = self._by_name.get(name)
        if field is None or any(each.name == name for each in self._added):
            raise InvalidMetadataError(
                f"expected a partition field `{name}` of before the changes, found none"
            )
        return field


def _key(field: PartitionField) -> _Key:
    return field.source_id, field.transform


def _check_known(transform: Transform) -> None:
    if isinstance(transform, UnknownTransform):
        raise UnsupportedError(f"partition spec: the transform {transform} is not known")


def _default_name(source: str, transform: Transform) -> str:
    match transform:
        case IdentityTransform():
            return source
        case BucketTransform(buckets):
            return f"{source}_bucket_{buckets}"
        case TruncateTransform(width):
            return f"{source}_trunc_{width}"
        case VoidTransform():
            return f"{source}_null"
        case _:
            return f"{source}_{transform}"
