"""Conditions as Spark understands them, as Iceberg's expressions, which tell something of files.

Spark itself resolves and simplifies a condition, be it a text or a `Column`: casts, time zones,
functions of constants. Its optimized plan is read here, and each predicate that means the same in
Iceberg is taken. Runs on the driver. On Spark Connect the plan is not at hand: nothing is taken.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

from pyspark.sql import datasource as spark

from committer.iceberg.expressions.expression import (
    ALWAYS_FALSE,
    ALWAYS_TRUE,
    And,
    Expression,
    Or,
)
from committer.iceberg.schema.schema import Schema
from workers.spark.pushed_filters import push_filters

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC).replace(tzinfo=None)
# `IN` of more values becomes a set, which a plan does not print.
_IN_SET = "spark.sql.optimizer.inSetConversionThreshold"
_IN_MAX = "10000"
_ZONE = "spark.sql.session.timeZone"


@dataclass(frozen=True, slots=True)
class RowFilter:
    """Rows as far as Iceberg can tell them: all that are meant match `expression`; where it
    `is_exact`, no others do."""

    expression: Expression = ALWAYS_TRUE
    is_exact: bool = False

    def both(self, other: RowFilter) -> RowFilter:
        expression = And.of(self.expression, other.expression)
        return RowFilter(expression, self.is_exact and other.is_exact)

    def either(self, other: RowFilter) -> RowFilter:
        expression = Or.of(self.expression, other.expression)
        return RowFilter(expression, self.is_exact and other.is_exact)


ALL_ROWS = RowFilter(ALWAYS_TRUE, True)
ANY_ROWS = RowFilter()
NO_ROWS = RowFilter(ALWAYS_FALSE, True)


def filter_of(dataframe: Any, schema: Schema, mark: str) -> RowFilter:
    """Return what Spark's plan keeps of the rows of a table. `mark`: a column that only the
    DataFrame of the table has, whose plan is a function over batches.
    """
    plan = getattr(dataframe, "_jdf", None)
    if plan is None:
        return ANY_ROWS
    with _sets_printed(dataframe.sparkSession):
        nodes = json.loads(plan.queryExecution().optimizedPlan().toJSON())
    zone = dataframe.sparkSession.conf.get(_ZONE)
    return _of_table(nodes, _Reader(schema, ZoneInfo(_zone_name(zone))), mark)


def _zone_name(zone: str) -> str:
    return "UTC" if zone in ("Z", "UTC", "GMT") else zone


@contextmanager
def _sets_printed(session: Any) -> Iterator[None]:
    before = session.conf.get(_IN_SET)
    session.conf.set(_IN_SET, _IN_MAX)
    try:
        yield
    finally:
        session.conf.set(_IN_SET, before)


# --- The plan ------------------------------------------------------------------------------------

Node = Mapping[str, Any]


def _of_table(nodes: Sequence[Node], reader: _Reader, mark: str) -> RowFilter:
    """Find the table's rows in a plan, whose nodes come before their children, and read the filters
    right above them."""
    for place, node in enumerate(nodes):
        if _name(node) != "MapInArrow" or mark not in _columns(node):
            continue
        found = ALL_ROWS
        for above in reversed(nodes[:place]):
            if _name(above) == "Filter":
                found = found.both(reader.read(above["condition"]))
            elif _name(above) != "Project":
                return RowFilter(found.expression, False)
        return found
    return NO_ROWS


def _name(node: Node) -> str:
    name: str = node["class"].rpartition(".")[2]
    return name


def _columns(node: Node) -> set[str]:
    outputs = node.get("output") or []
    return {each["name"] for output in outputs for each in output if "name" in each}


class _Unread(Exception):
    """Iceberg has no such predicate."""


class _Reader:
    """Reads conditions, whose nodes come before their children."""

    def __init__(self, schema: Schema, zone: ZoneInfo) -> None:
        self._schema, self._zone = schema, zone

    def read(self, nodes: Sequence[Node]) -> RowFilter:
        tree, _ = _tree(nodes, 0)
        return self._read(tree)

    def _read(self, tree: _Tree) -> RowFilter:
        name = _name(tree.node)
        if name in ("And", "Or"):
            left, right = (self._read(child) for child in tree.children)
            return left.both(right) if name == "And" else left.either(right)
        try:
            if name == "Literal":
                return ALL_ROWS if self._literal(tree) is True else NO_ROWS
            pushed = push_filters([self._predicate(tree)], self._schema)
        except (_Unread, ValueError, ArithmeticError):
            return ANY_ROWS
        return ANY_ROWS if pushed.remaining else RowFilter(pushed.expression, True)

    def _predicate(self, tree: _Tree) -> spark.Filter:
        name, children = _name(tree.node), tree.children
        if name in ("AttributeReference", "GetStructField"):  # a boolean column by itself
            return spark.EqualTo(self._column(tree), True)
        if name == "Not":
            (child,) = children
            if _name(child.node) == "Not":
                raise _Unread(name)
            return spark.Not(self._predicate(child))
        if name in ("IsNull", "IsNotNull"):
            kind = spark.IsNull if name == "IsNull" else spark.IsNotNull
            return kind(self._column(children[0]))
        if name == "In":
            values = tuple(self._literal(child) for child in children[1:])
            if any(value is None for value in values):
                raise _Unread("a null in a set")
            return spark.In(self._column(children[0]), values)
        return self._comparison(name, *children)

    def _comparison(self, name: str, left: _Tree, right: _Tree) -> spark.Filter:
        if name == "StartsWith":
            return spark.StringStartsWith(self._column(left), str(self._literal(right)))
        if _name(left.node) == "Literal":
            left, right, name = right, left, _MIRRORED.get(name, name)
        kind = _COMPARISONS.get(name)
        if kind is None:
            raise _Unread(name)
        value = self._literal(right)
        if value is None and kind is not spark.EqualNullSafe:
            raise _Unread("a comparison with null")
        return kind(self._column(left), value)

    def _column(self, tree: _Tree) -> tuple[str, ...]:
        match _name(tree.node):
            case "AttributeReference":
                return (tree.node["name"],)
            case "GetStructField":
                kind = tree.children[0].node.get("dataType")
                if not isinstance(kind, Mapping):
                    raise _Unread("a field of what is computed")
                field = kind["fields"][tree.node["ordinal"]]["name"]
                return (*self._column(tree.children[0]), field)
        raise _Unread(tree.node["class"])

    def _literal(self, tree: _Tree) -> object:
        if _name(tree.node) != "Literal":
            raise _Unread(tree.node["class"])
        text, kind = tree.node.get("value"), tree.node["dataType"]
        if text is None:
            return None
        match kind:
            case "boolean":
                return text == "true"
            case "byte" | "short" | "integer" | "long":
                return int(text)
            case "float" | "double":
                return float(text)
            case "string":
                return text
            case "date":
                return date.fromisoformat(text)
            case "timestamp":
                return self._instant(text)
            case "timestamp_ntz":
                return _EPOCH + timedelta(microseconds=int(text))
        if isinstance(kind, str) and kind.startswith("decimal"):
            return Decimal(text)
        raise _Unread(f"a literal of type {kind}")

    def _instant(self, text: str) -> datetime:
        """Read a time that Spark has printed in the zone of the session."""
        local = datetime.fromisoformat(text)
        found = local.replace(tzinfo=self._zone)
        if found.utcoffset() != found.replace(fold=1).utcoffset():
            raise _Unread("an hour that comes twice, or never")
        return found.astimezone(UTC)


_COMPARISONS: Mapping[str, Any] = {
    "EqualTo": spark.EqualTo,
    "EqualNullSafe": spark.EqualNullSafe,
    "LessThan": spark.LessThan,
    "LessThanOrEqual": spark.LessThanOrEqual,
    "GreaterThan": spark.GreaterThan,
    "GreaterThanOrEqual": spark.GreaterThanOrEqual,
}
_MIRRORED = {
    "LessThan": "GreaterThan",
    "LessThanOrEqual": "GreaterThanOrEqual",
    "GreaterThan": "LessThan",
    "GreaterThanOrEqual": "LessThanOrEqual",
}


@dataclass(frozen=True, slots=True)
class _Tree:
    node: Node
    children: tuple[_Tree, ...]


def _tree(nodes: Sequence[Node], place: int) -> tuple[_Tree, int]:
    """Return the tree that begins at a place, and the place behind it."""
    node, children = nodes[place], []
    place += 1
    for _ in range(node["num-children"]):
        child, place = _tree(nodes, place)
        children.append(child)
    return _Tree(node, tuple(children)), place
