"""`frazil table inspect`: the metadata tables of a table, for people, programs and Arrow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from committer.cli.context.common_options import AsJson
from committer.cli.output.printing import print_json_lines, print_lines, print_table
from committer.cli.views.table_source import SnapshotChoice, TablePlace, open_table
from committer.errors import AccessError

if TYPE_CHECKING:
    from committer.cli.views.table_source import OpenTable
    from committer.iceberg.inspection.values import Row

KindOption = Annotated[
    str,
    typer.Option(
        metavar="KIND",
        help="Of one snapshot: manifests, files, data_files, delete_files, entries, partitions. Of"
        " the table: snapshots, history, refs, metadata_log_entries, all_manifests, all_files,"
        " all_data_files, all_delete_files, all_entries, metadata.",
    ),
]
# Kinds without an order of their own: their rows are sorted by path.
_FILES = ("files", "data_files", "delete_files")


def inspect(
    place: TablePlace,
    kind: KindOption,
    choice: SnapshotChoice,
    as_json: AsJson = False,
    arrow: Annotated[
        str | None,
        typer.Option(
            "--arrow", metavar="FILE", help="Write an Arrow IPC file instead of printing."
        ),
    ] = None,
) -> None:
    """Show what a table's metadata and manifests say: one of Iceberg's metadata tables.

    Keys of JSON lines are the specification's names; `metadata` is the metadata file itself, as
    JSON. Exit code 1 if the table, the snapshot or a file is not there or broken.
    """
    _check_kind(kind, is_choice=choice != SnapshotChoice())
    if arrow is not None and (as_json or kind == "metadata"):
        raise typer.BadParameter(
            "expected neither --json nor --kind metadata", param_hint="--arrow"
        )
    if arrow is None:
        print_kind(kind, place, choice, as_json=as_json)
        return
    with open_table(place) as table:
        _write_arrow(arrow, kind, _rows(table, kind, choice))


def _check_kind(kind: str, *, is_choice: bool) -> None:
    from committer.iceberg.inspection.metadata_tables import SNAPSHOT_KINDS, TABLE_KINDS

    kinds = (*SNAPSHOT_KINDS, *TABLE_KINDS, "metadata")
    if kind not in kinds:
        text = f"`{kind}`: expected one of {', '.join(kinds)}"
        raise typer.BadParameter(text, param_hint="--kind")
    if is_choice and kind not in SNAPSHOT_KINDS:
        text = f"`{kind}` is about the whole table: expected no --snapshot, --ref or --as-of"
        raise typer.BadParameter(text, param_hint="--kind")


def print_kind(
    kind: str, place: TablePlace, choice: SnapshotChoice | None = None, *, as_json: bool
) -> None:
    """Print a metadata table as JSON lines, or for people. `choice`: for kinds of one snapshot."""
    from committer.cli.output.file_lines import file_lines
    from committer.iceberg.metadata.table_metadata import print_table_metadata

    with open_table(place) as table:
        if kind == "metadata":
            print_lines([print_table_metadata(table.metadata)])
            return
        rows = _rows(table, kind, choice or SnapshotChoice())
        if not as_json:
            _show(table, kind, rows)
        elif kind in _FILES:
            print_lines(file_lines(rows))
        else:
            print_json_lines(rows)


def _show(table: OpenTable, kind: str, rows: Iterator[Row]) -> None:
    from committer.cli.views.kind_views import kind_view
    from committer.cli.views.metadata_view import snapshot_rows
    from committer.iceberg.inspection.file_rows import file_order

    if kind == "snapshots":
        view = snapshot_rows(table.metadata)
    else:
        view = kind_view(kind, sorted(rows, key=file_order) if kind in _FILES else rows)
    print_table(view.headers, view.rows)


def _write_arrow(file: str, kind: str, rows: Iterator[Row]) -> None:
    """Write an Arrow file.
    Errors: `SettingsError` without pyarrow, `AccessError` for a file that cannot be made."""
    from committer.extras import named_extra

    with named_extra("--arrow", "spark"):
        from committer.cli.output.arrow_file import write_arrow
    try:
        write_arrow(file, kind, rows)
    except OSError as error:
        raise AccessError(f"{file}: {error.strerror or error}") from error


def _rows(table: OpenTable, kind: str, choice: SnapshotChoice) -> Iterator[Row]:
    from committer.iceberg.inspection.metadata_tables import (
        SNAPSHOT_KINDS,
        TableSource,
        inspect_snapshot,
        inspect_table,
    )

    source = TableSource(table.metadata, table.metadata_location, table.read)
    if kind in SNAPSHOT_KINDS:
        return inspect_snapshot(kind, source, choice.find(table.metadata))
    return inspect_table(kind, source)
