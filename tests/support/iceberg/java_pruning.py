"""Where Iceberg Java's projections and residuals differ from those of Frazil."""

from __future__ import annotations

import json
from typing import Any

from committer.iceberg.expressions.expression import (
    ALWAYS_FALSE,
    ALWAYS_TRUE,
    EqualTo,
    Expression,
    GreaterThanOrEqual,
    LessThanOrEqual,
    Predicate,
    map_predicates,
    rewrite_not,
    term_of,
)
from committer.iceberg.expressions.expression_json import parse_expression, print_expression
from committer.iceberg.schema.partition_spec import PartitionSpec
from committer.iceberg.schema.schema import Schema
from committer.iceberg.values.transforms import parse_transform
from committer.iceberg.values.types import IcebergType


def without_not(residual: Any) -> Any:
    """Return a residual of Java with each `not` replaced by the opposite predicate, which selects
    the same rows.
    """
    return print_expression(rewrite_not(parse_expression(residual)))


def wraps_its_literal(case: Any, kind: IcebergType) -> bool:
    """Return whether Java steps over the end of a type and asks for what the step wraps to."""
    is_last = isinstance(case["filter"], dict) and case["filter"].get("value") in (
        2**31 - 1,
        2**63 - 1,
    )
    wrapped = parse_transform(case["transform"]).wrapped_results
    return is_last and case["filter"]["type"] in ("gt", "lt-eq") and bool(wrapped(kind))


def believing_wrapped(projection: Expression, spec: PartitionSpec, schema: Schema) -> Expression:
    """Return a projection as Java makes it: without the partition values that may have wrapped."""

    def believed(predicate: Predicate) -> Expression:
        reference = term_of(predicate).reference
        (field,) = (one for one in spec.fields if one.field_id == reference.field_id)
        source = schema.field(field.source_id)
        assert source is not None
        for results in field.transform.wrapped_results(source.field_type):
            if getattr(predicate, "value", None) in (results[0], results[-1]):
                widens = isinstance(predicate, EqualTo | LessThanOrEqual | GreaterThanOrEqual)
                return ALWAYS_FALSE if widens else ALWAYS_TRUE
        return predicate

    return map_predicates(projection, believed)


def is_below_null(filter: Any, partition: tuple[object, ...]) -> bool:
    """Return whether Java may take null for less than a literal, which no row with null
    matches."""
    texts = json.dumps(filter)
    return partition == (None,) and any(f'"{name}"' in texts for name in ("lt", "lt-eq", "not"))
