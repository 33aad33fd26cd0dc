"""Breakages of the checks of an operation against what its branch has become."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_PLACE = "committer/plan/validation/"
_TESTS = "tests/plan/validation/test_validate.py -k "

VALIDATION = (
    # --- The base ---
    Mutant(
        "base_that_was_rolled_back_counts_by_its_number",
        _PLACE + "since.py",
        "(last.sequence_number <= number and _tells_ancestors(number, last)):",
        "last.sequence_number < 0:",
        (_TESTS + "never_was",),
    ),
    Mutant(
        "number_of_a_base_is_believed_without_its_snapshot",
        _PLACE + "since.py",
        "    if (first_older or later) and (first_older is None or"
        " first_older.sequence_number == number):\n",
        "    if first_older or later:\n",
        (_TESTS + "is_no_base",),
    ),
    Mutant(
        "base_above_the_last_number_is_believed",
        _PLACE + "since.py",
        "    if number is not None and number > head.metadata.last_sequence_number:\n",
        "    if number is not None and number < 0:\n",
        (_TESTS + "never_was",),
    ),
    Mutant(
        "base_that_never_was_is_believed_where_nothing_rests_on_it",
        _PLACE + "validate.py",
        " if rests else never_was(change.base, head)\n",
        " if rests else None\n",
        (_TESTS + "nothing_else_rests",),
    ),
    Mutant(
        "retained_base_is_believed_under_another_number",
        _PLACE + "since.py",
        "    if known is None or number in (None, known.sequence_number):\n",
        "    if known is None or known:\n",
        (_TESTS + "nothing_else_rests",),
    ),
    Mutant(
        "append_lands_on_a_base_that_never_was",
        "committer/plan/commit/commit.py",
        "    never_was = refuse_base(base, step)\n",
        "    never_was = refuse_base(base, step) if not step else None\n",
        ("tests/plan/commit/test_operation_steps.py -k base_never_was",),
    ),
    Mutant(
        "new_files_of_version_1_are_told_by_their_number",
        _PLACE + "since.py",
        "number > self.sequence_number or entry.snapshot_id in self.ids",
        "number > self.sequence_number",
        (_TESTS + "version_1",),
    ),
    Mutant(
        "expired_history_is_taken_for_whole",
        _PLACE + "since.py",
        "    return first_older is not None or later[-1].sequence_number <= number + 1\n",
        "    return True\n",
        (_TESTS + "guessed_at",),
    ),
    # --- Scope ---
    Mutant(
        "narrow_conflict_filter_hides_what_is_removed",
        _PLACE + "validate.py",
        "removed if filter is None else Or.of(filter, removed)",
        "filter or removed",
        (_TESTS + "narrower",),
    ),
    Mutant(
        "equality_delete_is_left_out_by_columns_that_it_only_carries",
        _PLACE + "scopes.py",
        "    return with_metrics_of(file, frozenset(file.equality_ids or ()))\n",
        "    return file\n",
        (_TESTS + "does_not_compare",),
    ),
    Mutant(
        "replaced_partition_has_no_files_of_other_specs",
        _PLACE + "scopes.py",
        "        return self.others.may_match(file)\n",
        "        return False\n",
        (_TESTS + "another_spec",),
    ),
    Mutant(
        "narrow_conflict_filter_voids_serializable",
        _PLACE + "added.py",
        "        if all(self.scope.may_match(one.data_file) for one in read):\n",
        "        if True:\n",
        (_TESTS + "less_than_was_read",),
    ),
    # --- Rewrites ---
    Mutant(
        "label_of_a_rewrite_is_trusted",
        _PLACE + "rewrites.py",
        "            if is_new and (adder, content) not in known:\n",
        "            if is_new and adder is None:\n",
        (_TESTS + "newer_than_the_base",),
    ),
    # What Iceberg Java looks at.
    Mutant(
        "data_is_added_by_appends_and_overwrites_only",
        _PLACE + "added.py",
        "        others = without_rewritten(found, self.head, self.since)\n",
        "        labels = {one.snapshot_id: one.operation for one in self.since.later}\n"
        '        adding = ("append", "overwrite")\n'
        "        others = [one for one in found if labels.get(one.snapshot_id) in adding]\n",
        (_TESTS + "label_of_a_rewrite_conflicts", _TESTS + "any_other_label"),
    ),
    Mutant(
        "deletes_are_added_by_overwrites_and_deletes_only",
        _PLACE + "new_deletes.py",
        "            if self.since.is_new(one) and self.scope.may_match(one.data_file)\n",
        "            if self.since.is_new(one)\n"
        "            and self.scope.may_match(one.data_file)\n"
        "            and {o.snapshot_id: o.operation for o in self.since.later}.get(\n"
        "                one.snapshot_id\n"
        "            )\n"
        '            in ("overwrite", "delete")\n',
        (_TESTS + "whatever_their_snapshot",),
    ),
    Mutant(
        "rewrite_may_add_rows_unseen",
        _PLACE + "rewrites.py",
        "(content is ManifestContent.DELETES or added_rows <= rows)",
        "rows >= 0",
        (_TESTS + "more_rows",),
    ),
    Mutant(
        "rewrite_with_a_number_of_the_base_is_an_addition",
        _PLACE + "rewrites.py",
        "number is not None and 0 < number <= since.sequence_number\n",
        "number == -1\n",
        (_TESTS + "stays_known",),
    ),
    # --- Each check ---
    Mutant(
        "added_files_conflict_under_snapshot_too",
        _PLACE + "validate.py",
        '        if change.isolation_level == "serializable":\n'
        "            yield AddedCheck(head, since, scope, referenced)\n"
        "        if change.updates_rows:\n",
        "        yield AddedCheck(head, since, scope, referenced)\n"
        "        if change.updates_rows:\n",
        (_TESTS + "in_scope_only",),
    ),
    Mutant(
        "new_deletes_in_scope_are_not_looked_at",
        _PLACE + "validate.py",
        "        yield NewDeletesCheck(head, since, removed_rows)\n",
        "        pass\n",
        (_TESTS + "values_are_in_scope",),
    ),
    Mutant(
        "update_conflicts_with_deletes_in_any_file",
        _PLACE + "validate.py",
        "            if not _names_all_that_it_reads(change, referenced):\n",
        "            if True:\n",
        (_TESTS + "does_not_touch",),
    ),
    Mutant(
        "narrow_conflict_filter_hides_deletes_of_rows_that_an_update_writes_again",
        _PLACE + "validate.py",
        "            yield FileDeletesCheck(head, since, referenced, UPDATED)\n",
        "",
        (_TESTS + "beside_its_conflict_filter",),
    ),
    Mutant(
        "equality_deletes_of_no_partition_miss_unnamed_files",
        _PLACE + "scopes.py",
        "and file.spec_id in self.everywhere:",
        "and file.spec_id in self.keys:",
        (_TESTS + "may_be_of_them",),
    ),
    Mutant(
        "narrow_conflict_filter_hides_deletes_of_rows_in_unnamed_files",
        _PLACE + "validate.py",
        "                yield NewDeletesCheck(head, since, _of_positions(head, unnamed))\n",
        "                pass\n",
        (_TESTS + "may_be_of_them",),
    ),
    Mutant(
        "files_that_came_and_went_were_removed",
        _PLACE + "deleted.py",
        "is_data and number <= self.since.sequence_number and",
        "is_data and",
        (_TESTS + "came_and_went",),
    ),
    Mutant(
        "equality_deletes_count_against_a_rewrite_with_a_number",
        _PLACE + "file_deletes.py",
        "lambda file: not is_equality_delete_file(file)",
        "lambda _: True",
        (_TESTS + "ranges_and_nulls",),
    ),
    Mutant(
        "vectors_hit_no_removed_file",
        _PLACE + "file_deletes.py",
        "[one for one in vectors if one.data_file.referenced_data_file in paths]",
        "[one for one in vectors if one.data_file.referenced_data_file is None]",
        (_TESTS + "vectors_hit",),
    ),
    Mutant(
        "update_brings_rows_of_a_replaced_file_back",
        _PLACE + "validate.py",
        "        if change.updates_rows:\n"
        "            yield FileDeletesCheck(head, since, removed)\n",
        "        if change.updates_rows:\n",
        (_TESTS + "update_replaces",),
    ),
    Mutant(
        "rewrite_may_place_deletes_anywhere",
        _PLACE + "validate.py",
        '"its delete files are of")\n    yield PlaceCheck(referenced, deletes, added)\n',
        '"its delete files are of")\n',
        (_TESTS + "of_its_partition",),
    ),
    Mutant(
        "named_file_that_is_not_live_is_passed_over",
        _PLACE + "named_files.py",
        "        if not missing:\n",
        "        if len(missing) < 2:\n",
        (_TESTS + "is_missing",),
    ),
    Mutant(
        "named_file_is_looked_for_in_likely_manifests_only",
        _PLACE + "named_files.py",
        "        if len(found) < len(self.paths):\n",
        "        if False:\n",
        (_TESTS + "in_the_others",),
    ),
    Mutant(
        "position_deletes_of_unnamed_files_land_beside_anything",
        _PLACE + "validate.py",
        "        if unnamed:\n            yield DeletedCheck(",
        "        if False:\n            yield DeletedCheck(",
        (_TESTS + "unnamed_files",),
    ),
    Mutant(
        "position_deletes_with_a_list_conflict_by_partition_too",
        _PLACE + "validate.py",
        "    if change.referenced_data_files:\n        return frozenset()\n",
        "",
        (_TESTS + "unnamed_files",),
    ),
    Mutant(
        "rows_that_an_update_has_moved_survive_a_delete",
        _PLACE + "validate.py",
        "elif change.isolation_level is not None and any(",
        "elif False and any(",
        (_TESTS + "has_moved_rows_of_its_file",),
    ),
    Mutant(
        "expired_update_has_moved_nothing",
        _PLACE + "new_deletes.py",
        "        may_have_moved = is_any_untold and self._has_untold_data()\n",
        "        may_have_moved = False\n",
        (_TESTS + "moved_by_an_expired_update",),
    ),
    Mutant(
        "any_retained_snapshot_tells_where_its_rows_are_from",
        _PLACE + "new_deletes.py",
        "for one in self.since.later if _only_appends(_counted(one))}\n",
        "for one in self.since.later}\n",
        (_TESTS + "moved_row_is_known_once",),
    ),
    Mutant(
        "bounds_of_a_position_delete_name_nothing",
        "committer/iceberg/deletes/position_deletes.py",
        "    if lower is None or lower != upper:\n",
        "    if True:\n",
        (_TESTS + "equal_bounds",),
    ),
    Mutant(
        "deletes_of_another_partition_are_taken",
        _PLACE + "named_files.py",
        "    return named is not None and partition_of(named) != partition_of(delete)\n",
        "    return False\n",
        (_TESTS + "of_its_partition",),
    ),
    Mutant(
        "partitions_that_are_appended_to_may_have_files",
        _PLACE + "validate.py",
        "    if change.append_only:\n",
        "    if False:\n",
        (_TESTS + "to_be_empty",),
    ),
    Mutant(
        "added_file_is_within_a_filter_that_it_touches",
        _PLACE + "added_within.py",
        "residual(file.partition) != ALWAYS_TRUE and not all_match(file)",
        "residual(file.partition) != ALWAYS_TRUE and file.record_count == 0",
        (_TESTS + "within_the_row_filter",),
    ),
    Mutant(
        "rewrite_may_add_rows",
        _PLACE + "rewritten_rows.py",
        "        if after > before:\n",
        "        if after > before + 1:\n",
        (_TESTS + "adds_no_rows",),
    ),
    Mutant(
        "rewrite_may_be_older_than_its_rows",
        _PLACE + "rewritten_rows.py",
        "        removed = self._newer(loaded, self.removed, ",
        "        removed = None and self._newer(loaded, self.removed, ",
        (_TESTS + "below_that_of_its_rows",),
    ),
    Mutant(
        "rewritten_deletes_may_be_older_than_their_data",
        _PLACE + "rewritten_rows.py",
        "        return removed or self._newer(",
        "        return removed and self._newer(",
        (_TESTS + "below_that_of_their_data", _TESTS + "below_that_of_these"),
    ),
    Mutant(
        "rewrite_may_be_newer_than_its_base",
        _PLACE + "rewritten_rows.py",
        "        if self.number > self.since.sequence_number:\n",
        "        if False:\n",
        (_TESTS + "above_its_base",),
    ),
    Mutant(
        "only_rewritten_data_has_a_number_that_is_looked_at",
        _PLACE + "validate.py",
        "    if since is not None and number is not None:\n",
        "    if since is not None and number is not None and removed.paths:\n",
        (_TESTS + "above_their_base", _TESTS + "below_that_of_their_data"),
    ),
    Mutant(
        "rewrite_removes_a_file_that_came_back_after_its_base",
        _PLACE + "rewritten_rows.py",
        "        if newer:\n",
        "        if False:\n",
        (_TESTS + "has_read_the_files",),
    ),
    # --- Groups of a rewrite ---
    Mutant(
        "each_group_of_a_rewrite_looks_through_the_branch_again",
        "committer/plan/commit/operation_step.py",
        "    lost = readable(partial(lost_groups, change, head))\n",
        "    lost = [one for one in change.groups if validate(change.only(one), head)]\n",
        ("tests/plan/validation/test_lost_groups.py -k hundred_groups",),
    ),
    Mutant(
        "deletes_of_a_whole_partition_concern_no_group",
        _PLACE + "loaded_manifests.py",
        "            if path is None or path in shared:\n",
        "            if path in shared:\n",
        ("tests/plan/validation/test_lost_groups.py -k lost_if",),
    ),
    Mutant(
        "vector_of_one_group_that_is_lost_loses_all_groups",
        _PLACE + "validate.py",
        " - added.keys() - change.left_out_data_files\n",
        " - added.keys()\n",
        ("tests/plan/validation/test_lost_groups.py -k their_group_alone",),
    ),
    Mutant(
        "groups_that_others_have_lost_land",
        "committer/plan/commit/operation_step.py",
        "else change.without_groups(lost)\n",
        "else change.without_groups(lost[1:])\n",
        ("tests/plan/validation/test_lost_groups.py -k what_lands",),
    ),
)
