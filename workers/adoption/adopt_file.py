"""One Parquet file that others wrote, as a `DataFile`: from its footer and its path."""

from __future__ import annotations

from dataclasses import dataclass

from committer.errors import InvalidMetadataError, UnsupportedError
from committer.iceberg.entry.data_file import DataFile
from workers.adoption.adoption_target import AdoptionTarget
from workers.adoption.column_fit import fit_columns
from workers.adoption.file_columns import file_columns
from workers.adoption.footer import Footer
from workers.adoption.partition_values import partition_of, path_values, values_lost
from workers.arrow.footer_metrics import footer_metrics, with_rows

# No order is claimed for rows that others wrote. Source: docs/reference/iceberg-notes.md 2.2.
_UNSORTED = 0


@dataclass(frozen=True, slots=True)
class Adopted:
    """A file that fits. `is_mapped`: it has no field ids, and is read by the name mapping."""

    file: DataFile
    is_mapped: bool


@dataclass(frozen=True, slots=True)
class Empty:
    """A file without rows, which no table needs."""

    location: str


@dataclass(frozen=True, slots=True)
class Refused:
    """A file that cannot be added, and everything that is wrong with it."""

    location: str
    problems: tuple[str, ...]


def adopt_file(
    location: str, size_bytes: int, footer: Footer, target: AdoptionTarget
) -> Adopted | Empty | Refused:
    """Describe a file as the table's manifests would. `location`: as they are to spell it."""
    if not footer.metadata.num_rows:
        return Empty(location)
    try:
        return _adopted(location, size_bytes, footer, target)
    except (InvalidMetadataError, UnsupportedError) as error:
        return Refused(location, (str(error),))


def _adopted(
    location: str, size_bytes: int, footer: Footer, target: AdoptionTarget
) -> Adopted | Refused:
    columns, groups = file_columns(footer.metadata), with_rows(footer.row_groups)
    said = path_values(location, target)
    given = [field_id for field_id, value in said.values.items() if value is not None]
    fitted = fit_columns(columns, target, groups, given)
    partition, unproven = partition_of(target, fitted, groups, said.values)
    lost = values_lost(target, fitted, said)
    if problems := (*fitted.problems, *unproven, *lost):
        return Refused(location, problems)
    metrics = footer_metrics(groups, fitted.leaves)
    file = DataFile(
        file_path=location,
        partition=partition,
        record_count=metrics.record_count,
        file_size_in_bytes=size_bytes,
        column_sizes=metrics.column_sizes,
        value_counts=metrics.value_counts,
        null_value_counts=metrics.null_value_counts,
        lower_bounds=metrics.lower_bounds,
        upper_bounds=metrics.upper_bounds,
        split_offsets=metrics.split_offsets,
        sort_order_id=_UNSORTED,
        spec_id=target.spec.spec_id,
    )
    return Adopted(file, not any(column.has_ids for column in columns))
