"""The checks of one table: each fact of its `expected.json`; what is read is written again.

An unknown key of `expected.json` is a failed check.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import orjson

from committer.errors import InvalidMetadataError
from committer.iceberg.avro.container import read_header
from committer.iceberg.entry.data_file import ManifestContent
from committer.iceberg.manifest.manifest import decode_manifest
from committer.iceberg.manifest.manifest_list import (
    ManifestFile,
    decode_manifest_list,
    encode_manifest_file,
    encode_manifest_list,
)
from committer.iceberg.manifest.manifest_writer import ManifestContext, encode_manifest
from committer.iceberg.metadata.snapshot import print_snapshot_ref
from committer.iceberg.metadata.table_metadata import parse_table_metadata, print_table_metadata
from committer.iceberg.metadata.table_statistics import print_statistics_file
from committer.iceberg.schema.partition_spec import partition_type
from committer.iceberg.schema.schema import print_schema
from committer.iceberg.schema.sort_order import print_sort_order
from committer.iceberg.values.types import TimestampNanoType, TimestamptzNanoType, VariantType
from tests.conformance.check import Check, Mismatch, as_floats, same
from tests.conformance.forms import (
    column_types,
    entry_form,
    key_form,
    live_file_form,
    row_form,
    same_file,
    same_row,
    schema_text,
    snapshot_form,
    sort_key,
    spec_form,
)
from tests.conformance.rows import NAME_MAPPING, count_rows, java_json, read_rows
from tests.conformance.scan_checks import check_scan, plan_all
from tests.conformance.table import ListedEntry, Table
from tests.support.iceberg.manifest_builders import as_text

Facts = Callable[[Table], object]
TableCheck = Callable[[Table], None]

_SYNC = bytes(range(16))


def table_checks(table: Table) -> Iterator[Check]:
    """Yield every check of a table."""
    for key in table.expected:
        yield Check(f"{table.name}: {key}", partial(_check_key, table, key))
    for number, scan in enumerate(table.expected.get("scans") or ()):
        yield Check(f"{table.name}: scans[{number}]", partial(check_scan, table, scan))
    for path in sorted(table.folder.rglob("*.metadata.json")):
        name = f"{table.name}: {path.name} is printed again"
        yield Check(name, partial(_check_printed_again, path))
    for name, check in _WRITTEN_AGAIN.items():
        yield Check(f"{table.name}: {name}", partial(check, table))


def _check_key(table: Table, key: str) -> None:
    if key in _FACTS:
        same(_FACTS[key](table), table.expected[key])
    elif key in _CHECKS:
        _CHECKS[key](table)
    elif key not in _SAID_FOR_READERS:
        raise Mismatch("not a key that this suite knows")


# --- Java's findings in the metadata -------------------------------------------------------------


def _specs(table: Table) -> object:
    metadata = table.metadata
    return [spec_form(spec, metadata.current_schema) for spec in metadata.partition_specs]


def _snapshot_log(table: Table) -> object:
    log = table.metadata.snapshot_log
    return [{"timestamp_ms": one.timestamp_ms, "snapshot_id": one.snapshot_id} for one in log]


def _metadata_log(table: Table) -> object:
    log = table.metadata.metadata_log
    return [{"timestamp_ms": one.timestamp_ms, "metadata_file": one.metadata_file} for one in log]


_FACTS: dict[str, Facts] = {
    "fixture": lambda table: table.name,
    "format_version": lambda table: table.metadata.format_version,
    "table_uuid": lambda table: str(table.metadata.table_uuid),
    "location": lambda table: table.metadata.location,
    "last_sequence_number": lambda table: table.metadata.last_sequence_number,
    "last_column_id": lambda table: table.metadata.last_column_id,
    "last_partition_id": lambda table: table.metadata.last_partition_id,
    "next_row_id": lambda table: table.metadata.next_row_id or 0,
    "current_schema_id": lambda table: table.metadata.current_schema_id,
    "default_spec_id": lambda table: table.metadata.default_spec_id,
    "default_sort_order_id": lambda table: table.metadata.default_sort_order_id,
    "current_snapshot_id": lambda table: table.metadata.current_snapshot_id,
    "properties": lambda table: dict(table.metadata.properties),
    "schemas": lambda table: [print_schema(schema) for schema in table.metadata.schemas],
    "schemas_text": lambda table: [schema_text(schema) for schema in table.metadata.schemas],
    "partition_specs": _specs,
    "sort_orders": lambda table: [print_sort_order(one) for one in table.metadata.sort_orders],
    "refs": lambda table: {
        name: print_snapshot_ref(ref) for name, ref in table.metadata.refs.items()
    },
    "snapshot_log": _snapshot_log,
    "metadata_log": _metadata_log,
    "statistics_files": lambda table: [
        print_statistics_file(one) for one in table.metadata.statistics
    ],
    "partition_statistics_files": lambda table: [
        print_statistics_file(one) for one in table.metadata.partition_statistics
    ],
    "encryption_keys": lambda table: [key_form(key) for key in table.metadata.encryption_keys],
}

# The writers of the files, and where Java itself fails: nothing to compare.
_SAID_FOR_READERS = {
    *("written_by", "via", "facts_by"),
    *("spark_count_error", "scan_error_example", "scan_error_example2"),
}


# --- Snapshots, manifests, files -----------------------------------------------------------------


def _or_refused(check: TableCheck) -> TableCheck:
    """Check the current snapshot; if Java's manifests are no valid Avro, a refusal passes."""

    def checked(table: Table) -> None:
        try:
            check(table)
        except InvalidMetadataError:
            rows = _rows_of(table, table.metadata.current_snapshot_id)
            if not any(map(table.has_fixed_values, rows)):
                raise

    return checked


