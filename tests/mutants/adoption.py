"""Breakages of how files that others wrote become a table's."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_FOOTER = ("tests/workers/adoption/test_footer.py",)
_RARE = ("tests/workers/adoption/test_rare_footers.py",)
_FIT = ("tests/workers/adoption/test_column_fit.py",)
_PARTITION = ("tests/workers/adoption/test_partition_values.py",)
_METRICS = ("tests/workers/arrow/test_footer_metrics.py",)
_PATHS = ("tests/plan/batch/test_adopted_paths.py",)
_LIVE = ("tests/plan/operations/test_live_files.py",)
_SERVICE = ("tests/service/table/test_adopted_files.py",)
_EXPIRER = (
    "tests/service/upkeep/test_expirer.py::test_files_outside_the_tables_folders_are_left_to_their_owners",
    "tests/service/upkeep/test_expirer.py::test_a_file_that_a_waiting_request_may_adopt_stays",
)
_FIND = ("tests/workers/adoption/test_adopter.py",)

ADOPTION = (
    # --- The footer ---
    Mutant(
        "columns_that_are_encrypted_are_looked_at",
        "workers/adoption/footer_decoder.py",
        "            chunk.is_encrypted |= number in (8, 9)\n",
        "            chunk.is_encrypted |= number == 9\n",
        _RARE,
    ),
    Mutant(
        "a_row_group_without_rows_has_a_place",
        "workers/arrow/footer_metrics.py",
        "    return [group for group in groups if group.num_rows]\n",
        "    return list(groups)\n",
        _RARE,
    ),
    Mutant(
        "row_groups_are_listed_as_the_footer_lists_them",
        "workers/arrow/footer_metrics.py",
        "tuple(sorted({row_group_offset(group) for group in groups if group.num_columns}))",
        "tuple(row_group_offset(group) for group in groups if group.num_columns)",
        _RARE,
    ),
    Mutant(
        "bounds_of_old_writers_are_believed_of_text",
        "workers/adoption/footer_decoder.py",
        "    is_believed = is_ordered or leaf.physical not in _BYTES\n",
        "    is_believed = True\n",
        _RARE,
    ),
    Mutant(
        "bounds_of_old_writers_are_believed_of_decimals",
        "workers/adoption/file_columns.py",
        "    is_ordered = not (is_old and ",
        "    is_ordered = not (not is_old and ",
        _RARE,
    ),
    Mutant(
        "crossed_bounds_are_a_range",
        "workers/arrow/footer_metrics.py",
        "    return (low, high) if low <= high else None\n",
        "    return low, high\n",
        _RARE,
    ),
    Mutant(
        "a_file_has_the_rows_that_its_footer_says",
        "workers/adoption/footer_decoder.py",
        "    if footer.num_rows != rows:\n",
        "    if footer.num_rows > rows:\n",
        _RARE,
    ),
    Mutant(
        "rows_in_other_files_are_added",
        "workers/adoption/footer_decoder.py",
        "    if chunk.is_elsewhere:\n",
        "    if chunk.is_elsewhere and not chunk.values:\n",
        _RARE,
    ),
    Mutant(
        "a_footer_is_longer_than_its_file",
        "workers/adoption/footer.py",
        "    if length + _END_BYTES > min(size_bytes, _FOOTER_BYTES_MAX):\n",
        "    if length > 2**32:\n",
        _FOOTER,
    ),
    Mutant(
        "a_nan_in_a_footer_is_a_bound",
        "workers/arrow/footer_metrics.py",
        "        if math.isnan(low) or math.isnan(high):\n",
        "        if math.isinf(low) and math.isnan(high):\n",
        _METRICS,
    ),
    Mutant(
        "a_row_group_without_bounds_is_passed_over",
        "workers/arrow/footer_metrics.py",
        "    if not found or len(found) != len(ranges):\n",
        "    if not found:\n",
        _METRICS,
    ),
    Mutant(
        "nulls_that_are_not_counted_are_none",
        "workers/arrow/footer_metrics.py",
        "    if statistics is None or not statistics.has_null_count:\n        return -1\n",
        "    if statistics is None or not statistics.has_null_count:\n        return 0\n",
        _METRICS,
    ),
    Mutant(
        "an_adopted_file_of_a_sorted_table_has_no_bounds",
        "workers/adoption/adoption_target.py",
        "metrics_config(self.properties, self.schema, self.sort_order)",
        "metrics_config(self.properties, self.schema, type(self.sort_order)(0, ()))",
        ("tests/workers/adoption/test_partition_values.py",),
    ),
    # --- Columns ---
    Mutant(
        "an_id_is_believed_under_any_name",
        "workers/adoption/column_fit.py",
        "elif self.has_ids and column.name not in ",
        "elif not self.has_ids and column.name not in ",
        _FIT,
    ),
    Mutant(
        "a_required_column_may_have_nulls",
        "workers/adoption/column_fit.py",
        "        if wanted.required and column.nullable:\n",
        "        if wanted.required and not column.nullable:\n",
        _FIT,
    ),
    Mutant(
        "unsigned_integers_are_taken_for_signed_ones",
        "workers/adoption/file_columns.py",
        "    return IntegerType() if signed or bits < 32 else None\n",
        "    return IntegerType()\n",
        _FIT,
    ),
    Mutant(
        "row_ids_of_another_table_are_taken_over",
        "workers/adoption/column_fit.py",
        "        if field_id is not None and field_id > FIELD_ID_MAX:\n",
        "        if field_id is not None and field_id > 2**31:\n",
        _FIT,
    ),
    # --- Partitions ---
    Mutant(
        "the_lowest_value_is_the_partition",
        "workers/adoption/partition_values.py",
        "(transform.preserves_order and ordered(low) == ordered(high)):\n",
        "transform.preserves_order:\n",
        _PARTITION,
    ),
    Mutant(
        "buckets_are_ordered",
        "workers/adoption/partition_values.py",
        "(transform.preserves_order and ordered(low) == ordered(high)):\n",
        "(ordered(low) == ordered(high)):\n",
        _PARTITION,
    ),
    Mutant(
        "nulls_beside_values_are_one_partition",
        "workers/adoption/partition_values.py",
        "    if facts.null_count:\n",
        "    if facts.null_count > facts.value_count:\n",
        _PARTITION,
    ),
    Mutant(
        "nan_beside_a_number_is_one_partition",
        "workers/adoption/partition_values.py",
        "    if isinstance(leaf.kind, FloatType | DoubleType):\n",
        "    if isinstance(leaf.kind, FloatType):\n",
        _PARTITION,
    ),
    Mutant(
        "a_value_in_the_path_is_lost",
        "workers/adoption/adopt_file.py",
        "(*fitted.problems, *unproven, *lost)",
        "(*fitted.problems, *unproven, *lost[:0])",
        _PARTITION,
    ),
    Mutant(
        "folders_are_looked_up_in_one_case",
        "workers/adoption/partition_values.py",
        "        fitting = self._by_lower_name.get(segment.name.lower(), {})\n",
        "        fitting = self._by_lower_name.get(segment.name, {})\n",
        _PARTITION,
    ),
    Mutant(
        "one_of_two_columns_gets_the_folder",
        "workers/adoption/partition_values.py",
        "        if len(fitting) > 1:\n",
        "        if len(fitting) > 2:\n",
        _PARTITION,
    ),
    Mutant(
        "a_folder_of_no_column_is_passed_over",
        "workers/adoption/partition_values.py",
        "            unknown.append(segment)\n",
        "            continue\n",
        _PARTITION,
    ),
    Mutant(
        "folders_that_are_no_text_have_other_characters",
        "workers/adoption/hive_path.py",
        'errors="strict"',
        'errors="replace"',
        _PARTITION,
    ),
    # --- Folders ---
    Mutant(
        "hidden_files_are_added",
        "workers/adoption/adopter.py",
        'part.startswith(".") or (',
        'part.startswith("..") or (',
        _FIND,
    ),
    # --- Where they lie ---
    Mutant(
        "a_file_of_a_waiting_request_is_adopted",
        "committer/plan/batch/adopted_paths.py",
        "    if is_own and _may_be_an_attempts(path):\n",
        "    if is_own and not _may_be_an_attempts(path) and False:\n",
        _PATHS,
    ),
    Mutant(
        "an_attempt_is_looked_for_in_one_spelling",
        "committer/plan/batch/adopted_paths.py",
        "any(at.is_within(_folder(folder)) for folder in places.prefixes)",
        "path.startswith(places.prefixes)",
        _PATHS,
    ),
    Mutant(
        "metadata_is_adopted_by_another_spelling",
        "committer/plan/batch/adopted_paths.py",
        "    if any(at.is_within(_folder(folder)) for folder in places.metadata):\n",
        "    if path.startswith(places.metadata):\n",
        _PATHS,
    ),
    Mutant(
        "a_file_is_adopted_under_two_spellings",
        "committer/plan/batch/adopted_paths.py",
        "        seen[at] = path\n",
        "        seen[path] = path\n",
        _PATHS,
    ),
    # --- Whether they are live ---
    Mutant(
        "a_removed_file_is_live",
        "committer/plan/operations/live_files.py",
        "        if file.is_live and file.path in wanted\n",
        "        if file.path in wanted\n",
        _LIVE,
    ),
    Mutant(
        "a_live_file_is_looked_for_in_one_spelling",
        "committer/plan/operations/live_files.py",
        "        return comparable_location(path) in self._locations\n",
        "        return any(path == f'{one.store}{one.path}' for one in self._locations)\n",
        _LIVE,
    ),
    Mutant(
        "manifests_of_other_specs_are_not_read",
        "committer/plan/operations/live_files.py",
        "    if partitions is None or len(partitions) > _PARTITIONS_MAX:\n        return True\n",
        "    if partitions is None or len(partitions) > _PARTITIONS_MAX:\n        return False\n",
        _LIVE,
    ),
    Mutant(
        "bounds_of_other_writers_hide_a_live_file",
        "committer/plan/operations/live_files.py",
        "    return may_hold_any(metadata, row, partitions)\n",
        "    highest = (row.partitions or (None,))[0].upper_bound or b'\\xff' * 8\n"
        "    low = [one for one in partitions if str(one[0]).encode() <= highest]\n"
        "    return may_hold_any(metadata, row, low)\n",
        (f"{_LIVE[0]} -k other_writers",),
    ),
    Mutant(
        "a_look_up_passes_over_manifests",
        "committer/plan/operations/live_files.py",
        "    return may_hold_any(metadata, row, partitions)\n",
        "    return may_hold_any(metadata, row, sorted(partitions, key=repr)[:1])\n",
        _LIVE,
    ),
    Mutant(
        "a_look_up_reads_without_end",
        "committer/plan/operations/head.py",
        "        if size_bytes > READ_BYTES_MAX:\n",
        "        if size_bytes > 2**60:\n",
        ("tests/plan/commit/test_operation_steps.py -k too_much",),
    ),
    Mutant(
        "adopted_files_are_not_looked_up",
        "committer/plan/commit/commit.py",
        "    if step.adopts:\n",
        "    if step.adopts and not step.requests:\n",
        (*_SERVICE, "tests/simulation/test_actors.py -k adopt"),
    ),
    Mutant(
        "a_file_of_the_same_batch_is_told_before_it_has_landed",
        "committer/plan/commit/operation_step.py",
        "    landed = readable(partial(check_not_live, added, base))\n",
        "    landed = readable(partial(check_not_live, added, head))\n",
        _SERVICE,
    ),
    # --- What becomes of them ---
    Mutant(
        "files_of_others_are_deleted",
        "committer/plan/cleanup/reachability.py",
        "            if any(comparable_location(path).is_within(place) for place in places)\n",
        "            if places\n",
        _EXPIRER,
    ),
    Mutant(
        "a_file_that_waits_to_be_adopted_is_deleted",
        "committer/service/upkeep/expirer.py",
        "        return found.within(() if is_adopted else places_of(metadata))\n",
        "        return found.within(places_of(metadata) if is_adopted in (True, False) else ())\n",
        _EXPIRER,
    ),
    Mutant(
        "files_that_another_table_has_added_are_orphans",
        "committer/service/admin/orphan_finder.py",
        "            others += claimed_places(other.metadata)\n",
        "            others += claimed_places(other.metadata)[:1]\n",
        ("tests/service/admin/test_orphan_finder.py -k adopts_files",),
    ),
    Mutant(
        "files_of_a_branch_are_looked_up_on_main",
        "committer/service/admin/live_file_search.py",
        "branch_head(branch)",
        "branch_head()",
        ("tests/cli/tables/test_added_files.py -k branch_alone",),
    ),
)
