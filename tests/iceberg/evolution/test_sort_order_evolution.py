"""Sort orders are put together, and are known to keep the order of coarser ones."""

from __future__ import annotations

import pytest

from committer.errors import InvalidMetadataError, UnsupportedError
from committer.iceberg.evolution.sort_order_evolution import SortOrderUpdate
from committer.iceberg.schema.schema import Schema
from committer.iceberg.schema.sort_order import UNSORTED, SortField, SortOrder
from committer.iceberg.values.transforms import DAY, IDENTITY, parse_transform
from committer.iceberg.values.types import (
    ListType,
    LongType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
)

SCHEMA = Schema(
    (
        NestedField(1, "id", LongType(), True),
        NestedField(2, "ts", TimestampType(), False),
        NestedField(3, "place", StructType((NestedField(4, "Name", StringType(), False),)), False),
        NestedField(5, "tags", ListType(6, StringType(), False), False),
    )
)


def test_keys_come_in_the_order_in_which_they_are_asked_for() -> None:
    update = SortOrderUpdate(SCHEMA)
    update.asc("ts", DAY).desc("id").asc("place.Name", null_order="nulls-last")
    assert update.apply() == SortOrder(
        1,
        (
            SortField((2,), DAY, "asc", "nulls-first"),
            SortField((1,), IDENTITY, "desc", "nulls-last"),
            SortField((4,), IDENTITY, "asc", "nulls-last"),
        ),
    )


def test_order_without_keys_is_the_unsorted_one() -> None:
    assert SortOrderUpdate(SCHEMA).apply() == UNSORTED


def test_columns_are_found_in_any_case_where_that_is_asked_for() -> None:
    update = SortOrderUpdate(SCHEMA, case_sensitive=False).asc("PLACE.name")
    assert update.apply().fields[0].source_id == 4
    with pytest.raises(InvalidMetadataError, match="expected a column `PLACE"):
        SortOrderUpdate(SCHEMA).asc("PLACE.name")


@pytest.mark.parametrize(
    ("source", "transform", "message"),
    [
        ("place", "identity", "cannot take"),
        ("tags.element", "identity", "outside of lists"),
        ("id", "day", "cannot take"),
    ],
)
def test_column_that_cannot_be_sorted_by_is_refused(
    source: str, transform: str, message: str
) -> None:
    update = SortOrderUpdate(SCHEMA).asc(source, parse_transform(transform))
    with pytest.raises(InvalidMetadataError, match=message):
        update.apply()


def test_transform_that_is_not_known_and_place_of_nulls_that_is_none_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="zorder"):
        SortOrderUpdate(SCHEMA).asc("id", parse_transform("zorder"))
    with pytest.raises(InvalidMetadataError, match="nulls-first or nulls-last"):
        SortOrderUpdate(SCHEMA).asc("id", null_order="first")
