"""Breakages of the way of a request: intake, ledger, commit, verdicts."""

from __future__ import annotations

from tests.mutants.mutant import Mutant
from tests.mutants.run import SEEDS, seeds_from

_INTERLEAVINGS = (
    "tests/service/table/test_interleavings.py tests/service/table/test_quarantine_interleavings.py"
)

PROTOCOL = (
    # --- The ledger's answers ---
    Mutant(
        "fingerprints_are_not_compared",
        "committer/plan/ledger/ledger.py",
        "    if landed.fingerprint == short_fingerprint(fingerprint.value):\n",
        "    if landed.fingerprint:\n",
        (SEEDS,),
    ),
    Mutant(
        "ledger_is_a_high_water_mark",
        "committer/ledger_entry.py",
        "        return position >= 0 and epoch <= self.ranges[position][1]\n",
        "        return bool(self.ranges) and epoch <= self.ranges[-1][1]\n",
        (SEEDS,),
    ),
    Mutant(
        "ledger_is_not_asked",
        "committer/plan/ledger/ledger.py",
        "        answer = _look_up(entry, request)\n",
        "        answer: LedgerAnswer = NotLanded(known=entry is not None)\n",
        (SEEDS,),
    ),
    Mutant(
        "any_remembered_epoch_answers_for_all",
        "committer/plan/ledger/ledger.py",
        "for one in entry.latest if one.epoch == request.epoch]",
        "for one in entry.latest]",
        ("tests/plan/ledger/test_ledger.py",),
    ),
    Mutant(
        "entry_of_another_table_counts",
        "committer/plan/ledger/ledger.py",
        "        if entry.table_uuid != metadata.table_uuid:\n",
        "        if entry.table_uuid is None:\n",
        ("tests/service/table/test_epochs.py -k another_table",),
    ),
    Mutant(
        "frozen_producer_lands",
        "committer/plan/ledger/ledger.py",
        "        if key not in self.frozen:\n",
        "        if self.frozen is not None:\n",
        ("tests/service/table/test_epochs.py -k rolled_back",),
    ),
    Mutant(
        "ledger_remembers_two_epochs_whatever_is_in_the_inbox",
        "committer/ledger_entry.py",
        "            latest=(*reversed(landed), *self.latest)[:LATEST_MAX],\n",
        "            latest=(*reversed(landed), *self.latest)[:LATEST_MIN],\n",
        ("tests/service/table/test_crash_after_landing.py -k all_epochs",),
    ),
    Mutant(
        "what_waits_to_be_deleted_is_forgotten",
        "committer/service/requests/settled_requests.py",
        "            if settled := attempts & self._gone:\n",
        "            if settled := attempts:\n",
        (SEEDS,),
    ),
    Mutant(
        "what_is_listed_is_taken_for_gone",
        "committer/service/requests/listing.py",
        "        return not self.waiting.may_hold(key) and",
        "        return",
        ("tests/service/requests/test_settled_requests.py -k seen_in_the_ledger",),
    ),
    Mutant(
        "what_went_to_quarantine_is_taken_for_gone",
        "committer/service/requests/listing.py",
        "        return not self.waiting.may_hold(key)"
        " and folder_of(key) not in self.quarantined\n",
        "        return not self.waiting.may_hold(key)\n",
        ("tests/service/requests/test_settled_requests.py -k went_to_quarantine",),
    ),
    Mutant(
        "what_a_listing_could_not_see_is_taken_for_gone",
        "committer/service/requests/listing.py",
        "        return key in self._keys or self._may_hide(folder_of(key))\n",
        "        return key in self._keys\n",
        ("tests/service/requests/test_settled_requests.py -k could_not_see",),
    ),
    Mutant(
        "deletions_are_not_told",
        "committer/service/settle/settler.py",
        "                self.settled.deleted(proof.keys)\n",
        "                pass\n",
        ("tests/service/requests/test_settled_requests.py -k backlog",),
    ),
    Mutant(
        "what_went_to_quarantine_is_settled",
        "committer/service/settle/settler.py",
        "            if proof.seen is not None:\n",
        "            if True:\n",
        ("tests/service/requests/test_settled_requests.py -k quarantine",),
    ),
    Mutant(
        "replayed_request_is_not_seen_in_the_inbox",
        "committer/service/requests/listing.py",
        "        if (published := published_key(key)) in self._sought:\n",
        "        if (published := key) in self._sought:\n",
        ("tests/service/requests/test_settled_requests.py -k replayed",),
    ),
    Mutant(
        "entries_of_who_rests_stay_long",
        "committer/service/requests/settled_requests.py",
        "        for key in (*landing, *self._shorter):\n",
        "        for key in landing:\n",
        ("tests/service/requests/test_settled_requests.py -k rests",),
    ),
    Mutant(
        "batch_takes_any_number_of_one_producer",
        "committer/plan/batch/batch_policy.py",
        " or len(known) >= PRODUCER_REQUESTS_MAX",
        "",
        ("tests/plan/batch/test_batch_policy.py -k one_producer",),
    ),
    Mutant(
        "what_a_frozen_producer_landed_is_forgotten",
        "committer/plan/commit/ledger_changes.py",
        "        if shorter is not None and shorter is not known and key not in ledger.frozen:\n",
        "        if shorter is not None and shorter is not known:\n",
        ("tests/service/requests/test_settled_requests.py -k frozen",),
    ),
    Mutant(
        "history_without_a_parent_is_whole",
        "committer/plan/ledger/ledger.py",
        "        return 0 < landed.sequence_number >= self.oldest.sequence_number\n",
        "        is_first = self.oldest.parent_snapshot_id is None\n"
        "        return is_first or 0 < landed.sequence_number >= self.oldest.sequence_number\n",
        ("tests/plan/ledger/test_ledger.py -k clears_the_parents",),
    ),
    Mutant(
        "history_without_numbers_proves_a_rollback",
        "committer/plan/ledger/ledger.py",
        "        return 0 < landed.sequence_number >= ",
        "        return landed.sequence_number >= ",
        ("tests/plan/ledger/test_ledger.py -k whichever_snapshots_expire",),
    ),
    Mutant(
        "what_branched_off_is_not_lost",
        "committer/plan/ledger/ledger.py",
        "self.oldest is None or landed.snapshot_id in self.branched_off:",
        "self.oldest is None:",
        ("tests/plan/ledger/test_ledger.py -k beside_the_history",),
    ),
    Mutant(
        "dropped_branch_counts_as_rolled_back",
        "committer/plan/ledger/ledger.py",
        "        if self.is_dropped or landed.snapshot_id in self.snapshot_ids:\n",
        "        if landed.snapshot_id in self.snapshot_ids:\n",
        ("tests/plan/ledger/test_ledger.py -k freezes_nobody",),
    ),
    Mutant(
        "rollback_with_cleared_parents_is_whole",
        "committer/plan/ledger/producer_decisions.py",
        "last is not None or not found or found[-1].sequence_number == 1",
        "True",
        ("tests/plan/ledger/test_producer_decisions.py -k parents_were_cleared",),
    ),
    Mutant(
        "forgotten_proof_is_not_looked_for",
        "committer/plan/ledger/evidence.py",
        "SNAPSHOTS_MAX = 100\n",
        "SNAPSHOTS_MAX = 0\n",
        ("tests/service/table/test_epochs.py -k manifest_list_still_knows",),
    ),
    # --- Admission ---
    Mutant(
        "unknown_producer_is_not_looked_up",
        "committer/service/table/admission.py",
        "                    known and not pending.is_shared\n",
        "                    not pending.is_shared\n",
        ("tests/service/upkeep/test_expirer.py -k a_branch_that_a_request_waits",),
    ),
    Mutant(
        "handed_over_request_is_not_looked_up",
        "committer/service/table/admission.py",
        "                    known and not pending.is_shared\n",
        "                    known\n",
        (
            _INTERLEAVINGS,
            "tests/service/ingest/test_reconciler.py",
        ),
    ),
    Mutant(
        "looked_up_before_the_base_was_read",
        "committer/service/table/admission.py",
        "pending.present_in == generation:",
        "pending.present_in is not None:",
        (
            _INTERLEAVINGS,
            "tests/service/table/test_table_committer.py",
        ),
    ),
    Mutant(
        "what_could_not_be_looked_up_counts_as_gone",
        "committer/service/requests/inbox_lookup.py",
        "                except FrazilError as error:\n                    return error\n",
        "                except FrazilError:\n                    return Place.NOWHERE\n",
        (SEEDS,),
    ),
    Mutant(
        "verdict_from_cached_metadata",
        "committer/service/table/table_rounds.py",
        "            if not outcome.has_verdicts:\n",
        "            if outcome is not None:\n",
        (
            _INTERLEAVINGS,
            "tests/service/table/test_table_committer.py",
        ),
    ),
    Mutant(
        "two_attempts_of_one_epoch_in_a_batch",
        "committer/plan/batch/batch_policy.py",
        "        if request.epoch in known or",
        "        if",
        (SEEDS,),
    ),
    # --- The four answers of a swap ---
    Mutant(
        "conflict_is_read_as_rejected",
        "committer/service/table/commit_loop.py",
        "            case Conflict() | Unknown():\n",
        "            case Conflict():\n"
        "                requests = inflight.batch.requests\n"
        '                self.batches.isolate(requests, (Reason.COMMIT_REJECTED, ""))\n'
        "            case Unknown():\n",
        (SEEDS,),
    ),
    Mutant(
        "base_is_kept_after_a_conflict",
        "committer/service/table/commit_loop.py",
        "                self.cached_table.forget()\n                await self.pacer",
        "                await self.pacer",
        (SEEDS,),
    ),
    Mutant(
        "unknown_is_read_as_rejected",
        "committer/service/table/commit_loop.py",
        "            case Conflict() | Unknown():\n",
        "            case Unknown():\n"
        "                requests = inflight.batch.requests\n"
        '                self.batches.isolate(requests, (Reason.COMMIT_REJECTED, ""))\n'
        "            case Conflict():\n",
        (SEEDS,),
    ),
    Mutant(
        "doubt_is_ignored",
        "committer/plan/commit/attempt_log.py",
        "        return bool(self._lost or self._doubts)\n",
        "        return False\n",
        ("tests/service/table/test_table_committer.py", "tests/service/table/test_bisecting.py"),
    ),
    Mutant(
        "rejected_batch_is_refused_whole",
        "committer/service/table/inflight_batch.py",
        "        if len(requests) == 1:\n            self.waiting.suspect(",
        "        if requests:\n            self.waiting.suspect(",
        ("tests/service/table/test_table_committer.py",),
    ),
    Mutant(
        "suspicion_is_a_verdict_without_the_ledger",
        "committer/service/table/inflight_batch.py",
        "            self.waiting.suspect(requests[0].sealed.key, refusal)\n",
        "            from committer.service.requests.pending import Stage\n"
        "            key = requests[0].sealed.key\n"
        "            self.waiting.end(key, Stage.QUARANTINED)\n",
        (SEEDS,),
    ),
    Mutant(
        "inbox_is_emptied_on_unknown",
        "committer/service/table/commit_loop.py",
        "            case Conflict() | Unknown():\n",
        "            case Conflict() | Unknown():\n"
        "                if isinstance(answer, Unknown):\n"
        "                    from committer.service.settle.outcome import Outcome\n"
        "                    settler = self.observers[3].endings.settler\n"
        "                    settler.settle([Outcome(key, ()) for key in inflight.keys])\n",
        (SEEDS,),
    ),
    Mutant(
        "files_are_deleted_on_unknown",
        "committer/service/table/swap_sender.py",
        "        self._note(answer, inflight, plan)\n",
        "        self._note(answer, inflight, plan)\n"
        "        if isinstance(answer, Unknown):\n"
        "            await self.storage.delete([one.location for one in plan.objects])\n",
        (SEEDS,),
    ),
    Mutant(
        "batch_goes_again_although_some_of_it_landed",
        "committer/service/table/inflight_batch.py",
        "        return still.issuperset(inflight.keys)\n",
        "        return not still.isdisjoint(inflight.keys)\n",
        (SEEDS,),
    ),
    Mutant(
        "batch_goes_again_although_the_table_was_upgraded",
        "committer/service/table/inflight_batch.py",
        "        if basis != inflight.basis or not self._is_fresh",
        "        if not self._is_fresh",
        ("tests/service/ingest/test_bad_input.py",),
    ),
    Mutant(
        "sent_swap_is_given_up_when_cancelled",
        "committer/service/tasks/steps.py",
        "        while not sent.done():\n",
        "        while False:\n",
        ("tests/service/tasks/test_steps.py",),
    ),
    Mutant(
        "crashed_swap_counts_as_not_sent",
        "committer/service/tasks/steps.py",
        "        return Unknown(repr(error), error)\n",
        "        raise\n",
        ("tests/service/admin/test_table_change.py",),
    ),
    Mutant(
        "crashed_swap_is_not_reported",
        "committer/service/table/swap_sender.py",
        "                if crash is not None:\n",
        "                if False:\n",
        ("tests/service/table/test_table_committer.py",),
    ),
    Mutant(
        "change_is_refused_although_an_earlier_attempt_may_land",
        "committer/service/admin/table_change.py",
        "                if table.metadata_location != lost_base:\n",
        "                if table is not None:\n",
        ("tests/service/admin/test_table_change.py",),
    ),
    Mutant(
        "change_is_never_refused_after_a_lost_answer",
        "committer/service/admin/table_change.py",
        "                if table.metadata_location != lost_base:\n",
        "                if lost_base is None:\n",
        ("tests/service/admin/test_table_change.py",),
    ),
    # --- The contents of a commit ---
    Mutant(
        "timestamps_follow_the_clock_back",
        "committer/plan/commit/step_plan.py",
        "        timestamp_ms=max(attempt.now_ms, earliest_ms),\n",
        "        timestamp_ms=attempt.now_ms,\n",
        (SEEDS,),
    ),
    Mutant(
        "sequence_number_stands_still",
        "committer/plan/commit/step_plan.py",
        "        0 if metadata.format_version == 1 else metadata.last_sequence_number + 1,\n",
        "        metadata.last_sequence_number,\n",
        (SEEDS,),
    ),
    Mutant(
        "row_ids_begin_where_the_last_began",
        "committer/plan/commit/step_plan.py",
        "    return tuple(listed), next_row_id - first_row_id if",
        "    return tuple(listed), 0 if",
        (SEEDS,),
    ),
    Mutant(
        "totals_begin_anew",
        "committer/plan/commit/step_plan.py",
        "    previous = head.snapshot.summary if head.snapshot else None\n",
        "    previous = None\n",
        (SEEDS,),
    ),
    Mutant(
        "gap_below_an_epoch_is_not_looked_up",
        "committer/plan/scheduling/epoch_order.py",
        "        if epoch > after + 1:\n",
        "        if epoch < 0:\n",
        ("tests/service/table/test_ordered_producers.py",),
    ),
    Mutant(
        "quarantined_epoch_stops_nothing",
        "committer/service/requests/inbox_lookup.py",
        "        for place in (self._inbox, self._quarantine, self._inbox):\n"
        "            async for one in place.list(table_uuid, producer):\n",
        "        for place in (self._inbox,):\n"
        "            async for one in place.list(table_uuid, producer):\n",
        ("tests/service/table/test_ordered_producers.py",),
    ),
    Mutant(
        "told_conflict_stops_its_producer",
        "committer/service/requests/inbox_lookup.py",
        "            return (await self._quarantine.record(key)).is_told_only\n",
        "            return False\n",
        ("tests/service/table/test_ordered_producers.py",),
    ),
    Mutant(
        "told_conflicts_are_kept_for_ever",
        "committer/service/ingest/poller.py",
        "        if told:\n",
        "        if False:\n",
        ("tests/service/ingest/test_resolved_refusals.py",),
    ),
    Mutant(
        "conflict_with_an_earlier_step_ends_a_request",
        "committer/plan/commit/operation_step.py",
        "    return _told(at_fault, base, names)\n",
        "    return _told(at_fault, head, names)\n",
        ("tests/plan/commit/test_operation_steps.py",),
    ),
    Mutant(
        "request_in_conflict_holds_its_batch",
        "committer/service/table/inflight_batch.py",
        "            self.waiting.suspect(key, refusal, conflict.code)\n",
        "            pass\n",
        ("tests/service/table/test_operations.py",),
    ),
    Mutant(
        "conflicts_open_the_breaker_of_their_producer",
        "committer/service/settle/endings.py",
        "        if conflict is None:\n",
        "        if True:\n",
        ("tests/service/table/test_operations.py -k told_only",),
    ),
    Mutant(
        "told_conflict_is_kept_whole",
        "committer/service/table/verdicts.py",
        '            kept = b"" if one.is_told_only else content\n',
        "            kept = content\n",
        ("tests/service/table/test_operations.py -k told_only",),
    ),
    Mutant(
        "what_was_written_is_read_again",
        "committer/service/tasks/recent_objects.py",
        "        if self._keeps:\n",
        "        if False:\n",
        ("tests/service/table/test_operations.py -k steady",),
    ),
    Mutant(
        "append_moves_before_what_it_would_be_hit_by",
        "committer/plan/operations/batch_steps.py",
        "        return not is_checked and not _has_equality_deletes(one)\n",
        "        return not is_checked\n",
        ("tests/plan/operations/test_batch_steps.py",),
    ),
    Mutant(
        "append_overtakes_its_own_producer",
        "committer/plan/operations/batch_steps.py",
        "        if is_own or not all(",
        "        if not all(",
        ("tests/plan/operations/test_batch_steps.py",),
    ),
    Mutant(
        "later_epoch_of_a_producer_goes_first",
        "committer/plan/operations/batch_steps.py",
        "key=lambda one: one.request.epoch, reverse=True)",
        "key=lambda one: one.request.epoch)",
        ("tests/plan/operations/test_batch_steps.py",),
    ),
    Mutant(
        "snapshots_of_one_swap_have_one_time",
        "committer/plan/commit/step_plan.py",
        "    earliest_ms = metadata.last_updated_ms + (1 if names.number else 0)\n",
        "    earliest_ms = metadata.last_updated_ms\n",
        ("tests/plan/commit/test_steps_of_a_batch.py",),
    ),
    Mutant(
        "request_lands_with_the_snapshot_of_another_step",
        "committer/plan/commit/commit.py",
        "            one.snapshot.snapshot_id,\n",
        "            planned[-1].snapshot.snapshot_id,\n",
        ("tests/plan/commit/test_steps_of_a_batch.py",),
    ),
    Mutant(
        "second_step_is_planned_without_the_first",
        "committer/plan/commit/commit.py",
        "        if planned and planned[-1].snapshot is not head.snapshot:\n",
        "        if False:\n",
        ("tests/plan/commit/test_steps_of_a_batch.py",),
    ),
    Mutant(
        "attempt_with_several_lists_leaves_all_but_one",
        "committer/plan/commit/attempt_garbage.py",
        "        (*lists, *before),\n",
        "        (lists[-1], *before),\n",
        ("tests/plan/commit/test_steps_of_a_batch.py",),
    ),
    Mutant(
        "receipt_never_says_duplicate",
        "committer/service/settle/endings.py",
        "        duplicate=landed.attempt != request.attempt,\n",
        "        duplicate=False,\n",
        (SEEDS,),
    ),
    # --- Doorbells and requests ---
    Mutant(
        "acknowledged_before_the_commit",
        "committer/service/ingest/doorbells.py",
        "        self.intake.submit(arrival, sealed, is_inline=True)\n",
        "        self.settler.settle([Outcome(None, arrival.waiters.tokens)])\n"
        "        self.intake.submit(arrival, sealed, is_inline=True)\n",
        (SEEDS,),
    ),
    Mutant(
        "acknowledged_although_it_could_not_be_read",
        "committer/service/ingest/inbox_reader.py",
        "        return Unread.FAILED\n\n",
        "        return self._end(arrival, None)\n\n",
        (SEEDS,),
    ),
    Mutant(
        "deferred_request_is_dropped",
        "committer/service/requests/pending.py",
        "        self._deferred[pending.key] = (until_s, self._ready.pop(pending.key))\n",
        "        self._ready.pop(pending.key)\n",
        (SEEDS,),
    ),
    Mutant(
        "reclaims_nothing",
        "committer/service/ingest/consumer.py",
        "        if now_s - self._reclaimed_at_s < self.reclaim_idle_s / 4:\n",
        "        if now_s >= 0:\n",
        ("tests/service/ingest/test_consumer.py", "tests/service/table/test_durable.py", SEEDS),
    ),
    Mutant(
        "shard_is_taken_without_what_waits_in_it",
        "committer/service/ingest/consumer.py",
        "            if await self._reclaim(0.0, fresh):\n",
        "            if not fresh:\n",
        ("tests/service/sharding/test_shard_leases.py", "tests/service/ingest/test_consumer.py"),
    ),
    Mutant(
        "reconciler_trusts_the_queue",
        "committer/service/ingest/ownership.py",
        "        return is_long_listed or found",
        "        return self.is_alone or found.size_bytes < 0 and found",
        (SEEDS,),
    ),
    Mutant(
        "breaker_drops_what_has_to_wait",
        "committer/service/ingest/intake.py",
        "            return self._defer(arrival)\n        if arrival",
        "            return False\n        if arrival",
        ("tests/service/requests/test_circuit_breakers.py",),
    ),
    Mutant(
        "quarantined_after_it_left_the_inbox",
        "committer/service/table/verdicts.py",
        "            await self.quarantine.put(one.record(",
        "            await self.inbox.delete((one.pending.key,))\n"
        "            await self.quarantine.put(one.record(",
        (SEEDS,),
    ),
    Mutant(
        "inbox_key_is_parsed_anew",
        "committer/service/requests/deferred_doorbells.py",
        "        return self._waiters.pop(key, None)\n",
        "        return self._waiters.pop(InboxKey(key), None)\n",
        ("tests/service/requests/test_inbox_keys.py",),
    ),
    Mutant(
        "what_was_just_quarantined_is_taken_from_its_doorbell",
        "committer/service/ingest/doorbells.py",
        "        is_shared = is_old or key in self.recently_quarantined\n",
        "        is_shared = is_old\n",
        ("tests/service/table/test_quarantine_interleavings.py",),
    ),
    Mutant(
        "doorbell_says_which_object_is_a_duplicate",
        "committer/service/table/admission_outcome.py",
        "        return self.pending.is_inline and not is_own\n",
        "        return self.pending is is_own\n",
        ("tests/service/table/test_quarantine_interleavings.py -k forged",),
    ),
    Mutant(
        "verdict_without_an_answered_record_is_forgotten",
        "committer/service/table/verdicts.py",
        "            self.waiting.refused_in_vain(one.pending, (one.reason, one.message))\n",
        "",
        ("tests/service/table/test_quarantine_interleavings.py",),
    ),
    Mutant(
        "what_is_being_taken_over_is_kept_when_its_shard_goes",
        "committer/service/ingest/consumer.py",
        "        self._release_shards(self.shards.take_lost())\n",
        "        self._release_shards(self._read_of - self.shards.owned)\n",
        (seeds_from(60000077), "tests/service/ingest/test_consumer.py"),
    ),
    Mutant(
        "publication_takes_any_object_for_its_own",
        "committer/storage/inbox/inbox.py",
        "            raise written_twice(sealed.request) from None\n",
        "            return False\n",
        ("tests/storage/inbox/test_inbox.py",),
    ),
    Mutant(
        "second_write_of_an_epoch_passes_for_the_first",
        "workers/requests/repeated_attempts.py",
        "        if not is_same_write(found.request, request):\n",
        "        if not is_same_write(found.request, found.request):\n",
        (SEEDS, "tests/workers/requests/test_repeated_attempts.py"),
    ),
    Mutant(
        "publisher_forgets_the_attempts_that_it_published",
        "workers/requests/repeated_attempts.py",
        "        self._durable[request.table_uuid, request.producer.id] = request\n",
        "",
        (seeds_from(140004405), "tests/workers/requests/test_repeated_attempts.py"),
    ),
    Mutant(
        "request_is_sealed_whatever_its_size",
        "committer/request/request_format.py",
        "    _check_size(len(content))\n    return EncodedRequest",
        "    return EncodedRequest",
        ("tests/request/test_request.py",),
    ),
    Mutant(
        "line_is_sealed_whatever_its_size",
        "committer/request/request_format.py",
        "    _check_line_size(len(head) - 1)\n",
        "",
        ("tests/request/test_request.py",),
    ),
    Mutant(
        "manifests_that_no_request_has_room_for_are_named",
        "committer/request/request_format.py",
        "    _check_size(sum(len(manifest.content) for manifest in manifests))\n",
        "",
        ("tests/workers/requests/test_publisher.py",),
    ),
    Mutant(
        "signature_of_another_key_counts",
        "committer/request/signature.py",
        "    if line is None or not hmac.compare_digest",
        "    if line is None and not hmac.compare_digest",
        ("tests/request/test_signature.py",),
    ),
    Mutant(
        "manifests_are_not_compared_with_the_signed_digests",
        "committer/request/request_format.py",
        "        if reference.offset is not None and digest(sealed.manifest(reference)) !="
        " reference.hash:\n",
        "        if reference.offset is not None and not sealed.manifest(reference):\n",
        ("tests/request/test_request.py", "tests/request/test_signature.py", "tests/corpus"),
    ),
    # --- A catalog that checks requirements, and writes metadata files ---
    Mutant(
        "commit_on_what_is_left_of_a_ledger_is_believed",
        "committer/service/table/cached_table.py",
        "        if not commit.is_as_planned and self.high_water_mark.lacks(commit.state):\n",
        "        if commit.is_as_planned and self.high_water_mark.lacks(commit.state):\n",
        ("tests/service/table/test_requirements_catalog.py -k removes_between",),
    ),
    Mutant(
        "moved_table_ends_the_doubt_though_its_requirements_hold",
        "committer/plan/commit/swap.py",
        '    if condition == "pointer":\n',
        '    if condition != "":\n',
        ("tests/service/table/test_requirements_catalog.py -k late",),
    ),
    Mutant(
        "decision_moves_no_head",
        "committer/service/admin/table_change.py",
        '    if catalog.capabilities.condition == "requirements":\n',
        '    if catalog.capabilities.condition == "":\n',
        ("tests/service/table/test_requirements_catalog.py -k decision",),
    ),
    Mutant(
        "metadata_files_of_the_catalog_are_deleted",
        "committer/service/upkeep/expirer.py",
        '        if self._parts.catalog.capabilities.metadata_writer == "committer":\n',
        "        if self._parts.catalog.capabilities.metadata_writer:\n",
        ("tests/service/table/test_requirements_catalog.py -k deleted",),
    ),
    Mutant(
        "metadata_files_of_the_catalog_are_orphans",
        "committer/service/admin/orphan_finder.py",
        '        if is_spanned is None and kind is Kind.METADATA_FILE and writer == "catalog":\n',
        '        if kind is Kind.METADATA_FILE and writer == "":\n',
        ("tests/service/admin/test_orphan_finder.py -k writes_them",),
    ),
    Mutant(
        "equal_unknown_answers_have_no_limit",
        "committer/service/table/inflight_batch.py",
        "        self.halve(inflight.batch.requests)\n"
        "        if len(inflight.keys) == 1:\n"
        "            pending = self.waiting.find(inflight.keys[0])\n"
        "            if pending is not None:\n"
        "                self.waiting.defer(pending, error)\n",
        "        return\n",
        ("tests/service/table/test_requirements_catalog.py -k delays_no_other",),
    ),
    Mutant(
        "broken_catalog_is_asked_as_often_as_ever",
        "committer/service/table/commit_loop.py",
        "                self._set_apart += 1\n",
        "",
        ("tests/service/table/test_requirements_catalog.py -k ever_less",),
    ),
)