def _check_location(table: Table) -> None:
    location = table.expected["metadata_location"]
    if not table.path(location).is_file():
        raise Mismatch(f"no file here for {location}")


def _check_snapshots(table: Table) -> None:
    for wanted in _paired(table.metadata.snapshots, table.expected["snapshots"], "snapshots"):
        snapshot, said = wanted
        place = f"snapshot {snapshot.snapshot_id}"
        facts = {key: said.get(key) for key in snapshot_form(snapshot)}
        same(snapshot_form(snapshot), facts, place)
        if said.get("row_count") is not None:
            _same_count(table, snapshot.snapshot_id, said["row_count"], f"{place}.row_count")
        unknown = set(said) - set(facts) - {"manifests", "manifests_omitted", "row_count"}
        if unknown:
            raise Mismatch(f"{place}: not keys that this suite knows: {sorted(unknown)}")
        rows = table.rows(snapshot)
        if "manifests_omitted" in said:
            continue
        for number, (row, told) in enumerate(_paired(rows, said["manifests"], place)):
            spec = table.metadata.spec_by_id(row.partition_spec_id)
            kind = partition_type(spec, table.metadata.current_schema)
            same_row(row_form(row, kind), told, kind, f"{place}.manifests[{number}]")


def _same_count(table: Table, snapshot_id: int | None, said: int, place: str) -> None:
    """Check the number of rows; where only Java reads the manifests, a refusal passes."""
    try:
        found = count_rows(table, snapshot_id)
    except InvalidMetadataError:
        if not any(map(table.has_fixed_values, _rows_of(table, snapshot_id))):
            raise
    else:
        same(found, said, place)


def _rows_of(table: Table, snapshot_id: int | None) -> tuple[ManifestFile, ...]:
    snapshots = table.metadata.snapshots
    return tuple(
        row for one in snapshots if one.snapshot_id == snapshot_id for row in table.rows(one)
    )


def _paired(found: Any, wanted: list[dict[str, Any]], place: str) -> Iterator[tuple[Any, Any]]:
    if len(found) != len(wanted):
        raise Mismatch(f"{place}: found {len(found)}, expected {len(wanted)}")
    yield from zip(found, wanted, strict=True)


def _check_entries(table: Table) -> None:
    said = table.expected["manifest_entries"]
    if set(said) != set(table.manifest_rows):
        raise Mismatch(f"other manifests: {sorted(set(said) ^ set(table.manifest_rows))}")
    for path, wanted in said.items():
        decoded = table.readable(table.manifest_rows[path])
        if decoded is None:
            continue
        for number, (entry, told) in enumerate(_paired(decoded.entries, wanted, path)):
            listed = ListedEntry(entry, decoded.schema, decoded.spec)
            found, place = entry_form(listed), f"{path.rpartition('/')[2]}[{number}]"
            told = dict(told)
            same_file(found.pop("file"), told.pop("file"), listed, {}, place)
            same(found, told, place)


def _check_live(key: str, content: ManifestContent) -> TableCheck:
    def check(table: Table) -> None:
        live = sorted(table.live(content), key=lambda one: sort_key(one.entry.data_file))
        types = column_types(*table.metadata.schemas, table.metadata.current_schema)
        refused = table.refused_paths()
        wanted = sorted(
            (one for one in table.expected[key] if one["file_path"] not in refused),
            key=lambda one: (one["file_path"], one.get("content_offset") or 0),
        )
        for number, (listed, told) in enumerate(_paired(live, wanted, key)):
            same_file(live_file_form(listed, types), told, listed, types, f"[{number}]")

    return check


def _check_table_rows(table: Table) -> None:
    said = table.expected["table_rows"]
    if "unreadable_by_iceberg_generics" in said:
        return
    found = list(read_rows(table))
    same(len(found), said["count"], "count")
    if "rows" in said:
        wanted = [_as_the_format_says(table, row) for row in said["rows"]]
        ours, theirs = _in_order(found), _in_order(wanted)
        if NAME_MAPPING in table.metadata.properties:
            theirs = [_with_nested(*pair) for pair in zip(ours, theirs, strict=True)]
        same(ours, theirs)


