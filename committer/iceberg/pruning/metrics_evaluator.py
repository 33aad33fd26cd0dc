"""Proves by the metrics of a data file that no row matches a filter, or that all do.

A filter is compiled once; its test is then asked of each file.
Source: the specification, "Scan Planning"; the reference's metrics evaluators.
"""

from __future__ import annotations

import struct

from committer.errors import InvalidMetadataError
from committer.iceberg.entry.data_file import DataFile
from committer.iceberg.expressions.binding import bind
from committer.iceberg.expressions.compiling import compiled
from committer.iceberg.expressions.expression import Expression, rewrite_not
from committer.iceberg.pruning.file_metrics import FileTest
from committer.iceberg.pruning.inclusive_metrics import inclusive_test
from committer.iceberg.pruning.strict_metrics import strict_test
from committer.iceberg.schema.schema import Schema


def inclusive_metrics_evaluator(
    schema: Schema, filter: Expression, case_sensitive: bool = True
) -> FileTest:
    """Return a test whether a file may hold rows that match an unbound filter.

    Errors: as `bind`; the test raises `InvalidMetadataError` for bounds that are no values.
    """
    bound = bind(rewrite_not(filter), schema, case_sensitive=case_sensitive)
    test = compiled(bound, inclusive_test)

    def may_match(file: DataFile) -> bool:
        if file.record_count <= 0:
            # Old imports do not know their count: -1.
            return file.record_count < 0
        try:
            return test(file)
        except (ValueError, struct.error) as error:
            raise _invalid_bounds(file) from error

    return may_match


def strict_metrics_evaluator(
    schema: Schema, filter: Expression, case_sensitive: bool = True
) -> FileTest:
    """Return a test whether all rows of a file surely match an unbound filter.
    Errors: as the inclusive one."""
    bound = bind(rewrite_not(filter), schema, case_sensitive=case_sensitive)
    test = compiled(bound, strict_test)

    def must_match(file: DataFile) -> bool:
        if file.record_count <= 0:
            return file.record_count == 0
        try:
            return test(file)
        except (ValueError, struct.error) as error:
            raise _invalid_bounds(file) from error

    return must_match


def _invalid_bounds(file: DataFile) -> InvalidMetadataError:
    return InvalidMetadataError(
        f"{file.file_path}: expected bounds that are values of their columns' types"
    )
