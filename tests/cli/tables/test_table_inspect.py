from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from committer.cli.tables.table_inspect import KindOption
from committer.cli.views.kind_views import kind_view
from committer.iceberg.inspection.metadata_tables import SNAPSHOT_KINDS, TABLE_KINDS
from tests.support.builders.fixtures import (
    LOCATION_PREFIX,
    expected,
    read_bytes,
    table_names,
)
from tests.support.cli.cli_commands import bare
from tests.support.cli.commands import Answer, Frazil

# Broken as its writer left them: the values of its partition are no valid Avro.
UNREADABLE = "v2_identity_fixed_java_quirk"
KINDS = (*SNAPSHOT_KINDS, *TABLE_KINDS)
# Among them: manifests without a list, deletion vectors, encryption keys, no snapshot.
SOME = (
    "v1_embedded_manifests",
    "v2_branches_tags",
    "v3_deletion_vectors",
    "v3_encryption_fields",
    "v3_empty",
)


def inspect(frazil: Frazil, name: str, kind: str, *options: str) -> Answer:
    answer = frazil("table", "inspect", *bare(name), "--kind", kind, *options)
    assert (answer.code, answer.err) == (0, ""), answer
    return answer


def lines(frazil: Frazil, name: str, kind: str, *options: str) -> list[dict[str, Any]]:
    return inspect(frazil, name, kind, "--json", *options).lines


# --- JSON lines ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in table_names() if name != UNREADABLE])
def test_lines_of_files_are_what_the_reference_says_in_its_order(frazil: Frazil, name: str) -> None:
    said = expected(name)
    assert lines(frazil, name, "files") == said["live_data_files"] + said["live_delete_files"]


@pytest.mark.parametrize("name", SOME)
def test_lines_of_other_kinds_are_what_the_reference_says(frazil: Frazil, name: str) -> None:
    said = expected(name)
    found = lines(frazil, name, "snapshots")
    assert found == [{key: one[key] for key in found[0]} for one in said["snapshots"]]
    assert {row.pop("name"): row for row in lines(frazil, name, "refs")} == said["refs"]
    entries = [row for each in said["manifest_entries"].values() for row in each]
    assert in_order(lines(frazil, name, "all_entries")) == in_order(entries)
    current = [
        one for one in said["snapshots"] if one["snapshot_id"] == said["current_snapshot_id"]
    ]
    for snapshot in current:
        assert lines(frazil, name, "manifests") == snapshot["manifests"]


@pytest.mark.parametrize("name", ["v1_void", "v2_gzip_metadata", "v3_encryption_fields"])
def test_metadata_is_printed_as_iceberg_json(frazil: Frazil, name: str) -> None:
    from committer.iceberg.metadata.table_metadata import parse_table_metadata, print_table_metadata

    content = read_bytes(expected(name)["metadata_location"])
    wanted = print_table_metadata(parse_table_metadata(content)).decode() + "\n"
    assert inspect(frazil, name, "metadata").out == wanted
    assert inspect(frazil, name, "metadata", "--json").out == wanted


def test_64_bit_numbers_are_json_numbers(frazil: Frazil) -> None:
    text = inspect(frazil, "v2_equality_deletes", "snapshots", "--json").out
    assert '"snapshot_id":1397009133905167320,' in text


# --- Which snapshot ------------------------------------------------------------------------------


