"""Puffin files of deletion vectors, and their delete files."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from committer.errors import InvalidMetadataError, InvariantError
from committer.iceberg.deletes.deletion_vector import DeletionVector, decode_deletion_vector
from committer.iceberg.deletes.deletion_vector_file import (
    decode_vector_of,
    encode_deletion_vectors,
    superseded_deletes,
    vector_range,
)
from committer.iceberg.deletes.puffin import decode_puffin_footer
from committer.iceberg.entry.data_file import DataFile, DataFileContent
from tests.support.builders.fixtures import LOCATION_PREFIX, fixtures_dir
from tests.support.iceberg.manifest_builders import data_file, delete_file, deletion_vector

FILES = sorted((fixtures_dir() / "java").rglob("*.puffin"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name[:20])
def test_files_of_the_reference_are_written_to_the_byte(path: Any) -> None:
    content = path.read_bytes()
    location = LOCATION_PREFIX + str(path.relative_to(fixtures_dir() / "java"))
    footer = decode_puffin_footer(content)
    vectors = [
        (
            data_file(file_path=blob.properties["referenced-data-file"]),
            decode_deletion_vector(content[blob.offset : blob.offset + blob.length]),
        )
        for blob in footer.blobs
    ]
    encoded = encode_deletion_vectors(
        vectors, file_path=location, created_by=footer.properties["created-by"]
    )
    assert encoded.content == content
    for file, blob, (_, vector) in zip(encoded.delete_files, footer.blobs, vectors, strict=True):
        offset, length = vector_range(file)
        assert (offset, length) == (blob.offset, blob.length)
        assert decode_vector_of(file, content[offset : offset + length]) == vector


def encoded_files(*numbers: int) -> tuple[bytes, tuple[DataFile, ...]]:
    pairs = [(data_file(number), DeletionVector([number, 7])) for number in numbers]
    encoded = encode_deletion_vectors(pairs, file_path="s3://b/v.puffin", created_by="Frazil")
    return encoded.content, encoded.delete_files


def test_a_delete_file_says_of_which_data_file_it_is_and_where_it_lies() -> None:
    content, (first, second) = encoded_files(1, 2)
    assert first.content == DataFileContent.POSITION_DELETES
    assert first.is_deletion_vector
    assert (first.partition, first.spec_id) == (data_file(1).partition, data_file(1).spec_id)
    assert second.referenced_data_file == data_file(2).file_path
    assert first.file_path == second.file_path == "s3://b/v.puffin"
    assert first.file_size_in_bytes == second.file_size_in_bytes == len(content)
    assert (first.record_count, first.content_offset) == (2, 4)
    assert second.content_offset == 4 + (first.content_size_in_bytes or 0)
    assert first.sort_order_id is None


def test_one_vector_for_each_data_file() -> None:
    with pytest.raises(InvariantError, match="two deletion vectors of one data file"):
        encoded_files(1, 1)
    with pytest.raises(InvariantError, match="without positions"):
        encode_deletion_vectors(
            [(data_file(), DeletionVector())], file_path="v", created_by="Frazil"
        )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"content_offset": None}, "with its place"),
        ({"content_size_in_bytes": None}, "with its place"),
        ({"file_format": "PARQUET"}, "with its place"),
        ({"content_offset": -1}, "at -1, in a file of"),
        ({"content_size_in_bytes": -1}, "of -1 bytes at 4"),
        ({"content_size_in_bytes": 1 << 62}, "at 4, in a file of"),
        ({"content_size_in_bytes": 7}, "at 4: 44 bytes, expected 7"),
        ({"record_count": 3}, "at 4: the vector has 2 positions, expected 3"),
    ],
)
def test_a_delete_file_that_its_bytes_contradict_is_refused(
    changes: dict[str, Any], message: str
) -> None:
    content, (file,) = encoded_files(1)
    with pytest.raises(InvalidMetadataError, match=rf"^s3://b/v\.puffin: .*{message}"):
        decode_vector_of(replace(file, **changes), content[4:48])


def test_a_new_vector_replaces_deletes_of_its_data_file_alone() -> None:
    vector, partition_wide = deletion_vector(), delete_file(1, lower_bounds=None)
    named = delete_file(2, referenced_data_file=data_file().file_path)
    equality = data_file(3, content=DataFileContent.EQUALITY_DELETES, equality_ids=(1,))
    assert superseded_deletes([vector, partition_wide, named, equality]) == (vector, named)
