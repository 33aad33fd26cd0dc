"""Breakages of commits that change several tables together."""

from __future__ import annotations

from tests.mutants.mutant import Mutant
from tests.mutants.run import seeds_from

_TOGETHER = "tests/contract/test_swap_together.py"
_DYNAMODB = "tests/catalog/dynamodb/test_dynamodb_group.py"
_REST = "tests/catalog/rest/test_rest_group.py"
_SERVICE = "tests/service/transactions/test_transactions.py"
_ABSENT = "tests/service/transactions/test_absent_tables.py"
_TURN = "tests/service/transactions/test_commit_turn.py"
_BUSY = "tests/service/transactions/test_busy_tables.py"

GROUPS = (
    Mutant(
        "request_of_a_transaction_is_read_again_at_once",
        "committer/service/transactions/forwarder.py",
        "        self.deferred.pause(pending.key, pause_s)\n",
        "",
        ("tests/service/transactions/test_transactions.py -k leave_room",),
    ),
    Mutant(
        "group_lands_without_the_table_that_has_moved",
        "committer/catalog/sql/sql_catalog.py",
        "                        return GroupConflict((swap.base.identifier,))\n",
        "                        continue\n",
        (f"{_TOGETHER} -k stale_base",),
    ),
    Mutant(
        "group_that_dynamodb_is_asked_for_again_has_a_new_token",
        "committer/catalog/dynamodb/dynamodb_group.py",
        "                await self._client.transact_write_items(**call)\n",
        "                token = str(self._world.uuid())\n"
        "                await self._client.transact_write_items("
        "**{**call, 'ClientRequestToken': token})\n",
        (f"{_DYNAMODB} -k token",),
    ),
    Mutant(
        "refusal_behind_a_lost_answer_is_a_conflict_of_the_group",
        "committer/catalog/dynamodb/dynamodb_group.py",
        "            return Unknown(self._doubt)\n        return GroupConflict",
        "            pass\n        return GroupConflict",
        (f"{_DYNAMODB} -k behind_a_lost",),
    ),
    Mutant(
        "lone_swap_that_a_transaction_refuses_is_a_conflict_without_a_look",
        "committer/catalog/dynamodb/dynamodb_swaps.py",
        "            return await self._overtaken(swap, error)\n",
        "            return Conflict()\n",
        (f"{_DYNAMODB} -k lone_swap",),
    ),
    Mutant(
        "success_of_a_rest_server_needs_no_look_at_the_tables",
        "committer/catalog/rest/rest_group.py",
        "and all(holds(table.metadata, swap) for table, swap in pairs):",
        "and pairs:",
        (f"{_REST} -k lacks",),
    ),
    Mutant(
        "half_of_a_group_on_a_rest_server_is_a_conflict",
        "committer/catalog/rest/rest_group.py",
        "    if landed:\n",
        "    if len(landed) > len(swaps):\n",
        (f"{_REST} -k called_atomic",),
    ),
    Mutant(
        "rest_server_is_atomic_without_its_operators_word",
        "committer/catalog/rest/rest_catalog.py",
        "            has_transactions=self._atomic_transactions,\n",
        "            has_transactions=True,\n",
        (f"{_REST} -k nobody_called",),
    ),
    Mutant(
        "refusal_outlives_a_good_request_of_its_table",
        "committer/service/transactions/refusals.py",
        "            del self._known[transaction]\n",
        "            pass\n",
        (f"{_SERVICE} -k replaces_a_refused",),
    ),
    Mutant(
        "forged_request_ends_a_transaction",
        "committer/service/transactions/refusals.py",
        "        if reason in _NOT_TOLD:\n",
        "        if reason is Reason.TRANSACTION_INCOMPLETE:\n",
        ("tests/service/transactions/test_refusals.py -k forged",),
    ),
    Mutant(
        "replayed_request_is_ended_by_an_old_refusal",
        "committer/service/transactions/refusals.py",
        "        return self._known.get(transaction) if published_key(key) == key else None\n",
        "        return self._known.get(transaction)\n",
        ("tests/service/transactions/test_refusals.py -k replay",),
    ),
    Mutant(
        "catalog_without_transactions_is_given_one",
        "committer/plan/batch/request_check.py",
        "    if not tables_max:\n",
        "    if tables_max < 0:\n",
        ("tests/plan/batch/test_request_check.py -k cannot_apply",),
    ),
    Mutant(
        "second_request_of_a_table_waits_for_nothing",
        "committer/service/transactions/transaction_committer.py",
        "                if _epoch_of(request) != _epoch_of(joined[0]):\n",
        "                if False:\n",
        (f"{_SERVICE} -k second_request_of_a_table",),
    ),
    Mutant(
        "second_attempt_of_an_epoch_is_a_second_request",
        "committer/service/transactions/transaction_committer.py",
        "    return request.producer.id, request.branch, request.epoch\n",
        "    return request.producer.id, str(request.attempt), request.epoch\n",
        (f"{_SERVICE} -k another_attempt_of_an_epoch",),
    ),
    Mutant(
        "other_attempts_of_a_landed_epoch_stay_joined",
        "committer/service/transactions/transaction_committer.py",
        "        for part in self._parts.values():\n"
        "            part.leave(self._identity)\n"
        "        tables",
        "        tables",
        (f"{_SERVICE} -k another_attempt_of_an_epoch",),
    ),
    Mutant(
        "large_requests_of_incomplete_transactions_keep_all_room",
        "committer/service/table/transaction_part.py",
        "            waited_s >= LOOK_S and any(map(self._exceeds_share, requests))\n",
        "            waited_s < 0 and any(map(self._exceeds_share, requests))\n",
        (f"{_SERVICE} -k leave_room",),
    ),
    Mutant(
        "table_that_may_not_commit_yet_is_not_woken",
        "committer/service/table/transaction_part.py",
        "which may be early for its next commit.\n        self._pacer.hurry()\n",
        "which may be early for its next commit.\n",
        (f"{_SERVICE} -k once_an_hour",),
    ),
    Mutant(
        "others_of_a_refused_request_wait_for_their_time_limit",
        "committer/service/transactions/transaction_committer.py",
        "        if self._refuse_members():\n",
        "        if False:\n",
        (f"{_SERVICE} -k time_limit", f"{_SERVICE} -k refused_member"),
    ),
    Mutant(
        "others_of_a_refused_request_are_not_woken",
        "committer/service/transactions/transaction_room.py",
        "request, reason, conflict)\n        self.ended(request)\n",
        "request, reason, conflict)\n",
        (f"{_SERVICE} -k time_limit",),
    ),
    Mutant(
        "refusal_counts_beside_a_good_request_of_its_table",
        "committer/service/transactions/transaction_room.py",
        "        if request.transaction is None or self.has_others(request):\n",
        "        if request.transaction is None:\n",
        (f"{_SERVICE} -k beside_a_good_one",),
    ),
    Mutant(
        "request_stays_where_its_transaction_is_not_decided_any_more",
        "committer/service/transactions/transaction_committer.py",
        "                part.leave(self._identity)\n            return Event.MOVED\n",
        "                pass\n            return Event.MOVED\n",
        (f"{_ABSENT} -k moves_with_the_shard",),
    ),
    Mutant(
        "requests_that_have_come_count_as_missing",
        "committer/service/transactions/transaction_committer.py",
        "            or not (parts[member].is_failing or parts[member].requests(self._identity))\n",
        "            or not parts[member].joined(self._identity)\n",
        (f"{_ABSENT} -k slow_round",),
    ),
    Mutant(
        "turn_is_kept_while_a_slow_table_is_waited_for",
        "committer/service/transactions/commit_turn.py",
        "            async with asyncio.timeout(wait_s_max if taken else None):\n",
        "            async with asyncio.timeout(None):\n",
        (f"{_TURN} -k bounded",),
    ),
    Mutant(
        "transactions_pass_a_round_that_waits",
        "committer/service/transactions/commit_turn.py",
        "        first, second = self._rounds, self._transactions\n"
        "        if not self._is_of_transaction:\n"
        "            first, second = second, first\n",
        "        second, first = self._rounds, self._transactions\n",
        (f"{_TURN} -k at_most_one_transaction",),
    ),
    Mutant(
        "rounds_pass_a_transaction_that_waits",
        "committer/service/transactions/commit_turn.py",
        "        if not self._is_of_transaction:\n            first, second = second, first\n",
        "",
        (f"{_TURN} -k at_most_one_round",),
    ),
    Mutant(
        "canceled_wait_keeps_the_turn",
        "committer/service/transactions/commit_turn.py",
        "                self.give_back()  # it was given at the same moment\n",
        "                pass\n",
        (f"{_TURN} -k canceled",),
    ),
    Mutant(
        "batch_of_an_attempt_that_has_not_landed_is_kept",
        "committer/service/table/transaction_part.py",
        "        # Else the table's rounds take it for theirs, and hurry to send it again.\n"
        "        self.batch_committer.batches.drop()\n",
        "",
        (f"{_SERVICE} -k leaves_no_batch",),
    ),
    Mutant(
        "conflict_of_a_stale_state_is_believed",
        "committer/service/table/transaction_part.py",
        "        known_before = frozenset(() if pending.known_since is None else (pending.key,))\n",
        "        known_before = frozenset((pending.key,))\n",
        (seeds_from(47),),
    ),
    Mutant(
        "conflict_from_before_a_commit_of_others_is_a_verdict",
        "committer/service/table/table_rounds.py",
        "        if self._discard_stale_conflicts(outcome):\n",
        "        if False:\n",
        (f"{_SERVICE} -k looked_for_again",),
    ),
    Mutant(
        "owner_of_a_busy_table_is_never_asked",
        "committer/service/table/transaction_part.py",
        "        await self.room.ask_for_turn(requests[0])\n",
        "",
        (f"{_BUSY}",),
    ),
    Mutant(
        "turn_waits_until_its_producer_has_room",
        "committer/service/ingest/intake.py",
        "if not delivery.doorbell.asks_for_turn and self.intake.is_surplus(",
        "if self.intake.is_surplus(",
        ("tests/service/ingest/test_fair_turns.py -k turn_is_given",),
    ),
    Mutant(
        "doorbell_ahead_of_its_turn_overtakes_lower_epochs",
        "committer/service/ingest/consumer.py",
        "        deliveries = self.doorbells.without_early(deliveries)\n",
        "",
        ("tests/service/ingest/test_fair_turns.py -k newest_doorbells",),
    ),
    Mutant(
        "newest_doorbells_wait_for_a_long_queue",
        "committer/service/ingest/intake.py",
        "            if not delivery.is_ahead or not (folder in in_turn",
        "            if not delivery.is_ahead and not (folder in in_turn",
        ("tests/service/ingest/test_fair_turns.py -k newest_doorbells",),
    ),
    Mutant(
        "owner_that_is_asked_goes_on",
        "committer/service/ingest/intake.py",
        "            self.intake.tables.yield_turn(delivery.doorbell.table_uuid)\n",
        "",
        (f"{_BUSY}",),
    ),
    Mutant(
        "epoch_that_waited_for_a_landed_one_is_not_woken",
        "committer/service/table/verdicts.py",
        "        self.waiting.wake(",
        "        _ = (",
        (f"{_SERVICE} -k one_after_the_other",),
    ),
    Mutant(
        "dropped_table_keeps_what_has_joined",
        "committer/service/table/table_rounds.py",
        "        self.part.leave_all()\n        ready,",
        "        ready,",
        (f"{_ABSENT} -k ends_with_its_dropped",),
    ),
    Mutant(
        "transaction_lands_with_a_request_that_has_left_the_inbox",
        "committer/service/table/admission.py",
        "            if place is not Place.INBOX:\n                return False\n",
        "",
        (f"{_SERVICE} -k left_the_inbox",),
    ),
)
