"""Breakages of what Spark reads: splits, streams, filters, and what travels to the tasks."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_STREAM = "tests/iceberg/reading/test_append_stream.py"
_SPLITS = "tests/iceberg/reading/test_pack_splits.py"
_FILTERS = "tests/workers/spark/test_pushed_filters.py"

SPARK_READS = (
    # --- Splits ---
    Mutant(
        "a_file_costs_nothing_to_open",
        "committer/iceberg/reading/pack_splits.py",
        "    return max(size_bytes, (1 + len(deletes)) * open_file_cost_bytes)\n",
        "    return size_bytes\n",
        (_SPLITS,),
    ),
    Mutant(
        "the_lightest_split_is_done_first",
        "committer/iceberg/reading/pack_splits.py",
        "            heaviest = max(",
        "            heaviest = min(",
        (_SPLITS,),
    ),
    # --- Streams ---
    Mutant(
        "a_micro_batch_is_one_file_too_large",
        "committer/iceberg/reading/append_stream.py",
        "is_full = files_left == 0 or",
        "is_full = files_left == -1 or",
        (_STREAM,),
    ),
    Mutant(
        "a_half_read_snapshot_counts_as_read",
        "committer/iceberg/reading/append_stream.py",
        "with_first=not position.is_complete)",
        "with_first=False)",
        (_STREAM,),
    ),
    Mutant(
        "a_stream_reads_the_files_of_a_compaction",
        "committer/iceberg/reading/append_stream.py",
        '            case "replace":\n                return False\n',
        '            case "replace":\n                return True\n',
        (_STREAM,),
    ),
    Mutant(
        "positions_count_the_files_that_match",
        "committer/iceberg/reading/append_stream.py",
        "numbered = islice(self._files(snapshot, found, None), found.files, end)",
        "numbered = islice(self._files(snapshot, found, row_filter), found.files, end)",
        (_STREAM,),
    ),
    Mutant(
        "a_time_before_an_expiry_begins_with_what_is_left",
        "committer/iceberg/reading/append_stream.py",
        "    if first is lineage[-1] and first.parent_snapshot_id is not None:\n",
        "    if first is None:\n",
        (_STREAM,),
    ),
    # --- Filters ---
    Mutant(
        "a_pushed_comparison_loses_nan",
        "workers/spark/pushed_filters.py",
        "            return Or(expression, IsNaN(term))\n",
        "            return expression\n",
        (_FILTERS,),
    ),
    Mutant(
        "a_pushed_negation_keeps_nulls",
        "workers/spark/pushed_filters.py",
        "        return And.of(known, rewrite_not(Not(child)))\n",
        "        return rewrite_not(Not(child))\n",
        (_FILTERS,),
    ),
    Mutant(
        "a_pushed_zero_is_one_of_two",
        "workers/spark/pushed_filters.py",
        "        case (FloatType() | DoubleType(), float()) if value and math.isfinite(value):\n",
        "        case (FloatType() | DoubleType(), float()) if math.isfinite(value):\n",
        (_FILTERS,),
    ),
    # --- What travels ---
    Mutant(
        "settings_travel_to_the_tasks_of_a_read",
        "pyspark_frazil/__init__.py",
        "        if self._has_reader:\n",
        "        if not self.options:\n",
        ("tests/workers/source/test_readers.py",),
    ),
)