def _as_the_format_says(table: Table, row: dict[str, Any]) -> dict[str, Any]:
    """Return Java's row without variants, whose text is its own.

    Java hands on nanoseconds that are an identity partition as the number.
    """
    printed = dict(row)
    for column in table.metadata.current_schema.fields:
        name, kind = column.name, column.field_type
        if isinstance(kind, VariantType):
            printed.pop(name, None)
        elif isinstance(kind, TimestampNanoType | TimestamptzNanoType) and type(row[name]) is int:
            printed[name] = java_json(kind, row[name])
    return printed


def _with_nested(found: Any, wanted: Any) -> Any:
    """Return Java's row with nested fields as Frazil reads them: Java's own reader finds no nested
    field by a name mapping and gives null, though it finds their bounds when it adds the file.
    """
    return {
        key: {inner: found[key][inner] if part is None else part for inner, part in value.items()}
        if isinstance(value, dict)
        else value
        for key, value in wanted.items()
    }


def _in_order(rows: list[dict[str, Any]]) -> list[object]:
    # Java 17 prints some floats of 4 bytes with other digits.
    return sorted((as_floats(row) for row in rows), key=lambda row: json.dumps(row, sort_keys=True))


def _check_spark_count(table: Table) -> None:
    # Null where Spark itself has failed, see `spark_count_error`.
    if table.expected["spark_count"] is not None:
        _same_count(
            table, table.metadata.current_snapshot_id, table.expected["spark_count"], "spark_count"
        )


_CHECKS: dict[str, TableCheck] = {
    "metadata_location": _check_location,
    "snapshots": _check_snapshots,
    "manifest_entries": _check_entries,
    "scans": _or_refused(plan_all),
    "spark_count": _check_spark_count,
    "table_rows": _or_refused(_check_table_rows),
    "live_data_files": _check_live("live_data_files", ManifestContent.DATA),
    "live_delete_files": _check_live("live_delete_files", ManifestContent.DELETES),
}


# --- Each file that is read is written again -----------------------------------------------------


def _check_printed_again(path: Path) -> None:
    """Check that printing keeps values and key order; only keys of newer forms may be added."""
    content = path.read_bytes()
    text = gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content
    printed, before = print_table_metadata(parse_table_metadata(content)), orjson.loads(text)
    after = orjson.loads(printed)
    if before["format-version"] == 1 and "schemas" not in before:
        after = {key: value for key, value in after.items() if key in before}
        before = {key: before[key] for key in after} | before
    if orjson.dumps(after) != orjson.dumps(before):
        same(after, before)
        raise Mismatch("the keys have another order")


def _manifests_again(table: Table) -> None:
    for path, row in table.manifest_rows.items():
        if table.readable(row) is None:
            continue
        content = table.read(path)
        decoded = decode_manifest(content)
        context = ManifestContext(
            decoded.format_version, decoded.schema, decoded.spec, decoded.content
        )
        again = encode_manifest(decoded.entries, context, sync=_SYNC)
        same(as_text(decode_manifest(again.content).entries), as_text(decoded.entries), path)
        ours, theirs = read_header(again.content), read_header(content)
        same(ours.schema_json, theirs.schema_json, path)
        for key in ("schema", "partition-spec", "iceberg.schema"):
            same(json.loads(ours.metadata[key]), json.loads(theirs.metadata[key]), f"{path} {key}")
        for key in ("partition-spec-id", "format-version", "content"):
            same(repr(ours.metadata.get(key)), repr(theirs.metadata.get(key)), f"{path} {key}")
        if row.added_files_count is not None and again.partitions != (row.partitions or ()):
            raise Mismatch(f"{path}: other partition summaries")


def _lists_again(table: Table) -> None:
    for snapshot in table.metadata.snapshots:
        if snapshot.manifest_list is None:
            continue
        decoded = decode_manifest_list(table.read(snapshot.manifest_list))
        version = decoded.format_version
        again = encode_manifest_list(
            [encode_manifest_file(row, version) for row in decoded.rows],
            format_version=version,
            snapshot_id=snapshot.snapshot_id,
            parent_snapshot_id=snapshot.parent_snapshot_id,
            sequence_number=snapshot.sequence_number,
            first_row_id=snapshot.first_row_id,
            sync=_SYNC,
            extra_metadata={},
        )
        if decode_manifest_list(again).rows != decoded.rows:
            raise Mismatch(f"{snapshot.manifest_list}: other rows when written again")


_WRITTEN_AGAIN: dict[str, TableCheck] = {
    "its manifests are written again": _manifests_again,
    "its manifest lists are written again": _lists_again,
}
