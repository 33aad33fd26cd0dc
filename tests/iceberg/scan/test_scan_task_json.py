"""File scan tasks as JSON: both forms are read as they were written."""

from __future__ import annotations

import json
from typing import Any

import pytest

from committer.errors import InvalidMetadataError
from committer.iceberg.expressions.expression import ALWAYS_TRUE
from committer.iceberg.expressions.where_text import parse_where
from committer.iceberg.metadata.table_metadata import TableMetadata, parse_table_metadata
from committer.iceberg.scan.plan_files import plan_files
from committer.iceberg.scan.scan_task import FileScanTask
from committer.iceberg.scan.scan_task_json import (
    Specs,
    parse_file_scan_task,
    parse_scan_tasks,
    print_file_scan_task,
    print_scan_tasks,
)
from tests.support.builders.fixtures import expected, read_bytes, table_names

BROKEN = "v2_identity_fixed_java_quirk"
FILTER = parse_where("id is not null")


def load(name: str) -> tuple[TableMetadata, Specs]:
    metadata = parse_table_metadata(read_bytes(expected(name)["metadata_location"]))
    return metadata, {spec.spec_id: spec for spec in metadata.partition_specs}


def tasks_of(metadata: TableMetadata, *, with_metrics: bool = True) -> list[FileScanTask]:
    return list(plan_files(metadata, read=read_bytes, with_metrics=with_metrics))


def values(tasks: list[FileScanTask]) -> str:
    """Return the tasks as text: NaN is a partition value too."""
    return repr([(task.file, task.delete_files, task.residual) for task in tasks])


def through_text(document: object) -> Any:
    return json.loads(json.dumps(document))


@pytest.mark.parametrize("name", [name for name in table_names() if name != BROKEN])
def test_tasks_of_every_fixture_are_read_as_they_were_written(name: str) -> None:
    metadata, specs = load(name)
    tasks, schema = tasks_of(metadata), metadata.current_schema
    each = [through_text(print_file_scan_task(task, specs, schema)) for task in tasks]
    assert values([parse_file_scan_task(one, specs) for one in each]) == values(tasks)
    together = through_text(print_scan_tasks(tasks, specs, schema))
    assert values(parse_scan_tasks(together, specs, schema)) == values(tasks)


def test_delete_files_stand_once() -> None:
    metadata, specs = load("v2_equality_deletes")
    tasks = tasks_of(metadata)
    printed = print_scan_tasks(tasks, specs, metadata.current_schema)
    shared, printed_tasks = printed["delete-files"], printed["file-scan-tasks"]
    assert isinstance(shared, list) and isinstance(printed_tasks, list)
    assert len(shared) == len(expected("v2_equality_deletes")["live_delete_files"])
    for task, one in zip(tasks, printed_tasks, strict=True):
        found = [shared[place]["file-path"] for place in one.get("delete-file-references", ())]
        assert found == [delete.file_path for delete in task.delete_files]


def test_vectors_of_one_file_stay_apart() -> None:
    metadata, specs = load("v3_deletion_vectors")
    tasks = tasks_of(metadata)
    printed = print_scan_tasks(tasks, specs, metadata.current_schema)
    shared = printed["delete-files"]
    assert isinstance(shared, list)
    places = {(one["file-path"], one["content-offset"]) for one in shared}
    assert len(places) == len(shared) == sum(len(task.delete_files) for task in tasks)


def test_the_keys_are_those_of_the_specification() -> None:
    metadata, specs = load("v2_equality_deletes")
    task = next(task for task in tasks_of(metadata) if task.delete_files)
    alone = print_file_scan_task(task, specs, metadata.current_schema)
    assert list(alone) == ["schema", "spec", "data-file", "delete-files", "residual-filter"]
    (together,) = through_text(print_scan_tasks([task], specs, metadata.current_schema))[
        "file-scan-tasks"
    ]
    assert list(together) == ["data-file", "delete-file-references", "residual-filter"]


def test_a_task_without_a_residual_has_that_of_the_request() -> None:
    metadata, specs = load("v2_unpartitioned")
    schema = metadata.current_schema
    document = through_text(print_scan_tasks(tasks_of(metadata), specs, schema))
    for one in document["file-scan-tasks"]:
        del one["residual-filter"]
    found = parse_scan_tasks(document, specs, schema, filter=FILTER)
    assert {task.residual for task in found} == {FILTER}
    assert {task.residual for task in parse_scan_tasks(document, specs, schema)} == {ALWAYS_TRUE}


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("delete-file-references", [9], r"`file-scan-tasks`\[0\]: `delete-file-references`"),
        ("delete-file-references", [-1], "numbers below"),
        ("delete-file-references", ["0"], "numbers below"),
        ("data-file", None, "content file"),
        ("residual-filter", {"type": "likes"}, "residual"),
    ],
)
def test_what_is_wrong_is_named(key: str, value: object, said: str) -> None:
    metadata, specs = load("v2_equality_deletes")
    schema = metadata.current_schema
    document = through_text(print_scan_tasks(tasks_of(metadata), specs, schema))
    document["file-scan-tasks"][0][key] = value
    with pytest.raises(InvalidMetadataError, match=said):
        parse_scan_tasks(document, specs, schema)


def test_files_of_the_wrong_content_are_refused() -> None:
    metadata, specs = load("v2_equality_deletes")
    schema = metadata.current_schema
    document = through_text(print_scan_tasks(tasks_of(metadata), specs, schema))
    task, delete = document["file-scan-tasks"][0], document["delete-files"][0]
    with pytest.raises(InvalidMetadataError, match="`data-file`: expected a file of data"):
        parse_scan_tasks({"file-scan-tasks": [{**task, "data-file": delete}]}, specs, schema)
    with pytest.raises(InvalidMetadataError, match="expected a file of deletes"):
        parse_scan_tasks({"delete-files": [task["data-file"]]}, specs, schema)
