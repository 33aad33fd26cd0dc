"""The mutants: what a tired programmer might have written instead."""

from __future__ import annotations

from tests.mutants.adapters import ADAPTERS
from tests.mutants.adoption import ADOPTION
from tests.mutants.alterations import ALTERATIONS
from tests.mutants.changes import CHANGES
from tests.mutants.checks import CHECKS
from tests.mutants.command import COMMAND
from tests.mutants.compaction import COMPACTION
from tests.mutants.decisions import DECISIONS
from tests.mutants.disk import DISK
from tests.mutants.file_changes import FILE_CHANGES
from tests.mutants.file_tables import FILE_TABLES
from tests.mutants.format import FORMAT
from tests.mutants.groups import GROUPS
from tests.mutants.inbox import INBOX
from tests.mutants.loop_work import LOOP_WORK
from tests.mutants.mutant import Mutant
from tests.mutants.paths import PATHS
from tests.mutants.process import PROCESS
from tests.mutants.protocol import PROTOCOL
from tests.mutants.reading import READING
from tests.mutants.rest_catalog import REST_CATALOG
from tests.mutants.spark_reads import SPARK_READS
from tests.mutants.spark_writes import SPARK_WRITES
from tests.mutants.upkeep import UPKEEP
from tests.mutants.validation import VALIDATION

