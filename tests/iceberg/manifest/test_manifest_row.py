"""Every reader compares a manifest's content with its row in the manifest list."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product
from uuid import UUID

import pytest

from committer.errors import InvalidMetadataError
from committer.iceberg.avro.container import read_header
from committer.iceberg.entry.data_file import ManifestContent, ManifestEntry, ManifestEntryStatus
from committer.iceberg.expressions.expression import ALWAYS_TRUE
from committer.iceberg.manifest.manifest import decode_manifest, iter_entries
from committer.iceberg.manifest.manifest_list import (
    ManifestFile,
    decode_manifest_list,
    encode_manifest_file,
    encode_manifest_list,
)
from committer.iceberg.manifest.manifest_paths import iter_named_files
from committer.iceberg.manifest.manifest_writer import (
    ManifestContext,
    encode_manifest,
    manifest_file,
)
from committer.iceberg.scan.entry_reader import FileFilter, iter_matching_files
from committer.iceberg.schema.schema import Schema
from committer.iceberg.splice.manifest_merge import ManifestMerge
from committer.iceberg.values.types import (
    BinaryType,
    DecimalType,
    DoubleType,
    FixedType,
    IcebergType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    UUIDType,
)
from tests.support.builders.fixtures import expected, read_bytes, table_names
from tests.support.iceberg.manifest_builders import (
    SYNC,
    added_entry,
    context,
    data_file,
    foreign_manifest,
    header_with,
)

ADDED, EXISTING, DELETED = (
    ManifestEntryStatus.ADDED,
    ManifestEntryStatus.EXISTING,
    ManifestEntryStatus.DELETED,
)
PATH = "s3://bucket/db/t/metadata/1-m0.avro"
BY_P = ({"name": "p", "transform": "identity", "source-id": 1, "field-id": 1000},)


@dataclass(frozen=True)
class Listed:
    """A manifest, its row and what it was written with."""

    row: ManifestFile
    content: bytes
    context: ManifestContext


def listed(*entries: ManifestEntry, written: ManifestContext | None = None) -> Listed:
    written = written or context()
    encoded = encode_manifest(entries, written, sync=SYNC)
    row = manifest_file(encoded, written, manifest_path=PATH, snapshot_id=7, sequence_number=3)
    return Listed(row, encoded.content, written)


def with_row(one: Listed, **changes: object) -> Listed:
    return replace(one, row=replace(one.row, **changes))  # type: ignore[arg-type]


def of_all_statuses() -> Listed:
    return listed(
        added_entry(data_file(1)),
        *(ManifestEntry(EXISTING, 1, 1, 1, data_file(number)) for number in (2, 3)),
        *(ManifestEntry(DELETED, 7, 1, 1, data_file(number)) for number in (14, 25, 36)),
    )


# --- Readers -------------------------------------------------------------------------------------


def decode(one: Listed) -> None:
    decode_manifest(one.content, manifest_file=one.row)


def iterate(one: Listed) -> None:
    list(iter_entries(one.content, manifest_file=one.row))


def scan(one: Listed) -> None:
    _scan(one, frozenset())


def scan_whole_entries(one: Listed) -> None:
    _scan(one, None)


def _scan(one: Listed, field_ids: frozenset[int] | None) -> None:
    # Nothing is kept: what is left out counts too.
    wanted = FileFilter(lambda _: None, field_ids=field_ids)
    assert not list(iter_matching_files(one.content, one.row, one.context.spec, wanted))
    wanted = FileFilter(lambda _: ALWAYS_TRUE, field_ids=field_ids)
    list(iter_matching_files(one.content, one.row, one.context.spec, wanted))


def clean_up(one: Listed) -> None:
    list(iter_named_files(one.content, one.row))


def merge(one: Listed) -> None:
    for _ in ManifestMerge(one.context).add(one.row, one.content):
        pass


READERS: tuple[Callable[[Listed], None], ...] = (
    decode,
    iterate,
    scan,
    scan_whole_entries,
    clean_up,
    merge,
)
BY_EVERY_READER = pytest.mark.parametrize("read", READERS)


def refused(read: Callable[[Listed], None], one: Listed) -> str:
    """Check with bytes of any writer. Return the message, which names the manifest."""
    messages = []
    # As we write it, as a library does, and with a schema that is not ours.
    foreign = foreign_manifest(one.content)
    for content in (one.content, foreign, foreign_manifest(one.content, drop=132)):
        with pytest.raises(InvalidMetadataError) as caught:
            read(replace(one, content=content))
        assert str(caught.value).startswith(f"{PATH}: "), caught.value
        messages.append(str(caught.value))
    return messages[0]


# --- Counts --------------------------------------------------------------------------------------

COUNTS = [
    f"{status}_{what}_count"
    for status, what in product(("added", "existing", "deleted"), ("files", "rows"))
]


@BY_EVERY_READER
def test_a_manifest_that_holds_what_its_row_says_is_read(read: Callable[[Listed], None]) -> None:
    one = of_all_statuses()
    read(one)
    read(replace(one, content=foreign_manifest(one.content)))


@BY_EVERY_READER
@pytest.mark.parametrize("count", COUNTS)
def test_other_counts_than_the_row_says_are_refused(
    read: Callable[[Listed], None], count: str
) -> None:
    one = of_all_statuses()
    for change in (1, -1):
        message = refused(read, with_row(one, **{count: getattr(one.row, count) + change}))
        assert f"existing, added and deleted {count.split('_')[1]}, expected" in message


@BY_EVERY_READER
def test_counts_that_a_row_leaves_out_prove_nothing(read: Callable[[Listed], None]) -> None:
    one = of_all_statuses()
    read(with_row(one, **dict.fromkeys(COUNTS)))
    read(with_row(one, **dict.fromkeys(COUNTS, 1)))


def test_what_a_list_of_version_1_leaves_out_is_left_open_in_version_2() -> None:
    one = of_all_statuses()
    row = replace(one.row, added_files_count=None, deleted_rows_count=None)
    content = encode_manifest_list(
        [encode_manifest_file(row, 2)],
        format_version=2,
        snapshot_id=1,
        parent_snapshot_id=None,
        sequence_number=1,
        first_row_id=None,
        sync=SYNC,
        extra_metadata={},
    )
    (again,) = decode_manifest_list(content).rows
    assert again.has_live_files
    decode(replace(one, row=again))


@BY_EVERY_READER
@pytest.mark.parametrize("key", ["record_count", "file_size_in_bytes"])
@pytest.mark.parametrize("number", [-1, -70, -20_000])
def test_negative_counts_are_refused(read: Callable[[Listed], None], key: str, number: int) -> None:
    one = listed(added_entry(data_file(1)), added_entry(data_file(2, **{key: number})))
    # Nothing to compare with.
    one = replace(one, row=replace(one.row, added_rows_count=None))
    assert "negative" in refused(read, one)


@pytest.mark.parametrize("count", COUNTS)
def test_negative_counts_of_a_list_are_refused(count: str) -> None:
    row = with_row(of_all_statuses(), **{count: -3}).row
    content = encode_manifest_list(
        [encode_manifest_file(row, 2)],
        format_version=2,
        snapshot_id=1,
        parent_snapshot_id=None,
        sequence_number=1,
        first_row_id=None,
        sync=SYNC,
        extra_metadata={},
    )
    with pytest.raises(InvalidMetadataError, match=f"{PATH}: field 5.* is -3"):
        decode_manifest_list(content)


# --- Partitions ----------------------------------------------------------------------------------


def partitioned(kind: IcebergType, *values: object) -> Listed:
    schema = Schema((NestedField(1, "p", kind, False),))
    written = context(fields=BY_P, schema=schema)
    files = [data_file(number, partition=(value,)) for number, value in enumerate(values)]
    return listed(*map(added_entry, files), written=written)


def with_summary(one: Listed, **changes: object) -> Listed:
    assert one.row.partitions is not None
    (summary,) = one.row.partitions
    row = replace(one.row, partitions=(replace(summary, **changes),))  # type: ignore[arg-type]
    return replace(one, row=row)


@BY_EVERY_READER
@pytest.mark.parametrize(
    "outside",
    [
        {"lower_bound": b"b"},
        {"upper_bound": b"b"},
        {"lower_bound": b"d", "upper_bound": b"e"},
        {"contains_null": False},
    ],
)
def test_partitions_outside_of_the_summaries_are_refused(
    read: Callable[[Listed], None], outside: dict[str, object]
) -> None:
    one = partitioned(StringType(), "a", "c", None, "a")
    read(one)
    assert "partition field `p`" in refused(read, with_summary(one, **outside))


def test_each_manifest_of_a_merge_is_compared_with_its_own_row() -> None:
    one, other = partitioned(LongType(), 1), partitioned(LongType(), 2)
    merging = ManifestMerge(one.context)
    for _ in merging.add(one.row, one.content):
        pass
    with pytest.raises(InvalidMetadataError, match="partition field `p`"):
        list(merging.add(other.row, one.content))


def test_a_row_has_a_summary_for_each_field() -> None:
    one = of_all_statuses()
    assert one.row.partitions is not None
    with pytest.raises(InvalidMetadataError, match="1 partition summaries, expected 2"):
        decode(replace(one, row=replace(one.row, partitions=one.row.partitions[:1])))
    decode(replace(one, row=replace(one.row, partitions=())))
    decode(replace(one, row=replace(one.row, partitions=None)))


NAN = float("nan")
HIGH, LOW = UUID(int=2**128 - 1), UUID(int=1)


@pytest.mark.parametrize(
    ("kind", "values", "summary"),
    [
        (DoubleType(), (NAN, 1.0), {"contains_nan": None}),
        (DoubleType(), (-0.0, 0.0), {"lower_bound": struct.pack("<d", 0.0)}),
        # Writers of before there was a summary of NaN.
        (DoubleType(), (1.0,), {"upper_bound": struct.pack("<d", NAN)}),
        (StringType(), ("ab",), {"lower_bound": None, "upper_bound": None}),
        (StringType(), ("ab",), {"lower_bound": None}),
        # Cut off, and not increased.
        (StringType(), ("abc",), {"lower_bound": b"a", "upper_bound": b"ab"}),
        (BinaryType(), (b"\xff\xff",), {"upper_bound": b"\xff"}),
        # Ordered by units of UTF-16, and by code points.
        (
            StringType(),
            ("a", "\U0001f600", "\ufffd"),
            {"upper_bound": "\ufffd".encode()},
        ),
        (StringType(), ("a", "\U0001f600"), {"upper_bound": "\U0001f600".encode()}),
        # Ordered by signed halves, and by bytes.
        (UUIDType(), (LOW, HIGH), {"lower_bound": HIGH.bytes, "upper_bound": LOW.bytes}),
        (UUIDType(), (LOW, HIGH), {"lower_bound": LOW.bytes, "upper_bound": HIGH.bytes}),
        # Of a column that was an int when the row was written, or has become a long since.
        (LongType(), (5,), {"lower_bound": struct.pack("<i", 5)}),
        (DecimalType(9, 2), (None,), {"lower_bound": None}),
        # No value of the type.
        (IntegerType(), (5,), {"lower_bound": b"123", "upper_bound": b""}),
    ],
)
def test_summaries_of_other_writers_are_honored(
    kind: IcebergType, values: tuple[object, ...], summary: dict[str, object]
) -> None:
    one = with_summary(partitioned(kind, *values), **summary)
    for read in READERS:
        read(one)


def test_nan_that_the_summary_excludes_is_refused() -> None:
    one = partitioned(DoubleType(), NAN)
    decode(one)
    refused(decode, with_summary(one, contains_nan=False))


# --- Fixed values as Iceberg Java writes them ----------------------------------------------------


def as_java_writes(*values: bytes) -> Listed:
    """Put a length before each value, which the manifest's own schema does not have."""
    lying = partitioned(BinaryType(), *values)
    honest = partitioned(FixedType(len(values[0])), *values)
    header = {
        key: value
        for key, value in read_header(honest.content).metadata.items()
        if key in ("schema", "avro.schema", "iceberg.schema")
    }
    content = header_with(lying.content, **header)
    return replace(honest, content=content)


