"""Filters on the manifests and partitions of one table."""

from __future__ import annotations

from dataclasses import replace

import pytest

from committer.errors import InvalidFilterError, InvalidMetadataError
from committer.iceberg.expressions.expression import ALWAYS_TRUE, EqualTo, Expression, Reference
from committer.iceberg.expressions.where_text import parse_where
from committer.iceberg.metadata.table_metadata import TableMetadata, parse_table_metadata
from committer.iceberg.scan.scan_filter import ScanFilter, scan_filter
from tests.support.builders.fixtures import expected, read_bytes

# p is an int, partitioned by identity; q is text, by its first two letters.
METADATA = parse_table_metadata(read_bytes(expected("v2_long_manifest_list")["metadata_location"]))


def filter_of(text: str) -> ScanFilter:
    return ScanFilter(METADATA.partition_specs, METADATA.current_schema, parse_where(text))


def test_a_partition_without_matching_rows_has_no_residual() -> None:
    residual = filter_of("p = 1 and q = 'bee'").residual(0)
    assert residual((1, "be")) == parse_where("q = 'bee'")
    assert residual((2, "be")) is None
    assert residual((1, "ca")) is None


def test_a_null_partition_value_compares_with_nothing() -> None:
    for text in ("p < 1", "p > 1", "not p < 1", "not p >= 1"):
        assert filter_of(text).residual(0)((None, "be")) is None
    assert filter_of("p != 1").residual(0)((None, "be")) == ALWAYS_TRUE


def test_partitions_of_other_types_than_their_columns_are_refused() -> None:
    for text in ("p < 1", "p >= 1", "truncate(2, p) < 1"):
        with pytest.raises(InvalidMetadataError, match="a partition of spec 0"):
            filter_of(text).residual(0)(("one", "be"))


def test_the_columns_of_a_filter_are_those_whose_metrics_are_read() -> None:
    asked = filter_of("not (p = 1 or q is null) and id in (1, 2)")
    ids = {field.name: field.field_id for field in METADATA.current_schema.fields}
    assert asked.field_ids == {ids["p"], ids["q"], ids["id"]}
    assert filter_of("p = 1").may_match_file is not None
    everything = ScanFilter(METADATA.partition_specs, METADATA.current_schema)
    assert (everything.field_ids, everything.may_match_file) == (frozenset(), None)


def test_a_filter_that_does_not_fit_is_refused_before_anything_is_read() -> None:
    with pytest.raises(InvalidFilterError, match="nobody"):
        filter_of("nobody = 1")


def test_a_filter_is_prepared_once_while_the_schema_and_the_specs_stay() -> None:
    first = scan_filter(METADATA, parse_where("p = 1"))
    later = replace(METADATA, last_updated_ms=METADATA.last_updated_ms + 1)
    assert scan_filter(later, parse_where("p = 1")) is first


def _with(metadata: TableMetadata, *, schema: bool = False, spec: bool = False) -> TableMetadata:
    """Return the metadata with a schema or a spec that only looks the same."""
    schemas = tuple(replace(one) for one in metadata.schemas) if schema else metadata.schemas
    specs = metadata.partition_specs
    specs = tuple(replace(one) for one in specs) if spec else specs
    return replace(metadata, schemas=schemas, partition_specs=specs)


@pytest.mark.parametrize(
    ("metadata", "expression", "case_sensitive"),
    [
        (METADATA, parse_where("p = 2"), True),
        (METADATA, parse_where("p = 1"), False),
        (_with(METADATA, schema=True), parse_where("p = 1"), True),
        (_with(METADATA, spec=True), parse_where("p = 1"), True),
    ],
)
def test_another_filter_or_table_is_prepared_anew(
    metadata: TableMetadata, expression: Expression, case_sensitive: bool
) -> None:
    first = scan_filter(METADATA, parse_where("p = 1"))
    assert scan_filter(metadata, expression, case_sensitive=case_sensitive) is not first


def test_literals_that_are_equal_but_not_the_same_make_different_filters() -> None:
    p = Reference("p")
    first = scan_filter(METADATA, EqualTo(p, 1))
    assert EqualTo(p, 1) == EqualTo(p, True)
    with pytest.raises(InvalidFilterError):
        scan_filter(METADATA, EqualTo(p, True))
    assert scan_filter(METADATA, EqualTo(p, 1)) is first


def test_a_long_filter_is_not_kept() -> None:
    long = parse_where(f"p in ({', '.join(map(str, range(1_000)))})")
    assert scan_filter(METADATA, long) is not scan_filter(METADATA, long)