MUTANTS: tuple[Mutant, ...] = (
    *PROTOCOL,
    *UPKEEP,
    *DECISIONS,
    *ALTERATIONS,
    *ADAPTERS,
    *REST_CATALOG,
    *GROUPS,
    *FILE_TABLES,
    *DISK,
    *INBOX,
    *FORMAT,
    *FILE_CHANGES,
    *CHECKS,
    *LOOP_WORK,
    *PATHS,
    *ADOPTION,
    *COMPACTION,
    *SPARK_WRITES,
    *CHANGES,
    *READING,
    *PROCESS,
    *COMMAND,
    *VALIDATION,
    *SPARK_READS,
    # --- Large requests ---
    Mutant(
        "large_requests_come_in_order_of_arrival",
        "committer/plan/scheduling/fair_queue.py",
        "        tag = max(self._now, self._last.get(producer, 0)) + cost\n",
        "        tag = next(self._numbers)\n",
        ("tests/plan/scheduling/test_fair_queue.py",),
    ),
    Mutant(
        "fair_queue_forgets_what_a_producer_has_waiting",
        "committer/plan/scheduling/fair_queue.py",
        "max(self._now, self._last.get(producer, 0))",
        "self._now",
        ("tests/plan/scheduling/test_fair_queue.py",),
    ),
    Mutant(
        "age_of_a_large_request_never_decides",
        "committer/plan/scheduling/fair_queue.py",
        "        if oldest is not None and self._owed <= 0:\n",
        "        if oldest is not None and self._owed < -(10**9):\n",
        ("tests/plan/scheduling/test_fair_queue.py -k in_the_end",),
    ),
    Mutant(
        "old_backlog_has_all_turns",
        "committer/plan/scheduling/fair_queue.py",
        "        if oldest is not None and self._owed <= 0:\n",
        "        if oldest is not None:\n",
        ("tests/plan/scheduling/test_fair_queue.py -k old_backlog",),
    ),
    Mutant(
        "large_requests_need_no_room",
        "committer/service/requests/large_requests.py",
        "        return in_hand == 0 or in_hand + size_bytes <= IN_HAND_BYTES_MAX\n",
        "        return True\n",
        ("tests/service/requests/test_large_requests.py -k stays_within",),
    ),
    Mutant(
        "large_requests_are_checked_in_their_tables_round",
        "committer/service/table/content_checks.py",
        "            elif pending.is_large or not pending.sealed.is_whole:\n",
        "            elif not pending.sealed.is_whole:\n",
        ("tests/service/requests/test_large_requests.py -k while_large_ones",),
    ),
    Mutant(
        "large_requests_are_not_gathered",
        "committer/service/checks/large_checks.py",
        "        if not self._tasks:\n",
        "        if self._gathered:\n",
        ("tests/service/requests/test_large_requests.py -k soon_after",),
    ),
    Mutant(
        "large_requests_gather_until_all_are_checked",
        "committer/service/checks/large_checks.py",
        "        elif self._gathered and self._gathering is None:\n",
        "        elif False:\n",
        ("tests/service/requests/test_large_requests.py -k long_check",),
    ),
    Mutant(
        "large_requests_are_not_hashed",
        "committer/service/checks/checks.py",
        "                await asyncio.to_thread(check_hashes, sealed)\n",
        "                pass\n",
        ("tests/service/checks/test_checks.py -k refuses_to_read",),
    ),
    Mutant(
        "requests_of_medium_size_are_not_hashed",
        "committer/service/checks/checks.py",
        "                check_hashes(sealed)\n",
        "                pass\n",
        ("tests/service/checks/test_checks.py -k refuses_to_read",),
    ),
    Mutant(
        "short_lines_are_read_by_a_process",
        "committer/service/checks/checks.py",
        "LINE_HERE_BYTES_MAX) >= 0:",
        "LINE_HERE_BYTES_MAX) > 2**40:",
        ("tests/service/checks/test_checks.py -k short_line",),
    ),
    Mutant(
        "large_requests_with_short_lines_keep_their_files",
        "committer/service/checks/checks.py",
        "request=without_files(sealed.request), ",
        "",
        ("tests/service/checks/test_checks.py -k holds_no_files",),
    ),
    Mutant(
        "a_job_behind_a_deadly_one_is_blamed",
        "committer/service/checks/check_process.py",
        "            raise JobLostError\n",
        '            raise ProcessEndedError("lost")\n',
        ("tests/service/checks/test_check_process.py -k alone",),
    ),
    Mutant(
        "a_job_has_any_time",
        "committer/service/checks/check_process.py",
        "            if now_s() > end_s:\n",
        "            if now_s() > end_s + 3_600:\n",
        ("tests/service/checks/test_check_process.py -k stopped_process_does_not_take",),
    ),
    Mutant(
        "memory_is_not_watched_from_outside",
        "committer/service/checks/check_process.py",
        "            if self.is_ready and _resident_bytes(self.pid) > ",
        "            if not self.is_ready and _resident_bytes(self.pid) > ",
        ("tests/service/checks/test_check_process.py -k from_outside",),
    ),
    Mutant(
        "a_process_that_got_no_memory_goes_on",
        "committer/service/checks/check_process.py",
        "        if isinstance(answer, TooMuchMemory):\n",
        "        if isinstance(answer, Job):\n",
        ("tests/service/checks/test_check_process.py -k of_the_process_itself",),
    ),
    Mutant(
        "a_process_that_does_not_start_is_a_verdict",
        "committer/service/checks/check_process.py",
        "            if not worker.is_ready:\n",
        "            if worker.is_ready:\n",
        ("tests/service/checks/test_check_process.py -k does_not_start",),
    ),
    Mutant(
        "a_job_may_print_any_number_of_lines",
        "committer/service/checks/check_process.py",
        "if text and self._lines_left > 0:\n",
        "if text:\n",
        ("tests/service/checks/test_check_process.py -k prints",),
    ),
    Mutant(
        "what_a_process_prints_passes_the_log_by",
        "committer/service/checks/check_process.py",
        '                    log.warning("worker_process.printed", pid=self._pid, message=text)\n',
        "                    sys.stderr.write(text)\n",
        ("tests/service/checks/test_check_process.py -k prints",),
    ),
    Mutant(
        "what_ended_a_process_is_tried_again_among_others",
        "committer/service/checks/checks.py",
        "await self._ask(self._apart, key,",
        "await self._ask(self._processes, key,",
        ("tests/service/checks/test_check_process.py -k alone",),
    ),
    Mutant(
        "what_took_too_much_processor_time_is_tried_again",
        "committer/service/checks/checks.py",
        "            if error.limit is Limit.PROCESSOR_TIME:\n",
        "            if error.limit is None:\n",
        ("tests/service/checks/test_check_process.py -k processor_time",),
    ),
    Mutant(
        "the_condition_of_worker_processes_stays",
        "committer/service/checks/process_reports.py",
        "        if self.health.healthy(COMPONENT):\n",
        "        if COMPONENT in self.health.conditions:\n",
        ("tests/service/checks/test_check_process.py -k does_not_start",),
    ),
    Mutant(
        "turns_of_processes_go_round_producers_alone",
        "committer/service/checks/turns.py",
        "self._turns.add(table_folder_of(folder), ",
        "self._turns.add(folder, ",
        ("tests/service/checks/test_checks.py -k many_producers",),
    ),
    Mutant(
        "turns_of_large_requests_go_round_producers_alone",
        "committer/service/requests/large_requests.py",
        "        table = table_folder_of(request.key)\n",
        "        table = request.key.folder\n",
        ("tests/service/requests/test_large_requests.py -k one_tables_many_producers",),
    ),
    Mutant(
        "turns_of_a_table_go_by_arrival",
        "committer/plan/scheduling/fair_queue.py",
        "        queue.add(producer, cost, work)\n",
        "        queue.add(table, cost, work)\n",
        ("tests/plan/scheduling/test_fair_queue.py -k in_those_of_their_table",),
    ),
    Mutant(
        "each_of_many_unknown_keys_is_an_error",
        "committer/request/request_format.py",
        'extra="ignore" if _has_many_keys(line) else "forbid"',
        'extra="forbid" if line else "ignore"',
        ("tests/request/test_line_limits.py -k all_are_counted",),
    ),
    Mutant(
        "each_of_many_wrong_files_is_an_error",
        "committer/request/commit_request.py",
        "Field(max_length=FILES_INLINE_MAX), FIRST_ERROR]",
        "Field(max_length=FILES_INLINE_MAX)]",
        ("tests/request/test_line_limits.py -k many_elements",),
    ),
    Mutant(
        "a_line_has_any_number_of_objects",
        "committer/request/request_format.py",
        "    _check_containers(line)\n",
        "",
        ("tests/request/test_line_limits.py -k so_many_objects",),
    ),
    Mutant(
        "repeated_keys_of_many_are_unknown_ones",
        "committer/request/request_format.py",
        "    if keys is None:\n",
        "    if keys == []:\n",
        ("tests/request/test_line_limits.py -k is_a_repeated_key",),
    ),
    Mutant(
        "a_caller_that_gives_up_takes_its_answer_along",
        "committer/service/checks/check_process.py",
        "        return await asyncio.shield(answer)\n",
        "        return await answer\n",
        ("tests/service/checks/test_checks.py -k its_own_answer",),
    ),
    Mutant(
        "jobs_queue_at_a_busy_process_beside_an_idle_one",
        "committer/service/checks/turns.py",
        "max(self._free, key=self._free.count)",
        "min(self._free, key=self._free.count)",
        ("tests/service/checks/test_checks.py -k is_idle",),
    ),
    Mutant(
        "keys_may_have_any_digits",
        "committer/request/request_key.py",
        "/[0-9]{{20}}/",
        "/\\d{{20}}/",
        ("tests/request/test_request.py -k one_way_only",),
    ),
    Mutant(
        "large_requests_are_read_like_small_ones",
        "committer/service/ingest/inbox_reader.py",
        "size_bytes_max=LARGE_BYTES_MIN",
        "size_bytes_max=2**40",
        ("tests/service/requests/test_large_requests.py -k doorbell_behind",),
    ),
    Mutant(
        "all_records_are_written_in_one_round",
        "committer/service/table/verdicts.py",
        "islice(refused, RECORDS_A_ROUND)",
        "islice(refused, 10_000)",
        ("tests/service/requests/test_large_requests.py -k all_of_many_bad",),
    ),
    Mutant(
        "stuck_table_keeps_its_large_requests",
        "committer/service/table/eviction.py",
        "        if is_stuck and self.waiting.has_large_ready:\n",
        "        if False:\n",
        ("tests/service/requests/test_large_requests.py -k gets_nowhere",),
    ),
    Mutant(
        "deferred_requests_take_all_memory",
        "committer/service/table/eviction.py",
        "        if not surplus_bytes:\n",
        "        if True:\n",
        ("tests/service/table/test_eviction.py",),
    ),
    Mutant(
        "returned_request_is_read_again_at_once",
        "committer/service/ingest/intake.py",
        "        is_paused = self.deferred.is_paused(key) or self.reader.unread.is_paused(key)\n",
        "        is_paused = self.reader.unread.is_paused(key)\n",
        ("tests/service/table/test_eviction.py",),
    ),
    Mutant(
        "returned_requests_wait_although_those_before_them_have_landed",
        "committer/service/table/eviction.py",
        "            self.deferred.resume(done)\n",
        "            pass\n",
        ("tests/service/table/test_eviction.py -k most_requests",),
    ),
    Mutant(
        "lowest_epochs_are_given_up",
        "committer/service/table/eviction.py",
        "    ranked.sort(key=lambda each: each[:2], reverse=True)\n",
        "    ranked.sort(key=lambda each: each[:2])\n",
        ("tests/service/table/test_eviction.py -k stopped_ordered",),
    ),
    Mutant(
        "highest_epoch_is_given_up_whoever_has_the_most",
        "committer/service/table/eviction.py",
        "    ranked.sort(key=lambda each: each[:2], reverse=True)\n",
        "    ranked.sort(key=lambda each: each[1], reverse=True)\n",
        ("tests/service/table/test_eviction.py -k most_requests",),
    ),
    Mutant(
        "tables_together_hold_all_memory",
        "committer/service/table/eviction.py",
        "        return max(0, (held_bytes + total_bytes - HELD_BYTES_MAX + 1) // 2)\n",
        "        return max(0, held_bytes - HELD_BYTES_MAX)\n",
        ("tests/service/table/test_eviction.py -k however_many",),
    ),
    Mutant(
        "names_that_are_no_tables_are_remembered",
        "committer/service/table/table_committer.py",
        "        return IDLE_S_MAX if is_there else NO_TABLE_S_MAX\n",
        "        return IDLE_S_MAX\n",
        ("tests/service/requests/test_large_requests.py -k no_tables",),
    ),
    Mutant(
        "lines_weigh_their_bytes_only",
        "committer/service/requests/pending.py",
        "_BYTES_A_VALUE = 32\n",
        "_BYTES_A_VALUE = 0\n",
        ("tests/service/requests/test_large_requests.py -k many_objects",),
    ),
    Mutant(
        "worker_process_has_all_memory",
        "committer/service/checks/check_worker.py",
        "        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))\n",
        "        pass\n",
        ("tests/service/checks/test_check_process.py -k of_the_process_itself",),
    ),
    Mutant(
        "worker_process_heeds_a_stop_of_the_group",
        "committer/service/checks/check_worker.py",
        "        signal.signal(number, signal.SIG_IGN)\n",
        "        signal.signal(number, signal.SIG_DFL)\n",
        ("tests/service/checks/test_checks.py -k whole_group",),
    ),
    Mutant(
        "one_death_of_a_worker_process_is_a_verdict",
        "committer/service/checks/checks.py",
        "            if error.limit is Limit.PROCESSOR_TIME:\n",
        "            if error:\n",
        ("tests/service/checks/test_check_process.py -k by_chance",),
    ),
    Mutant(
        "what_stays_inflated_needs_no_room",
        "committer/plan/batch/request_check.py",
        "checked.inflated_bytes > inflated_bytes_max",
        "checked.inflated_bytes < 0",
        ("tests/service/requests/test_large_requests.py -k stays_inflated",),
    ),
    Mutant(
        "room_is_not_given_back",
        "committer/service/requests/pending.py",
        "        self._named.give_back(pending.named_bytes)\n",
        "",
        ("tests/service/requests/test_large_requests.py -k stays_inflated",),
    ),
    Mutant(
        "announced_entries_do_not_count",
        "committer/service/table/content_checks.py",
        "WorkLeft(ENTRIES_MAX, _INFLATED",
        "WorkLeft(2**40, _INFLATED",
        ("tests/service/requests/test_large_requests.py -k announce_many",),
    ),
    Mutant(
        "checks_in_the_loop_have_no_limit",
        "committer/service/checks/checks.py",
        "left=work_here()",
        "left=None",
        ("tests/service/checks/test_checks.py -k too_much_work",),
    ),
    Mutant(
        "checks_in_the_loop_follow_one_another_at_once",
        "committer/service/checks/checks.py",
        "                await asyncio.sleep(0)\n",
        "                pass\n",
        ("tests/service/checks/test_checks.py -k other_steps",),
    ),
    Mutant(
        "decoded_entries_cost_nothing",
        "committer/iceberg/splice/manifest_walk.py",
        "            self._left.take_decoded(self._block_bytes)\n",
        "            pass\n",
        ("tests/iceberg/splice/test_work_left.py",),
    ),
    Mutant(
        "large_blocks_are_inflated_to_measure_them",
        "committer/iceberg/splice/manifest_walk.py",
        "iter_raw_blocks(buf, header, min(bytes_max, BLOCK_BYTES_MAX))",
        "iter_raw_blocks(buf, header)",
        ("tests/iceberg/splice/test_work_left.py -k large_block",),
    ),
    # --- Migration ---
    Mutant(
        "requests_of_a_moved_table_are_quarantined",
        "committer/service/requests/moved_table.py",
        "        if move is None or move.to == self.catalog_name:\n",
        "        if move is not None or move is None:\n",
        ("tests/service/admin/test_table_migration.py -k keeps_the_requests",),
    ),
    Mutant(
        "note_on_a_table_that_came_back_is_believed",
        "committer/service/requests/moved_table.py",
        "        if move is None or move.to == self.catalog_name:\n",
        "        if move is None:\n",
        ("tests/service/admin/test_table_migration.py -k goes_back",),
    ),
    Mutant(
        "requests_of_the_catalog_before_are_a_mismatch",
        "committer/plan/batch/request_check.py",
        " and request.catalog not in basis.former_catalogs:\n",
        ":\n",
        ("tests/service/admin/test_table_migration.py -k one_inbox_is_served",),
    ),
    Mutant(
        "table_is_migrated_without_a_fence",
        "committer/service/admin/table_migration.py",
        "        self._fences = source.catalog.capabilities.has_atomic_rename\n",
        "        self._fences = False\n",
        (
            "tests/service/admin/test_table_migration.py -k cannot_fence",
            "tests/catalog/test_migration_races.py",
        ),
    ),
    Mutant(
        "table_is_fenced_without_a_note",
        "committer/service/admin/table_migration.py",
        "        etag = await self._put_note(uuid, replaces=etag)\n",
        '        etag = etag or ""\n',
        ("tests/service/admin/test_table_migration.py -k running_writers",),
    ),
    Mutant(
        "note_on_a_migration_that_has_begun_is_overwritten",
        "committer/service/admin/table_migration.py",
        "        before, etag = await self._source.moves.held(uuid)\n",
        "        before = await self._source.moves.find(uuid)\n"
        "        _, etag = await self._source.moves.held(uuid)\n",
        ("tests/service/admin/test_table_migration.py -k one_wins",),
    ),
    Mutant(
        "fenced_name_is_that_of_every_new_catalog",
        "committer/service/admin/catalog_side.py",
        "    digest = hashlib.sha256(target.encode()).hexdigest()[:8]\n",
        "    digest = hashlib.sha256(b'').hexdigest()[:8]\n",
        ("tests/service/admin/test_table_migration.py -k one_wins",),
    ),
    Mutant(
        "table_that_the_new_catalog_refuses_stays_fenced",
        "committer/service/admin/table_migration.py",
        "            if began_here:\n",
        "            if False:\n",
        ("tests/service/admin/test_table_migration.py -k refuses",),
    ),
    Mutant(
        "fence_of_another_run_is_taken_down",
        "committer/service/admin/table_migration.py",
        "            if began_here:\n",
        "            if True:\n",
        ("tests/service/admin/test_table_migration.py -k in_doubt",),
    ),
    Mutant(
        "inbox_is_reached_by_what_the_catalog_vends",
        "committer/service/admin/catalog_side.py",
        "        return Inbox(self.own, self.root)\n",
        "        return Inbox(self.storage, self.root)\n",
        ("tests/service/admin/test_table_migration.py -k vends",),
    ),
    Mutant(
        "request_leaves_the_old_inbox_before_it_is_in_the_new_one",
        "committer/service/admin/table_migration.py",
        "            await create_or_equal(target.own, copy)\n"
        "            await source.inbox.delete((key,))\n",
        "            await source.inbox.delete((key,))\n"
        "            await create_or_equal(target.own, copy)\n",
        ("tests/service/admin/test_table_migration.py -k crash_at_any_call",),
    ),
    # --- Purge ---
    Mutant(
        "location_of_two_tables_is_purged",
        "committer/service/admin/table_purge.py",
        "                if at.is_within(own) or own.is_within(at):\n",
        "                if own == at:\n",
        ("tests/cli/test_table_purge.py -k another_table_shares",),
    ),
    Mutant(
        "table_is_purged_under_its_waiting_requests",
        "committer/service/admin/table_purge.py",
        "        async for waiting in self.side.inbox.list(uuid):\n",
        "        async for waiting in self.side.inbox.list(uuid, 'another'):\n",
        ("tests/cli/test_table_purge.py -k requests_wait",),
    ),
)
