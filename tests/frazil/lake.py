"""A table that PyIceberg wrote into a catalog of Frazil's: what a user of both has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import IntegerType

NAME = "db.flights"
COLUMNS = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("carrier", pa.string()),
        pa.field("route", pa.struct([pa.field("origin", pa.string()), pa.field("km", pa.int32())])),
    ]
)


def open_catalog(home: Path, **properties: str) -> SqlCatalog:
    """Open the catalog of a home with PyIceberg."""
    home.mkdir(exist_ok=True)
    usual = {"uri": f"sqlite:///{home}/catalog.db", "warehouse": f"file://{home}/warehouse"}
    return SqlCatalog("frazil", **(usual | properties))


def rows(first: int, carrier: str) -> pa.Table:
    route = {"origin": "JFK", "km": first}
    found = [{"id": first + at, "carrier": carrier, "route": route} for at in range(3)]
    return pa.Table.from_pylist(found, schema=COLUMNS)


def make_table(home: Path, **properties: str) -> Any:
    """Create a table with a history: partitions, a delete, a second schema, a tag and a branch.

    `properties` are those of PyIceberg's catalog.
    """
    catalog = open_catalog(home, **properties)
    catalog.create_namespace("db")
    table = catalog.create_table(NAME, schema=COLUMNS, properties={"owner": "me"})
    with table.update_spec() as spec:
        spec.add_field("carrier", IdentityTransform(), "carrier")
    for first, carrier in ((0, "UA"), (10, "AA"), (20, "UA")):
        table.append(rows(first, carrier))
    table.manage_snapshots().create_tag(table.current_snapshot().snapshot_id, "then").commit()
    table.delete("id = 11")
    with table.update_schema() as schema:
        schema.add_column("delay", IntegerType())
        schema.set_identifier_fields("id")
    table.append(with_delay(rows(30, "DL")))
    table.manage_snapshots().create_branch(table.snapshots()[0].snapshot_id, "audit").commit()
    return table


def with_delay(table: pa.Table) -> pa.Table:
    """Return rows as the second schema has them."""
    return table.append_column("delay", pa.array([1, 2, None], pa.int32()))
