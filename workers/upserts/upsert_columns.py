"""The columns of an upsert among those of a DataFrame and of a table: found, checked, and read.

The columns that say what a row does (delete column, sequence column) need not be the table's; those
that are not are left out of the files.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from committer.errors import PublishError
from committer.iceberg.schema.schema import Schema
from committer.iceberg.values.types import DoubleType, FloatType, NestedField
from workers.arrow.arrow_schema import MatchedColumns, match_columns
from workers.upserts.upsert import DeleteMark, Upsert


@dataclass(frozen=True, slots=True)
class UpsertColumns:
    """`rows`: all columns that the table has, `keys`: those of the key; each with the places of
    its columns in the DataFrame. `key_fields`: in the table's order."""

    upsert: Upsert
    rows: MatchedColumns
    row_places: tuple[int, ...]
    keys: MatchedColumns
    key_places: tuple[int, ...]
    key_fields: tuple[NestedField, ...]
    deleted: int | None
    sequence: int | None

    @property
    def key_ids(self) -> tuple[int, ...]:
        return tuple(sorted(field.field_id for field in self.key_fields))

    def row_schema(self, dataframe: pa.Schema) -> pa.Schema:
        """Return the columns of the DataFrame that the table has."""
        return pa.schema([dataframe.field(place) for place in self.row_places])

    def rows_of(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return rows as the data files have them. Errors: as `MatchedColumns.conform`."""
        return self.rows.conform(batch.select(list(self.row_places)))

    def keys_of(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the keys as the delete files have them. Errors: `PublishError` for a null."""
        keys = self.keys.conform(batch.select(list(self.key_places)))
        for field, column in zip(self.key_fields, keys.columns, strict=True):
            if column.null_count:
                raise PublishError(f"upsert: key column `{field.name}` holds a null in a row")
        return keys

    def is_deleted(self, batch: pa.RecordBatch) -> pa.Array:
        """Return for each row whether it deletes its key."""
        mark = self.upsert.delete
        if mark is None or self.deleted is None:
            return pa.repeat(pa.scalar(False), batch.num_rows)
        column = batch.column(self.deleted)
        if mark.values is None:
            return pc.fill_null(column, False)
        return pc.is_in(column, value_set=pa.array(mark.values, column.type))

    def sequence_of(self, batch: pa.RecordBatch) -> pa.Array | None:
        """Return what orders the rows; None if nothing does. Errors: `PublishError` for a null."""
        if self.sequence is None:
            return None
        column = batch.column(self.sequence)
        if column.null_count:
            raise PublishError(
                f"upsert: sequence column `{self.upsert.sequence}` holds a null in a row"
            )
        return column


def bind_upsert(upsert: Upsert, dataframe: pa.Schema, table: Schema) -> UpsertColumns:
    """Find the columns. Errors: `PublishError` saying which does not fit, and what would."""
    key_places = tuple(_place(dataframe, name, "upsert-keys") for name in upsert.keys)
    fields = [_key_field(dataframe.field(place).name, table) for place in key_places]
    if len({field.field_id for field in fields}) < len(fields):
        raise PublishError("option `upsert-keys` names a column twice")
    deleted = sequence = None
    if upsert.delete is not None:
        deleted = _place(dataframe, upsert.delete.column, "upsert-delete-column")
        _check_mark(upsert.delete, dataframe.field(deleted))
    if upsert.sequence is not None:
        sequence = _place(dataframe, upsert.sequence, "upsert-sequence-column")
        _check_sequence(dataframe.field(sequence))
    row_places = tuple(
        place
        for place, column in enumerate(dataframe)
        if place not in (deleted, sequence) or _has(table, column.name)
    )
    ids = {field.field_id for field in fields}
    key_fields = tuple(field for field in table.fields if field.field_id in ids)
    return UpsertColumns(
        upsert,
        match_columns(pa.schema([dataframe.field(place) for place in row_places]), table),
        row_places,
        match_columns(
            pa.schema([dataframe.field(place) for place in key_places]), Schema(key_fields)
        ),
        key_places,
        key_fields,
        deleted,
        sequence,
    )


def _place(dataframe: pa.Schema, name: str, option: str) -> int:
    """Find a column as Spark does: an exact match first, then without regard to case."""
    for found in (
        [at for at, column in enumerate(dataframe) if column.name == name],
        [at for at, column in enumerate(dataframe) if column.name.lower() == name.lower()],
    ):
        if len(found) == 1:
            return found[0]
    raise PublishError(
        f"option `{option}`: expected one column `{name}` of the DataFrame, which has"
        f" {', '.join(f'`{column.name}`' for column in dataframe)}"
    )


def _has(table: Schema, name: str) -> bool:
    return any(field.name.lower() == name.lower() for field in table.fields)


def _key_field(name: str, table: Schema) -> NestedField:
    found = [field for field in table.fields if field.name == name] or [
        field for field in table.fields if field.name.lower() == name.lower()
    ]
    if len(found) != 1:
        raise PublishError(f"option `upsert-keys`: the table has no column `{name}`")
    kind = found[0].field_type
    if not kind.is_primitive or isinstance(kind, FloatType | DoubleType):
        raise PublishError(
            f"option `upsert-keys`: column `{name}` is of type {kind}, expected a type whose values"
            " are equal or not: no float, double, struct, list or map"
        )
    return found[0]


def _check_mark(mark: DeleteMark, column: pa.Field) -> None:
    if mark.values is None:
        if not pa.types.is_boolean(column.type):
            raise PublishError(
                f"option `upsert-delete-column`: column `{column.name}` is of type {column.type},"
                f" expected boolean, or the values that delete: `{column.name} in ('d', 'D')`"
            )
        return
    try:
        pa.array(mark.values, column.type)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        raise PublishError(
            f"option `upsert-delete-column`: expected values of type {column.type}, as column"
            f" `{column.name}` has"
        ) from None


def _check_sequence(column: pa.Field) -> None:
    kind = column.type
    checks = (
        pa.types.is_integer,
        pa.types.is_decimal,
        pa.types.is_date,
        pa.types.is_timestamp,
        pa.types.is_string,
    )
    if not any(check(kind) for check in checks):
        raise PublishError(
            f"option `upsert-sequence-column`: column `{column.name}` is of type {kind}, expected"
            " an integer, decimal, date, timestamp or string"
        )
