"""Breakages of file system tables."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_TEST = "tests/catalog/hadoop/test_hadoop.py::test"
_SERVICE = "tests/service/table/test_file_tables.py"

FILE_TABLES = (
    Mutant(
        "version_that_was_cleaned_up_is_won_again",
        "committer/catalog/hadoop/versions.py",
        "        if current is not None and current.number > base.number + 1:\n",
        "        if current is None:\n",
        (
            f"{_TEST}_a_version_that_was_cleaned_up_is_not_won_again_unnoticed[memory]",
            f"{_SERVICE} -k won_again",
        ),
    ),
    Mutant(
        "base_that_is_gone_is_not_missed",
        "committer/catalog/hadoop/versions.py",
        "        if not is_standing or current_version(taken) is not None:\n",
        "        if current_version(taken) is not None:\n",
        (f"{_TEST}_a_base_that_is_gone_is_a_conflict[memory]",),
    ),
    Mutant(
        "base_of_a_later_table_is_taken_for_ours",
        "committer/catalog/hadoop/versions.py",
        "        return metadata.table_uuid == table_uuid\n",
        "        return metadata.table_uuid is not None\n",
        (
            f"{_TEST}_a_base_of_a_later_table_of_the_name_is_a_conflict",
            "tests/contract/test_catalog.py -k recreated_table_is_a_conflict[files]",
        ),
    ),
    Mutant(
        "purge_of_a_folder_takes_a_late_version_for_gone",
        "committer/service/admin/table_purge.py",
        "        await self._require_gone()\n",
        "        await self.side.catalog.probe()\n",
        ("tests/cli/test_file_tables.py -k during_a_purge",),
    ),
    Mutant(
        "purge_of_a_folder_asks_for_no_pointer_to_drop",
        "committer/service/admin/table_purge.py",
        "        if self.side.catalog.capabilities.drops_pointer_only:\n",
        "        if self.side.catalog:\n",
        ("tests/cli/test_file_tables.py -k gone_with_its_folder",),
    ),
    Mutant(
        "next_version_is_looked_for_in_one_spelling",
        "committer/catalog/hadoop/versions.py",
        "        if not is_standing or current_version(taken) is not None:\n",
        "        if not is_standing:\n",
        (f"{_TEST}_the_highest_version_is_current_in_any_spelling[memory-.gz.metadata.json]",),
    ),
    Mutant(
        "foreign_version_is_taken_for_ours",
        "committer/catalog/hadoop/versions.py",
        "        if standing != written.content:\n",
        "        if not standing:\n",
        (f"{_TEST}_a_foreign_file_in_the_place_of_the_next_version_is_a_conflict[memory-False]",),
    ),
    Mutant(
        "equal_content_is_always_ours",
        "committer/catalog/hadoop/versions.py",
        '        return None if is_only_ours else Unknown(f"{cause}, with the same content")\n',
        "        return None\n",
        (f"{_TEST}_equal_bytes_that_another_writer_could_have_written_are_unknown[memory]",),
    ),
    Mutant(
        "version_that_was_renamed_over_is_committed",
        "committer/catalog/hadoop/versions.py",
        "            if self._is_local and await",
        "            if not self._is_local and await",
        (f"{_TEST}_a_version_that_a_renaming_engine_replaced_is_unknown",),
    ),
    Mutant(
        "hint_is_lowered",
        "committer/catalog/hadoop/version_hint.py",
        "        if named >= version:\n",
        "        if named == version:\n",
        (f"{_TEST}_no_hint_is_trusted_and_none_is_lowered[memory-higher]",),
    ),
    Mutant(
        "checksum_of_an_older_hint_stays",
        "committer/catalog/hadoop/version_hint.py",
        "        if self._has_checksums:\n",
        "        if not location:\n",
        (f"{_TEST}_the_checksum_of_an_older_hint_is_removed",),
    ),
    Mutant(
        "object_store_is_written_without_the_operators_word",
        "committer/catalog/hadoop/hadoop_catalog.py",
        "        self._is_writable = is_local or no_other_writers\n",
        "        self._is_writable = True\n",
        (f"{_TEST}_an_object_store_is_read_only_unless_the_operator_vouches_for_it",),
    ),
    Mutant(
        "version_is_gzip_by_the_property",
        "committer/catalog/hadoop/hadoop_layout.py",
        "        if writes_gzip(one):\n",
        "        if not one:\n",
        (
            f"{_TEST}_a_property_that_moves_versions_is_refused[memory-write.metadata.compression-codec]",
        ),
    ),
    Mutant(
        "folder_of_another_catalogs_table_is_taken",
        "committer/catalog/hadoop/hadoop_catalog.py",
        "            if await self._versions.has_metadata(metadata):\n",
        "            if not metadata:\n",
        (f"{_TEST}_a_folder_of_another_catalogs_table_becomes_none[memory]",),
    ),
    Mutant(
        "state_keeps_the_planned_name_of_the_metadata_file",
        "committer/service/table/batch_committer.py",
        "replace(plan.state, table=table) if",
        "plan.state if",
        (f"{_SERVICE} -k next_version",),
    ),
    Mutant(
        "upkeep_deletes_versions",
        "committer/service/upkeep/expirer.py",
        "        if self._files.has_own_metadata_files:\n",
        "        if self._files:\n",
        (f"{_SERVICE} -k none_is_deleted",),
    ),
    Mutant(
        "orphan_search_takes_versions_that_the_log_spans",
        "committer/plan/cleanup/orphan_search.py",
        "    return number >= min(spanned) if",
        "    return number < 0 if",
        (f"{_SERVICE} -k orphan_search",),
    ),
)
