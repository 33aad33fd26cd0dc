"""One table for each feature of the format, written by Frazil alone, with the rows that are in it.

`without` names the readers that do not support the feature, and what they do instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from committer.iceberg.entry.data_file import DataFile
from committer.iceberg.evolution.schema_evolution import SchemaUpdate
from committer.iceberg.metadata.snapshot import SnapshotRef
from committer.iceberg.schema.partition_spec import PartitionField, PartitionSpec
from committer.iceberg.schema.schema import Schema
from committer.iceberg.schema.sort_order import parse_sort_order
from committer.iceberg.updates.metadata_update import (
    AddPartitionSpec,
    AddSchema,
    SetCurrentSchema,
    SetDefaultPartitionSpec,
    SetProperties,
    SetSnapshotRef,
    UpgradeFormatVersion,
)
from committer.iceberg.values.transforms import parse_transform
from committer.iceberg.values.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    GeometryType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    UnknownType,
    VariantType,
)
from tests.support.integration.written_table import Row, WrittenTable

JAVA, PYICEBERG, DUCKDB = "Iceberg Java", "PyIceberg", "DuckDB"


@dataclass(frozen=True, slots=True)
class Feature:
    """`build` makes the table and returns its rows. `columns`: those that are compared, of all."""

    name: str
    build: Callable[[Path], tuple[WrittenTable, list[Row]]]
    columns: Sequence[str] = ("id", "name")
    without: Mapping[str, str] = field(default_factory=dict)


def schema(**columns: IcebergType) -> Schema:
    numbered = enumerate(columns.items(), 1)
    return Schema(tuple(NestedField(at, name, kind, False) for at, (name, kind) in numbered))


PLAIN = schema(id=LongType(), name=StringType(), v=DoubleType())


def rows(*ids: int) -> list[Row]:
    return [{"id": each, "name": f"n{each % 5}", "v": each / 4} for each in ids]


def spec(*fields: tuple[int, str, str], spec_id: int = 0) -> PartitionSpec:
    """Build a spec of (source id, name, transform)."""
    numbered = enumerate(fields)
    return PartitionSpec(
        spec_id,
        tuple(
            PartitionField((source,), 1000 + at, name, parse_transform(text))
            for at, (source, name, text) in numbered
        ),
    )


# --- Appends, types, partitions ------------------------------------------------------------------


def appends(format_version: int) -> Callable[[Path], tuple[WrittenTable, list[Row]]]:
    def build(folder: Path) -> tuple[WrittenTable, list[Row]]:
        table = WrittenTable.create(folder, PLAIN, format_version=format_version)
        for start in (0, 10, 20):
            table.append(rows(*range(start, start + 7)))
        return table, rows(*range(7), *range(10, 17), *range(20, 27))

    return build


TIMES = schema(id=LongType(), name=StringType(), ts=TimestampType(), tz=TimestamptzType())


def partitions(
    *fields: tuple[int, str, str], format_version: int = 2
) -> Callable[[Path], tuple[WrittenTable, list[Row]]]:
    def build(folder: Path) -> tuple[WrittenTable, list[Row]]:
        table = WrittenTable.create(
            folder, TIMES, spec=spec(*fields), format_version=format_version
        )
        moments = [datetime(1969, 12, 31, 23, 59), None, datetime(2026, 2, 3, 4, 5, 6, 789)]
        names = ["é/x=1", None, "", "plain", "%"]
        written: list[Row] = [
            {"id": each, "name": names[each % 5], "ts": moments[each % 3], "tz": None}
            for each in (*range(20), *range(100, 105))
        ]
        table.append(written[:20])
        table.append(written[20:])
        return table, written

    return build


TYPES = schema(
    id=LongType(),
    b=BooleanType(),
    i=IntegerType(),
    f=FloatType(),
    d=DoubleType(),
    d9=DecimalType(9, 2),
    d38=DecimalType(38, 10),
    dt=DateType(),
    s=StringType(),
    bn=BinaryType(),
)


def types(folder: Path) -> tuple[WrittenTable, list[Row]]:
    table = WrittenTable.create(folder, TYPES)
    values: dict[str, list[Any]] = {
        "id": [-(2**63), 0, 2**63 - 1, 1],
        "b": [True, False, None, True],
        "i": [-(2**31), 0, 2**31 - 1, None],
        "f": [1.5, -0.0, float("inf"), None],
        "d": [-1e300, 0.0, 5e-324, None],
        "d9": [Decimal("-9999999.99"), Decimal("0.01"), None, Decimal("1.00")],
        "d38": [
            Decimal("-9999999999999999999999999999.9999999999"),
            Decimal("1.0000000000"),
            None,
            None,
        ],
        "dt": [date(1, 1, 1), date(1969, 12, 31), date(9999, 12, 31), None],
        "s": ["", "é😀" * 20, None, "z" * 5000],
        "bn": [b"", b"\xff" * 20, None, b"\x80"],
    }
    written = [dict(zip(values, row, strict=True)) for row in zip(*values.values(), strict=True)]
    table.append(written)
    return table, written


def types_of_v3(**columns: IcebergType) -> Callable[[Path], tuple[WrittenTable, list[Row]]]:
    """Return a case of columns with types that came with version 3, null in all rows."""

    def build(folder: Path) -> tuple[WrittenTable, list[Row]]:
        all_columns = schema(id=LongType(), name=StringType(), **columns)
        table = WrittenTable.create(folder, all_columns, format_version=3)
        written: list[Row] = [{"id": 1, "name": "a"}, {"id": 2, "name": None}]
        table.append(written)
        return table, written

    return build


def nanoseconds(folder: Path) -> tuple[WrittenTable, list[Row]]:
    table = WrittenTable.create(
        folder,
        schema(id=LongType(), tn=TimestampNanoType(), tz=TimestamptzNanoType()),
        spec=spec((2, "d", "day"), (3, "b", "bucket[4]")),
        format_version=3,
    )
    written: list[Row] = [{"id": 1, "tn": 1, "tz": -1}, {"id": 2, "tn": None, "tz": 10**18 + 1}]
    table.append(written)
    return table, written


def nested(folder: Path) -> tuple[WrittenTable, list[Row]]:
    point = StructType(
        (NestedField(10, "x", DoubleType(), False), NestedField(11, "y", LongType(), False))
    )
    table = WrittenTable.create(
        folder,
        schema(
            id=LongType(),
            point=point,
            tags=ListType(20, StringType(), False),
            counts=MapType(21, StringType(), 22, LongType(), False),
        ),
    )
    written: list[Row] = [
        {"id": 1, "point": {"x": 1.5, "y": 2}, "tags": ["a", None], "counts": [("k", 1)]},
        {"id": 2, "point": {"x": None, "y": None}, "tags": [], "counts": []},
        {"id": 3, "point": None, "tags": None, "counts": None},
    ]
    table.append(written)
    return table, written


def odd_names(folder: Path) -> tuple[WrittenTable, list[Row]]:
    names = ("id", "1st col", "a.b", "é ☃", "select", "with-dash")
    columns = [NestedField(at, name, StringType(), False) for at, name in enumerate(names, 1)]
    columns[0] = NestedField(1, "id", LongType(), False)
    # A partition field with a letter beyond ASCII ends DuckDB's process: its Avro reader throws.
    table = WrittenTable.create(
        folder, Schema(tuple(columns)), spec=spec((2, "p x/%", "identity"), (3, "a.b", "bucket[2]"))
    )
    written: list[Row] = [{**{name: f"{name}{at}" for name in names}, "id": at} for at in range(3)]
    table.append(written)
    return table, written


# --- Evolution -----------------------------------------------------------------------------------


def evolve(table: WrittenTable, change: Callable[[SchemaUpdate], object]) -> None:
    metadata = table.metadata
    update = SchemaUpdate(
        metadata.current_schema,
        last_column_id=metadata.last_column_id,
        format_version=metadata.format_version,
        specs=metadata.partition_specs,
    )
    change(update)
    evolved = update.apply()
    table.update(AddSchema(evolved.schema, evolved.last_column_id), SetCurrentSchema(-1))


def schema_evolution(folder: Path) -> tuple[WrittenTable, list[Row]]:
    """Add, rename, promote, delete, move, and an old name for a new column."""
    table = WrittenTable.create(
        folder, schema(id=IntegerType(), name=StringType(), f=FloatType(), old=StringType())
    )
    table.append([{"id": 1, "name": "a", "f": 0.5, "old": "gone"}])
    evolve(
        table,
        lambda update: (
            update.update_column("id", LongType())
            .update_column("f", DoubleType())
            .rename_column("name", "title")
            .delete_column("old")
            .add_column("extra", DecimalType(9, 2))
        ),
    )
    table.append([{"id": 2**40, "title": "b", "f": 1e300, "extra": Decimal("1.25")}])
    evolve(table, lambda update: update.add_column("old", LongType()).move_first("old"))
    table.append([{"old": 7, "id": 3, "title": "c", "f": None, "extra": None}])
    return table, [
        {"old": None, "id": 1, "title": "a", "f": 0.5, "extra": None},
        {"old": None, "id": 2**40, "title": "b", "f": 1e300, "extra": Decimal("1.25")},
        {"old": 7, "id": 3, "title": "c", "f": None, "extra": None},
    ]


def partition_evolution(
    format_version: int,
) -> Callable[[Path], tuple[WrittenTable, list[Row]]]:
    def build(folder: Path) -> tuple[WrittenTable, list[Row]]:
        table = WrittenTable.create(
            folder, PLAIN, spec=spec((2, "name", "identity")), format_version=format_version
        )
        table.append(rows(0, 1, 2))
        # Version 1 keeps the place of a field that is gone; later ones number the new field only.
        gone = PartitionField((2,), 1000, "name", parse_transform("void"))
        bucket = PartitionField((1,), 1001, "id_bucket", parse_transform("bucket[2]"))
        fields = (gone, bucket) if format_version == 1 else (bucket,)
        table.update(AddPartitionSpec(PartitionSpec(1, fields)), SetDefaultPartitionSpec(-1))
        table.append(rows(3, 4, 5))
        return table, rows(0, 1, 2, 3, 4, 5)

    return build


def defaults(folder: Path) -> tuple[WrittenTable, list[Row]]:
    table = WrittenTable.create(folder, schema(id=LongType()), format_version=3)
    table.append([{"id": 1}])
    evolve(
        table,
        lambda update: update.add_column("name", StringType(), default="dflt").add_column(
            "n", IntegerType(), default=42, required=True
        ),
    )
    table.append([{"id": 2, "name": None, "n": 7}])
    return table, [{"id": 1, "name": "dflt", "n": 42}, {"id": 2, "name": None, "n": 7}]


def name_mapping(folder: Path) -> tuple[WrittenTable, list[Row]]:
    """Commit a file without field ids, whose columns have the names of the mapping."""
    mapping = (
        '[{"field-id":1,"names":["id","ID"]},{"field-id":2,"names":["name","nm"]},'
        '{"field-id":3,"names":["v"]}]'
    )
    table = WrittenTable.create(folder, PLAIN, properties={"schema.name-mapping.default": mapping})
    path = folder / "data" / "imported.parquet"
    path.parent.mkdir(parents=True)
    pq.write_table(pa.table({"ID": pa.array([5, 6]), "nm": pa.array(["a", "b"])}), path)
    size = path.stat().st_size
    table.commit([DataFile(file_path=f"file:{path}", record_count=2, file_size_in_bytes=size)])
    return table, [{"id": 5, "name": "a"}, {"id": 6, "name": "b"}]


# --- Deletes -------------------------------------------------------------------------------------


def two_files(folder: Path, format_version: int) -> tuple[WrittenTable, list[DataFile]]:
    table = WrittenTable.create(folder, PLAIN, format_version=format_version)
    return table, [*table.append(rows(0, 1, 2, 3, 4)), *table.append(rows(10, 11, 12, 13))]


def position_deletes(folder: Path) -> tuple[WrittenTable, list[Row]]:
    """Delete positions by a file for one data file, and by one for both."""
    table, (first, second) = two_files(folder, 2)
    one = table.position_deletes({first.file_path: [0, 2]}, first)
    table.commit([one], operation="delete")
    both = table.position_deletes({first.file_path: [3], second.file_path: [1]}, first)
    table.commit([both], operation="delete")
    return table, rows(1, 4, 10, 12, 13)


def equality_deletes(folder: Path) -> tuple[WrittenTable, list[Row]]:
    """Delete by one column and by two; a row that was added later is not deleted."""
    table, (first, _) = two_files(folder, 2)
    table.commit([table.equality_deletes([{"id": 1}, {"id": 12}], [1], first)], operation="delete")
    two = [{"id": 10, "name": "n0"}, {"id": 11, "name": "other"}]
    table.commit([table.equality_deletes(two, [1, 2], first)], operation="delete")
    table.append(rows(1))
    return table, rows(0, 2, 3, 4, 11, 13, 1)


def deletion_vectors(folder: Path) -> tuple[WrittenTable, list[Row]]:
    """Commit two vectors in one Puffin file; then replace one of them by a larger one."""
    table, (first, second) = two_files(folder, 3)
    old = table.deletion_vectors([(first, [0]), (second, [3])])
    table.commit(old, operation="delete")
    [kept] = [file for file in old if file.referenced_data_file == second.file_path]
    new = table.deletion_vectors([(first, [0, 1, 2])])
    # Both old vectors lie in one file; the one that stays is entered again.
    table.commit([*new, kept], removed={old[0].file_path}, operation="delete")
    return table, rows(3, 4, 10, 11, 12)


def upgraded_to_vectors(folder: Path) -> tuple[WrittenTable, list[Row]]:
    """Commit position deletes in version 2; in version 3, replace one of them by a vector."""
    table, (first, second) = two_files(folder, 2)
    deletes = [table.position_deletes({file.file_path: [0]}, file) for file in (first, second)]
    table.commit(deletes, operation="delete")
    table.update(UpgradeFormatVersion(3))
    vectors = table.deletion_vectors([(first, [0, 1])])
    table.commit(vectors, removed={deletes[0].file_path}, operation="delete")
    table.append(rows(20))
    return table, rows(2, 3, 4, 11, 12, 13, 20)


# --- The table's files and refs ------------------------------------------------------------------


def codec(name: str) -> Callable[[Path], tuple[WrittenTable, list[Row]]]:
    def build(folder: Path) -> tuple[WrittenTable, list[Row]]:
        table = WrittenTable.create(folder, PLAIN)
        table.codec = name
        table.append(rows(1))
        table.append(rows(2))
        return table, rows(1, 2)

    return build


def gzip_metadata(folder: Path) -> tuple[WrittenTable, list[Row]]:
    table = WrittenTable.create(folder, PLAIN)
    table.gzip = True
    table.append(rows(1))
    return table, rows(1)


def branches(folder: Path) -> tuple[WrittenTable, list[Row]]:
    """Set a tag on the first snapshot, and a branch with a row of its own."""
    table = WrittenTable.create(folder, PLAIN)
    table.append(rows(1))
    head = table.metadata.current_snapshot
    assert head is not None
    tag = SnapshotRef(head.snapshot_id, "tag", max_ref_age_ms=10**12)
    branch = SnapshotRef(head.snapshot_id, "branch", min_snapshots_to_keep=2)
    table.update(SetSnapshotRef("first", tag), SetSnapshotRef("side", branch))
    table.append(rows(2))
    table.append(rows(3), branch="side")
    return table, rows(1, 2)


def sorted_table(folder: Path) -> tuple[WrittenTable, list[Row]]:
    fields = [
        {
            "transform": transform,
            "source-id": source,
            "direction": direction,
            "null-order": f"nulls-{nulls}",
        }
        for transform, source, direction, nulls in (
            ("identity", 2, "asc", "first"),
            ("bucket[4]", 1, "desc", "last"),
        )
    ]
    order = parse_sort_order({"order-id": 1, "fields": fields})
    table = WrittenTable.create(folder, PLAIN, sort_order=order)
    table.append(rows(1, 2, 3))
    table.update(SetProperties({"owner": "frazil"}))
    return table, rows(1, 2, 3)


FEATURES = (
    *(Feature(f"appends_v{version}", appends(version)) for version in (1, 2, 3)),
    Feature(
        "partitions_by_value",
        partitions((2, "name", "identity"), (1, "b", "bucket[4]"), (2, "t", "truncate[1]")),
    ),
    Feature(
        "partitions_by_time",
        partitions((3, "y", "year"), (3, "d", "day"), (4, "h", "hour"), format_version=3),
    ),
    Feature("partitions_by_month_v1", partitions((3, "m", "month"), format_version=1)),
    Feature("types", types, tuple(field.name for field in TYPES.fields)),
    Feature(
        "nanoseconds",
        nanoseconds,
        ("id",),
        without={
            JAVA: "Cannot convert unsupported type to Spark: timestamp_ns",
            DUCKDB: "Unrecognized primitive type: timestamptz_ns",
        },
    ),
    Feature(
        "variant",
        types_of_v3(variant=VariantType()),
        without={PYICEBERG: "Unsupported field type: 'variant'"},
    ),
    Feature(
        "unknown",
        types_of_v3(unknown=UnknownType()),
        without={DUCKDB: "Unrecognized primitive type: unknown"},
    ),
    Feature(
        "geometry",
        types_of_v3(place=GeometryType("OGC:CRS84")),
        without={PYICEBERG: "into a GeometryType"},
    ),
    Feature("nested", nested, ("id", "point", "tags")),
    Feature("odd_names", odd_names, ("id", "1st col", "a.b", "é ☃", "select", "with-dash")),
    Feature("schema_evolution", schema_evolution, ("old", "id", "title", "f", "extra")),
    Feature("partition_evolution_v1", partition_evolution(1)),
    Feature("partition_evolution_v2", partition_evolution(2)),
    Feature("defaults", defaults, ("id", "name", "n")),
    Feature("name_mapping", name_mapping),
    Feature("position_deletes", position_deletes),
    Feature(
        "equality_deletes",
        equality_deletes,
        without={PYICEBERG: "does not yet support equality deletes"},
    ),
    Feature("deletion_vectors", deletion_vectors),
    Feature("upgraded_to_vectors", upgraded_to_vectors),
    *(Feature(f"codec_{name}", codec(name)) for name in ("null", "deflate")),
    Feature(
        "codec_zstandard",
        codec("zstandard"),
        without={DUCKDB: "File header contains an unknown codec"},
    ),
    Feature("codec_snappy", codec("snappy"), without={PYICEBERG: "Snappy support not installed"}),
    Feature("gzip_metadata", gzip_metadata),
    Feature("branches", branches),
    Feature("sorted_table", sorted_table),
)
