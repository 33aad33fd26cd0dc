"""The archive of fixtures unpacks whole, once, and never outside its folder."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support.builders.fixtures import (
    expected,
    read_bytes,
    table_dir,
    table_names,
    unpacked,
    vectors,
)


def build_archive(
    folder: Path, files: Mapping[str, bytes], *, kind: bytes = tarfile.REGTYPE
) -> Path:
    path = folder / "archive.tar.xz"
    with tarfile.open(path, "w:xz") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.type, entry.linkname = len(content), kind, "/etc/passwd"
            archive.addfile(entry, io.BytesIO(content))
    return path


def test_every_table_has_what_java_says_of_it_and_its_current_metadata() -> None:
    assert len(table_names()) == 55
    for name in table_names():
        assert read_bytes(expected(name)["metadata_location"]), name


def test_vectors_have_as_many_cases_as_their_readme_says() -> None:
    assert len(vectors("transforms")["cases"]) == 1535
    assert (table_dir("v2_empty") / "README.md").is_file()


def test_location_outside_the_fixtures_is_refused() -> None:
    with pytest.raises(ValueError, match="not a location of the fixtures"):
        read_bytes("file:/etc/passwd")


def test_archive_is_unpacked_once_and_again_when_its_content_changes(tmp_path: Path) -> None:
    first = unpacked(build_archive(tmp_path, {"a/b": b"1"}), tmp_path / "cache")
    (first / "a/b").write_bytes(b"mark")
    assert unpacked(tmp_path / "archive.tar.xz", tmp_path / "cache") == first
    assert (first / "a/b").read_bytes() == b"mark"

    second = unpacked(build_archive(tmp_path, {"a/b": b"2"}), tmp_path / "cache")
    assert (second / "a/b").read_bytes() == b"2"


@pytest.mark.parametrize("name", ["../outside", "/outside", "a/../../outside"])
def test_entry_that_would_lie_outside_is_refused_and_nothing_is_left(
    tmp_path: Path, name: str
) -> None:
    archive = build_archive(tmp_path, {"inside": b"", name: b""})
    with pytest.raises(ValueError, match="outside the archive"):
        unpacked(archive, tmp_path / "cache")
    assert list((tmp_path / "cache").iterdir()) == []


def test_link_in_an_archive_is_refused(tmp_path: Path) -> None:
    archive = build_archive(tmp_path, {"link": b""}, kind=tarfile.SYMTYPE)
    with pytest.raises(ValueError, match="neither a file nor a folder"):
        unpacked(archive, tmp_path / "cache")
