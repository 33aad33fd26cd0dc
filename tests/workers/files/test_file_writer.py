"""One task's writer: rows end up in the right files, in bounded memory, or in none at all."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from committer.errors import AlreadyExistsError, InvariantError, UnsupportedError
from committer.iceberg.entry.data_file import DataFile
from committer.iceberg.schema.partition_spec import UNPARTITIONED, PartitionSpec
from committer.iceberg.schema.schema import Schema
from committer.iceberg.schema.table_text import parse_columns, parse_sort_order
from committer.iceberg.values.types import BinaryType, DateType, IntegerType, LongType, StringType
from tests.support.workers.tables import nested, optional, required, schema
from tests.support.workers.write_target import (
    ATTEMPT,
    Target,
    files_below,
    names,
    path_of,
    read_file,
    spec_of,
    write_rows,
    writer_of,
)
from workers.arrow.arrow_schema import arrow_schema, match_columns
from workers.files.file_system import open_file_system
from workers.files.file_writer import PartitionedWriter, WriterLimits
from workers.files.store_access import USUAL_ACCESS

TABLE = schema(
    required(1, "id", LongType()),
    optional(2, "carrier", StringType()),
    optional(3, "day", DateType()),
    optional(4, "zone", IntegerType()),
)
BY_CARRIER = spec_of((2, "carrier", "identity"))
BY_ID = spec_of((1, "id_bucket", "bucket[80]"))


def target(
    folder: Path, spec: PartitionSpec = UNPARTITIONED, properties: Mapping[str, str] | None = None
) -> Target:
    return Target(f"file:{folder}/db/flights", TABLE, spec, properties or {})


def rows(start: int, count: int, *, text_length: int = 2) -> pa.RecordBatch:
    ids = range(start, start + count)
    columns = [
        pa.array(ids, pa.int64()),
        pa.array([None if n % 17 == 0 else "AB"[n % 2] * text_length for n in ids], pa.string()),
        pa.array([n // 100 for n in ids], pa.int32()).view(pa.date32()),
        pa.array([n % 24 for n in ids], pa.int32()),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=arrow_schema(TABLE))


def read_all(files: list[DataFile]) -> list[object]:
    found = pa.concat_tables([read_file(file) for file in files])
    ids: list[object] = found.sort_by("id").column("id").to_pylist()
    return ids


def row_groups(file: DataFile) -> int:
    return int(pq.read_metadata(path_of(file)).num_row_groups)


class Disk:
    """The local disk, with room for so many files; it remembers what was made durable."""

    def __init__(self, *, files_max: int = 1000) -> None:
        self.real = open_file_system("/", USUAL_ACCESS)
        self.room = files_max
        self.durable: list[str] = []

    def create(self, location: str) -> pa.NativeFile:
        if not self.room:
            raise OSError(28, "No space left on device")
        self.room -= 1
        return self.real.create(location)

    def make_durable(self, locations: Iterable[str]) -> None:
        found = list(locations)
        self.real.make_durable(found)
        self.durable += found

    def delete(self, location: str) -> None:
        self.real.delete(location)


# --- Names and places -----------------------------------------------------------------------------


def test_rows_are_read_back_and_the_file_says_what_it_holds(tmp_path: Path) -> None:
    [file] = write_rows(target(tmp_path), rows(0, 100), rows(100, 50))
    assert read_file(file).equals(
        pa.Table.from_batches([rows(0, 100), rows(100, 50)]), check_metadata=False
    )
    assert file.record_count == 150
    assert file.partition == () and file.spec_id == 0 and file.sort_order_id == 0
    assert file.file_size_in_bytes == path_of(file).stat().st_size


def test_names_carry_partition_id_task_attempt_and_count(tmp_path: Path) -> None:
    files = write_rows(target(tmp_path, BY_CARRIER), rows(0, 100))
    base = f"file:{tmp_path}/db/flights/data"
    assert sorted(file.file_path for file in files) == [
        f"{base}/carrier={value}/00003-42-{ATTEMPT}-5a17-0000{count}.parquet"
        for value, count in sorted({"null": 1, "BB": 2, "AA": 3}.items())
    ]
    assert {file.partition for file in files} == {(None,), ("AA",), ("BB",)}
    assert {file.spec_id for file in files} == {1}


@pytest.mark.parametrize("form", ["file:{}", "file://{}", "{}"])
def test_all_forms_of_a_local_location_are_kept_in_the_paths(tmp_path: Path, form: str) -> None:
    location = form.format(f"{tmp_path}/a b%20c")
    [file] = write_rows(Target(location, TABLE), rows(0, 3))
    assert file.file_path.startswith(f"{location}/data/00003-")
    assert len(files_below(tmp_path / "a b%20c" / "data")) == 1


def test_partition_values_are_escaped_in_folders_once(tmp_path: Path) -> None:
    batch = rows(0, 1).set_column(1, arrow_schema(TABLE).field(1), pa.array(["a/b c%é"]))
    [file] = write_rows(target(tmp_path, BY_CARRIER), batch)
    assert "/carrier=a%2Fb+c%25%C3%A9/" in file.file_path
    assert path_of(file).exists()
    assert file.partition == ("a/b c%é",)


def test_the_object_storage_layout_and_the_data_path_are_obeyed(tmp_path: Path) -> None:
    properties = {
        "write.object-storage.enabled": "true",
        "write.data.path": f"file:{tmp_path}/elsewhere",
    }
    [file, *_] = write_rows(target(tmp_path, BY_CARRIER, properties), rows(0, 100))
    pattern = r"/elsewhere/[01]{4}/[01]{4}/[01]{4}/[01]{8}/db/flights/carrier=\w+/00003-"
    assert re.search(pattern, file.file_path)
    assert path_of(file).exists()


def test_a_place_that_is_not_known_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match="hdfs://b/t"):
        writer_of(Target("hdfs://b/t", TABLE))
    with pytest.raises(UnsupportedError, match="relative/path"):
        writer_of(Target("relative/path", TABLE))


def test_an_existing_file_is_never_overwritten(tmp_path: Path) -> None:
    [first] = write_rows(target(tmp_path), rows(0, 10))
    before = path_of(first).read_bytes()
    with pytest.raises(AlreadyExistsError, match=r"00001\.parquet"):
        write_rows(target(tmp_path), rows(50, 10))
    assert path_of(first).read_bytes() == before


# --- No rows, and errors --------------------------------------------------------------------------


def test_no_rows_make_no_file_and_no_folder(tmp_path: Path) -> None:
    assert write_rows(target(tmp_path, BY_CARRIER)) == []
    assert write_rows(target(tmp_path, BY_CARRIER), rows(0, 0), rows(0, 0)) == []
    assert list(tmp_path.iterdir()) == []


def test_an_error_leaves_no_file_behind(tmp_path: Path) -> None:
    limits = WriterLimits(buffered_bytes=20_000)
    with (
        pytest.raises(ZeroDivisionError),
        writer_of(target(tmp_path, BY_CARRIER), limits=limits) as writer,
    ):
        for start in range(0, 4000, 500):
            writer.write(rows(start, 500))
        assert files_below(tmp_path)
        raise ZeroDivisionError
    assert files_below(tmp_path) == []


def test_a_failing_file_system_leaves_no_file_behind(tmp_path: Path) -> None:
    plan = target(tmp_path, BY_CARRIER)
    disk = Disk(files_max=2)
    writer = PartitionedWriter(plan, arrow_schema(TABLE), names(), files=disk)
    with pytest.raises(OSError, match="No space"), writer:
        writer.write(rows(0, 100))
        writer.close()
    assert files_below(tmp_path) == []
    assert disk.durable == []
    with pytest.raises(InvariantError):
        writer.write(rows(0, 1))


def test_all_files_are_durable_before_they_are_told_of(tmp_path: Path) -> None:
    disk = Disk()
    plan = target(tmp_path, BY_CARRIER)
    with PartitionedWriter(plan, arrow_schema(TABLE), names(), files=disk) as writer:
        writer.write(rows(0, 100))
        files = writer.close()
    assert sorted(disk.durable) == sorted(file.file_path for file in files)


def test_rows_of_another_schema_are_a_bug(tmp_path: Path) -> None:
    with pytest.raises(InvariantError), writer_of(target(tmp_path)) as writer:
        writer.write(pa.record_batch({"id": [1]}))


# --- Memory ---------------------------------------------------------------------------------------


@pytest.mark.thorough
def test_many_partitions_stay_within_the_memory_and_file_limits(tmp_path: Path) -> None:
    limits = WriterLimits(buffered_bytes=150_000, open_files=5)
    most_open = 0
    with writer_of(target(tmp_path, BY_ID), limits=limits) as writer:
        for start in range(0, 10_000, 1000):
            writer.write(rows(start, 1000))
            most_open = max(most_open, len(writer._open))
        files = writer.close()
    assert 100_000 < writer.buffered_bytes_max <= 150_000
    assert 0 < most_open <= 5
    assert read_all(files) == list(range(10_000))
    assert len({file.partition for file in files}) == 80
    assert all(file.record_count == len(read_file(file)) for file in files)


def test_the_largest_buffer_is_written_first(tmp_path: Path) -> None:
    limits = WriterLimits(buffered_bytes=100_000)
    skewed = rows(0, 3000).set_column(
        1,
        arrow_schema(TABLE).field(1),
        pa.array(["rare" if n % 100 == 0 else "common" for n in range(3000)]),
    )
    files = write_rows(target(tmp_path, BY_CARRIER), skewed, skewed, limits=limits)
    counts = {file.partition: row_groups(file) for file in files}
    assert counts[("rare",)] == 1 and counts[("common",)] > 1


def test_a_batch_larger_than_the_buffer_is_cut(tmp_path: Path) -> None:
    limits = WriterLimits(buffered_bytes=50_000)
    with writer_of(target(tmp_path), limits=limits) as writer:
        writer.write(rows(0, 5000, text_length=200))
        [file] = writer.close()
    assert writer.buffered_bytes_max <= 50_000
    assert row_groups(file) > 20
    assert read_all([file]) == list(range(5000))


@pytest.mark.simulation
@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.lists(st.integers(0, 400), max_size=8),
    st.integers(5_000, 60_000),
    st.sampled_from([UNPARTITIONED, BY_CARRIER, spec_of((4, "zone", "identity"))]),
    st.integers(4_000, 20_000),
)
def test_every_row_is_written_once_whatever_the_limits(
    tmp_path_factory: pytest.TempPathFactory,
    sizes: list[int],
    cap: int,
    spec: PartitionSpec,
    size: int,
) -> None:
    properties = {"write.target-file-size-bytes": str(size)}
    plan = target(tmp_path_factory.mktemp("t"), spec, properties)
    starts = [sum(sizes[:at]) for at in range(len(sizes))]
    with writer_of(plan, limits=WriterLimits(buffered_bytes=cap, open_files=3)) as writer:
        for start, count in zip(starts, sizes, strict=True):
            writer.write(rows(start, count))
        files = writer.close()
    assert writer.buffered_bytes_max <= cap
    assert (read_all(files) if files else []) == list(range(sum(sizes)))
    assert len({file.file_path for file in files}) == len(files)
    for file in files:
        ids = pc.min_max(read_file(file).column("id"))
        bounds = (file.lower_bounds or {})[1], (file.upper_bounds or {})[1]
        assert [int.from_bytes(b, "little") for b in bounds] == list(ids.as_py().values())


# --- Row groups and rolling -----------------------------------------------------------------------


def test_many_small_batches_make_one_row_group(tmp_path: Path) -> None:
    [file] = write_rows(target(tmp_path), *(rows(n * 10, 10) for n in range(200)))
    assert row_groups(file) == 1
    assert read_all([file]) == list(range(2000))


def test_a_struct_that_is_null_may_have_required_fields_of_any_type(tmp_path: Path) -> None:
    inner = "n: long not null, t: string not null, b: boolean not null, u: uuid not null"
    more = "l: list<long> not null, m: map<string, long> not null"
    table = parse_columns(f"w struct<{inner}, {more}, s: struct<x: int not null> not null>")
    whole = {"n": 1, "t": "x", "b": True, "u": b"u" * 16, "l": [1], "m": [("k", 1)], "s": {"x": 1}}
    batch = pa.record_batch({"w": [None, whole, None, whole]}, schema=nullable_schema(table))
    matched = match_columns(batch.schema, table)
    [file] = write_rows(Target(f"file:{tmp_path}", table), matched.conform(batch.slice(1)))
    found = read_file(file).column("w").to_pylist()
    assert found[1] is None
    assert found[0] == found[2]
    assert {name: found[0][name] for name in "ntblms"} == {n: whole[n] for n in "ntblms"}


def nullable_schema(table: Schema) -> pa.Schema:
    """Return the table's columns as a DataFrame has them: all of them may be null."""
    fields = [optional_of(field) for field in arrow_schema(table)]
    return pa.schema(fields)


