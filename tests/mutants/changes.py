"""Breakages of what a delete, update or merge from Spark decides."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_TABLE = ("tests/workers/changes/test_changed_table.py",)
_CLAUSES = ("tests/workers/changes/test_merge_clauses.py",)
_POSITIONS = ("tests/workers/changes/test_matched_positions.py",)
_DELETES = ("tests/workers/files/deletes/test_position_delete_writer.py",)
_CONDITIONS = ("tests/integration/test_change_conditions.py",)
_ROWS = "tests/integration/changes/test_changes.py -k "
_UPSERTS = "tests/integration/changes/test_position_upserts.py -k "
_KEYS = "tests/integration/changes/test_merge_keys.py -k "

CHANGES = (
    # --- The table's word ---
    Mutant(
        "version_1_gets_delete_files",
        "workers/changes/changed_table.py",
        'if mode == "copy-on-write" or self.state.metadata.format_version < _POSITION_DELETES:',
        'if mode == "copy-on-write":',
        _TABLE,
    ),
    Mutant(
        "version_3_gets_position_delete_files",
        "workers/changes/changed_table.py",
        "        if self.has_lineage:\n            return",
        "        if False:\n            return",
        _TABLE,
    ),
    Mutant(
        "each_command_follows_the_mode_of_deletes",
        "workers/changes/changed_table.py",
        'f"write.{command}.mode"',
        '"write.delete.mode"',
        _TABLE,
    ),
    Mutant(
        "change_is_isolated_by_its_snapshot_alone",
        "workers/changes/changed_table.py",
        'self._choice(name, "serializable", "snapshot")',
        'self._choice(name, "snapshot", "serializable")',
        _TABLE,
    ),
    Mutant(
        "change_compares_nothing_since_its_base",
        "workers/changes/changed_table.py",
        '        return {"base_snapshot_id": self.state.snapshot.snapshot_id}\n',
        '        return {"base_sequence_number": 0}\n',
        _TABLE,
    ),
    Mutant(
        "every_conflict_is_one_of_the_whole_table",
        "workers/changes/change_run.py",
        "    if (printed := printed_filter(scope.expression)) is not None:\n",
        "    if (printed := printed_filter(scope.expression)) is True:\n",
        _TABLE,
    ),
    # --- Whole files ---
    Mutant(
        "condition_that_iceberg_cannot_say_deletes_whole_files",
        "workers/changes/changed_rows.py",
        "    if not scope.is_exact:\n        return False\n",
        "",
        _TABLE,
    ),
    Mutant(
        "file_with_one_matching_row_is_deleted_whole",
        "workers/changes/changed_rows.py",
        "task.residual == ALWAYS_TRUE or all_match(task.file)",
        "True",
        _TABLE,
    ),
    # --- Upserts that look their keys up ---
    Mutant(
        "key_of_an_upsert_may_have_come_meanwhile",
        "workers/changes/changed_table.py",
        '        if command == "upsert":\n',
        "        if False:\n",
        _TABLE,
    ),
    Mutant(
        "epoch_that_landed_with_other_rows_is_taken_for_this_one",
        "workers/requests/receipts.py",
        "(one for one in entry.latest if _is_same(one, epoch)), None)",
        "(one for one in entry.latest if one.epoch == epoch.epoch), None)",
        ("tests/workers/requests/test_receipts.py",),
    ),
    Mutant(
        "conflict_that_is_kept_is_an_answer_too",
        "workers/requests/publisher.py",
        "            if is_told_only and policy.answers_conflicts:\n",
        "            if policy.answers_conflicts:\n",
        ("tests/workers/requests/test_publisher.py -k tries_again",),
    ),
    Mutant(
        "row_that_deletes_comes_as_one_that_is_kept",
        "workers/changes/tasks/winning_batches.py",
        "        columns[-1] = pa.repeat(pa.scalar(True), keys.num_rows)\n",
        "        columns[-1] = pa.repeat(pa.scalar(False), keys.num_rows)\n",
        ("tests/workers/changes/test_winning_batches.py",),
    ),
    Mutant(
        "data_source_takes_upserts_by_positions",
        "workers/sink/datasource.py",
        'if options.upsert is not None and options.upsert.deletes == "positions":',
        "if False:",
        ("tests/workers/settings/test_upsert_options.py",),
    ),
    Mutant(
        "table_does_not_say_how_old_rows_are_deleted",
        "workers/streams/wanted_deletes.py",
        '    return deletes_of(table, _properties(table, given)) == "positions"\n',
        "    return False\n",
        ("tests/workers/streams/test_upsert_stream_writer.py",),
    ),
    Mutant(
        "upsert_asks_the_table_though_the_writer_says",
        "workers/streams/wanted_deletes.py",
        "    if given.get(DELETES) or not given.get(KEYS):\n",
        "    if not given.get(KEYS):\n",
        ("tests/workers/streams/test_upsert_stream_writer.py",),
    ),
    Mutant(
        "old_row_is_deleted_once_however_often_its_key_is_there",
        "workers/changes/upserts/upserted_rows.py",
        "F.when(F.col(FILE).isNotNull(), kind_of(RowKind.DELETE))",
        "F.when(F.col(_NUMBER) == 1, F.when(F.col(FILE).isNotNull(), kind_of(RowKind.DELETE)))",
        (_UPSERTS + "appended_twice",),
    ),
    Mutant(
        "key_that_is_there_twice_is_written_twice",
        "workers/changes/upserts/upserted_rows.py",
        "(F.col(_NUMBER) == 1) & ~F.col(IS_DELETED)",
        "~F.col(IS_DELETED)",
        (_UPSERTS + "appended_twice",),
    ),
    Mutant(
        "upsert_that_conflicts_keeps_its_look_at_the_table",
        "workers/streams/position_upserts.py",
        "if receipt.reason != Reason.CONFLICT:",
        "if receipt.state:",
        (_UPSERTS + "another_stream_writes",),
    ),
    # --- Keys of a source ---
    Mutant(
        "null_safe_equality_is_a_range_without_nulls",
        "workers/changes/keys/equal_keys.py",
        'if _name(predicate) != "EqualTo":',
        'if _name(predicate) not in ("EqualTo", "EqualNullSafe"):',
        (_KEYS + "equalities",),
    ),
    Mutant(
        "spark_asks_of_the_tables_keys_what_is_asked_of_the_sources",
        "workers/changes/merged_rows.py",
        "is_true = F.monotonically_increasing_id() >= 0",
        "is_true = F.lit(True)",
        (_KEYS + "other_keys",),
    ),
    Mutant(
        "collated_texts_are_compared_by_their_bytes",
        "workers/changes/keys/key_filter.py",
        "T.StringType()) if kind == T.StringType():",
        "T.StringType()):",
        (_KEYS + "few_values",),
    ),
    Mutant(
        "decimal_of_another_scale_is_a_key",
        "workers/changes/keys/key_filter.py",
        "if (kind.precision, kind.scale) == (precision, scale) else None",
        "",
        (_KEYS + "few_values",),
    ),
    # --- Files ---
    Mutant(
        "rows_of_several_files_are_written_by_one_task",
        "workers/changes/layout/row_layout.py",
        "    return max(1, -(-size_bytes // target_bytes))\n",
        "    return max(1, size_bytes // target_bytes)\n",
        ("tests/workers/changes/test_row_layout.py",),
    ),
    Mutant(
        "partitions_of_two_specs_count_as_one",
        "workers/changes/layout/row_layout.py",
        "partitions[task.file.spec_id, task.file.partition]",
        "partitions[task.file.partition]",
        ("tests/workers/changes/test_row_layout.py",),
    ),
    Mutant(
        "rows_of_a_partition_are_written_by_several_tasks",
        "workers/changes/merged_rows.py",
        "by_partition(rows, table, size)",
        "rows",
        (_ROWS + "few_rows",),
    ),
    # --- Conditions ---
    Mutant(
        "half_of_a_disjunction_is_taken_for_exact",
        "workers/changes/spark_conditions.py",
        "        expression = Or.of(self.expression, other.expression)\n"
        "        return RowFilter(expression, self.is_exact and other.is_exact)",
        "        expression = Or.of(self.expression, other.expression)\n"
        "        return RowFilter(expression, self.is_exact or other.is_exact)",
        _CONDITIONS,
    ),
    Mutant(
        "mirrored_comparison_keeps_its_direction",
        "workers/changes/spark_conditions.py",
        "_MIRRORED.get(name, name)",
        "name",
        _CONDITIONS,
    ),
    Mutant(
        "times_of_a_condition_are_utc",
        "workers/changes/spark_conditions.py",
        "        found = local.replace(tzinfo=_zone(self._zone))\n",
        "        found = local.replace(tzinfo=UTC)\n",
        _CONDITIONS,
    ),
    Mutant(
        "condition_is_read_deeper_than_a_request_holds",
        "workers/changes/spark_conditions.py",
        "            if levels < 0:\n                return ANY_ROWS\n",
        "",
        ("tests/integration/test_change_conditions.py -k too_deep",),
    ),
    Mutant(
        "filter_of_any_length_is_sent",
        "workers/changes/spark_conditions.py",
        "    return printed if len(json.dumps(printed)) <= _FILTER_CHARACTERS_MAX else None\n",
        "    return printed\n",
        ("tests/workers/changes/test_spark_conditions.py",),
    ),
    Mutant(
        "filter_names_a_column_of_another_type",
        "workers/changes/changed_table.py",
        "        if self.wider_schema is None:\n            return current\n",
        "        return self.schema\n",
        _TABLE,
    ),
    Mutant(
        "filter_behind_a_join_is_one_of_the_table",
        "workers/changes/spark_conditions.py",
        '            elif _name(above) != "Project":\n',
        "            elif False:\n",
        _CONDITIONS,
    ),
    # --- Clauses ---
    Mutant(
        "conditional_delete_may_match_twice",
        "workers/changes/merge_clauses.py",
        '[c.action == "delete" and c.condition is None for c in matched] == [True]',
        '[c.action == "delete" for c in matched] == [True]',
        _CLAUSES,
    ),
    Mutant(
        "hidden_clause_is_taken",
        "workers/changes/merge_clauses.py",
        "    for clause in clauses[:-1]:\n",
        "    for clause in clauses[:0]:\n",
        _CLAUSES,
    ),
    Mutant(
        "row_that_matches_twice_in_one_batch_is_not_seen",
        "workers/changes/tasks/matched_positions.py",
        "        if added < len(numbers) and self.repeated is None:\n",
        "        if before & given and self.repeated is None:\n",
        _POSITIONS,
    ),
    # --- Delete files ---
    Mutant(
        "delete_file_of_a_failed_task_stays",
        "workers/files/deletes/position_delete_writer.py",
        "    def discard(self) -> None:\n",
        "    def discard(self) -> None:\n        return\n",
        _DELETES,
    ),
    Mutant(
        "rows_of_a_position_delete_file_are_not_sorted",
        "workers/files/deletes/position_delete_writer.py",
        "            for file_path in sorted(positions):\n",
        "            for file_path in positions:\n",
        _DELETES,
    ),
    # --- Rows ---
    Mutant(
        "new_vector_forgets_the_old_one",
        "workers/changes/tasks/row_writer.py",
        "        return positions | deleted_positions(before, access)\n",
        "        return positions\n",
        (_ROWS + "v3-merge-bucket",),
    ),
    Mutant(
        "moved_row_counts_as_changed",
        "workers/changes/tasks/row_writer.py",
        "NEWEST.name: batch.column(LAST_UPDATED)}",
        "NEWEST.name: pa.nulls(batch.num_rows, pa.int64())}",
        (_ROWS + "v3-copy-truncate",),
    ),
    Mutant(
        "files_of_ended_tasks_stay_when_their_job_fails",
        "workers/changes/change_run.py",
        "with reported.deleted_on_failure(table.state.access, WHAT):",
        "if True:",
        (_ROWS + "job_that_fails",),
    ),
    Mutant(
        "conflict_is_run_again_without_being_asked",
        "workers/changes/publish_change.py",
        "    for left in range(options.retries, -1, -1):\n",
        "    for left in range(options.retries + 1, -1, -1):\n",
        (_ROWS + "told_in_one_line",),
    ),
    Mutant(
        "files_of_a_change_that_conflicts_stay",
        "workers/changes/publish_change.py",
        "            if is_conflict:\n                delete_written(prepared.written, table)\n",
        "",
        (_ROWS + "told_in_one_line",),
    ),
)
