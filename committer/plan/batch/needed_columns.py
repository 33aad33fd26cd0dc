"""The columns that a request needs beyond the table's: added by a union by name, with the ids that
its data files were written with.
"""

from __future__ import annotations

from collections.abc import Iterable

from committer.errors import InvalidMetadataError
from committer.iceberg.evolution.schema_evolution import EvolvedSchema, SchemaUpdate
from committer.iceberg.evolution.union_by_name import union_by_name
from committer.iceberg.schema.partition_spec import PartitionSpec
from committer.iceberg.schema.schema import Schema, parse_schema
from committer.request.alterations import TableChange, UnionByName


def record_union(update: SchemaUpdate, change: UnionByName) -> EvolvedSchema:
    """Return the schema with the columns of a union. Errors: `InvalidMetadataError` for columns of
    other types, or with other ids than data files have."""
    wanted = parse_schema(change.schema_)
    # A writer's schema is that of the table as the writer knows it: others may have described its
    # columns anew since. One that is typed names columns and types alone.
    is_of_files = change.with_ids
    union = union_by_name(update, wanted, relaxes=is_of_files, describes=not is_of_files)
    evolved = union.apply()
    if change.with_ids:
        _check_ids(wanted, evolved.schema, change.case_sensitive)
    return evolved


def with_needed_columns(
    changes: Iterable[TableChange],
    current: EvolvedSchema,
    *,
    format_version: int,
    specs: Iterable[PartitionSpec],
) -> EvolvedSchema:
    """Return the schema that a request's files are checked against. Errors: as `record_union`."""
    specs = tuple(specs)
    for change in changes:
        if isinstance(change, UnionByName):
            update = SchemaUpdate(
                current.schema,
                last_column_id=current.last_column_id,
                format_version=format_version,
                specs=specs,
                case_sensitive=change.case_sensitive,
            )
            current = record_union(update, change)
    return current


def _check_ids(wanted: Schema, found: Schema, case_sensitive: bool) -> None:
    for name, field in wanted.walk():
        column = found.find(name, case_sensitive=case_sensitive)
        if column is None or column.field_id != field.field_id:
            now = "none" if column is None else str(column.field_id)
            raise InvalidMetadataError(
                f"column `{name}`: the data files have it as field {field.field_id}, the table as"
                f" {now}: write them again with the table's schema"
            )
