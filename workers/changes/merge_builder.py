"""The builder of a merge, clause by clause, as users know it from Delta. Runs on the driver."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from workers.changes.merge_clauses import Action, Clause, Clauses, Side
from workers.changes.what_changed import Changed

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from workers.changes.change_options import ChangeOptions

Value = object


class MergeBuilder:
    """A merge that is being put together; each call returns a new one.

    Conditions and values are SQL texts or Spark columns, which name the two sides `target` and
    `source`. Of the clauses for a row the first whose condition holds counts.
    """

    def __init__(
        self,
        source: DataFrame,
        on: str | Column,
        options: ChangeOptions,
        clauses: tuple[Clause, ...] = (),
    ) -> None:
        self._source, self._on = source, on
        self._options, self._clauses = options, clauses

    def with_schema_evolution(self) -> MergeBuilder:
        """Add the columns of the source that the table lacks, by the commit of the merge: all of
        them with a clause `…_all`, else those that a clause assigns. With a clause `…_all`, columns
        that the source lacks stay as they are, or have their default in a new row.
        """
        options = replace(self._options, evolves_schema=True)
        return MergeBuilder(self._source, self._on, options, self._clauses)

    def when_matched_update(
        self, condition: str | Column | None = None, *, set: Mapping[str, Value]
    ) -> MergeBuilder:
        """Update rows that a row of the source matches. `set`: new values by column."""
        return self._with("matched", "update", condition, set)

    def when_matched_update_all(self, condition: str | Column | None = None) -> MergeBuilder:
        """Update all columns of matched rows to those of the source, by name."""
        return self._with("matched", "update", condition)

    def when_matched_delete(self, condition: str | Column | None = None) -> MergeBuilder:
        """Delete rows that a row of the source matches."""
        return self._with("matched", "delete", condition)

    def when_not_matched_insert(
        self, condition: str | Column | None = None, *, values: Mapping[str, Value]
    ) -> MergeBuilder:
        """Insert rows of the source that match no row. Columns without a value have their default,
        else null."""
        return self._with("not_matched", "insert", condition, values)

    def when_not_matched_insert_all(self, condition: str | Column | None = None) -> MergeBuilder:
        """Insert rows of the source that match no row, all columns by name."""
        return self._with("not_matched", "insert", condition)

    def when_not_matched_by_source_update(
        self, condition: str | Column | None = None, *, set: Mapping[str, Value]
    ) -> MergeBuilder:
        """Update rows that no row of the source matches; conditions and values name `target`."""
        return self._with("not_matched_by_source", "update", condition, set)

    def when_not_matched_by_source_delete(
        self, condition: str | Column | None = None
    ) -> MergeBuilder:
        """Delete rows that no row of the source matches."""
        return self._with("not_matched_by_source", "delete", condition)

    def _with(
        self,
        side: Side,
        action: Action,
        condition: str | Column | None,
        assigned: Mapping[str, Value] | None = None,
    ) -> MergeBuilder:
        clause = Clause(side, action, condition, assigned)
        clauses = (*self._clauses, clause)
        return MergeBuilder(self._source, self._on, self._options, clauses)

    def execute(self) -> Changed:
        """Run the merge, and return once it is committed.

        Errors: `PublishError` for a conflict with what others have changed, and for a row that
        several rows of the source match; `SettingsError` for clauses that do not fit.
        """
        from workers.changes.merged_rows import Merge, merge_rows

        clauses = Clauses(self._clauses)
        clauses.check()
        merge = Merge(self._source, self._on, clauses, self._options.evolves_schema)
        return merge_rows(merge, self._options)
