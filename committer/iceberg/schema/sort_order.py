"""Sort orders: by which transforms of which columns the rows of a file are sorted.

Source: the specification, "Sorting" and Appendix C; docs/reference/iceberg-notes.md 2.1, 2.2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from committer.errors import InvalidMetadataError
from committer.iceberg.schema.partition_spec import parse_source_ids, print_source_ids
from committer.iceberg.values.json_reader import is_integer
from committer.iceberg.values.transforms import Transform, parse_transform

DIRECTIONS = ("asc", "desc")
NULL_ORDERS = ("nulls-first", "nulls-last")


@dataclass(frozen=True, slots=True)
class SortField:
    """One key of a sort order."""

    source_ids: tuple[int, ...]
    transform: Transform
    direction: str
    null_order: str

    @property
    def source_id(self) -> int:
        return self.source_ids[0]


@dataclass(frozen=True, slots=True)
class SortOrder:
    """A numbered list of sort fields; 0 is the order of unsorted data."""

    order_id: int = 0
    fields: tuple[SortField, ...] = ()


UNSORTED = SortOrder()


def parse_sort_order(json_value: object, *, where: str = "sort order") -> SortOrder:
    """Read an order. Errors: `InvalidMetadataError` naming the place."""
    if not isinstance(json_value, Mapping) or not is_integer(json_value.get("order-id"), 32):
        raise InvalidMetadataError(f"{where}: expected an object with an integer `order-id`")
    fields = json_value.get("fields")
    if not isinstance(fields, list):
        raise InvalidMetadataError(f"{where}: expected a list of fields")
    return SortOrder(json_value["order-id"], tuple(_parse_field(field, where) for field in fields))


def _parse_field(json_value: object, where: str) -> SortField:
    if not isinstance(json_value, Mapping) or not isinstance(json_value.get("transform"), str):
        raise InvalidMetadataError(f"{where}: expected a `transform` for each field")
    direction = str(json_value.get("direction")).lower()
    null_order = str(json_value.get("null-order")).lower()
    if direction not in DIRECTIONS or null_order not in NULL_ORDERS:
        raise InvalidMetadataError(
            f"{where}: expected `direction` asc or desc and `null-order` nulls-first or nulls-last"
        )
    return SortField(
        parse_source_ids(json_value, where),
        parse_transform(json_value["transform"], where=where),
        direction,
        null_order,
    )


def print_sort_order(order: SortOrder) -> dict[str, object]:
    """Print the JSON form, keys in the reference's order."""
    return {
        "order-id": order.order_id,
        "fields": [
            {
                "transform": str(field.transform),
                **print_source_ids(field.source_ids),
                "direction": field.direction,
                "null-order": field.null_order,
            }
            for field in order.fields
        ],
    }
