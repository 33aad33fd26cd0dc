"""The checks of scans: files, deletes and residuals as Java plans them."""

from __future__ import annotations

from typing import Any

from committer.errors import InvalidMetadataError
from committer.iceberg.expressions.expression import ALWAYS_TRUE, Expression, rewrite_not
from committer.iceberg.expressions.expression_json import parse_expression, print_expression
from committer.iceberg.scan.plan_files import plan_files
from committer.iceberg.scan.scan_task import FileScanTask
from tests.conformance.check import same
from tests.conformance.table import Table
from tests.support.iceberg.java_pruning import without_not


def check_scan(table: Table, said: dict[str, Any]) -> None:
    """Check one filter; of a table whose manifests only Java reads, check the refusal."""
    try:
        found = _tasks(table, parse_expression(said["filter"]))
    except InvalidMetadataError:
        current = table.metadata.current_snapshot
        if current is None or not any(map(table.has_fixed_values, table.rows(current))):
            raise
        return
    tasks = [task | {"residual": without_not(task["residual"])} for task in said["tasks"]]
    same(found, tasks, repr(said["filter"]))


def plan_all(table: Table) -> None:
    """Check that the scan without a filter keeps every live data file, once."""
    if table.expected["scans"] is not None:
        files = [task["file"] for task in _tasks(table, ALWAYS_TRUE)]
        same(files, list(range(len(table.expected["live_data_files"]))), "files")


def _tasks(table: Table, filter: Expression) -> list[dict[str, Any]]:
    planned = plan_files(table.metadata, read=table.read, filter=filter)
    return sorted((_described(table, task) for task in planned), key=lambda task: task["file"])


def _described(table: Table, task: FileScanTask) -> dict[str, Any]:
    """Describe a task as `expected.json` does: files are indexes into the live ones."""
    files = [file["file_path"] for file in table.expected["live_data_files"]]
    said = table.expected["live_delete_files"]
    deletes = [(file["file_path"], file["content_offset"]) for file in said]
    found = [deletes.index((one.file_path, one.content_offset)) for one in task.delete_files]
    return {
        "file": files.index(task.file.file_path),
        **({"deletes": found} if found else {}),
        "residual": print_expression(rewrite_not(task.residual)),
    }
