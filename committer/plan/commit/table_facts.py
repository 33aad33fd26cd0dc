"""The facts of a table that a change can alter, as JSON, for the audit. Pure.

The ledger's entries are left out: each commit changes them.
"""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import JsonValue

from committer.iceberg.metadata.table_metadata import TableMetadata
from committer.ledger_entry import LEDGER_PREFIX
from committer.plan.ledger.one_shots import PREFIX as ONE_SHOTS_PREFIX
from committer.ports.pointer_swap import LoadedTable

_LEDGER = (LEDGER_PREFIX, ONE_SHOTS_PREFIX)
_LOCATION = "metadata_location"

TableFacts = dict[str, JsonValue]


def table_facts(table: LoadedTable) -> TableFacts:
    """Return where the metadata of a table is, and what a request or a command can alter in it."""
    metadata = table.metadata
    return {
        _LOCATION: table.metadata_location,
        "table_uuid": str(metadata.table_uuid),
        "location": metadata.location,
        "format_version": metadata.format_version,
        "columns": _columns(metadata),
        "default_spec_id": metadata.default_spec_id,
        "default_sort_order_id": metadata.default_sort_order_id,
        "properties": {
            key: text for key, text in metadata.properties.items() if not key.startswith(_LEDGER)
        },
        "refs": {name: ref.snapshot_id for name, ref in metadata.refs.items()},
    }


def _columns(metadata: TableMetadata) -> TableFacts:
    return {
        name: f"{field.field_type}{' not null' if field.required else ''}"
        for name, field in metadata.current_schema.walk()
    }


def changed_facts(before: TableFacts, after: TableFacts) -> tuple[TableFacts, TableFacts]:
    """Return what differs between two states, as it was before and as it is after; of columns,
    properties and refs those that differ. Where the metadata is stays in both.
    """
    old: TableFacts = {}
    new: TableFacts = {}
    for name in {**before, **after}:
        was, now = before.get(name), after.get(name)
        if isinstance(was, Mapping) and isinstance(now, Mapping):
            keys = [key for key in was.keys() | now.keys() if was.get(key) != now.get(key)]
            was = {key: was.get(key) for key in sorted(keys)}
            now = {key: now.get(key) for key in sorted(keys)}
        if was != now or name == _LOCATION:
            old[name], new[name] = was, now
    return old, new
