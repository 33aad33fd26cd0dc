"""Conditions as Spark understands them, as Iceberg's expressions, which tell something of files.

Spark itself resolves and simplifies a condition, be it a text or a `Column`: casts, time zones,
functions of constants. Its optimized plan is read here, and each predicate that means the same in
Iceberg is taken. Runs on the driver. On Spark Connect the plan is not at hand: nothing is taken.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
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
from committer.iceberg.expressions.expression_json import DEPTH_MAX, print_expression
from committer.iceberg.schema.schema import Schema
from workers.spark.pushed_filters import push_filters

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC).replace(tzinfo=None)
# `IN` of more values becomes a set, which a plan does not print.
_IN_SET = "spark.sql.optimizer.inSetConversionThreshold"
_IN_MAX = "10000"
_ZONE = "spark.sql.session.timeZone"
# A request adds levels of its own: the keys of a merge, and what `not` becomes.
_LEVELS_MAX = DEPTH_MAX // 2
# The line of a request has 4 MiB, and names files, too.
_FILTER_CHARACTERS_MAX = 512 * 1024


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
    return _of_table(nodes, _Reader(schema, zone), mark)


def printed_filter(expression: Expression) -> object | None:
    """Print a filter as a request carries it; None for one that is too long for a request, and for
    one that every row matches."""
    if expression == ALWAYS_TRUE:
        return None
    printed = print_expression(expression)
    return printed if len(json.dumps(printed)) <= _FILTER_CHARACTERS_MAX else None


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

    def __init__(self, schema: Schema, zone: str) -> None:
        self._schema, self._zone = schema, zone

    def read(self, nodes: Sequence[Node]) -> RowFilter:
        return self._read(_tree(nodes), _LEVELS_MAX)

    def _read(self, tree: _Tree, levels: int) -> RowFilter:
        """Read a condition as an expression of so many levels at most; what is deeper is left to
        Spark."""
        name = _name(tree.node)
        if name in ("And", "Or"):
            operands = _operands(tree, name)
            levels -= (len(operands) - 1).bit_length()
            if levels < 0:
                return ANY_ROWS
            combine = RowFilter.both if name == "And" else RowFilter.either
            return _balanced([self._read(each, levels) for each in operands], combine)
        try:
            if name == "Literal":
                return ALL_ROWS if self._literal(tree) is True else NO_ROWS
            pushed = push_filters([self._predicate(tree)], self._schema)
        except (_Unread, ValueError, ArithmeticError):
            return ANY_ROWS
        return ANY_ROWS if pushed.remaining else RowFilter(pushed.expression, True)

    def _predicate(self, tree: _Tree) -> spark.Filter:
        match _name(tree.node), tree.children:
            case (("AttributeReference" | "GetStructField"), _):  # a boolean column by itself
                return spark.EqualTo(self._column(tree), True)
            case "Not", (child,) if _name(child.node) != "Not":
                return spark.Not(self._predicate(child))
            case "IsNull", (child,):
                return spark.IsNull(self._column(child))
            case "IsNotNull", (child,):
                return spark.IsNotNull(self._column(child))
            case "In", (child, *literals):
                values = tuple(self._literal(each) for each in literals)
                if any(value is None for value in values):
                    raise _Unread("a null in a set")
                return spark.In(self._column(child), values)
            case name, (left, right):
                return self._comparison(name, left, right)
        raise _Unread(tree.node["class"])

    def _comparison(self, name: str, left: _Tree, right: _Tree) -> spark.Filter:
        if name == "StartsWith":
            prefix = self._literal(right)
            if not isinstance(prefix, str):
                raise _Unread("a prefix that is no text")
            return spark.StringStartsWith(self._column(left), prefix)
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
        found = local.replace(tzinfo=_zone(self._zone))
        if found.utcoffset() != found.replace(fold=1).utcoffset():
            raise _Unread("an hour that comes twice, or never")
        return found.astimezone(UTC)


def _zone(name: str) -> ZoneInfo:
    """Return a zone of the session; Java has names and offsets that Python has no zone for."""
    try:
        return ZoneInfo("UTC" if name in ("Z", "UTC", "GMT") else name)
    except (KeyError, ValueError, OSError):
        raise _Unread(f"a time in zone {name}") from None


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


def _tree(nodes: Sequence[Node]) -> _Tree:
    """Return the tree of nodes that come before their children, however deep it is."""
    trees: list[_Tree] = []
    for node in reversed(nodes):
        children = tuple(trees.pop() for _ in range(node["num-children"]))
        trees.append(_Tree(node, children))
    return trees[0]


def _operands(tree: _Tree, name: str) -> list[_Tree]:
    """Return the operands of a chain of one connective, in their order."""
    operands, left = [], [tree]
    while left:
        each = left.pop()
        if _name(each.node) == name:
            left += reversed(each.children)
        else:
            operands.append(each)
    return operands


def _balanced(
    filters: list[RowFilter], combine: Callable[[RowFilter, RowFilter], RowFilter]
) -> RowFilter:
    """Combine neighbors, then these: a chain of any length has few levels."""
    while len(filters) > 1:
        pairs = zip(filters[::2], filters[1::2], strict=False)
        last = filters[-1:] if len(filters) % 2 else []
        filters = [combine(left, right) for left, right in pairs] + last
    return filters[0]