def optional_of(field: pa.Field) -> pa.Field:
    kind = field.type
    if pa.types.is_struct(kind):
        kind = pa.struct([optional_of(inner) for inner in kind])
    return pa.field(field.name, pa.binary(16) if kind == pa.uuid() else kind)


def ids_of(file: DataFile) -> list[int]:
    return read_file(file).column("id").to_pylist()  # type: ignore[no-any-return]


def sorted_target(folder: Path, properties: Mapping[str, str] | None = None) -> Target:
    order = parse_sort_order("id desc", TABLE)
    return replace(target(folder, properties=properties), sort_order=order)


def test_rows_are_sorted_by_the_tables_order_and_the_file_says_so(tmp_path: Path) -> None:
    [file] = write_rows(sorted_target(tmp_path), rows(0, 5), rows(10, 5))
    assert ids_of(file) == [14, 13, 12, 11, 10, 4, 3, 2, 1, 0]
    assert file.sort_order_id == 1


@pytest.mark.parametrize(("starts", "order_id"), [((0, 500), 0), ((500, 0), 1)])
def test_a_file_of_several_row_groups_is_sorted_if_each_goes_on_where_the_last_one_ended(
    tmp_path: Path, starts: tuple[int, int], order_id: int
) -> None:
    limits = WriterLimits(row_group_bytes=8_000)
    batches = [rows(start, 400) for start in starts]
    [file] = write_rows(sorted_target(tmp_path), *batches, limits=limits)
    assert row_groups(file) == 2
    assert file.sort_order_id == order_id
    assert ids_of(file)[:400] == list(range(starts[0] + 399, starts[0] - 1, -1))


