"""Breakages of commits that change several tables together."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_TOGETHER = "tests/contract/test_swap_together.py"
_DYNAMODB = "tests/catalog/dynamodb/test_dynamodb_group.py"
_REST = "tests/catalog/rest/test_rest_group.py"
_SERVICE = "tests/service/transactions/test_transactions.py"
_ABSENT = "tests/service/transactions/test_absent_tables.py"
_MEETING = "tests/service/transactions/test_meeting.py"

GROUPS = (
    Mutant(
        "second_request_of_a_table_waits_for_nothing",
        "committer/service/transactions/table_transactions.py",
        " and (first := self._first_beside(one.request, gathering)):\n",
        " and False and (first := self._first_beside(one.request, gathering)):\n",
        ("tests/service/transactions/test_transactions.py -k second_request_of_a_table",),
    ),
    Mutant(
        "second_attempt_of_an_epoch_is_a_second_request",
        "committer/service/transactions/table_transactions.py",
        "    return request.producer.id, request.branch, request.epoch\n",
        "    return request.producer.id, str(request.attempt), request.epoch\n",
        ("tests/service/transactions/test_transactions.py -k another_attempt_of_an_epoch",),
    ),
    Mutant(
        "large_requests_of_incomplete_transactions_keep_all_room",
        "committer/service/transactions/table_transactions.py",
        " or (waited_s >= LOOK_AGAIN_S and self._exceeds_share(key))\n",
        "\n",
        ("tests/service/transactions/test_transactions.py -k leave_room",),
    ),
    Mutant(
        "request_of_a_transaction_is_read_again_at_once",
        "committer/service/transactions/forwarder.py",
        "        self.deferred.pause(pending.key, pause_s)\n",
        "",
        ("tests/service/transactions/test_transactions.py -k leave_room",),
    ),
    Mutant(
        "request_in_flight_is_not_passed_on",
        "committer/service/transactions/table_transactions.py",
        "        self.waiting.withdraw((*self._too_many, *self._foreign))\n",
        "        pass\n",
        ("tests/service/transactions/test_table_transactions.py -k in_flight",),
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
        "transaction_is_called_before_it_is_complete",
        "committer/service/transactions/gatherings.py",
        "            if gathering.is_called or gathering.missing:\n",
        "            if gathering.is_called:\n",
        (f"{_SERVICE} -k waits_for_the_others",),
    ),
    Mutant(
        "table_is_called_for_two_transactions_at_once",
        "committer/service/transactions/gatherings.py",
        "            if any(member.is_called for member in members):\n",
        "            if not members:\n",
        (f"{_SERVICE} -k never_wait",),
    ),
    Mutant(
        "table_that_may_not_commit_yet_is_not_woken",
        "committer/service/transactions/table_transactions.py",
        "which may be early for its next commit.\n        self.hurry()\n",
        "which may be early for its next commit.\n",
        (f"{_SERVICE} -k once_an_hour",),
    ),
    Mutant(
        "swaps_of_a_transaction_are_sent_one_by_one",
        "committer/service/table/batch_committer.py",
        "        if key is None:\n            self.transactions.passed()\n",
        "        if key or key is None:\n            self.transactions.passed()\n",
        (f"{_SERVICE} -k by_one_swap",),
    ),
    Mutant(
        "replay_of_a_transaction_is_looked_for_under_the_key_of_its_first_time",
        "committer/service/transactions/table_transactions.py",
        "    return requests[0].sealed.key\n",
        "    return requests[0].request.inbox_key\n",
        (f"{_SERVICE} -k replayed_lands",),
    ),
    Mutant(
        "others_of_a_refused_request_wait_for_their_time_limit",
        "committer/service/transactions/table_transactions.py",
        "        if pending is not None and refusal is not None:\n",
        "        if False:\n",
        (f"{_SERVICE} -k time_limit", f"{_SERVICE} -k refused_member"),
    ),
    Mutant(
        "others_of_a_refused_request_are_not_woken",
        "committer/service/transactions/gatherings.py",
        "and gathering is not None:\n            self._look_again(gathering)\n",
        "and gathering is not None:\n            pass\n",
        (f"{_SERVICE} -k time_limit",),
    ),
    Mutant(
        "table_whose_rounds_fail_is_called_for_what_it_had_joined",
        "committer/service/table/table_committer.py",
        "forget()\n        self.rounds.transactions.leave_all()\n",
        "forget()\n",
        (f"{_ABSENT} -k does_not_hold_up",),
    ),
    Mutant(
        "transactions_turn_round_in_an_outage",
        "committer/service/transactions/table_transactions.py",
        "summon(*joined)",
        "summon(*reversed(joined))",
        (f"{_ABSENT} -k order_after",),
    ),
    Mutant(
        "batch_of_another_transaction_has_its_turn_to_be_dropped",
        "committer/service/transactions/table_transactions.py",
        "        is_free = all(one.sealed.key not in in_flight for one in others)\n",
        "        is_free = not in_flight or set(in_flight) == {self._called}\n",
        (f"{_ABSENT} -k does_not_hold_up",),
    ),
    Mutant(
        "called_transaction_drops_the_batch_of_others",
        "committer/service/transactions/table_transactions.py",
        "        is_free = all(one.sealed.key not in in_flight for one in others)\n",
        "        is_free = True\n",
        (f"{_SERVICE} -k batch_in_flight",),
    ),
    Mutant(
        "table_that_stops_joins_transactions",
        "committer/service/transactions/table_transactions.py",
        "        if self._is_stopping or not (members or self._since_s):\n",
        "        if not (members or self._since_s):\n",
        (f"{_ABSENT} -k during_a_load",),
    ),
    Mutant(
        "request_stays_where_its_transaction_is_not_gathered_any_more",
        "committer/service/transactions/table_transactions.py",
        "        elif key in self._joined:\n",
        "        elif False:\n",
        (f"{_ABSENT} -k moves_with_the_shard",),
    ),
    Mutant(
        "complete_transaction_waits_for_a_missing_request",
        "committer/service/transactions/table_transactions.py",
        "            self._since_s[key] = self.world.monotonic_s()\n",
        "",
        (f"{_ABSENT} -k for_its_turn",),
    ),
    Mutant(
        "transaction_that_never_lands_has_every_turn",
        "committer/service/transactions/table_transactions.py",
        "        self._in_a_row = IN_A_ROW_MAX\n",
        "",
        (f"{_ABSENT} -k starves_no_other",),
    ),
    Mutant(
        "outage_counts_as_a_wait",
        "committer/service/transactions/table_transactions.py",
        "        self._since_s.clear()\n",
        "",
        (f"{_ABSENT} -k an_outage_is_no_wait",),
    ),
    Mutant(
        "dropped_table_is_called",
        "committer/service/table/table_rounds.py",
        "        self.transactions.leave_all()\n        ready,",
        "        ready,",
        (f"{_ABSENT} -k dropped_table",),
    ),
    Mutant(
        "refusal_outlives_a_good_request_of_its_table",
        "committer/service/transactions/refusals.py",
        "            del self._known[transaction]\n",
        "            pass\n",
        (f"{_SERVICE} -k replaces_a_refused",),
    ),
    Mutant(
        "refusal_counts_beside_a_good_request_of_its_table",
        "committer/service/transactions/gatherings.py",
        "        if gathering is not None and request.table_uuid in gathering.present:\n"
        "            return\n",
        "",
        (f"{_SERVICE} -k beside_a_good_one",),
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
        "broken_up_meeting_is_waited_for_again_and_again",
        "committer/service/transactions/meeting.py",
        "        if not self._is_sent and not self._answer.done():\n",
        "        if self._is_sent:\n",
        (f"{_MEETING} -k broken_up",),
    ),
    Mutant(
        "catalog_without_transactions_is_given_one",
        "committer/plan/batch/request_check.py",
        "    if not tables_max:\n",
        "    if tables_max < 0:\n",
        ("tests/plan/batch/test_request_check.py -k cannot_apply",),
    ),
    Mutant(
        "transactions_pass_every_other_request",
        "committer/service/transactions/table_transactions.py",
        "        return self._in_a_row >= IN_A_ROW_MAX\n",
        "        return False\n",
        ("tests/service/transactions/test_transactions.py -k passed_by",),
    ),
)
