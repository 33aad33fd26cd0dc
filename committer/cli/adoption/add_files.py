"""`frazil table add-files`: its options, and what it prints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from committer.cli.context.command_session import parse_identifier, run_with_parts
from committer.cli.context.common_options import TIMEOUT_OPTION, AsJson, TableArgument, Timeout
from committer.cli.context.operator_audit import ReasonOption, recorded_on_table
from committer.cli.output.durations import parse_duration_ms
from committer.cli.output.printing import counted, print_json, print_json_lines, print_table, say
from committer.extras import named_extra

if TYPE_CHECKING:
    from committer.cli.adoption.file_adoption import PlannedAdoption
    from committer.request.receipt_model import Receipt
    from committer.service.process.composition import Parts
    from workers.adoption.adopt_file import Empty

_SHOWN_MAX = 20


def add_files(
    name: TableArgument,
    paths: Annotated[
        list[str], typer.Argument(metavar="PATH…", help="Parquet files, or folders of them.")
    ],
    branch: Annotated[
        str, typer.Option("--branch", help="Add them to this branch, which has to exist.")
    ] = "main",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be added, and add nothing.")
    ] = False,
    allow_extra_columns: Annotated[
        bool,
        typer.Option(
            "--allow-extra-columns",
            help="Add files with columns that the table does not have, in the files or as folders"
            " `name=value`: readers do not see them.",
        ),
    ] = False,
    timeout: Timeout = "5min",
    as_json: AsJson = False,
    reason: ReasonOption = None,
) -> None:
    """Add Parquet files that others wrote to a table, where they are: nothing is copied.

    Types, metrics and partition values come from the footers. All files are added by one commit, or
    none: one that does not fit, or that is in the table already, is named.
    """
    identifier, timeout_ms = parse_identifier(name), parse_duration_ms(timeout, TIMEOUT_OPTION)
    with named_extra("`frazil table add-files`", "read"):
        from committer.cli.adoption.file_adoption import FileAdoption

    async def work(parts: Parts) -> tuple[PlannedAdoption, Receipt | None]:
        adoption = FileAdoption(parts, identifier, branch)
        planned = await adoption.plan(paths, allows_extra_columns=allow_extra_columns)
        if dry_run or not planned.files:
            return planned, None
        async with recorded_on_table(parts, "table add-files", identifier, reason) as change:
            if await adoption.prepare(planned):
                say(f"set the table's `{planned.mapping_property}`: the files have no field ids")
            receipt = await adoption.publish(planned, timeout_s=timeout_ms / 1_000)
            change.after = {
                "files": len(planned.files),
                "rows": planned.rows,
                "snapshot_id": receipt.snapshot_id,
                "producer": receipt.producer,
            }
        return planned, receipt

    planned, receipt = run_with_parts(work)
    _say_empty(planned.empty)
    if receipt is None:
        _show_planned(planned, as_json=as_json)
        return
    if as_json:
        print_json(_added(planned, receipt))
    else:
        snapshot = "" if receipt.snapshot_id is None else f", snapshot {receipt.snapshot_id}"
        place = str(identifier) if branch == "main" else f"branch `{branch}` of {identifier}"
        say(f"added {_size(planned)} to {place}{snapshot}")


def _added(planned: PlannedAdoption, receipt: Receipt) -> dict[str, object]:
    return {
        "table": str(planned.table.identifier),
        "files": len(planned.files),
        "rows": planned.rows,
        "left_out": [one.location for one in planned.empty],
        "snapshot_id": receipt.snapshot_id,
        "producer": receipt.producer,
    }


def _say_empty(empty: Sequence[Empty]) -> None:
    for one in empty[:_SHOWN_MAX]:
        say(f"left out, it has no rows: {one.location}")
    if len(empty) > _SHOWN_MAX:
        say(f"left out, without rows: {len(empty) - _SHOWN_MAX} more")


def _show_planned(planned: PlannedAdoption, *, as_json: bool) -> None:
    if as_json:
        print_json_lines(planned.lines())
        return
    if planned.files:
        rows = [
            (one["file_path"], one["record_count"], one["partition_path"])
            for one in planned.lines()
        ]
        print_table(("file", "rows", "partition"), rows)
    if planned.needs_mapping:
        say(f"the table's `{planned.mapping_property}` would be set: the files have no field ids")
    say(f"nothing was added; {_size(planned)} would be")


def _size(planned: PlannedAdoption) -> str:
    return f"{counted(len(planned.files), 'file')} with {planned.rows:,} rows"