def test_the_row_group_size_of_the_table_is_obeyed_in_bytes_on_disk(tmp_path: Path) -> None:
    plan = target(tmp_path, properties={"write.parquet.row-group-size-bytes": "50000"})
    chance = Random(7)
    batches = [
        rows(0, 400).set_column(0, "id", pa.array([chance.getrandbits(62) for _ in range(400)]))
        for _ in range(100)
    ]
    [file] = write_rows(plan, *(batch.cast(arrow_schema(TABLE)) for batch in batches))
    footer = pq.read_metadata(path_of(file))
    groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
    sizes = [
        sum(group.column(at).total_compressed_size for at in range(group.num_columns))
        for group in groups
    ]
    # The first one does not know yet how well the rows are compressed.
    assert len(sizes) > 5 and all(40_000 < size < 60_000 for size in sizes[1:-1])


def test_files_are_rolled_near_the_target_size(tmp_path: Path) -> None:
    size = 60_000
    properties = {
        "write.target-file-size-bytes": str(size),
        "write.parquet.compression-codec": "uncompressed",
    }
    files = write_rows(
        target(tmp_path, properties=properties), *(rows(n * 500, 500) for n in range(100))
    )
    assert len(files) > 3
    assert all(0.9 * size < file.file_size_in_bytes < 1.3 * size for file in files[:-1])
    assert read_all(files) == list(range(50_000))


