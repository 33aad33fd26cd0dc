"""Filters of deletes and static overwrites where partition values have wrapped around."""

from __future__ import annotations

from dataclasses import replace

import pytest

from committer.iceberg.entry.data_file import DataFile
from committer.iceberg.expressions.expression import GreaterThan, LessThan, Reference
from committer.iceberg.schema.partition_spec import PartitionField
from committer.iceberg.values.transforms import IDENTITY, Transform, TruncateTransform
from committer.iceberg.values.types import LongType
from tests.plan.branches import Branch, data_file

ID = Reference("id")
SMALLEST = -(2**63)


def partitioned(transform: Transform) -> Branch:
    return Branch.build(2, fields=(PartitionField((1,), 1000, "p", transform),))


def of_row(name: str, transform: Transform, number: int | None) -> DataFile:
    """Build a file with one row, without any metrics."""
    partition = (transform.apply(LongType(), number),)
    return replace(
        data_file(name, partition=partition, rows=1),
        value_counts=None,
        null_value_counts=None,
        lower_bounds=None,
        upper_bounds=None,
    )


@pytest.mark.parametrize("operation", ["delete", "overwrite"])
@pytest.mark.parametrize("width", [10_000, 7, 2**31 - 1])
def test_the_smallest_number_stays_where_larger_ones_are_removed(
    operation: str, width: int
) -> None:
    """Its partition value is one of the largest: Java removes it, too."""
    transform = TruncateTransform(width)
    branch = partitioned(transform)
    rows = {"smallest": SMALLEST, "small": 5, "large": 2**40}
    branch.append(*(of_row(name, transform, number) for name, number in rows.items()))
    added = [of_row("new", transform, 2**41)] if operation == "overwrite" else []

    branch.land(branch.change(operation, *added, row_filter=GreaterThan(ID, 2**35)))

    assert branch.names() == {"smallest", "small", *(["new"] if added else [])}
    branch.land(branch.change("delete", row_filter=LessThan(ID, -(2**40))))
    assert branch.names() == {"small", *(["new"] if added else [])}


@pytest.mark.parametrize("transform", [IDENTITY, TruncateTransform(10)], ids=str)
def test_rows_without_a_value_stay_where_small_numbers_are_removed(transform: Transform) -> None:
    """Java takes null for less than every literal, and removes them, too."""
    branch = partitioned(transform)
    branch.append(of_row("none", transform, None), of_row("one", transform, 1))

    branch.land(branch.change("delete", row_filter=LessThan(ID, 50)))

    assert branch.names() == {"none"}
