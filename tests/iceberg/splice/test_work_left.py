"""A walk ends where it would take more work than its caller has time for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from committer.iceberg.entry.data_file import DataFile
from committer.iceberg.schema.bound_forms import ANY_BOUNDS
from committer.iceberg.schema.partition_spec import partition_type
from committer.iceberg.splice.manifest_walk import WalkedManifest, walk_additions
from committer.iceberg.splice.work_left import TooMuchWorkError, WorkLeft
from tests.support.iceberg.manifest_builders import context, data_file, foreign_manifest, manifest

V2 = context()
MUCH = 10**9
# No path of the usual kind: entries with such a one are decoded.
LONG_PATH = "s3://bucket/" + 5_000 * "p/" + "0.parquet"


def files(count: int) -> list[DataFile]:
    return [data_file(number) for number in range(count)]


def walked(content: bytes, left: WorkLeft) -> WalkedManifest:
    kind = partition_type(V2.spec, V2.schema)
    return walk_additions(content, kind, 2, V2.content, forms=ANY_BOUNDS, left=left)


@pytest.mark.parametrize("codec", ["null", "deflate", "zstandard", "snappy"])
def test_blocks_are_not_inflated_beyond_what_is_left(codec: str) -> None:
    content = manifest(*files(50), context=V2, codec=codec)
    left = WorkLeft(MUCH, MUCH, MUCH)
    assert walked(content, left).added_files_count == 50
    raw_bytes = MUCH - left.inflated_bytes
    assert walked(content, WorkLeft(MUCH, raw_bytes, MUCH)).added_files_count == 50
    with pytest.raises(TooMuchWorkError):
        walked(content, WorkLeft(MUCH, raw_bytes - 1, MUCH))


def test_a_large_block_is_not_inflated_whole_to_find_that_out() -> None:
    bomb = replace(data_file(0), lower_bounds={1: bytes(20_000_000)})
    content = manifest(bomb, context=V2)
    left = WorkLeft(MUCH, 1_000, MUCH)
    with pytest.raises(TooMuchWorkError):
        walked(content, left)
    # No block was handed out.
    assert left.inflated_bytes == 1_000


def test_entries_that_the_fast_way_knows_take_no_decoding() -> None:
    content = manifest(*files(50), context=V2)
    left = WorkLeft(MUCH, MUCH, MUCH)
    walked(content, left)
    block_and_partitions = MUCH - left.decoded_bytes
    assert block_and_partitions <= 256 + 50 * 64


def test_a_block_of_which_one_entry_is_decoded_counts_whole() -> None:
    content = manifest(*files(20), replace(data_file(20), file_path=LONG_PATH), context=V2)
    left = WorkLeft(MUCH, MUCH, MUCH)
    walked(content, left)
    assert MUCH - left.decoded_bytes >= MUCH - left.inflated_bytes
    with pytest.raises(TooMuchWorkError):
        walked(content, WorkLeft(MUCH, MUCH, len(LONG_PATH)))


def test_each_block_counts_however_small() -> None:
    content = foreign_manifest(manifest(*files(50), context=V2), entries_per_block=1)
    left = WorkLeft(MUCH, MUCH, MUCH)
    walked(content, left)
    assert MUCH - left.decoded_bytes >= 50 * 256


def test_each_new_partition_counts() -> None:
    content = manifest(
        *(replace(data_file(number), partition=(f"new-{number}", 1)) for number in range(50)),
        context=V2,
    )
    with pytest.raises(TooMuchWorkError):
        walked(content, WorkLeft(MUCH, MUCH, 1_000))


def test_snappy_counts_as_decoded_because_plain_python_inflates_it() -> None:
    content = manifest(*files(50), context=V2, codec="snappy")
    with pytest.raises(TooMuchWorkError):
        walked(content, WorkLeft(MUCH, MUCH, 5_000))
