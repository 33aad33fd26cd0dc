"""The work that a write asks of the committer: the operation of its request, and what that needs.

Runs on the driver. An overwrite is one request: the committer removes the replaced files and adds
the new ones in one snapshot, on the table as it is then. So is an upsert: its deletes apply to all
rows that were there before, so it has read nothing that others could change.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from committer.errors import InvalidFilterError, SettingsError
from committer.iceberg.schema.schema import Schema
from committer.request.needs import Needs, Operation
from workers.settings.options import WriteOptions
from workers.settings.overwrite_options import FILTER, OverwriteOptions
from workers.settings.wap import TO_MAIN, Destination
from workers.sink.target import TableHead, TargetTable

if TYPE_CHECKING:  # at run time only writes with a filter import expressions
    from committer.iceberg.expressions.expression import Expression

_NO_NEEDS = Needs()


@dataclass(frozen=True, slots=True)
class WriteOperation:
    """The operation of a request. `takes_none`: it changes the table without any row, too."""

    name: Operation = "append"
    needs: Needs = _NO_NEEDS
    takes_none: bool = False

    @property
    def is_in_order(self) -> bool:
        """Whether a lower epoch that lands after this one would undo it: appends may change
        places, whatever removes rows may not."""
        return self.name != "append"


def operation_of(
    options: WriteOptions, target: TargetTable, destination: Destination = TO_MAIN
) -> WriteOperation:
    """Return the operation of a write. `target`: the table as it was when the write began.

    Errors: `SettingsError` for a filter that cannot be read.
    """
    overwrite = options.overwrite
    if options.upsert is not None:
        return WriteOperation("row-delta", _needs(options, {}))
    if overwrite is None:
        return WriteOperation(needs=_needs(options, {}))
    needs = _base(overwrite, target.head_of(destination))
    if overwrite.mode == "dynamic":
        return WriteOperation("replace-partitions", _needs(options, needs))
    needs["row_filter"] = True
    if overwrite.filter is not None:
        from committer.iceberg.expressions.expression_json import print_expression

        needs |= {"row_filter": print_expression(_where(overwrite.filter)), "case_sensitive": False}
    return WriteOperation("overwrite", _needs(options, needs), takes_none=True)


def check_filter(overwrite: OverwriteOptions | None, schema: Schema) -> None:
    """Require that the filter of an overwrite fits the table, before a file is written.
    Errors: `SettingsError`."""
    if overwrite is None or overwrite.filter is None:
        return
    from committer.iceberg.expressions.binding import bind

    try:
        bind(_where(overwrite.filter), schema, case_sensitive=False)
    except InvalidFilterError as error:
        raise SettingsError(f"option `{FILTER}`: {error}") from None


def _where(text: str) -> Expression:
    from committer.iceberg.expressions.where_text import parse_where

    try:
        return parse_where(text)
    except InvalidFilterError as error:
        raise SettingsError(f"option `{FILTER}`: {error}") from None


def _base(overwrite: OverwriteOptions, head: TableHead | None) -> dict[str, object]:
    """Return isolation level and base: the snapshot that is named, else that of when the write
    began. Iceberg's own writers compare with all of history where none is named, and nearly always
    conflict then."""
    if overwrite.isolation_level is None:
        return {}
    needs: dict[str, object] = {"isolation_level": overwrite.isolation_level}
    if overwrite.base_snapshot_id is not None:
        return needs | {"base_snapshot_id": overwrite.base_snapshot_id}
    if head is None:
        return needs | {"base_sequence_number": 0}
    return needs | {
        "base_snapshot_id": head.snapshot_id,
        "base_sequence_number": head.sequence_number,
    }


def _needs(options: WriteOptions, needs: dict[str, object]) -> Needs:
    if options.on_conflict == "fail":
        needs["on_conflict"] = "fail"
    return Needs.model_validate(needs)
