"""Breakages of what operations make of a branch's manifests."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_PLAN = "committer/plan/file_changes"
_TESTS = "tests/plan/file_changes"

_WRAPPED = (f"{_TESTS}/test_wrapped_partitions.py",)
_PROJECTION = "committer/iceberg/pruning/transform_projection.py"

FILE_CHANGES = (
    Mutant(
        "partition_value_that_wrapped_is_a_large_one",
        _PROJECTION,
        "    return projector.with_wrapped(projected)\n",
        "    return projected\n",
        _WRAPPED,
    ),
    Mutant(
        "smallest_numbers_prove_nothing",
        _PROJECTION,
        "                found = And.of(found, NotEqualTo(self.target, results[0]))\n",
        "                found = Or.of(found, _in_range(self.target, results))\n",
        _WRAPPED,
    ),
    Mutant(
        "null_partition_is_less_than_every_literal",
        "committer/iceberg/expressions/row_evaluator.py",
        "            return lambda value: value is not None and value < literal\n",
        "            return lambda value: value is None or value < literal\n",
        _WRAPPED,
    ),
    Mutant(
        "rewritten_files_do_not_count_for_dangling_deletes",
        f"{_PLAN}/step_manifests.py",
        "    given = (explicit_number(new.metadata, change) for change in changes)\n",
        "    given: tuple[int | None, ...] = ()\n",
        (f"{_TESTS}/test_delete_removal.py -k older_number",),
    ),
    Mutant(
        "all_deletes_dangle",
        f"{_PLAN}/step_manifests.py",
        "    found = [one.row.min_sequence_number for one in kept]\n",
        "    found = [one.row.sequence_number for one in kept]\n",
        (f"{_TESTS}/test_delete_removal.py -k written_anew",),
    ),
    # What Iceberg Java does in a second attempt.
    Mutant(
        "second_attempt_requires_what_the_first_has_matched",
        f"{_PLAN}/data_removal.py",
        "    return _missing(changes, found) or _partial(partly) or found\n",
        "    matched = {e.data_file.file_path for one in found.values() for e in one.removed}\n"
        '    known = globals().setdefault("_MATCHED", {})\n'
        "    first = known.setdefault(id(changes[0].added), matched)\n"
        "    if first - matched:\n"
        '        return Conflict(ConflictCode.MISSING, "required by the first attempt")\n'
        "    return _missing(changes, found) or _partial(partly) or found\n",
        (
            f"{_TESTS}/test_delete_removal.py -k planned_anew",
            "tests/plan/commit/test_operation_steps.py -k second_attempt",
        ),
    ),
    Mutant(
        "second_attempt_drops_vectors_of_what_the_first_has_removed",
        f"{_PLAN}/delete_removal.py",
        "        self._data = {entry.data_file.file_path for entry in data}\n",
        '        self._data = globals().setdefault("_FIRST", {}).setdefault(\n'
        "            id(changes[0].added), {entry.data_file.file_path for entry in data}\n"
        "        )\n",
        (f"{_TESTS}/test_delete_removal.py -k planned_anew",),
    ),
    Mutant(
        "vector_of_a_removed_file_stays",
        f"{_PLAN}/delete_removal.py",
        "        if file.is_deletion_vector and file.referenced_data_file in self._data:\n",
        "        if file.file_path in self._data:\n",
        (f"{_TESTS}/test_delete_removal.py -k siblings",),
    ),
    Mutant(
        "siblings_of_a_vector_go_with_it",
        f"{_PLAN}/data_removal.py",
        "        lambda entry: removed_delete(entry.data_file) in keys,\n",
        "        lambda entry: entry.data_file.file_path in {one.file_path for one in keys},\n",
        (f"{_TESTS}/test_delete_removal.py -k siblings",),
    ),
    Mutant(
        "equality_deletes_dropped_by_columns_they_do_not_compare",
        f"{_PLAN}/delete_removal.py",
        "        compared = with_metrics_of(file, frozenset(file.equality_ids or ()))\n",
        "        compared = file\n",
        (f"{_TESTS}/test_delete_removal.py -k rows_that_stay",),
    ),
    Mutant(
        "file_matched_in_part_is_kept",
        f"{_PLAN}/data_removal.py",
        "    return _missing(changes, found) or _partial(partly) or found\n",
        "    return _missing(changes, found) or found\n",
        (f"{_TESTS}/test_step_manifests.py -k part_of_one",),
    ),
    Mutant(
        "named_file_that_is_gone_is_ignored",
        f"{_PLAN}/data_removal.py",
        "    return _missing(changes, found) or _partial(partly) or found\n",
        "    return _partial(partly) or found\n",
        (f"{_TESTS}/test_step_manifests.py -k not_live",),
    ),
    Mutant(
        "vectors_that_are_live_are_not_told_with_one_that_is_not",
        f"{_PLAN}/step_manifests.py",
        "    if siblings:\n",
        "    if siblings is None:\n",
        (f"{_TESTS}/test_delete_removal.py -k another_range",),
    ),
    Mutant(
        "equality_deletes_are_joined_across_sequence_numbers",
        f"{_PLAN}/rewritten_deletes.py",
        "    others = [one for one in removed if one.sequence_number != number]\n",
        "    others = removed[:0]\n",
        (f"{_TESTS}/test_rewritten_deletes.py -k another_number",),
    ),
    Mutant(
        "equality_deletes_are_joined_below_a_higher_number",
        f"{_PLAN}/rewritten_deletes.py",
        "if one.sequence_number != number]",
        "if (one.sequence_number or 0) > number]",
        (f"{_TESTS}/test_rewritten_deletes.py -k another_number",),
    ),
    Mutant(
        "rewrite_adds_equality_deletes_in_the_place_of_none",
        f"{_PLAN}/rewritten_deletes.py",
        "    if not removed:\n",
        "    if removed is None:\n",
        (f"{_TESTS}/test_rewritten_deletes.py -k removes_none",),
    ),
    Mutant(
        "deletes_by_position_may_be_older_than_those_that_they_replace",
        f"{_PLAN}/rewritten_deletes.py",
        "        if (one.sequence_number or 0) > number and _is_replaced(",
        "        if (one.sequence_number or 0) < 0 and _is_replaced(",
        (f"{_TESTS}/test_rewritten_deletes.py -k lower_number",),
    ),
    Mutant(
        "vector_may_be_older_than_unnamed_position_deletes_that_it_supersedes",
        f"{_PLAN}/rewritten_deletes.py",
        "    return is_position_delete_file(file) and referenced_data_file(file) in with_vectors\n",
        "    return False\n",
        (f"{_TESTS}/test_rewritten_deletes.py -k unnamed",),
    ),
    Mutant(
        "named_delete_file_that_is_gone_is_ignored",
        f"{_PLAN}/step_manifests.py",
        "    missing = _missing_deletes(chosen - vectors.gone, live) or _removed_twice(",
        "    missing = _removed_twice(",
        (f"{_TESTS}/test_delete_removal.py -k not_live",),
    ),
    Mutant(
        "two_changes_of_a_step_remove_one_file",
        f"{_PLAN}/step_manifests.py",
        "sorted(path for path, count in removed.items() if count > 1)",
        "sorted(path for path, count in removed.items() if count > 2)",
        (f"{_TESTS}/test_shared_steps.py -k conflict",),
    ),
    Mutant(
        "files_of_other_specs_stay_in_replaced_partitions",
        f"{_PLAN}/data_removal.py",
        "        if len(metadata.partition_specs) > 1:\n",
        "        if not metadata.partition_specs:\n",
        (f"{_TESTS}/test_other_specs.py",),
    ),
    Mutant(
        "second_vector_of_a_data_file",
        f"{_PLAN}/vector_union.py",
        "        return now is not None and removed_delete(now.data_file) not in named\n",
        "        return False\n",
        (f"{_TESTS}/test_vector_union.py -k disjoint_rows",),
    ),
    Mutant(
        "update_and_delete_of_one_row_are_united",
        f"{_PLAN}/vector_union.py",
        "    return not since.is_whole or any(\n",
        "    return not since.is_whole and any(\n",
        (f"{_TESTS}/test_vector_union.py -k was_updated_meanwhile",),
    ),
    Mutant(
        "update_of_a_deleted_row_brings_it_back",
        f"{_PLAN}/vector_union.py",
        "        if not (change.updates_rows or updates or (",
        "        if not (updates or (",
        (f"{_TESTS}/test_vector_union.py -k was_deleted_meanwhile",),
    ),
    Mutant(
        "updates_of_one_step_share_rows",
        f"{_PLAN}/vector_union.py",
        "            others_update = others_update or one.change.updates_rows\n",
        "            others_update = others_update\n",
        (f"{_TESTS}/test_shared_steps.py -k share_rows",),
    ),
    Mutant(
        "what_both_have_read_counts_as_an_overlap",
        f"{_PLAN}/vector_union.py",
        "        if not (now - base) & (new - base):\n",
        "        if not now & new:\n",
        (f"{_TESTS}/test_vector_union.py -k both_have_read",),
    ),
    Mutant(
        "any_vector_of_the_request_is_taken_for_the_one_that_is_gone",
        f"{_PLAN}/vector_union.py",
        "if key in gone and referenced_data_file(entry.data_file) in self._to_unite:\n",
        "if key in gone:\n",
        (f"{_TESTS}/test_vector_union.py -k of_another_file",),
    ),
    Mutant(
        "vector_hides_position_deletes_that_its_client_has_not_read",
        f"{_PLAN}/vector_union.py",
        "                if since is None or since.is_new(entry):\n",
        "                if since is None:\n",
        (f"{_TESTS}/test_vector_union.py -k may_lack",),
    ),
    Mutant(
        "damaged_vector_stops_the_table",
        f"{_PLAN}/vector_union.py",
        "            except InvalidMetadataError as error:\n",
        "            except ZeroDivisionError as error:\n",
        (f"{_TESTS}/test_vector_union.py -k that_is_none",),
    ),
    Mutant(
        "filtered_manifest_uses_up_row_ids",
        f"{_PLAN}/new_manifests.py",
        "            row = replace(row, first_row_id=old.first_row_id)\n",
        "            row = replace(row, first_row_id=None)\n",
        (f"{_TESTS}/test_step_manifests.py -k keep_their_ids",),
    ),
    Mutant(
        "rewrite_gives_its_files_the_number_of_the_commit",
        f"{_PLAN}/new_manifests.py",
        "    return None if metadata.format_version == 1 else change.data_sequence_number\n",
        "    return None\n",
        (f"{_TESTS}/test_step_manifests.py -k number_that_it_names",),
    ),
    Mutant(
        "files_of_a_lost_group_are_added",
        f"{_PLAN}/new_manifests.py",
        "if f.file_path not in left_out]",
        "if f.file_path]",
        (f"{_TESTS}/test_shared_steps.py -k lost_group",),
    ),
    Mutant(
        "delete_files_of_data_of_a_lost_group_are_added",
        "committer/plan/operations/change.py",
        "                if not left_out or referenced_data_file(file) not in left_out:\n",
        "                if file is not None:\n",
        (f"{_TESTS}/test_shared_steps.py -k lost_group",),
    ),
    Mutant(
        "removed_files_are_nowhere_listed",
        f"{_PLAN}/step_manifests.py",
        "        elif one.row.has_live_files:\n            listed.append(one)\n",
        "        else:\n            listed.append(one)\n",
        (f"{_TESTS}/test_step_manifests.py -k their_snapshot_only",),
    ),
    Mutant(
        "label_by_effect",
        f"{_PLAN}/step_manifests.py",
        "bool(change.removed_data_files) or change.row_filter not in (None, ALWAYS_FALSE)\n",
        "bool(change.removed_data_files)\n",
        (f"{_TESTS}/test_step_manifests.py -k label",),
    ),
    Mutant(
        "file_listed_twice_is_counted_twice",
        f"{_PLAN}/tally.py",
        "                self._duplicates += 1\n                continue\n",
        "                self._duplicates += 1\n",
        (f"{_TESTS}/test_step_manifests.py -k listed_twice",),
    ),
    Mutant(
        "removed_entry_forgets_its_row_id",
        "committer/iceberg/splice/manifest_merge.py",
        "inherit((written,), replace(row, first_row_id=first_row_id))",
        "inherit((written,), replace(row, first_row_id=None))",
        (f"{_TESTS}/test_step_manifests.py -k keep_their_ids",),
    ),
    Mutant(
        "clusters_are_in_the_order_of_their_bytes",
        "committer/iceberg/splice/manifest_clusters.py",
        "sorted(self._clusters, key=lambda one: order(tuples[one]))",
        "reversed(self._clusters)",
        (f"{_TESTS}/test_clustering.py -k order_of_partitions",),
    ),
    Mutant(
        "named_manifest_that_is_gone_is_passed_over",
        f"{_PLAN}/clustering.py",
        "    if missing:\n",
        "    if len(missing) == len(named):\n",
        (f"{_TESTS}/test_clustering.py -k not_list",),
    ),
    Mutant(
        "manifests_that_are_not_named_are_clustered_too",
        f"{_PLAN}/clustering.py",
        "if path in named and row.has_live_files]",
        "if row.has_live_files]",
        (f"{_TESTS}/test_clustering.py -k others_stay",),
    ),
    Mutant(
        "clusters_use_up_row_ids",
        f"{_PLAN}/clustering.py",
        "    return None if None in ids else ids[0]\n",
        "    return None\n",
        (f"{_TESTS}/test_clustering.py -k order_of_partitions",),
    ),
    Mutant(
        "decoded_manifest_of_another_row",
        "committer/plan/operations/decoded_manifests.py",
        "        key = (content, row)\n",
        "        key = (content, self._known and next(iter(self._known))[1] or row)\n",
        ("tests/plan/operations/test_decoded_manifests.py -k another_row",),
    ),
    Mutant(
        "decoded_manifests_are_kept_without_bound",
        "committer/plan/operations/decoded_manifests.py",
        "            if len(found) <= self._entries_max:\n",
        "            if found:\n",
        ("tests/plan/operations/test_decoded_manifests.py -k than_allowed",),
    ),
    Mutant(
        "damaged_manifest_stops_the_table",
        "committer/plan/commit/operation_step.py",
        "    except (InvalidMetadataError, UnsupportedError) as error:\n",
        "    except ZeroDivisionError as error:\n",
        ("tests/plan/commit/test_operation_steps.py -k cannot_be_read",),
    ),
)
