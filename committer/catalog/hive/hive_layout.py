"""An Iceberg table as an entry of a Hive metastore, as Iceberg Java's HiveCatalog writes it. Pure.

Numbers are field ids of Hive's `Table`, `StorageDescriptor`, `SerDeInfo` and `Database`. Of an
entry that exists, only what follows from the new metadata is replaced; the rest goes back as it
came, since an alter replaces the entry as a whole.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import orjson

from committer.catalog.hive.thrift_values import (
    Field,
    Struct,
    get_struct,
    get_text,
    get_text_map,
    i32,
    struct,
    structs,
    text,
    text_map,
)
from committer.catalog.hive_type_names import HIVE
from committer.catalog.namespaces import Namespace, join_namespace
from committer.errors import InvalidMetadataError, NoSuchTableError, UnsupportedError
from committer.iceberg.metadata.table_metadata import TableMetadata
from committer.iceberg.schema.partition_spec import print_partition_spec
from committer.iceberg.schema.schema import Schema, print_schema
from committer.iceberg.schema.sort_order import print_sort_order
from committer.iceberg.values.types import NestedField
from committer.request.table_identifier import TableIdentifier

KEY_CHARS_MAX = 256
LOCATION = "metadata_location"
PREVIOUS_LOCATION = "previous_metadata_location"
PROBE_LOCATION = "first"
LOCK_ENABLED = "engine.hive.lock-enabled"
# hive.metastore.table.owner names the owner of the entry and is none of its parameters.
_OWNER = "hive.metastore.table.owner"
_TABLE_TYPE, _ICEBERG = "table_type", "ICEBERG"
_STORAGE_HANDLER = "storage_handler"
_HIVE_NAME_OF = {"gc.enabled": "external.table.purge"}
_NAME, _DATABASE, _OWNER_FIELD, _DESCRIPTOR, _PARAMETERS, _KIND = 1, 2, 3, 7, 9, 12
_COLUMNS, _FOLDER = 1, 2
_DATABASE_FOLDER, _DATABASE_PARAMETERS = 3, 4
# The columns of the metastore's own tables.
_DATABASE_KEY_CHARS_MAX, _DATABASE_VALUE_CHARS_MAX = 180, 4000
# Iceberg's default of `iceberg.hive.table-property-max-size`.
_DESCRIPTION_CHARS_MAX = 32_672
_STATISTICS = {
    "total-data-files": "numFiles",
    "total-records": "numRows",
    "total-files-size": "totalSize",
}
_ICEBERG_READERS = "org.apache.iceberg.mr.hive.HiveIceberg"
_INT_MAX = (1 << 31) - 1
# Hive lower-cases and trims names, and reads `@catalog#database`; what it would change is refused.
_DATABASE_NAME = re.compile(r"[a-z0-9_]+")
_TABLE_NAME = re.compile(r"[!-\-/-@\[-~]+")


def database_of(namespace: Namespace) -> str:
    """Return the database of a namespace. Errors: `UnsupportedError` for what can be none."""
    name = join_namespace(namespace)
    if len(namespace) != 1:
        raise UnsupportedError(
            f"namespace `{name}`: namespaces of a Hive metastore have no levels, expected one name"
        )
    if not _DATABASE_NAME.fullmatch(name):
        raise UnsupportedError(
            f"namespace `{name}`: a Hive metastore has namespaces of lower-case letters, digits"
            " and `_`"
        )
    return name


def names_of(identifier: TableIdentifier) -> tuple[str, str]:
    """Return database and name of a table. Errors: `UnsupportedError` for what can be none."""
    database = database_of(identifier.namespace)
    if not _TABLE_NAME.fullmatch(identifier.name):
        raise UnsupportedError(
            f"table `{identifier}`: a Hive metastore has tables of lower-case names without dots"
            " and spaces"
        )
    return database, identifier.name


def parameters_of(entry: Struct) -> dict[str, str]:
    return get_text_map(entry, _PARAMETERS)


def is_iceberg_table(entry: Struct) -> bool:
    return parameters_of(entry).get(_TABLE_TYPE, "").upper() == _ICEBERG


def location_of(identifier: TableIdentifier, entry: Struct) -> str:
    """Return the pointer. Errors: `NoSuchTableError` for a view or a table of another format."""
    if not is_iceberg_table(entry):
        raise NoSuchTableError(
            f"no table {identifier}: the metastore's entry of that name is no Iceberg table"
        )
    location = parameters_of(entry).get(LOCATION, "")
    if not location:
        raise InvalidMetadataError(f"table {identifier}: the catalog names no metadata file")
    return location


def folder_of(database: Struct) -> str:
    """Return the folder of a database; Hadoop writes `file:/path` for a local one."""
    return re.sub(r"^file:/(?!//)", "file:///", get_text(database, _DATABASE_FOLDER))


def new_database(name: str, folder: str) -> Struct:
    """Return a database. Without a folder the metastore chooses one."""
    database = {1: text(name), _DATABASE_PARAMETERS: text_map({})}
    return database | {_DATABASE_FOLDER: text(folder)} if folder else database


def database_parameters(database: Struct) -> dict[str, str]:
    return get_text_map(database, _DATABASE_PARAMETERS)


def with_database_parameters(database: Struct, parameters: Mapping[str, str]) -> Struct:
    return {**database, _DATABASE_PARAMETERS: text_map(parameters)}


def check_database_parameters(parameters: Mapping[str, str]) -> None:
    """Refuse what a metastore has no room for. Errors: `UnsupportedError`."""
    for key, value in parameters.items():
        if len(key) > _DATABASE_KEY_CHARS_MAX or len(value) > _DATABASE_VALUE_CHARS_MAX:
            raise UnsupportedError(
                f"namespace property `{key}`: a Hive metastore takes names of at most"
                f" {_DATABASE_KEY_CHARS_MAX} characters and values of {_DATABASE_VALUE_CHARS_MAX}"
            )


def new_entry(
    identifier: TableIdentifier, metadata: TableMetadata, metadata_location: str, now_s: int
) -> Struct:
    """Return the entry of a table that the metastore does not have."""
    database, name = names_of(identifier)
    parameters = {"EXTERNAL": "TRUE"}
    for_hive = metadata.properties.get("engine.hive.enabled", "").lower() == "true"
    if for_hive:
        parameters[_STORAGE_HANDLER] = f"{_ICEBERG_READERS}StorageHandler"
    owner = metadata.properties.get(_OWNER)
    return {
        _NAME: text(name),
        _DATABASE: text(database),
        **({_OWNER_FIELD: text(owner)} if owner else {}),
        4: i32(now_s),
        5: i32(now_s),
        6: i32(_INT_MAX),
        _DESCRIPTOR: struct(_descriptor(metadata, for_hive=for_hive)),
        8: structs(()),
        _PARAMETERS: text_map(_parameters(parameters, metadata, metadata_location)),
        _KIND: text("EXTERNAL_TABLE"),
    }


def _descriptor(metadata: TableMetadata, *, for_hive: bool) -> Struct:
    if for_hive:
        formats = [f"{_ICEBERG_READERS}{part}" for part in ("InputFormat", "OutputFormat", "SerDe")]
    else:
        formats = [
            "org.apache.hadoop.mapred.FileInputFormat",
            "org.apache.hadoop.mapred.FileOutputFormat",
            "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe",
        ]
    return {
        _COLUMNS: _columns(metadata.current_schema),
        _FOLDER: text(metadata.location),
        3: text(formats[0]),
        4: text(formats[1]),
        7: struct({2: text(formats[2]), 3: text_map({})}),
    }


def _columns(schema: Schema) -> Field:
    """Return the columns as Hive's `FieldSchema`s, for readers of the metastore: every Iceberg
    engine reads the metadata file instead.
    """
    return structs(map(_column, schema.fields))


def _column(field: NestedField) -> Struct:
    column = {1: text(field.name), 2: text(HIVE.name(field.field_type))}
    return column | {3: text(field.doc)} if field.doc else column


def swapped_entry(
    entry: Struct, base: TableMetadata, metadata: TableMetadata, metadata_location: str
) -> Struct:
    """Return the entry for the next metadata file of a table."""
    parameters = parameters_of(entry)
    previous = parameters.get(LOCATION, "")
    for key in base.properties.keys() - metadata.properties.keys():
        parameters.pop(key, None)
        parameters.pop(_HIVE_NAME_OF.get(key, key), None)
    parameters[PREVIOUS_LOCATION] = previous
    changed = {_PARAMETERS: text_map(_parameters(parameters, metadata, metadata_location))}
    descriptor = dict(get_struct(entry, _DESCRIPTOR))
    if metadata.current_schema != base.current_schema:
        descriptor[_COLUMNS] = _columns(metadata.current_schema)
    if metadata.location != base.location:
        descriptor[_FOLDER] = text(metadata.location)
    return {**entry, **changed, _DESCRIPTOR: struct(descriptor)}


def renamed_entry(entry: Struct, to: TableIdentifier) -> Struct:
    """Return the same entry under another name."""
    database, name = names_of(to)
    return {**entry, _NAME: text(name), _DATABASE: text(database)}


def _parameters(
    kept: Mapping[str, str], metadata: TableMetadata, metadata_location: str
) -> dict[str, str]:
    """Return the parameters of an entry: what it has, the table's properties, and what Hive's
    tools show of the table.
    """
    properties = {
        _HIVE_NAME_OF.get(key, key): value
        for key, value in metadata.properties.items()
        if key.lower() != _OWNER
    }
    parameters = {**kept, **properties}
    parameters.pop("COLUMN_STATS_ACCURATE", None)
    parameters |= {
        _TABLE_TYPE: _ICEBERG,
        LOCATION: metadata_location,
        "uuid": str(metadata.require_uuid()),
        "snapshot-count": str(len(metadata.snapshots)),
        "DO_NOT_UPDATE_STATS": "true",
    }
    for key, value in _descriptions(metadata).items():
        parameters.pop(key, None)
        if value and len(value) <= _DESCRIPTION_CHARS_MAX:
            parameters[key] = value
    return parameters | _statistics(metadata)


def _descriptions(metadata: TableMetadata) -> dict[str, str]:
    """Return what describes the table; empty where the table has none of it."""
    snapshot, spec, order = (
        metadata.current_snapshot,
        metadata.default_spec,
        metadata.default_sort_order,
    )
    return {
        "current-schema": _json(print_schema(metadata.current_schema)),
        "default-partition-spec": _json(print_partition_spec(spec)) if spec.fields else "",
        "default-sort-order": _json(print_sort_order(order)) if order.fields else "",
        "current-snapshot-id": str(snapshot.snapshot_id) if snapshot else "",
        "current-snapshot-timestamp-ms": str(snapshot.timestamp_ms) if snapshot else "",
        "current-snapshot-summary": _json(dict(snapshot.summary or {})) if snapshot else "",
    }


def _statistics(metadata: TableMetadata) -> dict[str, str]:
    snapshot = metadata.current_snapshot
    summary = (snapshot.summary if snapshot else None) or {}
    return {name: summary[key] for key, name in _STATISTICS.items() if key in summary}


def _json(value: object) -> str:
    return orjson.dumps(value).decode()


def probe_entry(name: str, database: str) -> Struct:
    """Return a view, for which the metastore makes no folder, with a pointer to try swaps on."""
    query = text("SELECT 1")
    return {
        _NAME: text(name),
        _DATABASE: text(database),
        _DESCRIPTOR: struct({_COLUMNS: structs(({1: text("x"), 2: text("int")},)), 7: struct({})}),
        8: structs(()),
        _PARAMETERS: text_map({LOCATION: PROBE_LOCATION}),
        10: query,
        11: query,
        _KIND: text("VIRTUAL_VIEW"),
    }


def with_location(entry: Struct, location: str) -> Struct:
    """Return an entry with another pointer and nothing else changed."""
    return {**entry, _PARAMETERS: text_map(parameters_of(entry) | {LOCATION: location})}


def environment(base_location: str) -> Field:
    """Return the context of an alter that is applied only if the pointer is the base's."""
    properties = {
        "expected_parameter_key": LOCATION,
        "expected_parameter_value": base_location,
        "DO_NOT_UPDATE_STATS": "true",
    }
    return struct({1: text_map(properties)})
