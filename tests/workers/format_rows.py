"""Files of any format by our writer, and rows to write: nested ones, and of random types."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from committer.iceberg.entry.data_file import DataFile
from committer.iceberg.schema.partition_spec import UNPARTITIONED, PartitionSpec
from committer.iceberg.schema.schema import Schema
from committer.iceberg.values.types import (
    BooleanType,
    DateType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    StringType,
)
from tests.support.workers.reading import read_all, read_of, task_of
from tests.support.workers.tables import nested, optional, required, schema, struct
from tests.support.workers.write_target import Target, write_rows
from workers.arrow.arrow_schema import arrow_schema

TWO = schema(required(1, "id", LongType()), optional(2, "text", StringType()))


def write_file(
    folder: Path, name: str, table: Schema, rows: pa.RecordBatch, **properties: str
) -> DataFile:
    """Write one file of a format. `properties`: of that format, with `_` for hyphens."""
    given = {f"write.{name}.{key}".replace("_", "-"): text for key, text in properties.items()}
    all_properties = {"write.format.default": name, **given}
    [file] = write_rows(Target(f"file:{folder}/t", table, properties=all_properties), rows)
    return file


def batch_of(table: Schema, rows: list[dict[str, Any]]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(rows, schema=arrow_schema(table))


def by_us(file: DataFile, table: Schema, spec: PartitionSpec = UNPARTITIONED) -> list[Any]:
    found: list[Any] = read_all(read_of(table, specs=(spec,)), task_of(file)).to_pylist()
    return found


def nested_rows() -> list[dict[str, Any]]:
    """Return rows of `nested` with nulls and empty values at every level."""
    return [
        {
            "id": 1,
            "point": {"x": 0.5, "y": 3, "deep": {"text": "t"}},
            "tags": ["a", ""],
            "attributes": [("k", 1.0), ("m", None), ("", -math.inf)],
            "points": [{"x": 1, "at": None}, None],
            "matrix": [[1.0], None, [], [None, -0.0]],
        },
        {"id": 2, **dict.fromkeys(["point", "tags", "attributes", "points", "matrix"])},
        {"id": 3, "point": {"x": None, "y": -1, "deep": None}, "tags": [], "attributes": [],
         "points": [], "matrix": []},
        {"id": 4, "point": {"x": 1.0, "y": 0, "deep": {"text": None}}, "tags": ["b"],
         "attributes": [("z", 0.0)], "points": [None], "matrix": [None]},
    ]  # fmt: skip


def many_nested_rows() -> pa.RecordBatch:
    """Return rows of `nested`, to take a part of."""
    rows = [
        {
            "id": n,
            "point": None if n % 3 == 0 else {"x": n / 2, "y": n, "deep": None},
            "tags": [str(n)] * (n % 4),
            "attributes": [(str(n), float(n))] * (n % 2),
            "points": None if n % 5 == 0 else [{"x": n, "at": None}],
            "matrix": [[float(n)] * (n % 3)],
        }
        for n in range(40)
    ]
    return batch_of(nested(), rows)


LEAVES: dict[IcebergType, st.SearchStrategy[Any]] = {
    BooleanType(): st.booleans(),
    IntegerType(): st.integers(-(2**31), 2**31 - 1),
    LongType(): st.integers(-(2**63), 2**63 - 1),
    StringType(): st.text(max_size=90),
    DateType(): st.dates(),
}


@st.composite
def typed(draw: st.DrawFn, ids: list[int], depth: int = 0) -> tuple[Any, st.SearchStrategy[Any]]:
    """Draw a type and what makes its values; `ids` counts the field ids."""

    def part() -> tuple[int, Any, st.SearchStrategy[Any], bool]:
        ids[0] += 1
        number, is_required = ids[0], draw(st.booleans())
        kind, values = draw(typed(ids, depth + 1))
        return number, kind, values if is_required else st.none() | values, is_required

    shapes = ["leaf"] if depth > 2 else ["leaf", "struct", "list", "map", "texts"]
    match draw(st.sampled_from(shapes)):
        case "struct":
            parts = [part() for _ in range(draw(st.integers(1, 3)))]
            fields = [
                (required if needs else optional)(number, f"f{number}", kind)
                for number, kind, _, needs in parts
            ]
            members = {f"f{number}": values for number, _, values, _ in parts}
            return struct(*fields), st.fixed_dictionaries(members)
        case "list":
            number, kind, values, needs = part()
            return ListType(number, kind, needs), st.lists(values, max_size=3)
        case "map" | "texts" as shape:
            ids[0] += 1
            key_id = ids[0]
            key: IcebergType = StringType() if shape == "texts" else LongType()
            number, kind, values, needs = part()
            pairs = st.dictionaries(LEAVES[key], values, max_size=3)
            return MapType(key_id, key, number, kind, needs), pairs.map(lambda one: [*one.items()])
    leaf = draw(st.sampled_from(list(LEAVES)))
    return leaf, LEAVES[leaf]
