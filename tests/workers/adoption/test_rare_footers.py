"""A rare footer gives an entry that the committer takes, or is refused with what is wrong with it.

pyarrow ends the process at several of these: a test that fails may end the whole run.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from committer.errors import InvalidMetadataError, UnsupportedError
from committer.iceberg.entry.data_file import DataFile, ManifestContent
from committer.iceberg.entry.entry_check import check_added_file
from committer.iceberg.schema.bound_forms import bound_forms
from committer.iceberg.values.types import (
    DecimalType,
    IcebergType,
    LongType,
    StringType,
    TimestampType,
    TimestamptzType,
)
from tests.support.workers.footer_bytes import (
    BINARY,
    I32,
    I64,
    LIST,
    STRUCT,
    Struct,
    chunk_of,
    groups_of,
    metadata_of,
    statistics_of,
    with_footer,
)
from tests.support.workers.parquet_files import adopt, footer_of, parquet_bytes, target_of
from tests.support.workers.tables import optional, schema
from tests.support.workers.write_target import spec_of
from workers.adoption.adopt_file import Adopted, Empty
from workers.read.formats.parquet_rows import ParquetRows

Change = Callable[[Struct], None]
IDS = pa.table({"id": [7, 8]})


LONG = LongType()


def lands(content: bytes, kind: IcebergType = LONG) -> DataFile:
    """Adopt a file of one column, whose entry the committer takes."""
    table = schema(optional(1, "id", kind))
    outcome = adopt(content, target_of(table))
    assert isinstance(outcome, Adopted), outcome
    check_added_file(outcome.file, ManifestContent.DATA, 2, bound_forms([table], table, 1))
    return outcome.file


def number(value: int) -> bytes:
    return value.to_bytes(8, "little", signed=True)


# --- Row groups ----------------------------------------------------------------------------------


def grouped(*counts: int) -> bytes:
    """Return a file with a row group for each count, of that many ascending numbers from 7 on."""
    sink, first = pa.BufferOutputStream(), 7
    with pq.ParquetWriter(sink, IDS.schema) as writer:
        for count in counts:
            writer.write_table(pa.table({"id": pa.array(range(first, first + count), pa.int64())}))
            first += count
    return bytes(sink.getvalue())


def offsets(content: bytes) -> list[int]:
    footer = footer_of(content)
    return [group.column(0).dictionary_page_offset for group in footer.row_groups if group.num_rows]


@pytest.mark.parametrize("counts", [(2, 0, 2), (0, 2, 2), (2, 2, 0), (0, 0, 4, 0)], ids=str)
def test_a_row_group_without_rows_says_nothing(counts: tuple[int, ...]) -> None:
    content = grouped(*counts)
    file = lands(content)
    assert file.record_count == 4
    assert list(file.split_offsets or ()) == offsets(content) == sorted(offsets(content))
    assert (file.value_counts, file.null_value_counts) == ({1: 4}, {1: 0})
    assert (file.lower_bounds, file.upper_bounds) == ({1: number(7)}, {1: number(10)})


def test_a_row_group_without_rows_hides_no_partition_and_no_required_column() -> None:
    target = target_of(schema(optional(1, "id", LongType())), spec_of((1, "p", "truncate[100]")))
    outcome = adopt(grouped(2, 0, 2), target)
    assert isinstance(outcome, Adopted) and outcome.file.partition == (0,)


def test_row_groups_in_another_order_than_in_the_file_have_ascending_offsets() -> None:
    content = with_footer(grouped(2, 2, 2), lambda footer: footer[4][1][1].reverse())
    file = lands(content)
    assert list(file.split_offsets or ()) == sorted(offsets(content)) != offsets(content)
    assert file.record_count == 6


def test_many_row_groups_land() -> None:
    file = lands(parquet_bytes(pa.table({"id": range(5_000)}), row_group_size=1))
    assert len(file.split_offsets or ()) == file.record_count == 5_000


def test_files_without_rows_are_empty_whatever_their_row_groups() -> None:
    for content in (grouped(), grouped(0), grouped(0, 0)):
        target = target_of(schema(optional(1, "id", LongType())))
        assert isinstance(adopt(content, target), Empty)


def test_an_offset_of_zero_is_that_of_no_dictionary() -> None:
    def change(footer: Struct) -> None:
        metadata_of(footer)[11] = I64, 0

    plain = parquet_bytes(IDS, use_dictionary=False)
    assert lands(with_footer(plain, change)).split_offsets == (4,)


# --- Statistics ----------------------------------------------------------------------------------


def test_a_file_without_statistics_lands_without_bounds() -> None:
    file = lands(parquet_bytes(IDS, write_statistics=False))
    assert (file.value_counts, file.null_value_counts) == ({1: 2}, {})
    assert (file.lower_bounds, file.upper_bounds) == ({}, {})


def old_statistics(created_by: bytes | None, low: bytes, high: bytes) -> Change:
    """Return the change to `min` and `max` alone, without an order of columns."""

    def change(footer: Struct) -> None:
        found = statistics_of(footer)
        for field in (5, 6, 7, 8):
            found.pop(field, None)
        found[2], found[1] = (BINARY, low), (BINARY, high)
        footer.pop(7)
        footer.pop(6)
        if created_by is not None:
            footer[6] = BINARY, created_by

    return change


WRITERS = [b"parquet-mr version 1.8.1 (build 4a)", b"parquet-mr version 1.10.0", b"x", None]
# As signed bytes `é` is below `z`, and 1.28 below 0.01.
TEXTS = pa.array(["aé", "az", "b"]), StringType(), "aé".encode(), b"b"
PRICES = [Decimal("0.01"), Decimal("1.28"), Decimal("300.00")]
DECIMALS = pa.array(PRICES, pa.decimal128(20, 2))
OLD_DECIMALS = DECIMALS, DecimalType(20, 2), b"\0" * 8 + b"\x80", b"\0" * 7 + b"\x75\x30"


@pytest.mark.parametrize("writer", WRITERS, ids=str)
def test_statistics_of_old_are_believed_of_numbers_alone(writer: bytes | None) -> None:
    content = parquet_bytes(pa.table({"id": [1, 8]}))
    ids = lands(with_footer(content, old_statistics(writer, number(1), number(8))))
    assert (ids.lower_bounds, ids.upper_bounds) == ({1: number(1)}, {1: number(8)})
    for column, kind, low, high in (TEXTS, OLD_DECIMALS):
        content = parquet_bytes(pa.table({"id": column}))
        file = lands(with_footer(content, old_statistics(writer, low, high)), kind)
        assert (file.lower_bounds, file.upper_bounds, file.null_value_counts) == ({}, {}, {1: 0})


@pytest.mark.parametrize("writer", [WRITERS[0], b"parquet-mr", None], ids=str)
def test_readers_pass_over_no_row_group_by_decimals_of_old_writers(writer: bytes | None) -> None:
    _, kind, low, high = OLD_DECIMALS
    content = parquet_bytes(pa.table({"id": DECIMALS}))
    stored = ParquetRows(pa.BufferReader(content))
    [leaf] = stored.columns[0].leaves()
    today = stored.facts(0, leaf, kind)
    assert today is not None and today.bounds == (PRICES[0], PRICES[2])
    old = ParquetRows(pa.BufferReader(with_footer(content, old_statistics(writer, low, high))))
    [leaf] = old.columns[0].leaves()
    found = old.facts(0, leaf, kind)
    assert found is not None and found.bounds is None


def bounds(low: bytes, high: bytes) -> Change:
    def change(footer: Struct) -> None:
        found = statistics_of(footer)
        found[6], found[5] = (BINARY, low), (BINARY, high)

    return change


AT = pa.array([1, 2], pa.timestamp("ms"))
DAY = pa.array([1, 2], pa.timestamp("ms", "UTC"))


@pytest.mark.parametrize(
    ("column", "kind", "low", "high"),
    [
        (pa.array([1, 2]), LongType(), number(2), number(1)),
        (AT, TimestampType(), number(0), number(2**62)),
        (DAY, TimestamptzType(), number(-(2**60)), number(0)),
        (DECIMALS, DecimalType(20, 2), b"\x80" + b"\0" * 8, b"\x7f" + b"\xff" * 8),
        (pa.array(["a", "b"]), StringType(), b"a", b"\xff"),
    ],
    ids=["crossed", "after the last time", "before the first time", "digits", "no text"],
)
def test_bounds_that_are_none_are_left_out(
    column: pa.Array, kind: IcebergType, low: bytes, high: bytes
) -> None:
    content = parquet_bytes(pa.table({"id": column}))
    file = lands(with_footer(content, bounds(low, high)), kind)
    assert (file.lower_bounds, file.upper_bounds) == ({}, {})


@pytest.mark.parametrize("count", [-1, 3, 2**62])
def test_a_count_of_nulls_that_cannot_be_is_left_out(count: int) -> None:
    def change(footer: Struct) -> None:
        statistics_of(footer)[3] = I64, count

    file = lands(with_footer(parquet_bytes(IDS), change))
    assert (file.value_counts, file.null_value_counts) == ({1: 2}, {})


def test_statistics_that_no_entry_has_are_not_looked_at() -> None:
    def change(footer: Struct) -> None:
        metadata_of(footer)[16] = STRUCT, {2: (LIST, (I64, [1])), 3: (LIST, (I64, [1, 1, 1, 1]))}

    assert lands(with_footer(parquet_bytes(IDS), change)).record_count == 2


def test_long_values_in_page_headers_and_footer_land() -> None:
    texts = pa.table({"id": ["x" * 3_000_000, "y" * 3_000_000]})
    content = parquet_bytes(texts, max_rows_per_page=1, use_dictionary=False, write_page_index=True)
    assert lands(content, StringType()).record_count == 2
    assert lands(with_footer(content, bounds_of_megabytes), StringType()).lower_bounds


def bounds_of_megabytes(footer: Struct) -> None:
    found = statistics_of(footer)
    found[6], found[5] = (BINARY, b"x" * 3_000_000), (BINARY, b"y" * 3_000_000)


# --- What is refused -----------------------------------------------------------------------------


def of_metadata(field: int, value: int) -> Change:
    def change(footer: Struct) -> None:
        metadata_of(footer).pop(11, None)
        metadata_of(footer)[field] = I64, value

    return change


def of_chunk(field: int, kind: int, value: object) -> Change:
    def change(footer: Struct) -> None:
        chunk_of(footer)[field] = kind, value

    return change


def physical_type(footer: Struct) -> None:
    metadata_of(footer)[1] = I32, 1


def rows(footer: Struct) -> None:
    footer[3] = I64, 0


def group_rows(footer: Struct) -> None:
    footer[3] = groups_of(footer)[0][3] = I64, -2


def second_chunk(footer: Struct) -> None:
    groups_of(footer)[0][1][1][1].append(chunk_of(footer))


def name(footer: Struct) -> None:
    footer[2][1][1][1][4] = BINARY, b"\xff"


def no_metadata(footer: Struct) -> None:
    chunk_of(footer).pop(3)


KEY = {2: (STRUCT, {1: (LIST, (BINARY, [b"id"]))})}
REFUSED: list[tuple[str, Change, str]] = [
    ("short bound", bounds(b"\1", b"\2"), "a minimum or maximum of 1 bytes, expected 8"),
    ("no bound", bounds(b"", b""), "a minimum or maximum of 0 bytes, expected 8"),
    ("values", of_metadata(5, 1), "column id: 1 values with the nulls, expected one for each of 2"),
    ("size", of_metadata(7, -1), "-1 bytes from byte 36 on, which is not within"),
    ("offset 0", of_metadata(9, 0), "from byte 0 on, which is not within"),
    ("negative offset", of_metadata(9, -3), "from byte -3 on, which is not within"),
    ("far offset", of_metadata(9, 10**12), "from byte 1000000000000 on, which is not within"),
    ("physical type", physical_type, "another physical type than the schema says"),
    ("rows", rows, "its footer says 0 rows, and its row groups have 2"),
    ("negative rows", group_rows, "row group 0 of its footer has -2 rows"),
    ("columns", second_chunk, "2 columns, expected no negative number, and the 1 columns"),
    ("name", name, "no UTF-8 text"),
    ("no metadata", no_metadata, "another physical type"),
    ("elsewhere", of_chunk(1, BINARY, b"b.parquet"), "its rows are in other files"),
    ("footer key", of_chunk(8, STRUCT, {1: (STRUCT, {})}), "its columns are encrypted"),
    ("column key", of_chunk(8, STRUCT, KEY), "its columns are encrypted"),
]


@pytest.mark.parametrize(
    ("change", "said"), [one[1:] for one in REFUSED], ids=[one[0] for one in REFUSED]
)
def test_a_footer_that_contradicts_itself_is_refused(change: Change, said: str) -> None:
    with pytest.raises((InvalidMetadataError, UnsupportedError), match=said):
        footer_of(with_footer(parquet_bytes(IDS), change))


def test_no_change_of_a_few_bytes_ends_the_process_or_gives_a_wrong_entry() -> None:
    columns = {"id": [1, None, 3], "text": ["a", "é", None], "list": [[1], [], None]}
    content = parquet_bytes(pa.table(columns), row_group_size=2)
    length = int.from_bytes(content[-8:-4], "little")
    table = schema(optional(1, "id", LongType()), optional(2, "text", StringType()))
    target = target_of(table, extra=True)
    for seed in range(300):
        chance, changed = random.Random(seed), bytearray(content)
        for _ in range(chance.randint(1, 3)):
            changed[-8 - chance.randint(1, length)] = chance.randrange(256)
        try:
            outcome = adopt(bytes(changed), target)
        except (InvalidMetadataError, UnsupportedError):
            continue
        if isinstance(outcome, Adopted):
            check_added_file(outcome.file, ManifestContent.DATA, 2, bound_forms([table], table, 2))
