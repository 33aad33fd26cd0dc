"""Manifests written piece by piece are the manifests written at once; long ones are cut."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator

import pytest

from committer.errors import InvariantError
from committer.iceberg.entry.data_file import DataFile, ManifestContent, ManifestEntry
from committer.iceberg.entry.data_file import ManifestEntryStatus as Status
from committer.iceberg.manifest.manifest import decode_manifest, iter_entries
from committer.iceberg.manifest.manifest_writer import (
    BLOCK_BYTES,
    ManifestWriter,
    encode_additions,
    encode_manifest,
    encode_manifests,
    manifest_file,
)
from tests.support.iceberg.manifest_builders import (
    SCORE,
    SYNC,
    context,
    data_file,
    delete_file,
    entries,
)

VERSIONS = pytest.mark.parametrize("format_version", [1, 2, 3])


@VERSIONS
def test_new_files_are_written_as_their_entries_are(format_version: int) -> None:
    files = [data_file(number) for number in range(500)]
    one = context(format_version=format_version)
    written = encode_additions(files, one, sync=SYNC)
    assert written == encode_manifest(entries(*files), one, sync=SYNC)
    assert (written.added_files_count, written.existing_files_count) == (500, 0)
    assert written.added_rows_count == sum(file.record_count for file in files)


@VERSIONS
def test_the_pieces_of_a_writer_are_the_manifest(format_version: int) -> None:
    files = [data_file(number) for number in range(1_200)]
    one = context(format_version=format_version)
    writer = ManifestWriter(one, codec="null", sync=SYNC)
    pieces = [writer.start(), *writer.add_files(files[:400])]
    # Between blocks, one goes on where the other stopped.
    pieces += [*writer.add(entries(*files[400:])), writer.finish()]
    encoded = encode_additions(files, one, codec="null", sync=SYNC)
    assert b"".join(pieces) == encoded.content
    assert writer.length_bytes == len(encoded.content)
    rows = [
        manifest_file(each, one, manifest_path="m", snapshot_id=1, sequence_number=2)
        for each in (encoded, writer.written())
    ]
    assert rows[0] == rows[1]
    assert len(pieces) > 4
    assert max(map(len, pieces)) < 2 * BLOCK_BYTES


def peak_bytes(work: Callable[[], None]) -> int:
    """Return the least memory that it took in two runs: threads of other tests, and what is kept
    for good since a first run, only add to it.
    """
    peaks = []
    for _ in range(2):
        tracemalloc.start()
        try:
            work()
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
    return min(peaks)


@pytest.mark.thorough
def test_a_writer_keeps_no_more_than_a_block() -> None:
    def files() -> Iterator[DataFile]:
        return (data_file(number, partition=("r", 1)) for number in range(5_000))

    def write() -> None:
        writer = ManifestWriter(context(), codec="null", sync=SYNC)
        assert sum(map(len, writer.add_files(files()))) > 10 * BLOCK_BYTES

    assert peak_bytes(write) < 8 * BLOCK_BYTES


@pytest.mark.thorough
def test_a_reader_keeps_no_more_than_a_block() -> None:
    files = [data_file(number, partition=("r", 1)) for number in range(5_000)]
    content = encode_additions(files, context(), sync=SYNC).content
    assert [entry.data_file for entry in iter_entries(content)] == files

    def read() -> None:
        for _ in iter_entries(content):
            pass

    assert peak_bytes(read) < 8 * BLOCK_BYTES


@pytest.mark.thorough
@pytest.mark.parametrize("codec", ["null", "deflate", "snappy", "zstandard"])
def test_long_manifests_are_cut_at_the_target(codec: str) -> None:
    files = [data_file(number) for number in range(2_000)]
    one = context()
    whole = len(encode_additions(files, one, codec=codec, sync=SYNC).content)
    target = whole // 3
    parts = list(
        encode_manifests(entries(*files), one, codec=codec, sync=SYNC, target_bytes=target)
    )
    assert len(parts) in (3, 4)
    for part in parts[:-1]:
        assert target <= len(part.content) < target + 2 * BLOCK_BYTES
    found = [entry for part in parts for entry in decode_manifest(part.content).entries]
    assert [entry.data_file.file_path for entry in found] == [file.file_path for file in files]
    assert sum(part.added_files_count for part in parts) == len(files)


def test_no_entries_are_no_manifests() -> None:
    assert list(encode_manifests([], context(), sync=SYNC, target_bytes=1)) == []


def test_a_target_of_nothing_ends_with_the_entries() -> None:
    files = [data_file(number) for number in range(300)]
    parts = list(encode_manifests(entries(*files), context(), sync=SYNC, target_bytes=0))
    assert sum(part.added_files_count for part in parts) == 300


def test_what_the_manifest_does_not_hold_is_refused() -> None:
    deletes = context(content=ManifestContent.DELETES)
    with pytest.raises(InvariantError, match="not for a manifest of DELETES"):
        encode_additions([data_file()], deletes, sync=SYNC)
    with pytest.raises(InvariantError, match="not for a manifest of DATA"):
        encode_additions([delete_file()], context(), sync=SYNC)
    encoded = encode_additions([delete_file()], deletes, sync=SYNC)
    assert decode_manifest(encoded.content).content is ManifestContent.DELETES


def test_partitions_of_minus_zero_and_zero_are_two() -> None:
    files = [data_file(0, partition=(0.0,)), data_file(1, partition=(-0.0,))]
    for _ in range(2):
        encoded = encode_additions(files, context(fields=SCORE), sync=SYNC)
        found = [entry.data_file.partition for entry in decode_manifest(encoded.content).entries]
        assert repr(found) == "[(0.0,), (-0.0,)]"


def test_counts_are_kept_by_status() -> None:
    writer = ManifestWriter(context(), sync=SYNC)
    kept = [
        ManifestEntry(Status.EXISTING, 7, 4, 4, data_file(2, record_count=10)),
        ManifestEntry(Status.DELETED, 8, 1, 1, data_file(4, record_count=40)),
    ]
    content = writer.start() + b"".join(writer.add(kept))
    content += b"".join(writer.add_files([data_file(1, record_count=5)])) + writer.finish()
    written = writer.written()
    assert (written.added_files_count, written.added_rows_count) == (1, 5)
    assert (written.existing_files_count, written.existing_rows_count) == (1, 10)
    assert (written.deleted_files_count, written.deleted_rows_count) == (1, 40)
    assert written.min_sequence_number == 4
    assert len(decode_manifest(content).entries) == 3
