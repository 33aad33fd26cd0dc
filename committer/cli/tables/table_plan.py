"""`frazil table plan`: the files that a reader reads, with the deletes and residual of each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from committer.cli.context.common_options import AsJson
from committer.cli.output.printing import print_json_lines, print_table
from committer.cli.views.table_source import SnapshotChoice, TablePlace, open_table
from committer.errors import FrazilError

if TYPE_CHECKING:
    from committer.iceberg.expressions.expression import Expression
    from committer.iceberg.scan.scan_task import FileScanTask


def plan(
    place: TablePlace,
    where: Annotated[
        str | None,
        typer.Option(
            "--where",
            metavar="FILTER",
            help="Rows that are wanted: \"id = 1 and (name is null or name in ('a', 'b'))\".",
        ),
    ] = None,
    where_json: Annotated[
        str | None,
        typer.Option("--where-json", metavar="JSON", help="The same as Iceberg's expression JSON."),
    ] = None,
    *,
    choice: SnapshotChoice,
    as_json: AsJson = False,
) -> None:
    """Plan a scan: the data files that may hold wanted rows, one line each.

    A JSON line has the `file`, its `deletes` and as `residual` what is left to ask of its rows.
    Exit code 1 if the table, the snapshot or a file is not there or broken, or if the filter does
    not fit the table.
    """
    from committer.iceberg.scan.plan_files import plan_files

    filter = _filter(where, where_json)
    with open_table(place) as table:
        # Says which of the options do not go together.
        choice.find(table.metadata)
        tasks = plan_files(
            table.metadata,
            read=table.read,
            filter=filter,
            snapshot_id=choice.snapshot,
            ref=choice.ref,
            as_of_ms=choice.as_of_ms,
        )
        if as_json:
            _print_lines(tasks)
        else:
            _print_table(tasks)


def _filter(where: str | None, where_json: str | None) -> Expression:
    """Parse the filter. Errors: `typer.BadParameter` for text that cannot be read,
    and for two filters."""
    import orjson

    from committer.iceberg.expressions.expression import ALWAYS_TRUE
    from committer.iceberg.expressions.expression_json import parse_expression
    from committer.iceberg.expressions.where_text import parse_where

    if where is not None and where_json is not None:
        raise typer.BadParameter("expected at most one of --where and --where-json, found both")
    try:
        if where is not None:
            return parse_where(where)
        if where_json is not None:
            return parse_expression(orjson.loads(where_json))
    except (FrazilError, orjson.JSONDecodeError) as error:
        hint = "--where" if where_json is None else "--where-json"
        raise typer.BadParameter(str(error), param_hint=hint) from None
    return ALWAYS_TRUE


def _print_lines(tasks: Iterator[FileScanTask]) -> None:
    from committer.iceberg.expressions.expression_json import print_expression

    print_json_lines(
        {
            "file": task.file.file_path,
            "deletes": [one.file_path for one in task.delete_files],
            "residual": print_expression(task.residual),
        }
        for task in tasks
    )


def _print_table(tasks: Iterator[FileScanTask]) -> None:
    from committer.iceberg.expressions.expression_text import print_text

    print_table(
        ("records", "bytes", "deletes", "file", "residual"),
        (
            (
                task.file.record_count,
                task.file.file_size_in_bytes,
                len(task.delete_files),
                task.file.file_path,
                print_text(task.residual),
            )
            for task in tasks
        ),
    )
