"""Data files and manifests whose metrics were taken of given values, as writers take them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import cast

from hypothesis import strategies as st

from committer.iceberg.entry.data_file import DataFile
from committer.iceberg.expressions.compiling import Ordered, comparable
from committer.iceberg.manifest.manifest_list import ManifestFile, PartitionFieldSummary
from committer.iceberg.values.single_value import encode_value
from committer.iceberg.values.truncation import truncate_lower, truncate_upper
from committer.iceberg.values.types import DoubleType, FloatType, IcebergType


def file_of(
    kind: IcebergType,
    values: Sequence[object],
    *,
    width: int = 16,
    without: frozenset[str] = frozenset(),
) -> DataFile:
    """Build a file with column 1 of these values: bounds cut to `width`, some metrics omitted."""
    is_float = isinstance(kind, FloatType | DoubleType)
    nans = [value for value in values if isinstance(value, float) and math.isnan(value)]
    present = [value for value in values if value is not None and value == value]
    order = cast(Callable[[object], Ordered], comparable)
    lower = truncate_lower(kind, min(present, key=order), width) if present else None
    upper = truncate_upper(kind, max(present, key=order), width) if present else None
    metrics: dict[str, dict[int, object] | None] = {
        "value_counts": {1: len(values)},
        "null_value_counts": {1: values.count(None)},
        "nan_value_counts": {1: len(nans)} if is_float else {},
        "lower_bounds": {} if lower is None else {1: encode_value(kind, lower)},
        "upper_bounds": {} if upper is None else {1: encode_value(kind, upper)},
    }
    kept = {key: value for key, value in metrics.items() if key not in without}
    return DataFile(
        file_path="s3://b/t/data/f.parquet",
        record_count=len(values),
        file_size_in_bytes=1_000,
        **kept,  # type: ignore[arg-type]
    )


LEFT_OUT = st.frozensets(
    st.sampled_from(
        ["value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds"]
    ),
    max_size=2,
)


def manifest_with(partitions: tuple[PartitionFieldSummary, ...] | None) -> ManifestFile:
    return ManifestFile(
        manifest_path="s3://b/t/metadata/m.avro",
        manifest_length=1_000,
        partition_spec_id=0,
        added_snapshot_id=1,
        added_files_count=1,
        existing_files_count=0,
        deleted_files_count=0,
        added_rows_count=1,
        existing_rows_count=0,
        deleted_rows_count=0,
        partitions=partitions,
    )