# --- Properties -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("codec", "written"),
    [("zstd", "ZSTD"), ("gzip", "GZIP"), ("SNAPPY", "SNAPPY"), ("uncompressed", "UNCOMPRESSED")],
)
def test_the_compression_of_the_table_is_used(tmp_path: Path, codec: str, written: str) -> None:
    plan = target(tmp_path, properties={"write.parquet.compression-codec": codec})
    [file] = write_rows(plan, rows(0, 10))
    assert pq.read_metadata(path_of(file)).row_group(0).column(0).compression == written


def test_files_are_zstd_without_arrow_s_own_schema_by_default(tmp_path: Path) -> None:
    [file] = write_rows(target(tmp_path), rows(0, 10))
    footer = pq.read_metadata(path_of(file))
    assert footer.row_group(0).column(0).compression == "ZSTD"
    assert footer.metadata is None


@pytest.mark.parametrize(
    ("name", "written"), [("PARQUET", "parquet"), ("Avro", "avro"), ("ORC", "orc")]
)
def test_files_have_the_format_of_the_table(tmp_path: Path, name: str, written: str) -> None:
    [file] = write_rows(target(tmp_path, properties={"write.format.default": name}), rows(0, 10))
    assert file.file_path.endswith(f".{written}")
    assert (file.file_format, file.record_count) == (written.upper(), 10)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("write.format.default", "parqet"),
        ("write.parquet.compression-codec", "lzo"),
        ("write.parquet.compression-level", "high"),
        ("write.parquet.page-version", "v3"),
        ("write.target-file-size-bytes", "0"),
        ("write.target-file-size-bytes", "512mb"),
    ],
)
def test_a_property_that_cannot_be_obeyed_is_named(tmp_path: Path, name: str, value: str) -> None:
    with pytest.raises(UnsupportedError, match=re.escape(f"`{name}`")):
        writer_of(target(tmp_path, properties={name: value}))


def test_nested_and_binary_columns_are_fanned_out_whole(tmp_path: Path) -> None:
    table = schema(*nested().fields, optional(30, "raw", BinaryType()))
    row = {
        "point": {"x": 0.5, "y": 3, "deep": {"text": "t"}},
        "tags": ["a", "b"],
        "attributes": [("k", 1.0), ("m", None)],
        "points": [{"x": 1, "at": None}, None],
        "matrix": [[1.0], None, []],
        "raw": b"\x00\xff",
    }
    given_rows = [{**row, "id": n, "tags": [str(n)] * (n % 4)} for n in range(100)]
    batch = pa.RecordBatch.from_pylist(given_rows, schema=arrow_schema(table))
    plan = Target(f"file:{tmp_path}", table, spec_of((1, "b", "bucket[5]")))
    files = write_rows(plan, batch.slice(0, 40), batch.slice(40))
    found = pa.concat_tables([read_file(file) for file in files]).sort_by("id")
    assert len(files) == 5
    assert found.select(list(batch.schema.names)).to_pylist() == batch.to_pylist()