def test_a_snapshot_is_chosen_by_id_by_ref_or_by_time(frazil: Frazil) -> None:
    name = "v2_branches_tags"
    said = expected(name)
    dev = said["refs"]["dev"]["snapshot-id"]
    (snapshot,) = [one for one in said["snapshots"] if one["snapshot_id"] == dev]
    assert snapshot["snapshot_id"] != said["current_snapshot_id"]
    assert lines(frazil, name, "manifests", "--snapshot", str(dev)) == snapshot["manifests"]
    assert lines(frazil, name, "manifests", "--ref", "dev") == snapshot["manifests"]
    first = said["snapshot_log"][0]
    (oldest,) = [one for one in said["snapshots"] if one["snapshot_id"] == first["snapshot_id"]]
    moment = datetime.fromtimestamp(first["timestamp_ms"] / 1000, UTC).isoformat()
    for time in (str(first["timestamp_ms"]), moment, moment.removesuffix("+00:00")):
        assert lines(frazil, name, "manifests", "--as-of", time) == oldest["manifests"]


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (("--kind", "colors"), 2, "`colors`: expected one of manifests, files"),
        (("--kind", "refs", "--ref", "main"), 2, "`refs` is about the whole table"),
        (("--kind", "metadata", "--snapshot", "1"), 2, "`metadata` is about the whole table"),
        (("--kind", "files", "--ref", "main", "--snapshot", "1"), 2, "at most one of --snapshot"),
        (("--kind", "files", "--arrow", "a", "--json"), 2, "--arrow"),
        (("--kind", "metadata", "--arrow", "a"), 2, "--arrow"),
        (("--kind", "files", "--ref", "absent"), 1, "no branch or tag `absent`"),
        (("--kind", "files", "--snapshot", "1"), 1, "no snapshot 1"),
        (
            ("--kind", "files", "--as-of", "2001-01-01"),
            1,
            "as old as 2001-01-01T00:00:00Z",
        ),
        (("--kind", "files", "--as-of", "yesterday"), 2, "`yesterday`: expected a time"),
        ((), 2, "--kind"),
    ],
)
def test_what_cannot_be_told_is_said_with_an_exit_code(
    frazil: Frazil, options: tuple[str, ...], code: int, message: str
) -> None:
    answer = frazil("table", "inspect", *bare("v2_branches_tags"), *options)
    assert (answer.code, answer.out) == (code, "")
    assert message in " ".join(answer.err.split())


def test_a_manifest_that_is_broken_is_named_with_exit_code_1(frazil: Frazil) -> None:
    answer = frazil("table", "inspect", *bare(UNREADABLE), "--kind", "entries", "--json")
    assert answer.code == 1
    assert answer.err.startswith(f"frazil: {LOCATION_PREFIX}{UNREADABLE}/metadata/")


def test_the_help_names_every_kind() -> None:
    (option,) = KindOption.__metadata__  # type: ignore[attr-defined]
    named = {word.strip(",.") for word in option.help.split()}
    assert {*KINDS, "metadata"} <= named


# --- For people ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_a_table_with_a_line_for_each_row(frazil: Frazil, kind: str) -> None:
    for name in ("v1_embedded_manifests", "v3_deletion_vectors"):
        rows = lines(frazil, name, kind)
        printed = inspect(frazil, name, kind).out.splitlines()
        assert len(printed) == 1 + len(rows), name
        if kind != "snapshots":
            view = kind_view(kind, rows)
            assert all(len(cells) == len(view.headers) for cells in view.rows)


def test_a_table_of_files_is_in_the_order_of_the_lines(frazil: Frazil) -> None:
    paths = [row["file_path"] for row in lines(frazil, "v3_deletion_vectors", "files")]
    _, *printed = inspect(frazil, "v3_deletion_vectors", "files").out.splitlines()
    assert [line.split()[-1] for line in printed] == paths


# --- The other reading commands ------------------------------------------------------------------


def test_reading_commands_take_a_bare_metadata_file(frazil: Frazil) -> None:
    name = "v2_branches_tags"
    said, options = expected(name), (*bare(name), "--json")
    shown = frazil("table", "show", *options).object
    assert (shown["table"], shown["metadata_location"]) == (None, said["metadata_location"])
    assert shown["current_snapshot"]["snapshot_id"] == said["current_snapshot_id"]
    (schema,) = said["schemas"]
    assert frazil("table", "schema", *options).object == schema
    for kind in ("snapshots", "history", "files"):
        assert frazil("table", kind, *options).lines == lines(frazil, name, kind)
    of_dev = lines(frazil, name, "files", "--ref", "dev")
    assert frazil("table", "files", *options, "--ref", "dev").lines == of_dev
    assert of_dev != lines(frazil, name, "files")


