"""Breakages of what happens off the way of a request: settling, high-water mark, clean-up."""

from __future__ import annotations

from tests.mutants.mutant import Mutant
from tests.mutants.run import SEEDS, seeds_from

UPKEEP = (
    # --- Merged manifests ---
    Mutant(
        "merge_moves_files_to_another_sequence_number",
        "committer/iceberg/splice/entry_splice.py",
        "row.added_snapshot_id, row.sequence_number, row.sequence_number, parts)\n",
        "row.added_snapshot_id, row.sequence_number + 1, row.sequence_number + 1, parts)\n",
        (SEEDS,),
    ),
    Mutant(
        "merge_moves_files_to_another_snapshot",
        "committer/iceberg/splice/entry_splice.py",
        "    inherited = _head(row.added_snapshot_id, ",
        "    inherited = _head(row.added_snapshot_id + 1, ",
        (SEEDS,),
    ),
    # --- Settling ---
    Mutant(
        "settler_forgets_deletions_that_failed",
        "committer/service/settle/settler.py",
        "            for proof in proofs:\n                self.pending_deletes.requeue(proof)\n",
        "",
        (SEEDS,),
    ),
    Mutant(
        "settler_forgets_answers_that_failed",
        "committer/service/settle/settler.py",
        "            self._to_answer = ended + self._to_answer\n",
        "",
        (SEEDS,),
    ),
    # --- The high_water_mark ---
    Mutant(
        "high_water_mark_is_written_after_the_deletion",
        "committer/service/settle/settler.py",
        "            proofs = self.pending_deletes.take()\n",
        "            proofs = self.pending_deletes.take()\n"
        "            await self.inbox.delete([key for proof in proofs for key in proof.keys])\n",
        ("tests/service/settle/test_high_water_mark.py",),
    ),
    Mutant(
        "high_water_mark_goes_backwards",
        "committer/service/settle/high_water_mark_store.py",
        "            joined = known.high_water_mark.joined(seen)\n",
        "            joined = seen\n",
        ("tests/service/settle/test_high_water_mark.py",),
    ),
    Mutant(
        "frozen_table_commits",
        "committer/service/settle/high_water_check.py",
        "        return tuple(islice(missing_from(state, known), SHOWN_MAX))\n",
        "        return tuple(islice(missing_from(state, known), 0))\n",
        ("tests/service/settle/test_high_water_mark.py",),
    ),
    Mutant(
        "what_may_land_once_more_leaves_the_inbox",
        "committer/service/settle/high_water_mark_store.py",
        "            if known.high_water_mark.decided > seen.decided or",
        "            if known.high_water_mark.accepted_ms > seen.accepted_ms or",
        ("tests/service/settle/test_high_water_mark.py",),
    ),
    Mutant(
        "operators_acceptance_is_overruled",
        "committer/plan/ledger/high_water_mark.py",
        "            return max(self, other, key=lambda one: one.accepted_ms)\n",
        "            return min(self, other, key=lambda one: one.accepted_ms)\n",
        (
            "tests/plan/ledger/test_high_water_mark.py",
            "tests/service/settle/test_high_water_mark.py",
        ),
    ),
    Mutant(
        "what_a_manifest_list_proves_is_forgotten_with_it",
        "committer/service/settle/high_water_check.py",
        "            await self.store.keep(known.with_proven(unclaimed))\n",
        "",
        ("tests/service/settle/test_high_water_mark.py -k stays_known",),
    ),
    Mutant(
        "proof_behind_no_branch_is_not_looked_at",
        "committer/plan/ledger/high_water_mark.py",
        "takewhile(lambda one: not _is_below(one, mark), reversed(metadata.snapshots))\n",
        "takewhile(lambda one: not _is_below(one, mark), metadata.branch_history(MAIN))\n",
        ("tests/service/settle/test_high_water_mark.py -k stays_known",),
    ),
    Mutant(
        "tombstone_claims_nothing",
        "committer/plan/ledger/high_water_mark.py",
        "        return key in ledger.frozen or ledger.has_tombstone(key)\n",
        "        return key in ledger.frozen\n",
        ("tests/service/table/test_one_shots.py -k inbox_moved",),
    ),
    # --- Clean-up of the ledger ---
    Mutant(
        "one_shot_entry_goes_at_once",
        "committer/service/upkeep/ledger_upkeep.py",
        "                if self._is_long_gone(key, now_s) and may_be_forgotten(entry, now_ms):\n",
        "                if may_be_forgotten(entry, now_ms):\n",
        ("tests/service/table/test_epochs.py -k one_shot",),
    ),
    Mutant(
        "upkeep_begins_anew_when_a_table_has_rested",
        "committer/service/ingest/committer_pool.py",
        "        before = self._idle_upkeep.take(identifier, table_uuid)\n",
        "        before = None\n",
        ("tests/service/upkeep/test_ledger_upkeep.py -k an_hour",),
    ),
    Mutant(
        "upkeep_outlives_the_shard_of_its_table",
        "committer/service/ingest/committer_pool.py",
        "        self._idle_upkeep.left(shards)\n",
        "",
        ("tests/service/upkeep/test_ledger_upkeep.py -k another_had",),
    ),
    Mutant(
        "what_was_due_goes_although_more_has_landed",
        "committer/service/upkeep/ledger_upkeep.py",
        "in self._due.items() if ledger.entries.get(key) == entry)\n",
        "in self._due.items() if key in ledger.entries)\n",
        ("tests/service/upkeep/test_ledger_upkeep.py -k unless_more",),
    ),
    Mutant(
        "who_has_landed_again_was_gone_all_the_time",
        "committer/service/upkeep/ledger_upkeep.py",
        "known is not None and known.entry == entry else",
        "known is not None else",
        ("tests/service/upkeep/test_ledger_upkeep.py -k unless_more",),
    ),
    Mutant(
        "entry_goes_although_its_request_is_outstanding",
        "committer/service/upkeep/ledger_upkeep.py",
        "            if producer_prefix(self._table_uuid, parsed[0]) in listed:\n",
        "            if producer_prefix(self._table_uuid, parsed[0]) == listed:\n",
        ("tests/service/table/test_epochs.py", "tests/service/upkeep/test_ledger_upkeep.py"),
    ),
    Mutant(
        "what_is_in_quarantine_is_forgotten_about",
        "committer/service/ingest/ledger_cleanup.py",
        "                folders.add(found.key)\n",
        "                assert found.key\n",
        ("tests/service/ingest/test_replays.py",),
    ),
    Mutant(
        "entry_goes_with_the_commit_that_needs_it",
        "committer/plan/commit/ledger_changes.py",
        "    return entries, frozenset(dropped - entries.keys())\n",
        "    return entries, frozenset(dropped)\n",
        ("tests/plan/commit/test_commit.py", "tests/service/upkeep/test_ledger_upkeep.py"),
    ),
    # --- Merges and expiry ---
    Mutant(
        "expiry_takes_every_snapshot_of_a_table_without_a_branch",
        "committer/plan/cleanup/expiry.py",
        "    if not kept and metadata.snapshots:\n",
        "    if False:\n",
        ("tests/plan/cleanup/test_expiry.py",),
    ),
    Mutant(
        "merge_of_manifests_that_changed_applies",
        "committer/plan/cleanup/maintenance.py",
        "        if all(rows.get(row.manifest_path) == row for row in merged.replaced):\n",
        "        if all(row.manifest_path in rows for row in merged.replaced):\n",
        ("tests/plan/cleanup/test_maintenance.py", SEEDS),
    ),
    Mutant(
        "expiry_deletes_what_may_land_once_more",
        "committer/service/upkeep/expirer.py",
        "        return None if found is None else found.without(wanted)\n",
        "        return found\n",
        (seeds_from(7767), "tests/service/upkeep/test_expirer.py -k once_more"),
    ),
    Mutant(
        "expired_files_go_before_the_swap_is_proven",
        "committer/service/upkeep/expirer.py",
        "        if expired.is_gone_from(swap.metadata):\n",
        "        if expired.snapshots:\n",
        ("tests/service/upkeep/test_expirer.py",),
    ),
    Mutant(
        "expired_files_go_although_the_snapshots_came_back",
        "committer/service/upkeep/expirer.py",
        "    if not _expired(entry).is_gone_from(metadata):\n",
        "    if entry is None:\n",
        ("tests/service/upkeep/test_expirer.py",),
    ),
    Mutant(
        "expiry_is_not_noted_first",
        "committer/service/upkeep/expirer.py",
        "        await self._parts.journal.put(entry)\n        await self._check_clock(entry)\n",
        "",
        ("tests/service/upkeep/test_expirer.py",),
    ),
    Mutant(
        "old_metadata_goes_although_the_table_was_put_back_to_it",
        "committer/service/upkeep/expirer.py",
        "        if location != state.table.metadata_location:\n",
        "        if location is None:\n",
        ("tests/service/upkeep/test_expirer.py",),
    ),
    # --- Leftover files of attempts ---
    Mutant(
        "doubted_attempt_counts_as_refused",
        "committer/service/table/swap_sender.py",
        "                self.attempts.lost(plan)\n",
        "                self.attempts.lost(plan)\n                self.attempts.refused(plan)\n",
        ("tests/service/upkeep/test_attempt_garbage_collector.py",),
    ),
    Mutant(
        "manifests_of_a_landed_attempt_count_as_left_over",
        "committer/plan/commit/attempt_garbage.py",
        "(_manifests(sure) | set(superseded)) - in_doubt - kept, (), after)",
        "(_manifests(sure) | set(superseded)) - in_doubt, (), after)",
        ("tests/plan/commit/test_attempt_garbage.py",),
    ),
    Mutant(
        "left_over_files_are_not_looked_for_in_the_table",
        "committer/service/upkeep/attempt_garbage_collector.py",
        '        return None if named is None else f"the table names `{named}`"\n',
        "        return None\n",
        ("tests/service/upkeep/test_attempt_garbage_collector.py",),
    ),
    Mutant(
        "left_over_files_go_without_a_note",
        "committer/service/upkeep/attempt_garbage_collector.py",
        "        await self._files.parts.journal.put(entry)\n",
        "",
        ("tests/service/upkeep/test_attempt_garbage_collector.py",),
    ),
    # --- Leases ---
    Mutant(
        "lease_of_the_dead_is_never_free",
        "tests/support/memory/lease_table.py",
        "            if tenure.process not in self._members:\n",
        "            if tenure.process == _NOBODY:\n",
        ("tests/service/sharding/test_shard_leases.py", SEEDS),
    ),
    Mutant(
        "term_of_a_lease_stands_still",
        "tests/support/memory/lease_table.py",
        "_Tenure(process, max(tenure.term + 1, now_ms))",
        "_Tenure(process, tenure.term)",
        ("tests/contract/test_leases.py -k memory",),
    ),
    Mutant(
        "shard_is_released_with_an_attempt_under_way",
        "committer/service/sharding/shard_leases.py",
        "        await hand_over.release_shards(shards)\n",
        "",
        ("tests/service/sharding/test_shard_leases.py",),
    ),
    # --- Where the catalog's service maintains tables ---
    Mutant(
        "upkeep_deletes_beside_the_service_that_does_so",
        "committer/service/upkeep/table_upkeep.py",
        "        self._deletes = not files.parts.catalog.capabilities.maintains_tables\n",
        "        self._deletes = True\n",
        ("tests/service/upkeep/test_attempt_garbage_collector.py -k catalogs_service",),
    ),
    Mutant(
        "orphans_are_looked_for_beside_the_service_that_removes_them",
        "committer/cli/tables/orphan_report.py",
        "    if can.maintains_tables:\n",
        "    if False:\n",
        ("tests/cli/tables/test_table_orphans.py -k catalogs_service",),
    ),
    Mutant(
        "staged_snapshot_goes_before_the_request_that_picks_it",
        "committer/plan/cleanup/expiry.py",
        "        return taken or picked or not self.branches",
        "        return taken or not self.branches",
        (
            "tests/plan/cleanup/test_expiry.py -k picks_stays",
            "tests/service/upkeep/test_expirer.py -k that_publishes_it",
        ),
    ),
    Mutant(
        "parent_of_a_picked_snapshot_goes",
        "committer/plan/cleanup/expiry.py",
        "union(own, (one for one in parents if one is not None))",
        "union(own)",
        ("tests/plan/cleanup/test_expiry.py -k picks_stays",),
    ),
    Mutant(
        "revived_snapshot_without_files_stops_the_expiry",
        "committer/plan/cleanup/reachability.py",
        "    rows = yield from rows_of_all(gone.snapshots, missing_is_error=False)\n",
        "    rows = yield from rows_of_all(gone.snapshots, missing_is_error=True)\n",
        ("tests/service/upkeep/test_expirer.py -k revived",),
    ),
)
