"""File scan tasks as JSON: each by itself, and many that share their delete files.

It has no caller in the service: it is for programs that hand tasks to another one, as
`docs/how-to/plan-a-scan.md` says.

Source: the specification, Appendix C, "File Scan Task Serialization"; the schemas `ScanTasks` and
`FileScanTask` of the REST catalog. JSON has no sequence numbers: tasks that were read have none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from committer.errors import InvalidMetadataError
from committer.iceberg.entry.content_file_json import parse_content_file, print_content_file
from committer.iceberg.entry.data_file import DataFile, DataFileContent
from committer.iceberg.expressions.expression import ALWAYS_TRUE, Expression
from committer.iceberg.expressions.expression_json import parse_expression, print_expression
from committer.iceberg.scan.scan_task import FileScanTask
from committer.iceberg.schema.partition_spec import (
    PartitionSpec,
    parse_partition_spec,
    print_partition_spec,
)
from committer.iceberg.schema.schema import Schema, parse_schema, print_schema
from committer.iceberg.values.json_reader import Reader

Specs = Mapping[int, PartitionSpec]

# --- One task that stands for itself -------------------------------------------------------------


def print_file_scan_task(task: FileScanTask, specs: Specs, schema: Schema) -> dict[str, object]:
    """Print a task with the schema and the spec that it is read with."""
    deletes = [_print_file(one, specs, schema) for one in task.delete_files]
    return {
        "schema": print_schema(schema),
        "spec": print_partition_spec(specs[task.spec_id]),
        "data-file": _print_file(task.file, specs, schema),
        **({"delete-files": deletes} if deletes else {}),
        "residual-filter": print_expression(task.residual),
    }


def parse_file_scan_task(
    document: object, specs: Specs | None = None, *, where: str = "file scan task"
) -> FileScanTask:
    """Read a self-contained task. `specs`: those that delete files of other specs name.

    Errors: `InvalidMetadataError` naming the place.
    """
    reader = Reader(document, where)
    schema = parse_schema(reader.take("schema"), where=f"{where}: `schema`")
    spec = parse_partition_spec(reader.take("spec"), where=f"{where}: `spec`")
    known = {**(specs or {}), spec.spec_id: spec}
    data_file = _data_file(reader, known, schema)
    deletes = tuple(_delete_files(reader, known, schema))
    return FileScanTask(data_file, deletes, _residual(reader))


# --- Tasks that share delete files ---------------------------------------------------------------


def print_scan_tasks(
    tasks: Iterable[FileScanTask], specs: Specs, schema: Schema
) -> dict[str, object]:
    """Print tasks as a REST catalog answers them: tasks refer to delete files, which stand once."""
    places: dict[int, int] = {}
    deletes: list[DataFile] = []
    printed = []
    for task in tasks:
        for one in task.delete_files:
            # Tasks of one plan share the value; a path alone may hold several deletion vectors.
            if id(one) not in places:
                places[id(one)] = len(deletes)
                deletes.append(one)
        references = [places[id(one)] for one in task.delete_files]
        printed.append(
            {
                "data-file": _print_file(task.file, specs, schema),
                **({"delete-file-references": references} if references else {}),
                "residual-filter": print_expression(task.residual),
            }
        )
    shared = [_print_file(one, specs, schema) for one in deletes]
    return {**({"delete-files": shared} if shared else {}), "file-scan-tasks": printed}


def parse_scan_tasks(
    document: object, specs: Specs, schema: Schema, *, filter: Expression = ALWAYS_TRUE
) -> list[FileScanTask]:
    """Read what a REST catalog answers. `filter` is the residual of tasks that do not say theirs.

    Errors: `InvalidMetadataError` naming the place.
    """
    reader = Reader(document, "scan tasks")
    deletes = list(_delete_files(reader, specs, schema))
    tasks = []
    for at, document in enumerate(reader.items("file-scan-tasks")):
        task = Reader(document, f"`file-scan-tasks`[{at}]")
        applied = tuple(_referenced(task, deletes))
        data_file = _data_file(task, specs, schema)
        tasks.append(FileScanTask(data_file, applied, _residual(task, filter)))
    return tasks


def _referenced(reader: Reader, deletes: list[DataFile]) -> Iterator[DataFile]:
    for place in reader.items("delete-file-references"):
        if type(place) is not int or not 0 <= place < len(deletes):
            raise InvalidMetadataError(
                f"{reader.where}: `delete-file-references`: expected numbers below {len(deletes)}"
            )
        yield deletes[place]


# --- Parts ---------------------------------------------------------------------------------------


def _print_file(file: DataFile, specs: Specs, schema: Schema) -> dict[str, object]:
    return print_content_file(file, specs[file.spec_id], schema)


def _data_file(reader: Reader, specs: Specs, schema: Schema) -> DataFile:
    file = parse_content_file(reader.take("data-file"), specs, schema)
    if file.content != DataFileContent.DATA:
        raise InvalidMetadataError(f"{reader.where}: `data-file`: expected a file of data")
    return file


def _delete_files(reader: Reader, specs: Specs, schema: Schema) -> Iterator[DataFile]:
    for at, one in enumerate(reader.items("delete-files")):
        file = parse_content_file(one, specs, schema)
        if file.content == DataFileContent.DATA:
            raise InvalidMetadataError(
                f"{reader.where}: `delete-files`[{at}]: expected a file of deletes"
            )
        yield file


def _residual(reader: Reader, otherwise: Expression = ALWAYS_TRUE) -> Expression:
    found = reader.take("residual-filter")
    where = f"{reader.where}: residual"
    return otherwise if found is None else parse_expression(found, where=where)
