"""Proves by the metrics of a data file that no row matches a filter, or that all do.

A filter is compiled once; its test is then asked of each file.
Source: the specification, "Scan Planning"; the reference's metrics evaluators.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

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
    test = compiled(_bound(schema, filter, case_sensitive), inclusive_test)
    # Old imports do not know their count: -1.
    return _evaluator(test, lambda count: count < 0)


def strict_metrics_evaluator(
    schema: Schema, filter: Expression, case_sensitive: bool = True
) -> FileTest:
    """Return a test whether all rows of a file surely match an unbound filter.
    Errors: as the inclusive one."""
    test = compiled(_bound(schema, filter, case_sensitive), strict_test)
    return _evaluator(test, lambda count: count == 0)


def _bound(schema: Schema, filter: Expression, case_sensitive: bool) -> Expression:
    return bind(rewrite_not(filter), schema, case_sensitive=case_sensitive)


def _evaluator(test: FileTest, test_of_none: Callable[[int], bool]) -> FileTest:
    """Return a test of files; `test_of_none` takes a record count that is not positive."""

    def evaluate(file: DataFile) -> bool:
        if file.record_count <= 0:
            return test_of_none(file.record_count)
        try:
            return test(file)
        except (ValueError, struct.error) as error:
            raise InvalidMetadataError(
                f"{file.file_path}: expected bounds that are values of their columns' types"
            ) from error

    return evaluate
