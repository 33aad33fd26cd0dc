"""Avro schemas equal those of the reference implementation, to the order of their keys."""

from __future__ import annotations

import json
from typing import Any

import pytest

from committer.iceberg.avro.container import read_header
from committer.iceberg.avro.manifest_schemas import (
    avro_schema,
    decimal_bytes,
    manifest_entry_type,
    manifest_file_type,
    schema_headers,
)
from committer.iceberg.avro.shapes import schema_shape
from committer.iceberg.schema.avro_names import safe_name
from committer.iceberg.values.type_json import parse_type
from committer.iceberg.values.types import NestedField, StructType, UUIDType
from tests.support.builders.fixtures import table_dir, vectors

CASES: list[dict[str, Any]] = vectors("avro_schemas")["cases"]
NAMES = [case for case in vectors("names")["cases"] if case["kind"] == "avro_name"]


def partition_struct(fields: list[dict[str, Any]]) -> StructType:
    return StructType(
        tuple(
            NestedField(field["id"], field["name"], parse_type(field["type"]), field["required"])
            for field in fields
        )
    )


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"v{case['format_version']}")
def test_the_schema_is_that_of_the_reference_implementation(case: dict[str, Any]) -> None:
    if case.get("manifest_list"):
        printed = avro_schema(manifest_file_type(case["format_version"]), "manifest_file")
    else:
        kind = partition_struct(case["partition_fields"])
        printed = avro_schema(manifest_entry_type(case["format_version"], kind), "manifest_entry")
    assert json.dumps(printed) == json.dumps(case["avro"])


@pytest.mark.parametrize("case", NAMES, ids=lambda case: ascii(case["name"]))
def test_names_are_made_safe_as_the_reference_implementation_does(case: dict[str, Any]) -> None:
    assert safe_name(case["name"]) == case["avro"]


def test_the_header_texts_are_those_of_the_reference_implementation() -> None:
    path = next(table_dir("v3_empty").parent.glob("v3_row_lineage/metadata/*-m0.avro"))
    metadata = read_header(path.read_bytes()).metadata
    headers = schema_headers(manifest_entry_type(3, StructType(())), "manifest_entry")
    assert headers == (metadata["avro.schema"], metadata["iceberg.schema"])


def test_a_repeated_fixed_type_is_named_only_once() -> None:
    kind = StructType(tuple(NestedField(i, f"u{i}", UUIDType(), False) for i in (1000, 1001)))
    text = json.dumps(avro_schema(manifest_entry_type(2, kind), "manifest_entry"))
    assert text.count('"uuid_fixed", "size"') == 1
    assert '["null", "uuid_fixed"]' in text
    shape = schema_shape(text.encode())
    assert shape == schema_shape(json.dumps(json.loads(text)).encode())


@pytest.mark.parametrize(("precision", "size"), [(1, 1), (2, 1), (3, 2), (9, 4), (18, 8), (38, 16)])
def test_decimals_take_the_fewest_bytes(precision: int, size: int) -> None:
    assert decimal_bytes(precision) == size
