"""Metadata files as gzip: by the property, by the name, and within bounds."""

from __future__ import annotations

import gzip
import tracemalloc

import pytest

from committer.errors import InvalidMetadataError
from committer.iceberg.metadata.metadata_gzip import (
    is_gzip_location,
    unzip_metadata,
    writes_gzip,
    zip_metadata,
)
from committer.iceberg.metadata.table_metadata import (
    parse_table_metadata,
    print_metadata_file,
    print_table_metadata,
)
from tests.support.builders.fixtures import table_dir
from tests.support.iceberg.metadata_builders import build_history


@pytest.mark.parametrize(
    ("codec", "is_gzip"),
    [(None, False), ("none", False), ("gzip", True), ("GZIP", True), ("zstd", False)],
)
def test_the_property_says_how_files_are_written(codec: str | None, is_gzip: bool) -> None:
    properties = {} if codec is None else {"write.metadata.compression-codec": codec}
    assert writes_gzip(properties) is is_gzip


@pytest.mark.parametrize(
    ("location", "is_gzip"),
    [
        ("m/00001-x.gz.metadata.json", True),
        ("m/00001-x.metadata.json.gz", True),
        ("m/00001-x.metadata.json", False),
        ("m/v3.gz.metadata.json/00001-x.metadata.json", False),
    ],
)
def test_a_file_is_written_as_its_name_says(location: str, is_gzip: bool) -> None:
    table = build_history(3)
    content = print_metadata_file(table, location)
    assert is_gzip_location(location) is is_gzip is content.startswith(b"\x1f\x8b")
    assert print_metadata_file(table, location) == content
    assert unzip_metadata(content) == print_table_metadata(table)
    assert parse_table_metadata(content) == table


def test_the_names_of_iceberg_java_say_what_its_files_are() -> None:
    paths = [*table_dir("v2_gzip_metadata").rglob("*.metadata.json")]
    found = {is_gzip_location(path.name) for path in paths}
    assert found == {True, False}
    for path in paths:
        content = path.read_bytes()
        assert is_gzip_location(path.name) is content.startswith(b"\x1f\x8b")


def test_other_readers_unzip_what_we_zip() -> None:
    assert gzip.decompress(zip_metadata(b"{}")) == b"{}"


def test_several_gzip_files_in_one_and_padding_are_read_as_others_read_them() -> None:
    several = gzip.compress(b'{"a":', mtime=0) + gzip.compress(b"1}", mtime=0) + b"\0" * 8
    assert unzip_metadata(several) == b'{"a":1}'


def test_a_bomb_is_refused_whole_or_in_parts() -> None:
    part = gzip.compress(bytes(12 * 1024 * 1024), mtime=0)
    for bomb in (gzip.compress(bytes(40 * 1024 * 1024), mtime=0), part * 4):
        with pytest.raises(InvalidMetadataError, match="expected a whole gzip file of at most"):
            unzip_metadata(bomb)


def test_a_bomb_costs_no_more_memory_than_its_bound() -> None:
    bomb = gzip.compress(bytes(64 * 1024 * 1024), mtime=0)
    tracemalloc.start()
    try:
        with pytest.raises(InvalidMetadataError, match="expected a whole gzip file of at most"):
            unzip_metadata(bomb)
        assert tracemalloc.get_traced_memory()[1] < 56 * 1024 * 1024
    finally:
        tracemalloc.stop()
