"""The checks of a file of vectors, one for each case. A file or kind that is not known fails.

Texts of Java that no rule of the format asks for (`toString`) are not compared.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from committer.iceberg.avro.manifest_schemas import (
    avro_schema,
    manifest_entry_type,
    manifest_file_type,
)
from committer.iceberg.entry.content_file_json import parse_content_file
from committer.iceberg.schema.avro_names import safe_name
from committer.iceberg.schema.partition_spec import (
    PartitionField,
    PartitionSpec,
    parse_partition_spec,
    partition_path,
)
from committer.iceberg.schema.schema import Schema, parse_schema
from committer.iceberg.values.display_values import human_value
from committer.iceberg.values.locations import data_file_location
from committer.iceberg.values.single_value import (
    decode_value,
    encode_value,
    parse_json_value,
    print_json_value,
)
from committer.iceberg.values.transforms import IDENTITY, bucket_hash, parse_transform
from committer.iceberg.values.truncation import truncate_lower, truncate_upper
from committer.iceberg.values.type_json import parse_type
from committer.iceberg.values.types import (
    BinaryType,
    DoubleType,
    FloatType,
    IcebergType,
    NestedField,
    StringType,
    StructType,
)
from tests.conformance.check import Check, Mismatch, same, same_human, same_value
from tests.conformance.filter_checks import (
    check_evaluators,
    check_expression,
    check_literal,
    check_projection,
    check_residual,
)
from tests.support.iceberg.content_file_printer import print_content_file
from tests.support.iceberg.vector_values import json_text, vector_type

Case = dict[str, Any]
CaseCheck = Callable[[Case], None]

_NOT_NUMBERS = ("NaN", "Infinity", "-Infinity")


def vector_checks(path: Path) -> Iterator[Check]:
    """Yield every check of a file."""
    check = CASE_CHECKS.get(path.stem)
    if check is None:
        yield Check(path.name, _unknown)
        return
    for number, case in enumerate(json.loads(path.read_bytes())["cases"]):
        yield Check(f"{path.name}[{number}]", partial(check, case))


def _unknown() -> None:
    raise Mismatch("not a file of vectors that this suite knows")


# --- Values --------------------------------------------------------------------------------------


def _check_single_value(case: Case) -> None:
    kind = vector_type(case["type"])
    if "binary_hex" in case:
        _check_written_value(kind, case)
    elif "rejected" in case:
        _check_rejected_value(kind, case)
    else:
        value = parse_json_value(kind, json.loads(case["json_in"]))
        _same_text(print_json_value(kind, value), json.loads(case["json_text"]))


def _check_written_value(kind: IcebergType, case: Case) -> None:
    encoded, wanted = bytes.fromhex(case["binary_hex"]), json.loads(case["json_text"])
    value = decode_value(kind, encoded)
    same(encode_value(kind, value).hex(), encoded.hex(), "binary")
    same_value(kind, print_json_value(kind, value), wanted, "JSON")
    same_human(kind, human_value(kind, value), case["human"], "human")
    # Java prints NaN and the infinities, and does not read them back.
    if not (kind in (FloatType(), DoubleType()) and wanted in _NOT_NUMBERS):
        read = encode_value(kind, parse_json_value(kind, wanted))
        same(read.hex(), encoded.hex(), "read from JSON")


def _check_rejected_value(kind: IcebergType, case: Case) -> None:
    try:
        value = parse_json_value(kind, json.loads(case["json_in"]))
    except ValueError:
        return
    raise Mismatch(f"read {case['json_in']} as {value!r}, expected a ValueError")


def _same_text(found: object, wanted: object) -> None:
    """Check that both are equal with the same order of keys."""
    same(json_text(found), json_text(wanted))


def _check_transform(case: Case) -> None:
    kind = vector_type(case["type"])
    value = _source_value(kind, case["value"])
    if "hash" in case:
        same(bucket_hash(kind)(value), case["hash"], "hash")
    for text, wanted in case["results"].items():
        transform = parse_transform(text)
        if not transform.can_transform(kind):
            raise Mismatch(f"{text} does not take {kind}")
        result_type, result = transform.result_type(kind), transform.apply(kind, value)
        same(str(result_type), wanted["result_type"], f"{text}: type")
        same_value(result_type, print_json_value(result_type, result), wanted["result"], text)
        same_human(result_type, transform.human(kind, result), wanted["human"], f"{text}: human")


def _source_value(kind: IcebergType, json_value: object) -> object:
    if kind in (FloatType(), DoubleType()) and isinstance(json_value, str):
        return float(json_value)
    return parse_json_value(kind, json_value)


def _check_truncated_bounds(case: Case) -> None:
    is_text = case["kind"] == "string"
    value = case["value"] if is_text else bytes.fromhex(case["value_hex"])
    kind: IcebergType = StringType() if is_text else BinaryType()
    for text, wanted in case["by_width"].items():
        bounds = (truncate_lower(kind, value, int(text)), truncate_upper(kind, value, int(text)))
        same([_plain(bound) for bound in bounds], _wanted_bounds(wanted, value), text)


def _plain(bound: object) -> object:
    return bound.hex() if isinstance(bound, bytes) else bound


def _wanted_bounds(wanted: Mapping[str, str | None], value: object) -> list[object]:
    if "min" in wanted:
        return [wanted["min"], wanted["max"]]
    # Java knows no upper bound of what is empty; it is its own.
    return [wanted["min_hex"], wanted["max_hex"] if value else ""]


# --- Names and schemas ---------------------------------------------------------------------------


def _check_name(case: Case) -> None:
    match case["kind"]:
        case "avro_name":
            same(safe_name(case["name"]), case["avro"])
        case "partition_path":
            same(_path_of(case["field_name"], case["value"]), case["path"])
        case "object_storage_path":
            properties = {
                "write.object-storage.enabled": "true",
                "write.object-storage.partitioned-paths": json.dumps(case["partitioned_paths"]),
            }
            path = _path_of("p x/é", case["value"])
            plain = data_file_location("s3://b/t", properties, "", case["file"])
            same(plain, case["location"])
            partitioned = data_file_location("s3://b/t", properties, path, case["file"])
            same(partitioned, case["location_partitioned"])
        case other:
            raise Mismatch(f"not a kind of names that this suite knows: {other}")


def _path_of(field_name: str, value: str | None) -> str:
    schema = Schema((NestedField(1, "v", StringType(), required=False),))
    spec = PartitionSpec(0, (PartitionField((1,), 1000, field_name, IDENTITY),))
    return partition_path(spec, schema, (value,))


def _check_avro_schema(case: Case) -> None:
    version = case["format_version"]
    if case.get("manifest_list"):
        _same_text(avro_schema(manifest_file_type(version), "manifest_file"), case["avro"])
        return
    fields = [
        NestedField(field["id"], field["name"], parse_type(field["type"]), field["required"])
        for field in case["partition_fields"]
    ]
    _same_text(
        avro_schema(manifest_entry_type(version, StructType(tuple(fields))), "manifest_entry"),
        case["avro"],
    )


def _check_content_file(case: Case) -> None:
    schema, spec = parse_schema(case["schema"]), parse_partition_spec(case["spec"])
    document = json.loads(case["json_text"])
    file = parse_content_file(document, {spec.spec_id: spec}, schema)
    _same_text(print_content_file(file, spec, schema), document)


CASE_CHECKS: dict[str, CaseCheck] = {
    "avro_schemas": _check_avro_schema,
    "content_files": _check_content_file,
    "evaluators": check_evaluators,
    "expressions": check_expression,
    "literals": check_literal,
    "names": _check_name,
    "projections": check_projection,
    "residuals": check_residual,
    "single_value": _check_single_value,
    "transforms": _check_transform,
    "truncated_bounds": _check_truncated_bounds,
}
