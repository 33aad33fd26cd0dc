"""Breakages of what is refused, and what is written, where other engines share the table."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_RESERVED = "tests/iceberg/metadata/test_reserved_names.py -k "

FORMAT = (
    # --- Partitions that Iceberg Java does not write as they are read ---
    Mutant(
        "fixed_partitions_are_created",
        "committer/iceberg/metadata/metadata_check.py",
        "    found = fixed_field(spec, schema)\n    if found is not None:\n",
        "    found = fixed_field(spec, schema)\n    if found is not None and not spec.fields:\n",
        ("tests/iceberg/metadata/test_new_table.py -k fixed",),
    ),
    Mutant(
        "fixed_partitions_are_committed",
        "committer/plan/batch/submitted_manifest.py",
        "    if fixed is not None:\n",
        "    if fixed is not None and not spec.fields:\n",
        ("tests/plan/batch/test_request_check.py -k fixed",),
    ),
    Mutant(
        "void_fields_have_values",
        "committer/plan/batch/submitted_manifest.py",
        "            _check_void(walked.partitions, fitting.void_places)\n",
        "",
        ("tests/plan/batch/test_request_check.py -k void",),
    ),
    # --- Columns that Iceberg reads as its own ---
    Mutant(
        "reserved_column_is_created",
        "committer/iceberg/metadata/new_table.py",
        "    check_reserved_names(fresh_schema)\n",
        "",
        (_RESERVED + "wherever",),
    ),
    Mutant(
        "reserved_column_is_added",
        "committer/iceberg/evolution/schema_evolution.py",
        "        check_reserved_names(changed, before=self.schema)\n",
        "",
        (_RESERVED + "wherever",),
    ),
    Mutant(
        "table_with_a_reserved_column_never_changes",
        "committer/iceberg/evolution/schema_evolution.py",
        "check_reserved_names(changed, before=self.schema)",
        "check_reserved_names(changed)",
        (_RESERVED + "can_rename",),
    ),
    # --- Summaries ---
    Mutant(
        "an_unpartitioned_spec_has_no_partition",
        "committer/iceberg/splice/manifest_walk.py",
        "        partitions or ((),) * bool(added),\n",
        "        partitions,\n",
        ("tests/plan/commit/test_commit.py -k one_changed_partition",),
    ),
    Mutant(
        "sizes_of_a_partition_come_first",
        "committer/plan/file_changes/tally.py",
        "print_counts(counts, _KEYS)",
        "print_counts(counts, sorted(_KEYS, reverse=True))",
        ("tests/plan/file_changes/test_step_manifests.py -k each_partition",),
    ),
    # --- Manifests that belie their row of the manifest list ---
    Mutant(
        "counts_of_a_manifest_are_not_compared",
        "committer/iceberg/manifest/manifest_row.py",
        "    if said == COUNTS_UNKNOWN:\n        return\n",
        "    return\n",
        ("tests/iceberg/manifest/test_manifest_row.py -k other_counts",),
    ),
    Mutant(
        "partitions_of_a_manifest_are_not_compared",
        "committer/iceberg/manifest/manifest_row.py",
        "            if bounds is not None and not bounds.may_hold(value):\n",
        "            if bounds is None and not partition:\n",
        ("tests/iceberg/manifest/test_manifest_row.py -k partitions_outside",),
    ),
    Mutant(
        "merge_compares_with_the_row_before",
        "committer/iceberg/splice/entry_splice.py",
        "        self.check, self.checked, self.partition = check, {}, None\n",
        "        self.check, self.partition = check, None\n",
        ("tests/iceberg/manifest/test_manifest_row.py -k merge",),
    ),
    Mutant(
        "scan_reads_negative_counts",
        "committer/iceberg/scan/entry_reader.py",
        "        if record_count < 0 or size < 0:\n            raise Unexpected\n",
        "",
        ("tests/iceberg/manifest/test_manifest_row.py -k negative",),
    ),
    Mutant(
        "old_counts_that_are_unknown_are_guessed",
        "committer/iceberg/manifest/manifest_list.py",
        "known if len(known) == len(counts) else COUNTS_UNKNOWN",
        "[1 if count is None else count for count in counts]",
        ("tests/iceberg/manifest/test_manifest_row.py -k version_1",),
    ),
    Mutant(
        "stand_ins_for_counts_are_counts",
        "committer/iceberg/manifest/manifest_list.py",
        "        if (existing, added, self.deleted_files_count) == COUNTS_UNKNOWN:\n",
        "        if (existing, added, self.deleted_files_count) == (None, None, None):\n",
        ("tests/plan/file_changes/test_clustering.py -k counted",),
    ),
    Mutant(
        "row_ids_go_by_stand_ins_for_counts",
        "committer/plan/commit/step_plan.py",
        "    return None in counts or counts == COUNTS_UNKNOWN\n",
        "    return None in counts\n",
        ("tests/plan/commit/test_step_plan.py -k of_their_own",),
    ),
    # --- Sort orders ---
    Mutant(
        "null_orders_are_moved",
        "committer/iceberg/splice/manifest_splice.py",
        "        elif block.null_orders:\n",
        "        elif block.null_orders and not block.count:\n",
        ("tests/iceberg/splice/test_manifest_splice.py -k sort_order",),
    ),
    Mutant(
        "decoded_null_orders_are_moved",
        "committer/iceberg/splice/manifest_walk.py",
        "        if has_no_order(entry.data_file):\n",
        "        if has_no_order(entry.data_file) and not position:\n",
        ("tests/iceberg/splice/test_manifest_splice.py -k sort_order",),
    ),
    Mutant(
        "inline_files_keep_null_orders",
        "committer/plan/batch/submitted_manifest.py",
        "append(with_order(file))",
        "append(file)",
        ("tests/plan/batch/test_request_check.py -k sort_order",),
    ),
    # --- Summaries ---
    Mutant(
        "all_files_of_a_manifest_count_for_one_partition",
        "committer/plan/batch/partition_totals.py",
        "    if len(walked.partitions) == 1:\n",
        "    if walked.partitions:\n",
        ("tests/plan/batch/test_partition_totals.py",),
    ),
    Mutant(
        "more_partitions_than_the_limit_are_told",
        "committer/plan/batch/partition_totals.py",
        "    if not partitioned or len(by_path) > limit:\n",
        "    if not partitioned:\n",
        ("tests/plan/batch/test_partition_totals.py",),
    ),
    # --- Deletes ---
    Mutant(
        "deletes_are_not_pruned_by_their_values",
        "committer/iceberg/scan/plan_files.py",
        "            if may_match is None or may_match(_deleted_values(file)):\n",
        "            if may_match is None or file:\n",
        ("tests/iceberg/scan/test_plan_files.py -k equality_deletes",),
    ),
    Mutant(
        "deletes_are_pruned_by_what_they_do_not_compare",
        "committer/iceberg/scan/plan_files.py",
        "may_match(_deleted_values(file))",
        "may_match(file)",
        ("tests/iceberg/scan/test_plan_files.py -k compares",),
    ),
    # --- Hadoop's checksum files ---
    Mutant(
        "checksums_stay_behind",
        "committer/storage/disk/durable_writes.py",
        "            if not emptied.owns(os.path.dirname(path)):\n",
        "            if not path:\n",
        ("tests/storage/disk/test_local.py -k checksums",),
    ),
    Mutant(
        "checksums_of_a_file_in_use_are_orphans",
        "committer/service/admin/orphan_finder.py",
        "                if without_checksum(found.location) not in self._names:\n",
        "                if found.location not in self._names:\n",
        ("tests/service/admin/test_orphan_finder.py -k checksums",),
    ),
    # --- The arrows between modules ---
    Mutant(
        "types_import_what_imports_them",
        "committer/iceberg/values/types.py",
        "        return not isinstance(self, StructType | ListType | MapType)\n",
        "        from committer.iceberg.values import type_json\n\n"
        "        return isinstance(type_json.print_type(self), str)\n",
        ("tests/test_house.py -k import_contracts",),
    ),
    # --- Changes of metadata ---
    Mutant(
        "what_a_late_writer_of_main_has_used_is_removed",
        "committer/iceberg/updates/requirements_of.py",
        '        if ref.type == "branch":\n',
        '        if ref.type == "branch" and name != "main":\n',
        ("tests/iceberg/updates/test_requirements_of.py -k late_writer",),
    ),
    Mutant(
        "snapshot_without_parent_sets_the_sequence_number_back",
        "committer/iceberg/updates/metadata_builder.py",
        "max(self._last_sequence_number, snapshot.sequence_number)",
        "snapshot.sequence_number",
        ("tests/iceberg/updates/test_metadata_update.py -k without_parent",),
    ),
)
