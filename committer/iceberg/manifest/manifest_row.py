"""Checks that a manifest holds what its row in the manifest list says of it.

A row proves two things: how many files and rows there are of each status, and within which bounds
the partition values lie. A manifest that some reader would read otherwise than its writer meant it
belies one of them. A field that a row lacks proves nothing; writers of version 1 may leave out all.
Source: the specification, "Manifest Lists"; docs/reference/iceberg-notes.md 6.4.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from uuid import UUID

from committer.errors import InvalidMetadataError, UnsupportedError
from committer.iceberg.entry.data_file import DataFile, ManifestEntry
from committer.iceberg.manifest.manifest_list import (
    COUNTS_UNKNOWN,
    ManifestFile,
    PartitionFieldSummary,
)
from committer.iceberg.manifest.partition_summary import UUID_HALVES
from committer.iceberg.schema.partition_spec import PartitionSpec, partition_type
from committer.iceberg.schema.schema import Schema
from committer.iceberg.values.single_value import decoder
from committer.iceberg.values.transforms import UnknownTransform
from committer.iceberg.values.types import NestedField, UnknownType


class RowCheck:
    """Compares one manifest with its row. Every method raises `InvalidMetadataError`.

    `spec` is the manifest's, `schema` the one that it was written with. Partition values are
    compared only where the row has a summary for each field.
    """

    __slots__ = ("_fields", "_row")

    def __init__(self, row: ManifestFile, spec: PartitionSpec, schema: Schema) -> None:
        self._row = row
        summaries, kinds = row.partitions or (), _known_fields(spec, schema)
        self._fields = tuple(map(_Bounds.of, kinds, summaries))
        if summaries and len(summaries) != len(kinds):
            raise InvalidMetadataError(
                f"its row in the manifest list has {len(summaries)} partition summaries, expected"
                f" {len(kinds)}"
            )

    def check_partition(self, partition: Sequence[object]) -> None:
        """Refuse a partition tuple that is not within the row's summaries."""
        for bounds, value in zip(self._fields, partition, strict=False):
            if bounds is not None and not bounds.may_hold(value):
                raise InvalidMetadataError(
                    f"a value of partition field `{bounds.name}` is outside of the bounds that its"
                    " row in the manifest list has: the manifest is damaged, or was not written as"
                    " its own Avro schema says"
                )

    def may_hold(self, partition: Sequence[object]) -> bool:
        """Return whether a partition tuple is within the row's summaries."""
        return all(
            bounds is None or bounds.may_hold(value)
            for bounds, value in zip(self._fields, partition, strict=False)
        )

    def check_counts(self, files: Sequence[int], rows: Sequence[int]) -> None:
        """Refuse other counts than the row's: of existing, added and deleted entries."""
        row = self._row
        _compare(
            "files",
            files,
            (row.existing_files_count, row.added_files_count, row.deleted_files_count),
        )
        _compare(
            "rows", rows, (row.existing_rows_count, row.added_rows_count, row.deleted_rows_count)
        )


def _compare(what: str, found: Sequence[int], said: tuple[int | None, ...]) -> None:
    if said == COUNTS_UNKNOWN:
        return
    if any(
        number is not None and number != count for number, count in zip(said, found, strict=True)
    ):
        raise InvalidMetadataError(
            f"it holds {_listed(found)} existing, added and deleted {what}, expected"
            f" {_listed(said)} as its row in the manifest list says"
        )


def _listed(counts: Sequence[int | None]) -> str:
    return ", ".join("any" if count is None else str(count) for count in counts)


def checked_entries(entries: Iterable[ManifestEntry], check: RowCheck) -> Iterator[ManifestEntry]:
    """Yield the entries of a whole manifest as they are; errors come when reading reaches their
    place, those of counts behind the last."""
    files, rows = [0, 0, 0], [0, 0, 0]
    # Files of one partition share the tuple.
    partition: tuple[object, ...] | None = None
    for entry in entries:
        file = entry.data_file
        if file.partition is not partition:
            partition = file.partition
            check.check_partition(partition)
        files[entry.status] += 1
        rows[entry.status] += file.record_count
        yield entry
    check.check_counts(files, rows)


def refuse_negative(file: DataFile) -> None:
    """Refuse a negative record count or file size. Errors: `InvalidMetadataError`."""
    if file.record_count < 0 or file.file_size_in_bytes < 0:
        raise InvalidMetadataError(f"{file.file_path}: a negative record count or file size")


# --- Bounds --------------------------------------------------------------------------------------


@lru_cache(maxsize=64)
def _known_fields(spec: PartitionSpec, schema: Schema) -> tuple[NestedField | None, ...]:
    """Return the fields of the tuples; None for those whose type is not known."""
    return tuple(
        None
        if isinstance(part.transform, UnknownTransform) or isinstance(field.field_type, UnknownType)
        else field
        for part, field in zip(spec.fields, partition_type(spec, schema).fields, strict=True)
    )


@dataclass(frozen=True, slots=True)
class _Bounds:
    """The summary of one field. Bounds are None where there are none to go by."""

    name: str
    contains_null: bool
    contains_nan: bool | None
    lower: object
    upper: object

    @classmethod
    def of(cls, field: NestedField | None, summary: PartitionFieldSummary) -> _Bounds | None:
        if field is None:
            return None
        return cls(
            field.name,
            summary.contains_null,
            summary.contains_nan,
            _decoded(field, summary.lower_bound),
            _decoded(field, summary.upper_bound),
        )

    def may_hold(self, value: object) -> bool:
        if value is None:
            return self.contains_null
        if isinstance(value, float) and value != value:
            return self.contains_nan is not False
        try:
            return _is_within(value, self.lower, self.upper) or self._is_as_others(value)
        except TypeError:
            # The manifest has another type than its spec and schema say: bounds prove nothing.
            return True

    def _is_as_others(self, value: object) -> bool:
        """Return whether a value is within the bounds of writers that have another order: of text
        by units of UTF-16, of uuids by signed halves; or that only cut off a long upper bound."""
        upper = self.upper
        if isinstance(value, str | bytes) and isinstance(upper, str | bytes):
            upper = None if value[: len(upper)] == upper else upper
        found = (value, self.lower, upper)
        return _is_within(*found) or _is_within(*map(_in_java_order, found))


def _decoded(field: NestedField, encoded: bytes | None) -> object:
    if encoded is None:
        return None
    try:
        return decoder(field.field_type)(encoded)
    except (ValueError, struct.error, UnsupportedError):
        # No value of the type: it bounds nothing.
        return None


def _is_within(value: Any, lower: object, upper: object) -> bool:
    # Not `lower <= value`: old writers have NaN as a bound, which compares with nothing.
    return not (lower is not None and value < lower) and not (upper is not None and value > upper)


def _in_java_order(value: object) -> object:
    if isinstance(value, str):
        return value.encode("utf-16-be")
    return UUID_HALVES.unpack(value.bytes) if isinstance(value, UUID) else value
