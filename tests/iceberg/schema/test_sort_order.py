"""Sort orders keep their JSON."""

from __future__ import annotations

import pytest

from committer.errors import InvalidMetadataError
from committer.iceberg.schema.sort_order import UNSORTED, parse_sort_order, print_sort_order
from tests.support.builders.fixtures import expected, metadata_files, table_names
from tests.support.iceberg.vector_values import json_text


def test_sort_orders_of_all_tables_print_as_they_were_read() -> None:
    orders = [(table, order) for table in table_names() for order in expected(table)["sort_orders"]]
    for table, metadata in metadata_files():
        orders += [(table, order) for order in metadata.get("sort-orders", [])]
    for table, order in orders:
        assert json_text(print_sort_order(parse_sort_order(order))) == json_text(order), table
    assert sum(len(order["fields"]) for _, order in orders) > 20


def test_unsorted_is_order_zero_without_fields() -> None:
    assert parse_sort_order({"order-id": 0, "fields": []}) == UNSORTED
    assert print_sort_order(UNSORTED) == {"order-id": 0, "fields": []}


def test_several_sources_and_unknown_transforms_are_kept() -> None:
    order = {
        "order-id": 1,
        "fields": [
            {
                "transform": "zorder",
                "source-ids": [3, 4],
                "direction": "desc",
                "null-order": "nulls-last",
            }
        ],
    }
    assert json_text(print_sort_order(parse_sort_order(order))) == json_text(order)


@pytest.mark.parametrize(
    "json_value",
    [
        [],
        {"fields": []},
        {"order-id": 1, "fields": {}},
        {"order-id": 1, "fields": ["a"]},
        {"order-id": 1, "fields": [{"transform": "identity", "source-id": 1}]},
        {
            "order-id": 1,
            "fields": [
                {"transform": "identity", "direction": "asc", "null-order": "nulls-first"},
            ],
        },
        {
            "order-id": 1,
            "fields": [
                {
                    "transform": "identity",
                    "source-id": 1,
                    "direction": "up",
                    "null-order": "nulls-first",
                },
            ],
        },
    ],
)
def test_what_is_no_sort_order_is_refused_with_its_place(json_value: object) -> None:
    with pytest.raises(InvalidMetadataError, match="here"):
        parse_sort_order(json_value, where="here")
