"""The conformance suite finds what is wrong, names what it does not know, and counts both."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from committer.iceberg.values.types import DoubleType, FloatType
from tests.conformance.__main__ import main, run_group
from tests.conformance.check import Mismatch, same, same_value
from tests.conformance.filter_checks import check_expression
from tests.conformance.suite import Group, groups
from tests.support.builders.fixtures import fixtures_dir, table_dir, vectors

TABLE = "v2_unpartitioned"


@pytest.mark.slow
@pytest.mark.parametrize("group", groups(fixtures_dir()), ids=lambda group: group.name)
def test_everything_that_java_says_of_the_fixtures_holds(group: Group) -> None:
    outcome = run_group(group)
    assert outcome.shown == []
    assert outcome.passed >= 12


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with one table and one file of vectors, to be broken."""
    shutil.copytree(table_dir(TABLE), tmp_path / "java" / TABLE)
    (tmp_path / "vectors").mkdir()
    shutil.copy(fixtures_dir() / "vectors/names.json", tmp_path / "vectors")
    return tmp_path


def change(path: Path, edit: Callable[[Any], object]) -> None:
    document = json.loads(path.read_bytes())
    edit(document)
    path.write_text(json.dumps(document))


def failures(folder: Path, capsys: pytest.CaptureFixture[str]) -> list[str]:
    assert main([str(folder)]) == 1
    lines = capsys.readouterr().out.splitlines()
    found = [line.removeprefix("  FAILED ") for line in lines if line.startswith("  FAILED ")]
    counted = int(lines[-1].removesuffix(" failed").rpartition(" ")[2])
    assert counted >= len(found) > 0
    return found


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("last_column_id", 77),
        ("format_version", True),
        ("current_snapshot_id", None),
        ("schemas_text", ["table {}"]),
        ("properties", {}),
        ("metadata_location", "file:/tmp/frazil-fixtures/v2_unpartitioned/metadata/none.json"),
        ("live_delete_files", [{"file_path": "a"}]),
        ("spark_count", 99),
        ("table_rows", {"count": 9, "rows": []}),
        ("of_tomorrow", 1),
    ],
)
def test_a_fact_that_does_not_hold_is_one_failure_with_its_name(
    folder: Path, capsys: pytest.CaptureFixture[str], key: str, value: object
) -> None:
    change(folder / "java" / TABLE / "expected.json", lambda facts: facts.update({key: value}))
    found = failures(folder, capsys)
    assert any(line.startswith(f"{TABLE}: {key}: ") for line in found), found


def test_a_value_deep_inside_is_compared_too(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def edit(facts: Any) -> None:
        facts["live_data_files"][1]["lower_bounds"]["1"]["value"] += 1
        facts["snapshots"][2]["manifests"][0]["added_rows_count"] += 1
        facts["scans"][4]["tasks"].pop()
        facts["table_rows"]["rows"][0]["id"] += 1
        next(iter(facts["manifest_entries"].values()))[0]["file"]["record_count"] += 1

    change(folder / "java" / TABLE / "expected.json", edit)
    text = "\n".join(failures(folder, capsys))
    places = ("live_data_files: [1].lower_bounds.1.value", "added_rows_count", "record_count")
    for place in (*places, "scans[4]", "table_rows: [0].id"):
        assert place in text


def test_bytes_that_were_changed_are_found(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    manifest = next((folder / "java" / TABLE / "metadata").glob("*-m0.avro"))
    manifest.write_bytes(manifest.read_bytes()[:-20])
    found = "\n".join(failures(folder, capsys))
    for key in ("snapshots", "manifest_entries", "live_data_files", "scans[0]"):
        assert f"{TABLE}: {key}: TruncatedAvroError" in found


def test_a_documented_refusal_is_that_of_the_manifest_and_not_of_the_table(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A table with a spec that only Iceberg Java can read has other manifests too."""
    metadata = folder / "java" / TABLE / "metadata"
    spec = {"spec-id": 7, "partition_type": "struct<1000: code: optional fixed[4]>"}
    change(
        folder / "java" / TABLE / "expected.json",
        lambda facts: facts["partition_specs"].append(spec),
    )
    manifest = next(metadata.glob("*-m0.avro"))
    manifest.write_bytes(manifest.read_bytes()[:-20])
    found = "\n".join(failures(folder, capsys))
    for key in ("snapshots", "manifest_entries", "live_data_files", "spark_count", "table_rows"):
        assert f"{TABLE}: {key}: TruncatedAvroError" in found
    assert f"{TABLE}: scans[0]: TruncatedAvroError" in found


def test_floats_that_java_prints_with_a_digit_too_many_are_the_same_in_every_form() -> None:
    case = next(
        case
        for case in vectors("expressions")["cases"]
        if case["type"] == "float" and "-1.5" in case["bound_text"]
    )
    for key in ("text", "bound_text"):
        check_expression({**case, key: case[key].replace("-1.5", "-1.50000001")})
        with pytest.raises(Mismatch, match=key):
            check_expression({**case, key: case[key].replace("-1.5", "-1.5001")})


def test_vectors_that_do_not_hold_or_are_unknown_are_named(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    change(folder / "vectors/names.json", lambda names: names["cases"][3].update(avro="?"))
    (folder / "vectors/of_tomorrow.json").write_text('{"cases": []}')
    found = failures(folder, capsys)
    assert any(line.startswith("names.json[3]: ") for line in found)
    assert "of_tomorrow.json: not a file of vectors that this suite knows" in found


def test_a_table_without_facts_is_a_failure_and_an_empty_folder_an_error(
    folder: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (folder / "java/other").mkdir()
    assert any(line.startswith("other: FileNotFound") for line in failures(folder, capsys))
    assert main([str(tmp_path / "nothing")]) == 2
    assert "neither java/" in capsys.readouterr().err


def test_equal_means_equal_json_values() -> None:
    same({"a": [1, None, "x"], "b": -0.0}, {"b": -0.0, "a": [1, None, "x"]})
    for found, wanted in [
        (1, 1.0),
        (1, True),
        (0.0, -0.0),
        ([1], [1, 1]),
        ({"a": 1}, {}),
        ("1", 1),
    ]:
        with pytest.raises(Mismatch):
            same(found, wanted)
    same_value(FloatType(), 5.105245e16, 5.1052451e16)
    with pytest.raises(Mismatch):
        same_value(DoubleType(), 5.105245e16, 5.1052451e16)
