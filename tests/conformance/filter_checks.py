"""The checks of vectors about filters: literals, expressions, projections, evaluators, residuals.

Where Java threw, there is nothing to compare. Where it loses rows, the sound answer is the right
one: see `_is_lost_by_java`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any
from uuid import UUID

from committer.iceberg.entry.data_file import DataFile
from committer.iceberg.expressions.binding import bind
from committer.iceberg.expressions.expression import (
    BoundTransformed,
    Expression,
    LiteralPredicate,
    Predicate,
    SetPredicate,
    Transformed,
    map_predicates,
    rewrite_not,
)
from committer.iceberg.expressions.expression_json import parse_expression, print_expression
from committer.iceberg.expressions.expression_text import print_text
from committer.iceberg.expressions.literals import Limit, convert_literal
from committer.iceberg.manifest.manifest_list import PartitionFieldSummary
from committer.iceberg.pruning.manifest_evaluator import manifest_evaluator
from committer.iceberg.pruning.metrics_evaluator import (
    inclusive_metrics_evaluator,
    strict_metrics_evaluator,
)
from committer.iceberg.pruning.projection import inclusive_projection
from committer.iceberg.pruning.residual import residual_evaluator
from committer.iceberg.schema.partition_spec import (
    PartitionField,
    PartitionSpec,
    parse_partition_fields,
    partition_type,
)
from committer.iceberg.schema.schema import Schema
from committer.iceberg.values.single_value import parse_json_value, print_json_value
from committer.iceberg.values.transforms import IDENTITY, parse_transform
from committer.iceberg.values.types import (
    BinaryType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IcebergType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    TimestampType,
    UUIDType,
)
from tests.conformance.check import Mismatch, as_floats, same, same_value
from tests.support.builders.projections import strict_projection
from tests.support.iceberg.expression_builders import printed, sets_in_order, unbound, vector_schema
from tests.support.iceberg.java_pruning import believing_wrapped, is_below_null, wraps_its_literal
from tests.support.iceberg.random_metrics import manifest_with
from tests.support.iceberg.vector_values import json_text, vector_type

Case = dict[str, Any]

_HELD_AS_VALUES = (DecimalType, UUIDType, FixedType, BinaryType, FloatType, DoubleType)
# The address of a set of bytes in Java's memory.
_ADDRESS = "HeapByteBuffer"
_NUMBER = re.compile(r"-?\d+\.\d+(?:[eE][-+]?\d+)?")
_FIELD = re.compile(r"(\w+)=([\w\[\]]+)\((\w+)\)")
_COLUMN = re.compile(r"(\d+): (\w+) (optional|required) (\w+)")
_RESIDUAL_SCHEMA = Schema(
    (
        NestedField(1, "ts", TimestampType(), False),
        NestedField(2, "id", LongType(), False),
        NestedField(3, "s", StringType(), False),
        NestedField(4, "d", DateType(), False),
    )
)


# --- Literals and expressions --------------------------------------------------------------------

_SOURCES: dict[str, tuple[Callable[[str], object], IcebergType | None]] = {
    "Integer": (int, IntegerType()),
    "Long": (int, None),
    "Float": (float, FloatType()),
    "Double": (float, DoubleType()),
    "BigDecimal": (Decimal, None),
    "String": (str, None),
    "Boolean": (lambda text: text == "true", None),
    "UUID": (UUID, None),
    "bytes": (bytes.fromhex, None),
}


def check_literal(case: Case) -> None:
    read, source = _SOURCES[case["from"]]
    kind = vector_type(case["to"])
    try:
        found = convert_literal(read(case["value"]), kind, source)
    except ValueError as error:
        if "error" not in case:
            raise Mismatch(f"expected {case['result']!r}: {error}") from None
        return
    if "error" in case:
        raise Mismatch(f"found {found!r}, expected an error")
    shown = found.value if isinstance(found, Limit) else print_json_value(kind, found)
    same_value(kind, shown, case["result"])


def check_expression(case: Case) -> None:
    kind = vector_type(case["type"])
    expression = parse_expression(case["json"])
    same(json_text(print_expression(expression)), json_text(case["json"]), "json")
    rewritten = print_expression(rewrite_not(expression))
    same(json_text(rewritten), json_text(case["rewrite_not"]), "rewrite_not")
    bound = bind(expression, vector_schema(kind))
    _same_filter(kind, printed(bound), sets_in_order(case["bound_json"]), "bound_json")
    held = _as_java_held_it(expression, kind)
    same(_numbers(kind, print_text(held)), _numbers(kind, case["text"]), "text")
    if _ADDRESS not in case["bound_text"]:
        ours, theirs = _numbers(kind, print_text(bound)), _numbers(kind, case["bound_text"])
        same(_text_in_order(ours), _text_in_order(theirs), "bound_text")


def _as_java_held_it(expression: Expression, kind: IcebergType) -> Expression:
    """Parse literals that JSON spells as text, but that Java held as values."""
    if not isinstance(kind, _HELD_AS_VALUES):
        return expression

    def read(value: object) -> object:
        if isinstance(kind, FloatType | DoubleType):
            return float(str(value))
        return parse_json_value(kind, value)

    def replace(predicate: Predicate) -> Expression:
        match predicate:
            case LiteralPredicate(term, value):
                return type(predicate)(term, read(value))
            case SetPredicate(term, values):
                return type(predicate)(term, tuple(map(read, values)))
        return predicate

    return map_predicates(expression, replace)


def _text_in_order(text: str) -> str:
    """Sort the literals of bound sets: Java keeps them hashed, and prints them without quotes."""

    def in_order(match: re.Match[str]) -> str:
        return f" in {sorted(match[1].replace(chr(34), '').split(', '))}"

    return re.sub(r" in \(([^()]*)\)", in_order, text)


def _numbers(kind: IcebergType, text: str) -> str:
    """Return the text of a filter; numbers of a float column as the nearest floats."""
    return _NUMBER.sub(_number_as_float, text) if kind == FloatType() else text


def _number_as_float(match: re.Match[str]) -> str:
    return repr(as_floats(float(match[0])))


def _same_filter(kind: IcebergType, found: object, wanted: object, place: str) -> None:
    """Check as `same` does; compare numbers of a float column as floats."""
    if kind == FloatType():
        found, wanted = as_floats(found), as_floats(wanted)
    same(found, wanted, place)


# --- Projections and residuals -------------------------------------------------------------------


def check_projection(case: Case) -> None:
    if "schema" in case:
        _check_projection_of_several(case)
        return
    kind = vector_type(case["type"])
    schema = Schema((NestedField(1, "c", kind, False),))
    spec = _one_field("p", parse_transform(case["transform"]))
    filter = parse_expression(case["filter"])
    if wraps_its_literal(case, kind):
        return
    for key, project in _PROJECTIONS.items():
        projected = believing_wrapped(project(spec, schema, filter), spec, schema)
        found = printed(unbound(projected))
        _same_filter(kind, found, sets_in_order(case[key]), key)


_PROJECTIONS = {"inclusive": inclusive_projection, "strict": strict_projection}


def _one_field(name: str, transform: Any) -> PartitionSpec:
    return PartitionSpec(0, (PartitionField((1,), 1000, name, transform),))


def _check_projection_of_several(case: Case) -> None:
    columns = [
        NestedField(int(number), name, vector_type(kind), need == "required")
        for number, name, need, kind in _COLUMN.findall(case["schema"])
    ]
    ids = {column.name: column.field_id for column in columns}
    fields = [
        PartitionField((ids[source],), 1000 + at, name, parse_transform(transform))
        for at, (name, transform, source) in enumerate(_FIELD.findall(case["spec"]))
    ]
    spec, schema = PartitionSpec(0, tuple(fields)), Schema(tuple(columns))
    filter = parse_expression(case["filter"])
    for key, project in _PROJECTIONS.items():
        projected = believing_wrapped(project(spec, schema, filter), spec, schema)
        if _is_lost_by_java(filter, projected):
            continue
        same(print_text(unbound(projected)), case[f"{key}_text"], f"{key}_text")


def _is_lost_by_java(filter: Expression, projected: Expression) -> bool:
    """Return whether Java loses rows: it projects `truncate[2](s) = 'ab'` on an identity partition
    to `s = 'ab'`, and so loses a row with `abc`. Frazil applies the transform.
    """
    match filter, projected:
        case Predicate(term=Transformed() as asked), Predicate(term=BoundTransformed() as answered):
            return asked.transform == answered.transform
    return False


def check_residual(case: Case) -> None:
    spec = PartitionSpec(0, parse_partition_fields([json.loads(case["spec"])]))
    kind = partition_type(spec, _RESIDUAL_SCHEMA).fields[0].field_type
    partition = (parse_json_value(kind, case["partition_value"]),)
    residual = residual_evaluator(spec, _RESIDUAL_SCHEMA, parse_expression(case["filter"]))
    expected = print_expression(rewrite_not(parse_expression(case["residual"])))
    same(print_expression(residual(partition)), expected)


# --- Evaluators ----------------------------------------------------------------------------------


def check_evaluators(case: Case) -> None:
    """Check all four evaluators on one file, one manifest and one partition, for each predicate."""
    kind = vector_type(case["type"])
    schema = Schema((NestedField(1, "c", kind, False), NestedField(2, "r", LongType(), True)))
    spec, file = _one_field("c", IDENTITY), _file(case["file"])
    manifest = manifest_with(_summaries(case["manifest_summary"]))
    partition = (parse_json_value(kind, case["partition_value"]),)
    for number, said in enumerate(case["predicates"]):
        filter, place = parse_expression(said["filter"]), f"predicates[{number}]"
        inclusive = inclusive_metrics_evaluator(schema, filter)(file)
        same(inclusive, said["inclusive"], f"{place}.inclusive")
        strict = strict_metrics_evaluator(schema, filter)(file)
        same(strict, said["strict"], f"{place}.strict")
        if "manifest" in said:
            may_match = manifest_evaluator(spec, schema, filter)(manifest)
            same(may_match, said["manifest"], f"{place}.manifest")
        if "residual" in said and not is_below_null(said["filter"], partition):
            residual = residual_evaluator(spec, schema, filter)(partition)
            same(print_expression(residual), said["residual"], f"{place}.residual")


def _file(said: Case) -> DataFile:
    def counts(key: str) -> dict[int, int] | None:
        found = said.get(key)
        return None if found is None else {int(each): count for each, count in found.items()}

    def bounds(key: str) -> dict[int, bytes] | None:
        return None if said[key] is None else {1: bytes.fromhex(said[key])}

    return DataFile(
        file_path="f",
        record_count=said["record_count"],
        file_size_in_bytes=1,
        value_counts=counts("value_counts"),
        null_value_counts=counts("null_value_counts"),
        nan_value_counts=counts("nan_value_counts"),
        lower_bounds=bounds("lower_hex"),
        upper_bounds=bounds("upper_hex"),
    )


def _summaries(said: Case | None) -> tuple[PartitionFieldSummary, ...] | None:
    if said is None:
        return None
    lower, upper = (
        None if said[key] is None else bytes.fromhex(said[key])
        for key in ("lower_hex", "upper_hex")
    )
    return (PartitionFieldSummary(said["contains_null"], said.get("contains_nan"), lower, upper),)
