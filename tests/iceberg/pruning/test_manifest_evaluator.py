"""Manifests are kept as by Iceberg Java, and never against their files."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from committer.errors import InvalidMetadataError
from committer.iceberg.expressions.expression import EqualTo, Reference, Transformed
from committer.iceberg.expressions.expression_json import parse_expression
from committer.iceberg.manifest.manifest_list import PartitionFieldSummary
from committer.iceberg.manifest.partition_summary import summarize_partitions
from committer.iceberg.pruning.manifest_evaluator import manifest_evaluator
from committer.iceberg.schema.partition_spec import PartitionField, PartitionSpec, partition_type
from committer.iceberg.schema.schema import Schema
from committer.iceberg.values.transforms import IDENTITY, TruncateTransform
from committer.iceberg.values.types import IntegerType, LongType, NestedField
from tests.support.builders.fixtures import vectors
from tests.support.builders.projections import COLUMNS, filters_on, one_column, one_field
from tests.support.iceberg.expression_builders import rows_of
from tests.support.iceberg.random_metrics import manifest_with
from tests.support.iceberg.row_evaluator import row_evaluator
from tests.support.iceberg.vector_values import vector_type

SPEC = PartitionSpec(0, (PartitionField((1,), 1000, "c", IDENTITY),))


def vector_summary(summary: dict[str, Any] | None) -> tuple[PartitionFieldSummary, ...] | None:
    if summary is None:
        return None
    lower, upper = (
        None if summary[key] is None else bytes.fromhex(summary[key])
        for key in ("lower_hex", "upper_hex")
    )
    return (
        PartitionFieldSummary(summary["contains_null"], summary.get("contains_nan"), lower, upper),
    )


def test_every_vector_is_answered_as_java_does() -> None:
    asked = 0
    for case in vectors("evaluators")["cases"]:
        kind = vector_type(case["type"])
        schema = Schema((NestedField(1, "c", kind, False), NestedField(2, "r", LongType(), True)))
        manifest = manifest_with(vector_summary(case["manifest_summary"]))
        for predicate in case["predicates"]:
            if "manifest" in predicate:
                test = manifest_evaluator(SPEC, schema, parse_expression(predicate["filter"]))
                assert test(manifest) == predicate["manifest"], (case["type"], predicate)
                asked += 1
    assert asked > 5_000


@pytest.mark.simulation
@settings(max_examples=250, deadline=None)
@given(st.data())
def test_no_manifest_is_pruned_that_has_a_row_that_matches(data: st.DataObject) -> None:
    kind, transform = data.draw(st.sampled_from(COLUMNS))
    filter = data.draw(filters_on(kind))
    values = data.draw(st.lists(rows_of(kind), min_size=1, max_size=4))
    spec, schema = one_field(transform), one_column(kind)
    partitions = [(transform.apply(kind, value),) for value in values]
    summaries = summarize_partitions(partition_type(spec, schema), partitions)
    may_match = manifest_evaluator(spec, schema, filter)(manifest_with(summaries))
    matches = row_evaluator(schema, filter)
    assert may_match >= any(matches((value,)) for value in values)


def test_numbers_that_wrap_around_lie_outside_of_truncated_summaries() -> None:
    truncated = Transformed(TruncateTransform(10), Reference("c"))
    for lowest, literal, expected in (
        (-(2**31), 2**31 - 2, True),
        (-(2**31), 50, True),
        (-(2**31), 1_000, False),
        (-(2**31) + 10, 2**31 - 2, False),
    ):
        bounds = (struct.pack("<i", number) for number in (lowest, 50))
        manifest = manifest_with((PartitionFieldSummary(False, None, *bounds),))
        filter = EqualTo(truncated, literal)
        assert manifest_evaluator(SPEC, one_column(IntegerType()), filter)(manifest) == expected


def test_summaries_that_do_not_fit_are_refused_with_the_manifest_s_name() -> None:
    test = manifest_evaluator(SPEC, one_column(IntegerType()), EqualTo(Reference("c"), 1))
    broken = PartitionFieldSummary(False, None, b"\0", b"\0")
    with pytest.raises(InvalidMetadataError, match=r"m.avro: expected summaries' bounds"):
        test(manifest_with((broken,)))
    with pytest.raises(InvalidMetadataError, match=r"m.avro: 2 partition summaries, expected 1"):
        test(manifest_with((broken, broken)))
    assert test(manifest_with(None))
