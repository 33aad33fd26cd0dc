"""Counts and bounds of one field, read out of a data file. Missing metrics prove nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from committer.iceberg.entry.data_file import DataFile
from committer.iceberg.expressions.compiling import Test, comparable_decoder, reliable_bounds
from committer.iceberg.expressions.expression import BoundReference, BoundTerm
from committer.iceberg.values.types import DoubleType, FloatType

FileTest = Test[DataFile]
FileBound = Callable[[DataFile], object]


def is_float(term: BoundTerm) -> bool:
    return isinstance(term.value_type, FloatType | DoubleType)


# --- Counts --------------------------------------------------------------------------------------


def only_nulls(file: DataFile, field_id: int) -> bool:
    """Return whether every value is surely null."""
    return _counts_all(file, file.null_value_counts, field_id)


def only_nans(file: DataFile, field_id: int) -> bool:
    """Return whether every value is surely NaN."""
    return _counts_all(file, file.nan_value_counts, field_id)


def _counts_all(file: DataFile, some: Mapping[int, int] | None, field_id: int) -> bool:
    if file.value_counts is None or some is None:
        return False
    count = some.get(field_id)
    return count is not None and count == file.value_counts.get(field_id)


def may_have_nulls(file: DataFile, field_id: int) -> bool:
    return file.null_value_counts is None or file.null_value_counts.get(field_id) != 0


def may_have_nans(file: DataFile, field_id: int) -> bool:
    return file.nan_value_counts is None or file.nan_value_counts.get(field_id) != 0


def nothing_to_compare(term: BoundTerm) -> FileTest:
    """Return a test whether surely only nulls, or only NaNs, are there:
    no comparison matches those."""
    field_id = term.reference.field_id
    if is_float(term):
        return lambda file: only_nulls(file, field_id) or only_nans(file, field_id)
    return lambda file: only_nulls(file, field_id)


# --- Bounds --------------------------------------------------------------------------------------


def bounds_of(term: BoundTerm) -> tuple[FileBound, FileBound]:
    """Return the bound that no value is below, and the one that none is above.

    None if unknown; what compares with nothing if it cannot be relied on: NaN (of old writers),
    `TurnedBounds`.
    """
    decode, field_id = comparable_decoder(term.reference.value_type), term.reference.field_id

    def lower(file: DataFile) -> object:
        bounds = file.lower_bounds
        encoded = None if bounds is None else bounds.get(field_id)
        return None if encoded is None else decode(encoded)

    def upper(file: DataFile) -> object:
        bounds = file.upper_bounds
        encoded = None if bounds is None else bounds.get(field_id)
        return None if encoded is None else decode(encoded)

    return reliable_bounds(term, _through(term, lower), _through(term, upper))


def _through(term: BoundTerm, bound: FileBound) -> FileBound:
    """Return the bound of a transformed term: a transform that keeps the order keeps bounds."""
    if isinstance(term, BoundReference):
        return bound
    if not term.transform.preserves_order:
        return lambda file: None
    function = term.transform.function(term.reference.value_type)
    return lambda file: function(bound(file))
