"""Filters on the manifests and partitions of one table."""

from __future__ import annotations

import pytest

from committer.errors import InvalidFilterError, InvalidMetadataError
from committer.iceberg.expressions.expression import ALWAYS_TRUE
from committer.iceberg.expressions.where_text import parse_where
from committer.iceberg.metadata.table_metadata import parse_table_metadata
from committer.iceberg.scan.scan_filter import ScanFilter
from tests.support.builders.fixtures import expected, read_bytes

# p is an int, partitioned by identity; q is text, by its first two letters.
METADATA = parse_table_metadata(read_bytes(expected("v2_long_manifest_list")["metadata_location"]))


def filter_of(text: str) -> ScanFilter:
    return ScanFilter(METADATA, METADATA.current_schema, parse_where(text))


def test_a_partition_without_matching_rows_has_no_residual() -> None:
    residual = filter_of("p = 1 and q = 'bee'").residual(0)
    assert residual((1, "be")) == parse_where("q = 'bee'")
    assert residual((2, "be")) is None
    assert residual((1, "ca")) is None


def test_null_is_less_than_every_literal_as_in_the_reference() -> None:
    residual = filter_of("p < 1").residual(0)
    assert residual((None, "be")) == ALWAYS_TRUE
    assert filter_of("p > 1").residual(0)((None, "be")) is None


def test_partitions_of_other_types_than_their_columns_are_refused() -> None:
    for text in ("p < 1", "p >= 1", "truncate(2, p) < 1"):
        with pytest.raises(InvalidMetadataError, match="a partition of spec 0"):
            filter_of(text).residual(0)(("one", "be"))


def test_the_columns_of_a_filter_are_those_whose_metrics_are_read() -> None:
    asked = filter_of("not (p = 1 or q is null) and id in (1, 2)")
    ids = {field.name: field.field_id for field in METADATA.current_schema.fields}
    assert asked.field_ids == {ids["p"], ids["q"], ids["id"]}
    assert filter_of("p = 1").may_match_file is not None
    everything = ScanFilter(METADATA, METADATA.current_schema)
    assert (everything.field_ids, everything.may_match_file) == (frozenset(), None)


def test_a_filter_that_does_not_fit_is_refused_before_anything_is_read() -> None:
    with pytest.raises(InvalidFilterError, match="nobody"):
        filter_of("nobody = 1")
