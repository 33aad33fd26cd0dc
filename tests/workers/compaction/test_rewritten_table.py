"""How a compaction writes the rows that it has read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from committer.iceberg.schema.sort_order import UNSORTED
from committer.iceberg.schema.table_text import parse_sort_order
from tests.workers.branch_states import branch_state
from workers.compaction.rewrite_options import parse_rewrite_options, rewrite_sizes
from workers.compaction.rewritten_table import RewrittenTable
from workers.compaction.row_order import sorted_by


@pytest.mark.parametrize("sorts", [False, True])
def test_columns_of_the_tables_sort_order_keep_their_bounds_however_rows_are_sorted(
    tmp_path: Path, sorts: bool
) -> None:
    options = parse_rewrite_options("db.t", "binpack", None, None, (), {})
    with branch_state(tmp_path) as state:
        of_table = replace(parse_sort_order("name", state.metadata.current_schema), order_id=1)
        metadata = replace(
            state.metadata, sort_orders=(UNSORTED, of_table), default_sort_order_id=1
        )
        order = sorted_by("id", metadata) if sorts else None
        table = RewrittenTable(
            options,
            replace(state, metadata=metadata),
            rewrite_sizes(options, {}),
            metadata.default_spec,
            order,
        )
        assert table.target.table_order == of_table
        assert table.target.sort_order == (order.sort_order if order else UNSORTED)
