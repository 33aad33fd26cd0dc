"""Mutants of what one inbox object, or one producer, may do to the others."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_UNREAD = "tests/service/ingest/test_unread_objects.py"
_SETTLER = "tests/service/settle/test_settler.py"
_TURNS = "tests/service/ingest/test_fair_turns.py"
_READY = "tests/plan/scheduling/test_ready_requests.py"
_BATCH = "tests/plan/batch/test_batch_policy.py"

INBOX = (
    # --- Objects that cannot be read ---
    Mutant(
        "unread_object_is_read_in_each_pass",
        "committer/service/ingest/inbox_reader.py",
        "        return until_s is not None and self.health.world.monotonic_s() < until_s\n",
        "        return False\n",
        (_UNREAD + " -k named_until",),
    ),
    Mutant(
        "unread_object_that_is_gone_keeps_its_condition",
        "committer/service/ingest/inbox_scan.py",
        "        unread.listed(seen_unread, now_s)\n",
        "",
        (_UNREAD + " -k gone",),
    ),
    Mutant(
        "inbox_of_which_nothing_can_be_read_is_ready",
        "committer/service/telemetry/health.py",
        'REQUIRED = frozenset({"catalog", "storage", "inbox", INBOX_READS})\n',
        'REQUIRED = frozenset({"catalog", "storage", "inbox"})\n',
        (_UNREAD + " -k mostly",),
    ),
    Mutant(
        "one_unread_object_makes_the_committer_unready",
        "committer/service/ingest/inbox_reader.py",
        "self._failed_count >= FAILED_MIN and",
        "self._failed_count and",
        (_UNREAD + " -k gone_has_no_condition",),
    ),
    Mutant(
        "unread_request_claims_the_place_of_its_record",
        "committer/service/requests/foreign_entries.py",
        "frozenset({SkipKind.NO_ACCESS, SkipKind.UNREADABLE})",
        "frozenset({SkipKind.NO_ACCESS})",
        (_UNREAD + " -k named_until",),
    ),
    # --- Objects that cannot be deleted ---
    Mutant(
        "file_that_cannot_be_deleted_keeps_those_after_it",
        "committer/storage/disk/durable_writes.py",
        "            failures.update((location, error) for location, _ in files)\n"
        "            continue\n",
        "            failures.update((location, error) for location, _ in files)\n"
        "            break\n",
        ("tests/contract/test_storage.py -k 'cannot_be_deleted and local'",),
    ),
    Mutant(
        "group_of_a_deletion_that_fails_hides_those_of_the_others",
        "committer/storage/routed.py",
        "        return error.failures\n",
        "        return {}\n",
        ("tests/storage/test_routed.py",),
    ),
    Mutant(
        "object_that_cannot_be_deleted_is_forgotten",
        "committer/service/settle/settler.py",
        "        self.pending_deletes.requeue("
        "Proof(proof.seen, remaining, due_s, proof.tries + 1))\n",
        "",
        (_SETTLER + " -k cannot_be_deleted",),
    ),
    Mutant(
        "request_leaves_the_inbox_before_its_entry_of_the_audit",
        "committer/service/settle/settler.py",
        "        await self._append_audit(proven)\n",
        "",
        ("tests/service/settle/test_audit_of_requests.py -k until_its_entry",),
    ),
    Mutant(
        "keys_that_are_retried_hold_up_their_table",
        "committer/service/settle/pending_deletes.py",
        "        return (*table, min(self.tries, _TRIES_MAX))\n",
        "        return table\n",
        (_SETTLER + " -k cannot_be_deleted",),
    ),
    Mutant(
        "replay_goes_before_its_record",
        "committer/storage/inbox/ended_requests.py",
        "        removed = [key for key in keys if key not in failures]\n",
        "        removed = [*keys]\n",
        ("tests/storage/inbox/test_ended_requests.py -k record_that_stays",),
    ),
    Mutant(
        "listing_that_ended_early_proves_that_a_request_is_gone",
        "committer/service/requests/inbox_lookup.py",
        "        return self.is_whole and key not in self.keys and not is_hidden\n",
        "        return key not in self.keys and not is_hidden\n",
        ("tests/service/requests/test_inbox_lookup.py -k far_longer",),
    ),
    Mutant(
        "request_that_an_earlier_committer_has_seen_counts_as_present",
        "committer/service/ingest/intake.py",
        "        if load is not None and load != self.tables.load_of(arrival.key):\n",
        "        if load is not None and self.tables.load_of(arrival.key) is None:\n",
        (f"{_TURNS} -k that_load",),
    ),
    Mutant(
        "request_with_a_record_in_quarantine_waits",
        "committer/service/ingest/inbox_reader.py",
        "            return not await self.quarantine.contains(arrival.key)\n",
        "            return True\n",
        (f"{_TURNS} -k not_in_quarantine",),
    ),
    Mutant(
        "round_looks_up_what_has_waited_for_room",
        "committer/service/ingest/intake.py",
        "                    await self._look_for(folder, arrivals)\n",
        "                    pass\n",
        (f"{_TURNS} -k no_lookup",),
    ),
    Mutant(
        "listing_does_not_give_way_to_the_queue",
        "committer/service/ingest/ownership.py",
        "            self.is_empty.clear()\n",
        "            pass\n",
        ("tests/service/ingest/test_consumer.py -k page_at_a_time",),
    ),
    # --- Turns of small requests ---
    Mutant(
        "look_has_the_oldest_requests_whoever_sent_them",
        "committer/plan/scheduling/ready_requests.py",
        "        chosen = [placed for part in _fair(oldest, count_max) for placed in part]\n",
        "        chosen = [placed for part in parts for placed in part][:count_max]\n",
        (_READY,),
    ),
    Mutant(
        "short_look_has_any_producers",
        "committer/plan/scheduling/ready_requests.py",
        "        oldest = sorted(parts, key=lambda part: part[0].number)[:count_max]\n",
        "        oldest = parts\n",
        (f"{_READY} -k too_short",),
    ),
    Mutant(
        "conflict_stays_although_this_committer_has_committed_since",
        "committer/service/table/cached_table.py",
        "        self.attempts.landed(commit.state)\n        self.moves += 1\n",
        "        self.attempts.landed(commit.state)\n",
        ("tests/service/transactions/test_transactions.py -k this_committer_has_committed",),
    ),
    Mutant(
        "look_goes_past_a_change_of_the_table",
        "committer/plan/scheduling/ready_requests.py",
        "            self._barriers[key] = number\n",
        "            pass\n",
        (_READY,),
    ),
    Mutant(
        "full_batch_has_the_oldest_requests_whoever_sent_them",
        "committer/plan/batch/batch_policy.py",
        "    shared = _filled(_in_turns(requests), policy)\n",
        "    shared = batch\n",
        (_BATCH + " -k turns",),
    ),
    Mutant(
        "change_of_the_table_passes_what_came_before_it",
        "committer/plan/batch/batch_policy.py",
        '        if one.request.operation == "alter":\n            altering.add(producer)\n',
        "",
        (_BATCH + " -k does_not_pass",),
    ),
    Mutant(
        "one_producer_fills_the_memory",
        "committer/service/ingest/committer_pool.py",
        "        return self.room_of(key.folder) <= 0\n",
        "        return False\n",
        (_TURNS + " -k fill_the_memory",),
    ),
    Mutant(
        "branches_take_no_turns",
        "committer/service/table/inflight_batch.py",
        '        branches.pop(last or "", None)\n',
        "        pass\n",
        ("tests/service/table/test_fairness.py -k branches",),
    ),
)
