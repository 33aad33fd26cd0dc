"""A table from the catalog or from a bare metadata file, which may have moved."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import typer

from committer.cli.views.table_source import TablePlace, open_table, parse_time_ms
from committer.errors import InvalidMetadataError, NotFoundError
from tests.support.builders.fixtures import LOCATION_PREFIX, expected, table_dir
from tests.support.cli.commands import Frazil

OLD = LOCATION_PREFIX.rstrip("/")
NAME = "v2_unpartitioned"


def metadata_file(folder: Path) -> str:
    location = expected(NAME)["metadata_location"]
    return str(folder / location.removeprefix(f"{LOCATION_PREFIX}{NAME}/"))


def test_a_copied_table_is_read_at_its_new_place_under_its_old_names(tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(table_dir(NAME), copy)
    with open_table(TablePlace(None, metadata_file(copy), [f"{OLD}/{NAME}={copy}"])) as found:
        assert found.identifier is None
        assert found.metadata_location == expected(NAME)["metadata_location"]
        snapshot = found.metadata.current_snapshot
        assert snapshot is not None and snapshot.manifest_list is not None
        assert snapshot.manifest_list.startswith(OLD)
        assert found.read(snapshot.manifest_list).startswith(b"Obj\x01")


def test_of_several_moves_the_longest_counts_and_only_whole_parts_of_a_path(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "file").write_text(folder)
    moves = [f"s3://bucket={tmp_path}/a", f"s3://bucket/deep/={tmp_path}/b/"]
    with open_table(TablePlace(None, metadata_file(table_dir(NAME)), moves)) as found:
        assert found.read("s3://bucket/file") == b"a"
        assert found.read("s3://bucket/deep/file") == b"b"
        with pytest.raises(NotFoundError, match="deeper/file"):
            found.read("s3://bucket/deeper/file")


def test_relative_paths_and_locations_name_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(metadata_file(table_dir(NAME)), tmp_path / "one.metadata.json")
    monkeypatch.chdir(tmp_path)
    for file in ("one.metadata.json", f"file:{tmp_path}/one.metadata.json"):
        with open_table(TablePlace(None, file)) as found:
            assert found.metadata_location == f"{tmp_path}/one.metadata.json"


def test_a_table_of_the_catalog_has_the_same_face(frazil: Frazil) -> None:
    assert frazil("table", "create", "db.flights", "--schema", "id long").code == 0
    with open_table(TablePlace("db.flights", None)) as found:
        assert str(found.identifier) == "db.flights"
        content = found.read(found.metadata_location)
        assert content.startswith(b"{") and found.metadata.require_uuid().hex


def test_a_broken_metadata_file_is_named(tmp_path: Path) -> None:
    file = tmp_path / "broken.metadata.json"
    file.write_text("{")
    with (
        pytest.raises(InvalidMetadataError, match=r"broken\.metadata\.json"),
        open_table(TablePlace(None, str(file))),
    ):
        pass


@pytest.mark.parametrize(
    ("table", "metadata", "moves"),
    [(None, None, []), ("db.t", "file", []), (None, "file", ["a"]), (None, "file", ["=b"])],
)
def test_wrong_usage_is_said(table: str | None, metadata: str | None, moves: list[str]) -> None:
    with (
        pytest.raises(typer.BadParameter, match="expected"),
        open_table(TablePlace(table, metadata, moves)),
    ):
        pass


@pytest.mark.parametrize(
    ("text", "time_ms"),
    [
        ("1777636800123", 1777636800123),
        ("2026-05-01T12:00:00.123", 1777636800123),
        ("2026-05-01T14:00:00.123+02:00", 1777636800123),
        ("2026-05-01 12:00:00Z", 1777636800000),
        ("2026-05-01", 1777593600000),
    ],
)
def test_times_are_utc_unless_they_say_otherwise(text: str, time_ms: int) -> None:
    assert parse_time_ms(text, "--as-of") == time_ms


def test_what_is_no_time_is_refused() -> None:
    with pytest.raises(typer.BadParameter, match="expected a time"):
        parse_time_ms("yesterday", "--before")
