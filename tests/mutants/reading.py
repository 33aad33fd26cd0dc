"""Breakages of how rows of data files are read."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_INDEX = ("tests/iceberg/deletes/test_delete_index.py",)
_TASK = ("tests/workers/read/test_task_reader.py",)
_DELETES = ("tests/workers/read/test_deletes.py",)
_FILTER = ("tests/workers/read/test_row_filter.py",)
_PROJECTION = ("tests/workers/read/test_projection_of_batches.py",)
_PARTS = ("tests/iceberg/scan/test_task_part.py",)
_FORMATS = ("tests/workers/read/test_formats.py",)

READING = (
    # --- Which deletes apply ---
    Mutant(
        "an_equality_delete_deletes_rows_of_its_own_commit",
        "committer/iceberg/deletes/delete_index.py",
        "        return self._deletes[bisect_right(self._numbers, number) :]\n",
        "        return self._deletes[bisect_left(self._numbers, number) :]\n",
        _INDEX,
    ),
    Mutant(
        "a_position_delete_spares_rows_of_its_own_commit",
        "committer/iceberg/deletes/delete_index.py",
        "        return self._deletes[bisect_left(self._numbers, number) :]\n",
        "        return self._deletes[bisect_right(self._numbers, number) :]\n",
        _INDEX,
    ),
    # --- Which rows they delete ---
    Mutant(
        "positions_behind_the_end_are_counted",
        "workers/read/task_reader.py",
        "    return task.file.record_count - (positions & within).cardinality\n",
        "    return task.file.record_count - positions.cardinality\n",
        _DELETES,
    ),
    Mutant(
        "positions_are_of_the_batch",
        "workers/read/deletes/task_deletes.py",
        "        first, count = int(rows.positions[0]), len(rows.positions)\n",
        "        first, count = 0, len(rows.positions)\n",
        _DELETES,
    ),
    Mutant(
        "positions_of_all_data_files_are_this_ones",
        "workers/read/deletes/deleted_positions.py",
        "    return kept.get(path, _NOTHING)\n",
        "    return next(iter(kept.values()), _NOTHING)\n",
        _DELETES,
    ),
    Mutant(
        "null_is_not_equal_to_null",
        "workers/read/deletes/equality_sets.py",
        "pc.index_in(column, value_set=values)",
        "pc.index_in(column, value_set=values, skip_nulls=True)",
        _DELETES,
    ),
    Mutant(
        "one_nan_is_not_another",
        "workers/read/deletes/equality_sets.py",
        "pc.if_else(pc.is_nan(column), nan, column)",
        "pc.coalesce(column, column)",
        _DELETES,
    ),
    Mutant(
        "one_equal_column_is_enough",
        "workers/read/deletes/equality_sets.py",
        "np.where(known, before * max(1, len(values)) + places, _ABSENT)",
        "np.where(known, before * 0 + places, _ABSENT)",
        _DELETES,
    ),
    Mutant(
        "rows_that_are_marked_as_deleted_are_left_out",
        "workers/read/task_reader.py",
        "        if deleted is not None and self._keeps_deleted:\n",
        "        if deleted is not None and not self.read.columns:\n",
        _DELETES,
    ),
    # --- Columns ---
    Mutant(
        "a_default_fills_the_nulls_of_a_column",
        "workers/read/arrow_projection.py",
        "    return conform_column(rows.batch, column)\n",
        "    found = conform_column(rows.batch, column)\n"
        '    return found.fill_null("x") if pa.types.is_string(found.type) else found\n',
        _PROJECTION,
    ),
    Mutant(
        "row_ids_that_were_written_are_given_anew",
        "committer/iceberg/scan/column_projection.py",
        "        return inherited if column is None else Inherited(column, inherited)\n",
        "        return inherited\n",
        _PROJECTION,
    ),
    Mutant(
        "rows_inherit_the_id_of_the_file",
        "workers/read/arrow_projection.py",
        "            return pa.array(rows.positions + first)\n",
        "            return pa.array(rows.positions * 0 + first)\n",
        _TASK,
    ),
    Mutant(
        "columns_keep_their_places_among_those_that_are_not_read",
        "workers/read/formats/stored_columns.py",
        "for column in columns[:position])\n",
        "or True for column in columns[:position])\n",
        _PROJECTION,
    ),
    # --- Parts, filters ---
    Mutant(
        "a_row_group_is_in_two_parts",
        "committer/iceberg/scan/task_part.py",
        "        return self.start <= offset < self.start + self.length\n",
        "        return self.start <= offset <= self.start + self.length\n",
        _PARTS,
    ),
    Mutant(
        "null_is_less_than_every_number",
        "workers/read/row_filter.py",
        "    result: Mask = found & comparable_ones\n",
        "    result: Mask = found | ~comparable_ones\n",
        _FILTER,
    ),
    Mutant(
        "statistics_are_taken_for_the_tables_type",
        "workers/read/row_groups.py",
        "    return encode_value(kind, promoted_value(column.kind, kind, bound))\n",
        "    return encode_value(kind, bound)\n",
        _FILTER,
    ),
    Mutant(
        "each_part_of_an_avro_file_is_the_file",
        "workers/read/formats/avro_rows.py",
        "        if part is not None and not part.has(0):\n",
        "        if part is not None and not part.length:\n",
        _FORMATS,
    ),
)