@BY_EVERY_READER
@pytest.mark.parametrize("last", [0x03, 0x80, 0x82, 0x83, 0xFE])
def test_fixed_values_of_iceberg_java_are_never_misread(
    read: Callable[[Listed], None], last: int
) -> None:
    one = as_java_writes(bytes((0, 1, 2, last)))
    with pytest.raises(InvalidMetadataError, match=f"^{PATH}: "):
        read(one)


@BY_EVERY_READER
def test_the_fixed_partitions_of_iceberg_java_are_refused_by_name(
    read: Callable[[Listed], None],
) -> None:
    """The value whose last byte has its high bit set reads as another value and a row count."""
    one = as_java_writes(bytes((0, 1, 2, 0x80)))
    one = with_row(one, **dict.fromkeys(COUNTS))
    with pytest.raises(InvalidMetadataError, match=f"^{PATH}: "):
        read(one)


# --- Tables of Iceberg Java ----------------------------------------------------------------------


@pytest.mark.thorough
@pytest.mark.parametrize("name", [n for n in table_names() if n != "v2_identity_fixed_java_quirk"])
def test_no_manifest_of_iceberg_java_belies_its_row(name: str) -> None:
    found = 0
    for snapshot in expected(name)["snapshots"]:
        if snapshot.get("manifest_list") is None:
            continue
        for row in decode_manifest_list(read_bytes(snapshot["manifest_list"])).rows:
            content = read_bytes(row.manifest_path)
            spec = decode_manifest(content, manifest_file=row).spec
            list(iter_named_files(content, row))
            if row.content == ManifestContent.DATA:
                list(iter_matching_files(content, row, spec, FileFilter(lambda _: ALWAYS_TRUE)))
            found += 1
    assert found or not any(one.get("manifest_list") for one in expected(name)["snapshots"])
