"""Counts and bounds of one field, read out of a data file."""

from __future__ import annotations

from collections.abc import Mapping

from committer.iceberg.entry.data_file import DataFile
from committer.iceberg.expressions.compiling import (
    Bound,
    Test,
    bound_decoder,
    never,
    reliable_bounds,
)
from committer.iceberg.expressions.expression import BoundTerm
from committer.iceberg.pruning.term_evidence import Evidence
from committer.iceberg.values.types import DoubleType, FloatType

FileTest = Test[DataFile]
_NO_BOUNDS: Mapping[int, bytes] = {}


def file_evidence(term: BoundTerm) -> Evidence[DataFile]:
    """Return what the metrics of data files say of a term."""
    field_id = term.reference.field_id
    is_float = isinstance(term.value_type, FloatType | DoubleType)

    def only_nulls(file: DataFile) -> bool:
        return _counts_all(file, file.null_value_counts, field_id)

    def only_nans(file: DataFile) -> bool:
        return _counts_all(file, file.nan_value_counts, field_id)

    def only_either(file: DataFile) -> bool:
        return only_nulls(file) or only_nans(file)

    def may_have_nans(file: DataFile) -> bool:
        return _counts_some(file.nan_value_counts, field_id)

    return Evidence(
        bounds=lambda: _bounds(term),
        may_have_nulls=lambda file: _counts_some(file.null_value_counts, field_id),
        may_have_nans=may_have_nans if is_float else never,
        only_nulls=only_nulls,
        only_nans=only_nans,
        only_incomparable=only_either if is_float else only_nulls,
    )


def _counts_all(file: DataFile, some: Mapping[int, int] | None, field_id: int) -> bool:
    """Return whether surely every value is one of these."""
    if file.value_counts is None or some is None:
        return False
    count = some.get(field_id)
    return count is not None and count == file.value_counts.get(field_id)


def _counts_some(some: Mapping[int, int] | None, field_id: int) -> bool:
    """Return whether a value may be one of these."""
    return some is None or some.get(field_id) != 0


def _bounds(term: BoundTerm) -> tuple[Bound[DataFile], Bound[DataFile]]:
    if not term.preserves_order:
        return _unknown, _unknown
    decode, field_id = bound_decoder(term), term.reference.field_id

    def lower(file: DataFile) -> object:
        encoded = (file.lower_bounds or _NO_BOUNDS).get(field_id)
        return None if encoded is None else decode(encoded)

    def upper(file: DataFile) -> object:
        encoded = (file.upper_bounds or _NO_BOUNDS).get(field_id)
        return None if encoded is None else decode(encoded)

    return reliable_bounds(term, lower, upper)


def _unknown(file: DataFile) -> None:
    """Return no bound: the transform does not keep the order of the column's."""
