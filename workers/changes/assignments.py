"""New values of columns: what a caller assigns, as one Spark column for each column of the table.

Values are cast as Spark's own store assignment does (`spark.sql.storeAssignmentPolicy=ANSI`): what
may lose its meaning is refused, and what does not fit fails. Runs on the driver.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import functions as F  # noqa: N812  # its usual name
from pyspark.sql import types as T  # noqa: N812

from committer.errors import PublishError, SettingsError
from committer.iceberg.schema.schema import Schema
from committer.iceberg.values.types import NestedField
from workers.read.read_types import read_array
from workers.spark.spark_schema import quoted

TARGET, SOURCE = "target", "source"
# A text is SQL; other values are literals.
Value = Any


@dataclass(slots=True)
class _Node:
    """The value that a column gets, or the fields inside of it."""

    value: Any = None
    inner: dict[str, _Node] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Assigner:
    """Makes new values. `probe`: a DataFrame without rows that has the columns which values may
    name; `columns`: those of the table, as Spark has them."""

    probe: Any
    columns: T.StructType
    schema: Schema

    def updated(self, assigned: Mapping[str, Value]) -> dict[str, Any]:
        """Return the columns of a row that is updated; those not assigned keep their values."""
        if not assigned:
            raise SettingsError("`set`: expected the columns to update, found none")
        tree = self._tree(assigned)
        return {
            column.name: self._value(tree.get(column.name), column, old(column.name), column.name)
            for column in self.columns.fields
        }

    def inserted(self, assigned: Mapping[str, Value]) -> dict[str, Any]:
        """Return the columns of a new row; those not assigned have their write default, else
        null."""
        tree = self._tree(assigned)
        nested = [name for name, node in tree.items() if node.inner]
        if nested:
            raise SettingsError(f"`values`: expected whole columns, found a field of `{nested[0]}`")
        return {
            column.name: self._value(
                tree.get(column.name), column, self._default(column), column.name
            )
            for column in self.columns.fields
        }

    def of_source(self, source: Any, *, may_lack: bool) -> dict[str, Value]:
        """Return assignments of all columns, by name; of those that the source has where it
        `may_lack` some. Errors: `SettingsError` for a column that the source lacks."""
        found: dict[str, Value] = {}
        for column in self.columns.fields:
            names = [name for name in source.columns if name == column.name] or [
                name for name in source.columns if name.lower() == column.name.lower()
            ]
            if not names and may_lack:
                continue
            if len(names) != 1:
                raise SettingsError(
                    f"the source has {'no' if not names else 'several'} column `{column.name}`, as"
                    " the table has: name the columns and their values"
                )
            found[quoted(column.name)] = F.col(f"{SOURCE}.{quoted(names[0])}")
        return found

    # --- Names -----------------------------------------------------------------------------------

    def _tree(self, assigned: Mapping[str, Value]) -> dict[str, _Node]:
        roots: dict[str, _Node] = {}
        for name, value in assigned.items():
            nodes, node, kind = roots, _Node(), T.StructType(self.columns.fields)
            parts = name_parts(name)
            for at, part in enumerate(parts):
                found = _field(kind, part)
                if found is None:
                    raise SettingsError(f"the table has no column `{name}`")
                node = nodes.setdefault(found.name, _Node())
                nodes, kind = node.inner, found.dataType
                if node.value is not None or (at == len(parts) - 1 and node.inner):
                    raise SettingsError(f"column `{name}` is assigned twice")
            node.value = as_column(value)
        return roots

    # --- Values ----------------------------------------------------------------------------------

    def _value(self, node: _Node | None, column: T.StructField, unassigned: Any, path: str) -> Any:
        if node is None:
            return unassigned
        if node.value is not None:
            return self._stored(node.value, column.dataType, path)
        fields = [
            self._value(
                node.inner.get(inner.name),
                inner,
                unassigned.getField(inner.name),
                f"{path}.{inner.name}",
            ).alias(inner.name)
            for inner in column.dataType.fields
        ]
        return F.struct(*fields)

    def _stored(self, value: Any, wanted: T.DataType, path: str) -> Any:
        found = self.probe.select(value.alias("value")).schema["value"].dataType
        if not _may_store(found, wanted):
            raise PublishError(
                f"column `{path}` of type {wanted.simpleString()} cannot hold a value of type"
                f" {found.simpleString()}: cast it"
            )
        if found.simpleString() == wanted.simpleString():
            return value
        if str(self.probe.sparkSession.conf.get("spark.sql.ansi.enabled")).lower() == "true":
            return value.cast(wanted)
        # A cast that is not strict would wrap around, or give null.
        problem = F.raise_error(F.lit(f"a value does not fit column {path}")).cast(wanted)
        return F.coalesce(value.try_cast(wanted), F.when(value.isNotNull(), problem))

    def _default(self, column: T.StructField) -> Any:
        found: NestedField | None = self.schema.find(column.name)
        if found is None or found.write_default is None:
            return F.lit(None).cast(column.dataType)
        [value] = read_array([found.write_default], found.field_type).to_pylist()
        is_plain = (
            isinstance(value, bool | int | float | str | bytes) or found.field_type.is_primitive
        )
        if not is_plain:
            raise SettingsError(
                f"`values`: name a value for `{column.name}`, whose default is nested"
            )
        return F.lit(value if isinstance(value, int | float | bytes) else str(value)).cast(
            column.dataType
        )


def old(name: str) -> Any:
    """Return the value that a row of the table has."""
    return F.col(f"{TARGET}.{quoted(name)}")


def as_column(value: Value) -> Any:
    """Return a text as SQL, a column as it is, anything else as a literal."""
    if isinstance(value, str):
        return F.expr(value)
    return value if hasattr(value, "alias") else F.lit(value)


def name_parts(name: str) -> list[str]:
    """Split a name at its dots, but for those in backticks; without the alias of the table."""
    parts, rest = [], name
    while rest:
        if rest.startswith("`"):
            part, _, rest = rest[1:].partition("`")
            rest = rest.removeprefix(".")
        else:
            part, _, rest = rest.partition(".")
        parts.append(part)
    return parts[1:] if len(parts) > 1 and parts[0].lower() == TARGET else parts


def _field(kind: T.DataType, name: str) -> T.StructField | None:
    fields = kind.fields if isinstance(kind, T.StructType) else []
    exact = [each for each in fields if each.name == name]
    folded = [each for each in fields if each.name.lower() == name.lower()]
    found = exact or folded
    return found[0] if len(found) == 1 else None


# --- Store assignment ----------------------------------------------------------------------------


def _may_store(found: T.DataType, wanted: T.DataType) -> bool:
    """Return whether a value may be stored. Source: Spark, `Cast.canANSIStoreAssign`."""
    if isinstance(found, T.NullType) or found.simpleString() == wanted.simpleString():
        return True
    match wanted:
        case T.StructType():
            return (
                isinstance(found, T.StructType)
                and len(found.fields) == len(wanted.fields)
                and all(
                    one.name.lower() == other.name.lower()
                    and _may_store(one.dataType, other.dataType)
                    for one, other in zip(found.fields, wanted.fields, strict=True)
                )
            )
        case T.ArrayType():
            return isinstance(found, T.ArrayType) and _may_store(
                found.elementType, wanted.elementType
            )
        case T.MapType():
            return (
                isinstance(found, T.MapType)
                and _may_store(found.keyType, wanted.keyType)
                and _may_store(found.valueType, wanted.valueType)
            )
        case T.StringType():
            return not isinstance(found, T.ArrayType | T.MapType | T.StructType | T.BinaryType)
    times = T.DateType | T.TimestampType | T.TimestampNTZType
    both_numbers = isinstance(found, T.NumericType) and isinstance(wanted, T.NumericType)
    return both_numbers or (isinstance(found, times) and isinstance(wanted, times))
