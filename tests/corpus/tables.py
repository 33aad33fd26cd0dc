"""The tables that hostile requests are for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from committer.iceberg.schema.schema import Schema
from committer.iceberg.values.type_json import parse_type
from committer.iceberg.values.types import NestedField
from committer.ports.pointer_swap import LoadedTable
from committer.request.unsigned_operations import UNSIGNED_PROPERTY
from committer.service.requests.signature_check import REQUIRE_PROPERTY
from tests.support.builders.flights import build_codes, build_flights
from tests.support.iceberg.bounds_by_type import FORMS

FLIGHTS = "flights"
TYPES = "types"
CODES = "codes"
DROPPED = "dropped"
SIGNED = "signed"

# Columns by their types, ids from 1 on.
COLUMN_IDS: Mapping[str, int] = {kind: number for number, kind in enumerate(FORMS, 1)}


def build_types(name: str = "db.types", *, warehouse: str = "memory://warehouse") -> LoadedTable:
    """Build a table of version 3 with a column of each type, in no partitions."""
    columns = (
        NestedField(field_id, f"c{field_id}", parse_type(kind), required=False)
        for kind, field_id in COLUMN_IDS.items()
    )
    return build_flights(
        name, format_version=3, fields=(), warehouse=warehouse, schema=Schema(tuple(columns))
    )


TABLES: Mapping[str, Callable[..., LoadedTable]] = {
    FLIGHTS: partial(build_flights, properties={UNSIGNED_PROPERTY: "all"}),
    TYPES: build_types,
    CODES: partial(build_codes, "identity"),
    DROPPED: partial(build_codes, "void"),
    SIGNED: partial(build_flights, properties={REQUIRE_PROPERTY: "true"}),
}
