"""Breakages of what an operator decides about a table that was rolled back, and of what goes on
beside it.
"""

from __future__ import annotations

from tests.mutants.mutant import Mutant
from tests.mutants.run import seeds_from

_TESTS = "tests/service/admin/test_decisions.py -k "
_ADMIN_TESTS = "tests/service/admin/test_producer_admin.py -k "

DECISIONS = (
    Mutant(
        "older_content_of_an_epoch_outlives_the_accepted_one",
        "committer/ledger_entry.py",
        "        kept = tuple(one for one in others if one.epoch in needed)\n",
        "        kept = tuple(one for one in others if one.attempt not in attempts)\n",
        (seeds_from(150000640), _TESTS + "what_was_accepted_is"),
    ),
    Mutant(
        "permission_to_land_is_never_used_up",
        "committer/ledger_entry.py",
        "            accepted=tuple(one for one in self.accepted if one[1] not in attempts),\n",
        "            accepted=self.accepted,\n",
        ("tests/simulation/test_crash_matrix.py -k permission_to_land",),
    ),
    Mutant(
        "rollback_freezes_the_command_that_went_before",
        "committer/plan/ledger/ledger.py",
        "None if is_own else _lineage_break(entry, history(branch))\n",
        "_lineage_break(entry, history(branch))\n",
        ("tests/plan/ledger/test_ledger.py -k no_command",),
    ),
    Mutant(
        "thaw_lets_land_again_what_is_not_lost",
        "committer/service/admin/producer_admin.py",
        "                await _require_lost(reader, table, name, again)\n",
        "",
        (_ADMIN_TESTS + "is_not_lost_may",),
    ),
    Mutant(
        "remaining_history_proves_nothing_to_a_thaw",
        "committer/service/admin/producer_admin.py",
        "        present = await _present(reader, table, name, found.entry)\n",
        "        present = EpochRanges()\n",
        (_ADMIN_TESTS + "remaining_history",),
    ),
    Mutant(
        "each_attempt_of_a_thaw_reads_the_history",
        "committer/service/admin/producer_admin.py",
        "                await _require_lost(reader, table, name, again)\n",
        "                await self.require_lost(table, name, again)\n",
        (_ADMIN_TESTS + "loses_its_race",),
    ),
    Mutant(
        "producer_is_frozen_on_a_branch_that_is_not_there",
        "committer/service/admin/producer_admin.py",
        "            require_known_branch(table, name.branch)\n",
        "",
        ("tests/cli/producers/test_producer.py -k branch_that_is_not_there",),
    ),
    # --- Found requests that have ended since ---
    Mutant(
        "refused_while_the_inbox_is_listed_is_missed",
        "committer/service/ingest/ledger_cleanup.py",
        "        yield listed.waiting\n"
        "        await self._list_quarantined(uuids, listed.quarantined)\n",
        "        yield listed.waiting\n",
        (_TESTS + "goes_to_quarantine",),
    ),
    Mutant(
        "chore_outlives_what_it_was_found_by",
        "committer/service/upkeep/ledger_upkeep.py",
        "        known, self._gone, self._due = self._gone, {}, {}\n",
        "        known, self._gone = self._gone, {}\n",
        (_TESTS + "come_back_refused",),
    ),
    Mutant(
        "chore_forgets_what_was_refused_just_now",
        "committer/service/upkeep/ledger_upkeep.py",
        "        folders = {folder_of(key) for key in self._recently_quarantined}"
        " if due else set()\n",
        "        folders: set[str] = set()\n",
        (_TESTS + "refused_or_frozen",),
    ),
    Mutant(
        "chore_forgets_who_was_frozen_just_now",
        "committer/plan/commit/ledger_changes.py",
        "if key in ledger.entries and key not in ledger.frozen)\n",
        "if key in ledger.entries)\n",
        ("tests/plan/commit/test_commit.py -k frozen_since",),
    ),
    Mutant(
        "gaps_of_who_was_frozen_just_now_are_closed",
        "committer/plan/commit/ledger_changes.py",
        "        if known is not None and key not in ledger.frozen:\n",
        "        if known is not None:\n",
        ("tests/plan/commit/test_commit.py -k frozen_since",),
    ),
    # --- Rollbacks ---
    Mutant(
        "thaw_remembers_nothing_of_the_history_that_is_left",
        "committer/service/admin/producer_admin.py",
        "await self._with_latest(table, name, after))\n",
        "after)\n",
        (_TESTS + "second_rollback",),
    ),
    Mutant(
        "landed_again_by_leave_counts_as_lost",
        "committer/service/admin/producer_admin.py",
        "    return Lost(epochs_of(lost - again),",
        "    return Lost(epochs_of(lost),",
        (_TESTS + "not_lost_any_more",),
    ),
    Mutant(
        "second_rollback_takes_nothing",
        "committer/plan/ledger/producer_decisions.py",
        "    return RolledBack(first.snapshots + later.snapshots,",
        "    return RolledBack(first.snapshots,",
        (_TESTS + "between_two_rollbacks",),
    ),
    Mutant(
        "what_has_landed_long_ago_is_accepted",
        "committer/service/admin/producer_admin.py",
        "        return {one.inbox_key: why for one in asked if str(one.attempt) in held}\n",
        "        return {one.inbox_key: why for one in asked if str(one.attempt) in ()}\n",
        ("tests/service/admin/test_producer_admin.py -k before_all_proofs",),
    ),
    # --- Committers that go on behind a decision ---
    Mutant(
        "batch_goes_again_although_the_table_has_moved",
        "committer/service/table/inflight_batch.py",
        "is_there and not may_have_gone\n",
        "is_there\n",
        (_TESTS + "written_anew",),
    ),
    Mutant(
        "merge_goes_again_although_the_table_has_moved",
        "committer/service/upkeep/table_upkeep.py",
        "            self._merger.may_have_gone(plan)\n",
        "            pass\n",
        (_TESTS + "taken_along_again",),
    ),
    Mutant(
        "other_content_of_an_epoch_is_all_that_landed",
        "committer/service/table/admission.py",
        "                    if reason is Reason.EPOCH_CONTENT_DIFFERS:\n",
        "                    if reason is None:\n",
        (_TESTS + "told_so_beside",),
    ),
    Mutant(
        "who_waited_when_it_was_decided_is_not_looked_up",
        "committer/service/table/cached_table.py",
        "        if self.known.decided > decided:\n            self.waiting.share_all()\n",
        "",
        ("tests/service/table/test_interleavings.py -k only_from_the_inbox",),
    ),
    Mutant(
        "who_waits_is_asked_after_the_table_is_searched",
        "committer/service/upkeep/expirer.py",
        "        may_go = await self._without_wanted(found)\n"
        "        found = await self._search(entry)\n",
        "        may_go = await self._without_wanted(found)\n",
        ("tests/service/upkeep/test_expirer.py -k during_the_search",),
    ),
    # --- Decisions in the high-water mark ---
    Mutant(
        "second_decision_of_a_millisecond_passes_for_the_first",
        "committer/service/settle/high_water_mark_store.py",
        "            forgotten_ms = max(now_ms, stored.forgotten_ms + 1)\n",
        "            forgotten_ms = now_ms\n",
        ("tests/service/settle/test_high_water_mark.py -k each_time",),
    ),
    Mutant(
        "what_landed_again_is_not_missed",
        "committer/plan/ledger/high_water_mark.py",
        "        yield from self.landed_again.items()\n",
        "        yield from ()\n",
        ("tests/service/settle/test_high_water_mark_forgets.py",),
    ),
    Mutant(
        "what_landed_again_is_not_seen",
        "committer/plan/ledger/high_water_mark.py",
        "        ).with_landed_again(state.ledger, keys)\n",
        "        )\n",
        ("tests/plan/ledger/test_high_water_mark.py -k landed_again",),
    ),
    Mutant(
        "what_is_forgotten_once_more_is_missed",
        "committer/plan/ledger/high_water_mark.py",
        "if self.forgotten_at.get(key) == forgotten_at[key]}\n",
        "if key in forgotten_at}\n",
        ("tests/plan/ledger/test_high_water_mark.py -k landed_again",),
    ),
    Mutant(
        "what_landed_again_counts_as_forgotten",
        "committer/plan/ledger/high_water_mark.py",
        "and landed.sequence_number <= at\n",
        "and landed.sequence_number >= 0\n",
        ("tests/service/settle/test_high_water_mark_forgets.py",),
    ),
    Mutant(
        "what_another_landed_again_is_not_seen",
        "committer/service/settle/high_water_check.py",
        "            self.known = joined.with_landed_again(state.ledger, state.ledger.entries)\n",
        "            self.known = joined\n",
        ("tests/service/settle/test_high_water_mark_forgets.py",),
    ),
    Mutant(
        "proofs_of_two_decisions_are_one",
        "committer/service/settle/pending_deletes.py",
        "(self.seen.table_uuid, self.seen.decided)\n",
        "(self.seen.table_uuid, (self.seen.accepted_ms, 0))\n",
        ("tests/service/settle/test_pending_deletes.py",),
    ),
)