def test_a_table_of_the_catalog_is_inspected_by_its_name(frazil: Frazil) -> None:
    assert frazil("table", "create", "db.flights", "--schema", "id long").code == 0
    (row,) = frazil(
        "table", "inspect", "db.flights", "--kind", "metadata_log_entries", "--json"
    ).lines
    assert row["metadata_file"] == frazil.load().metadata_location
    assert frazil("table", "inspect", "db.absent", "--kind", "refs").code == 1


# --- Arrow ---------------------------------------------------------------------------------------


def arrow(frazil: Frazil, name: str, kind: str, file: Path) -> pa.Table:
    assert inspect(frazil, name, kind, "--arrow", str(file)).out == ""
    with pa.OSFile(str(file)) as source:
        return pa.ipc.open_file(source).read_all()


@pytest.mark.parametrize("kind", KINDS)
def test_an_arrow_file_has_the_columns_and_rows_of_the_lines(
    frazil: Frazil, kind: str, tmp_path: Path
) -> None:
    for name in ("v2_branches_tags", "v2_equality_deletes", "v3_geo"):
        table = arrow(frazil, name, kind, tmp_path / f"{kind}.arrow")
        rows = lines(frazil, name, kind)
        assert table.num_rows == len(rows), name
        assert {key for row in rows for key in row} <= set(table.schema.names), name
        found = [as_line(row) for row in table.to_pylist(maps_as_pydicts="strict")]
        assert in_order(found) == in_order(without_nulls(row) for row in rows), name


def in_order(rows: Iterable[object]) -> list[str]:
    return sorted(json.dumps(row, sort_keys=True) for row in rows)


def without_nulls(value: Any) -> Any:
    """Drop nulls: Arrow has every column in every row, JSON omits some."""
    if isinstance(value, dict):
        return {key: without_nulls(each) for key, each in value.items() if each is not None}
    return [without_nulls(each) for each in value] if isinstance(value, list) else value


def as_line(row: dict[str, Any]) -> Any:
    """Return a row of Arrow as a line of JSON has it."""
    return without_nulls({key: as_json(key, value) for key, value in row.items()})


def as_json(key: str, value: Any) -> Any:
    match key, value:
        case _, datetime():
            return round(value.timestamp() * 1000)
        case "partition", str():
            return json.loads(value)
        case (("value" | "lower" | "upper"), str()):
            return json.loads(value)
        case _, dict():
            return {str(name): as_json(str(name), each) for name, each in value.items()}
        case _, list():
            return [as_json(key, each) for each in value]
    return value


def test_an_arrow_file_is_there_when_it_is_whole(frazil: Frazil, tmp_path: Path) -> None:
    file = tmp_path / "files.arrow"
    file.write_text("what was there before")
    options = ("--kind", "files", "--arrow", str(file))
    assert frazil("table", "inspect", *bare(UNREADABLE), *options).code == 1
    assert [path.name for path in tmp_path.glob("*arrow*")] == ["files.arrow"]
    assert file.read_text() == "what was there before"


def test_without_pyarrow_the_error_names_it(
    frazil: Frazil, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.delitem(sys.modules, "committer.cli.output.arrow_file", raising=False)
    options = ("--kind", "files", "--arrow", str(tmp_path / "files.arrow"))
    answer = frazil("table", "inspect", *bare("v2_unpartitioned"), *options)
    assert answer.code == 2
    assert answer.err.startswith(
        "frazil: --arrow needs the package `pyarrow`: install the extra `spark`"
    )


def test_a_file_that_cannot_be_made_is_one_line_on_stderr(frazil: Frazil, tmp_path: Path) -> None:
    options = ("--kind", "files", "--arrow", str(tmp_path / "absent" / "files.arrow"))
    answer = frazil("table", "inspect", *bare("v2_unpartitioned"), *options)
    assert (answer.code, answer.err.count("\n")) == (2, 1)


# --- Pipes ---------------------------------------------------------------------------------------


@pytest.mark.thorough
def test_a_reader_that_goes_away_is_no_error_to_speak_of() -> None:
    command = [
        sys.executable,
        "-m",
        "committer",
        "table",
        "inspect",
        *bare("v2_long_manifest_list"),
    ]
    with subprocess.Popen(
        [*command, "--kind", "all_entries", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        process.wait(timeout=10)
