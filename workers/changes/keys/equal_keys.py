"""The equalities of a merge's condition: columns of the table that equal a value of the source.

Runs on the driver. Spark resolves the condition, so that a text and a `Column` read alike. On Spark
Connect the plan is not at hand: nothing is found.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import functions as F  # noqa: N812  # its usual name

from committer.iceberg.schema.schema import Schema
from workers.changes.keys.key_filter import KeyColumn


def equal_keys(joined: Any, source: Any, schema: Schema) -> list[KeyColumn]:
    """Return the keys that each pair of rows has in common. `joined`: the table's rows joined with
    those of the source, by the condition; `source`: with the alias that the condition names."""
    frame = getattr(joined, "_jdf", None)
    if frame is None:
        return []
    join = frame.queryExecution().analyzed()
    if _name(join) != "Join" or not join.condition().isDefined():
        return []
    sides = join.left().outputSet(), join.right().outputSet()
    found = (_key(each, sides, source, schema) for each in _conjuncts(join.condition().get()))
    return [key for key in found if key is not None]


def _name(node: Any) -> str:
    name: str = node.getClass().getSimpleName()
    return name


def _conjuncts(condition: Any) -> Iterator[Any]:
    if _name(condition) == "And":
        yield from _conjuncts(condition.left())
        yield from _conjuncts(condition.right())
    else:
        yield condition


def _key(predicate: Any, sides: tuple[Any, Any], source: Any, schema: Schema) -> KeyColumn | None:
    """Read `column = value`. A null-safe equality matches nulls too, which no range has."""
    if _name(predicate) != "EqualTo":
        return None
    for one, other in (
        (predicate.left(), predicate.right()),
        (predicate.right(), predicate.left()),
    ):
        column = _column(one)
        if column is None or not one.references().subsetOf(sides[0]):
            continue
        value = _value(other, sides[1], source)
        field = next((each for each in schema.fields if each.name == column), None)
        if value is not None and field is not None:
            return KeyColumn(field, value)
    return None


def _column(expression: Any) -> str | None:
    """Return the name of a column, as it is or as a wider integer: that keeps its values."""
    is_widened = (
        _name(expression) == "Cast"
        and expression.dataType().simpleString() == "bigint"
        and expression.child().dataType().simpleString() == "int"
    )
    inner = expression.child() if is_widened else expression
    if _name(inner) != "AttributeReference":
        return None
    name: str = inner.name()
    return name


def _value(expression: Any, side: Any, source: Any) -> Any:
    """Return a value of the source's rows as a column of it; None for any other, and for one whose
    text Spark does not understand, or in another way: a function of Python may have the name of one
    of Spark's. It is deterministic, as Spark demands of a join."""
    references = expression.references()
    if references.isEmpty() or not references.subsetOf(side):
        return None
    try:
        value = F.expr(expression.sql())
        selected = source.select(value.alias("value"))
    except PySparkException:
        return None
    resolved = selected._jdf.queryExecution().analyzed().projectList().head().child()
    return value if expression.semanticEquals(resolved) else None
