"""Prints table metadata for people: facts, columns, snapshots, history."""

from __future__ import annotations

from committer.cli.output.describe import Description, order_text, spec_text
from committer.cli.output.printing import counted, time_text
from committer.cli.output.view import Rows
from committer.cli.views.table_source import OpenTable
from committer.iceberg.inspection.snapshot_rows import snapshot_row
from committer.iceberg.metadata.snapshot import Snapshot, print_snapshot_ref
from committer.iceberg.metadata.table_metadata import TableMetadata
from committer.iceberg.schema.partition_spec import print_partition_spec
from committer.iceberg.schema.schema import Schema, print_schema
from committer.iceberg.schema.sort_order import print_sort_order
from committer.ledger_entry import LEDGER_PREFIX, parse_property_key
from committer.plan.ledger.one_shots import PREFIX as ONE_SHOTS_PREFIX


def metadata_facts(metadata: TableMetadata) -> Description:
    head = metadata.current_snapshot
    summary = (head.summary if head else None) or {}
    return {
        "table uuid": metadata.table_uuid,
        "format version": metadata.format_version,
        "location": metadata.location,
        "last updated": time_text(metadata.last_updated_ms),
        "partitioned by": spec_text(metadata.default_spec, metadata.current_schema) or "nothing",
        "sorted by": order_text(metadata) or "nothing",
        "current snapshot": metadata.current_snapshot_id,
        "sequence number": metadata.last_sequence_number,
        "snapshots": len(metadata.snapshots),
        "refs": ", ".join(f"{name} ({ref.type})" for name, ref in metadata.refs.items()),
        "data files": summary.get("total-data-files"),
        "records": summary.get("total-records"),
    }


def ledger_text(table: OpenTable) -> str | None:
    """Say how many producers the ledger has, and which command lists them; None without any."""
    parsed = map(parse_property_key, table.metadata.properties)
    producers = {one[0] for one in parsed if one is not None}
    if not producers:
        return None
    see = "" if table.identifier is None else f": see frazil producer list {table.identifier}"
    return f"{counted(len(producers), 'producer')}{see}"


def properties_outside_ledger(metadata: TableMetadata) -> dict[str, str]:
    """Return the properties without those of the ledger, which are long, and for no one to edit."""
    ledger = (LEDGER_PREFIX, ONE_SHOTS_PREFIX)
    return {k: text for k, text in metadata.properties.items() if not k.startswith(ledger)}


def describe_table(table: OpenTable) -> Description:
    """Describe a table as one object; schema, spec, order and refs in the specification's JSON.

    `table` is null for a bare metadata file.
    """
    metadata, head = table.metadata, table.metadata.current_snapshot
    return {
        "table": None if table.identifier is None else str(table.identifier),
        "table_uuid": metadata.table_uuid,
        "format_version": metadata.format_version,
        "location": metadata.location,
        "metadata_location": table.metadata_location,
        "last_updated_ms": metadata.last_updated_ms,
        "last_sequence_number": metadata.last_sequence_number,
        "snapshots": len(metadata.snapshots),
        "current_snapshot": snapshot_row(head) if head else None,
        "refs": {name: print_snapshot_ref(ref) for name, ref in metadata.refs.items()},
        "schema": print_schema(metadata.current_schema),
        "partition_spec": print_partition_spec(metadata.default_spec),
        "sort_order": print_sort_order(metadata.default_sort_order),
        "properties": dict(metadata.properties),
    }


def schema_rows(schema: Schema) -> Rows:
    return Rows(
        f"schema {schema.schema_id}",
        ("id", "column", "type", "required", "doc"),
        [
            (field.field_id, field.name, field.field_type, field.required, field.doc)
            for field in schema.fields
        ],
    )


def snapshot_rows(metadata: TableMetadata) -> Rows:
    return Rows(
        "snapshots",
        ("committed", "snapshot id", "parent", "seq", "operation", "files", "records", "refs"),
        [_snapshot_row(snapshot, metadata) for snapshot in metadata.snapshots],
    )


def _snapshot_row(snapshot: Snapshot, metadata: TableMetadata) -> tuple[object, ...]:
    summary = snapshot.summary or {}
    refs = metadata.refs.items()
    return (
        time_text(snapshot.timestamp_ms),
        snapshot.snapshot_id,
        snapshot.parent_snapshot_id,
        snapshot.sequence_number,
        snapshot.operation,
        _change(summary, "data-files"),
        _change(summary, "records"),
        ", ".join(name for name, ref in refs if ref.snapshot_id == snapshot.snapshot_id),
    )


def _change(summary: object, what: str) -> str:
    """Print `+3 -1 = 12`, of what the summary says."""
    if not isinstance(summary, dict):
        return ""
    added, deleted = summary.get(f"added-{what}"), summary.get(f"deleted-{what}")
    total = summary.get(f"total-{what}")
    parts = (added and f"+{added}", deleted and f"-{deleted}", total and f"= {total}")
    return " ".join(filter(None, parts))
