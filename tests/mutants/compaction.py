"""Breakages of which files a compaction rewrites, and of what it deletes."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_GROUPS = ("tests/workers/compaction/test_rewrite_groups.py",)
_ORDER = ("tests/workers/compaction/test_zorder.py",)
_PUBLICATION = ("tests/workers/compaction/publication",)
_TURNS = ("tests/workers/compaction/test_partition_turns.py",)
_DELETES = ("tests/workers/compaction/deletes/test_delete_groups.py",)
_PUBLISHED_DELETES = ("tests/workers/compaction/deletes/test_publish_deletes.py",)
_SRC = "workers/compaction/rewrite_groups.py"
_DELETES_SRC = "workers/compaction/deletes/delete_groups.py"

COMPACTION = (
    Mutant(
        "files_of_just_the_right_size_are_compacted",
        _SRC,
        "    is_right = sizes.min_bytes <= _bytes(task) <= sizes.max_bytes\n",
        "    is_right = sizes.min_bytes < _bytes(task) < sizes.max_bytes\n",
        _GROUPS,
    ),
    Mutant(
        "files_of_other_specs_are_compacted_in_their_old_partitions",
        _SRC,
        "            key = partition_of(task.file) if is_own else None\n",
        "            key = partition_of(task.file)\n",
        _GROUPS,
    ),
    Mutant(
        "a_lone_small_file_is_compacted_again_and_again",
        _SRC,
        "    joins_some = len(group) > 1 and (\n",
        "    joins_some = len(group) > 0 and (\n",
        _GROUPS,
    ),
    Mutant(
        "deletes_of_a_partition_are_all_of_one_file",
        _SRC,
        "    own = (one for one in task.delete_files if referenced_data_file(one) is not None)\n",
        "    own = task.delete_files\n",
        _GROUPS,
    ),
    Mutant(
        "groups_of_a_compaction_have_no_end",
        "workers/requests/rewrite_parts.py",
        "        if part and (weight + own > weight_max or ",
        "        if part and (own > weight_max or ",
        _GROUPS,
    ),
    Mutant(
        "a_tiny_rest_is_a_file_of_its_own",
        _SRC,
        "    return full if is_room else full + 1\n",
        "    return full + 1\n",
        _GROUPS,
    ),
    Mutant(
        "negative_numbers_come_behind_in_a_z_order",
        "workers/compaction/zorder.py",
        "    words: Words = np.where(bits & _SIGN, ~bits, bits | _SIGN)\n",
        "    words: Words = bits | _SIGN\n",
        _ORDER,
    ),
    Mutant(
        "bits_of_a_z_order_are_not_interleaved",
        "workers/compaction/zorder.py",
        "bits.transpose(0, 2, 1)",
        "bits",
        _ORDER,
    ),
    Mutant(
        "files_of_a_rewrite_that_may_be_replayed_are_deleted",
        "workers/compaction/publication/part_run.py",
        "    if not answer.in_doubt:\n",
        "    if answer.why:\n",
        _PUBLICATION,
    ),
    Mutant(
        "busy_partitions_are_compacted_before_all_others",
        "workers/compaction/partition_turns.py",
        "        return self._served.get(group.partition, 0), -len(group.tasks)\n",
        "        return 0, -len(group.tasks)\n",
        _TURNS,
    ),
    Mutant(
        "a_round_of_compaction_has_no_budget",
        "workers/compaction/partition_turns.py",
        "            if chosen and group.size_bytes > left_bytes:\n",
        "            if chosen and group.size_bytes > self.budget_bytes:\n",
        _TURNS,
    ),
    Mutant(
        "rewritten_deletes_have_the_number_of_the_oldest_that_they_replace",
        "workers/compaction/deletes/publish_deletes.py",
        "    return max(numbers[key] for key in removed)\n",
        "    return min(numbers[key] for key in removed)\n",
        _DELETES,
    ),
    Mutant(
        "a_converted_delete_goes_before_all_of_its_data_was_looked_at",
        _DELETES_SRC,
        "        tasks[joined.first(key)].append(task)\n",
        "        tasks[joined.first(key)][:] = [task]\n",
        _DELETES,
    ),
    Mutant(
        "equality_deletes_that_share_data_are_converted_apart",
        _DELETES_SRC,
        "            joined.join(chosen)\n",
        "            pass\n",
        _DELETES,
    ),
    Mutant(
        "a_conversion_applies_deletes_that_stay_as_well",
        _DELETES_SRC,
        "                if delete_key(file) in keys or not is_equality_delete_file(file)\n",
        "                if delete_key(file) in keys or is_equality_delete_file(file)\n",
        _DELETES,
    ),
    Mutant(
        "a_converted_vector_forgets_what_was_deleted_before",
        "workers/compaction/deletes/delete_positions.py",
        "        return found | before\n",
        "        return found\n",
        _DELETES,
    ),
    Mutant(
        "a_converted_position_delete_file_forgets_those_that_it_replaces",
        "workers/compaction/deletes/delete_positions.py",
        "    return found | deleted_positions(",
        "    return found or deleted_positions(",
        _DELETES,
    ),
    Mutant(
        "position_deletes_that_are_left_beside_vectors_stay",
        _DELETES_SRC,
        '        packed = [entries] if form == "vectors" else _worthwhile(entries, sizes)\n',
        "        packed = _worthwhile(entries, sizes)\n",
        _DELETES,
    ),
    Mutant(
        "deletes_that_a_vector_hides_are_used",
        "workers/compaction/deletes/live_deletes.py",
        "        return (entry for entry in self.entries if id(entry.data_file) not in used)\n",
        "        return (\n            entry\n            for entry in self.entries\n"
        "            if id(entry.data_file) not in used\n"
        "            and (entry.data_file.content != 1 or entry.data_file.is_deletion_vector)\n"
        "        )\n",
        _DELETES,
    ),
    Mutant(
        "converted_positions_of_a_partition_name_no_data_file_that_has_to_be_live",
        "workers/compaction/deletes/publish_deletes.py",
        '    if table.form != "partitions" or table.options.purpose != "convert equality":\n',
        '    if table.form == "partitions":\n',
        _PUBLISHED_DELETES,
    ),
    Mutant(
        "a_rewrite_that_may_be_replayed_is_taken_for_lost",
        "workers/compaction/publication/rewrite_request.py",
        "in_doubt=receipt.reason != Reason.CONFLICT",
        "in_doubt=receipt.reason is None",
        _PUBLICATION,
    ),
    Mutant(
        "a_part_that_lands_whole_is_published_without_its_failed_group",
        "workers/compaction/publication/part_run.py",
        "        if lost and self.lands_whole:\n",
        "        if not written and self.lands_whole:\n",
        _PUBLICATION,
    ),
)
