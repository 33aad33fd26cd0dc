"""Breakages of the process around the committer: its health, its signals, its log, its files."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

PROCESS = (
    # --- Health ---
    Mutant(
        "one_degraded_table_makes_the_committer_not_ready",
        "committer/service/telemetry/health.py",
        'self.phase == "running" and not self.unreachable',
        'self.phase == "running" and not self.conditions',
        ("tests/service/process/test_http.py",),
    ),
    Mutant(
        "idle_committer_never_asks_its_catalog",
        "committer/service/process/service.py",
        "        return [poller.run(), asking, ",
        "        asking.close()\n        return [poller.run(), ",
        ("tests/service/process/test_service.py",),
    ),
    # --- Signals ---
    Mutant(
        "no_handler_of_signals_before_the_imports",
        "committer/__main__.py",
        "    end_at_once()\n",
        "",
        ("tests/cli/test_stop_signals.py -k first_process",),
    ),
    Mutant(
        "signal_between_handler_and_loop_is_lost",
        "committer/stop_signals.py",
        "            if self._is_made:\n                end()\n",
        "",
        ("tests/cli/test_stop_signals.py -k between",),
    ),
    Mutant(
        "question_without_answer_holds_up_the_stop",
        "committer/service/process/service.py",
        "timeout=CUT_OFF_S",
        "timeout=None",
        ("tests/service/process/test_service.py",),
    ),
    Mutant(
        "stuck_loop_hears_no_signal",
        "committer/stop_signals.py",
        "            arm()\n            loop.call_soon_threadsafe(stop.set)\n",
        "            loop.call_soon_threadsafe(lambda: (arm(), stop.set()))\n",
        ("tests/service/process/test_stuck_loop.py",),
    ),
    # --- The log ---
    Mutant(
        "log_that_is_not_read_holds_the_loop",
        "committer/cli/committers/serve.py",
        "    write_in_background()\n",
        "",
        ("tests/cli/test_waits.py -k log",),
    ),
    Mutant(
        "lines_that_were_dropped_are_not_reported",
        "committer/service/telemetry/log_stream.py",
        "            if dropped:\n                self.report(dropped)\n",
        "",
        ("tests/service/telemetry/test_log_stream.py -k full",),
    ),
    Mutant(
        "libraries_write_past_the_log",
        "committer/service/telemetry/log.py",
        "        take_over_logging()\n",
        "",
        ("tests/cli/test_json_stderr.py -k whatever",),
    ),
    Mutant(
        "plain_lines_stay_plain",
        "committer/service/telemetry/json_stderr.py",
        '            self.emit("warning", "stderr.written", {"message": line})\n',
        '            self.inner.write(line + "\\n")\n',
        ("tests/cli/test_json_stderr.py -k whatever",),
    ),
    # --- Files ---
    Mutant(
        "private_queue_follows_the_umask",
        "committer/service/process/redis_server.py",
        "            umask=0o077,\n",
        "",
        ("tests/cli/test_private_state.py",),
    ),
    Mutant(
        "what_is_made_in_a_private_folder_follows_the_umask",
        "committer/private_files.py",
        "return mode if Path(folder).stat().st_mode & _OTHERS else mode & ~_OTHERS",
        "return mode",
        ("tests/cli/test_private_state.py",),
    ),
    # --- Metrics ---
    Mutant(
        "series_of_a_table_that_moved_stay",
        "committer/service/ingest/committer_pool.py",
        "        self._shown.left(shards)\n",
        "",
        ("tests/service/telemetry/test_shown_tables.py",),
    ),
    Mutant(
        "table_that_is_gone_is_taken_for_one_that_rests",
        "committer/service/ingest/committer_pool.py",
        "not table.is_stopping and not table.is_gone",
        "not table.is_stopping",
        ("tests/service/telemetry/test_shown_tables.py",),
    ),
    Mutant(
        "table_that_comes_back_has_no_zeros_to_count_up_from",
        "committer/service/telemetry/metrics.py",
        "        self._swapped = {table for table in self._swapped if str(table) in kept}\n",
        "",
        ("tests/service/telemetry/test_shown_tables.py",),
    ),
    Mutant(
        "wall_clock_measures_a_commit",
        "committer/service/telemetry/commit_report.py",
        "    duration_s = now_s - commit.started_s\n",
        "    duration_s = (now_ms - commit.started_ms) / 1000\n",
        ("tests/service/telemetry/test_commit_report.py -k wall_clock",),
    ),
    # --- Endpoints ---
    Mutant(
        "endpoints_answer_by_any_name",
        "committer/service/process/http.py",
        'return name == "localhost" or name in self.names or is_address(name)',
        "return True",
        ("tests/service/process/test_http_answers.py -k names",),
    ),
    Mutant(
        "each_client_has_an_answer_made_for_it",
        "committer/service/process/http.py",
        "        if making is None or (making.done() and self._kept_until_s <= now_s):\n",
        "        if True:\n",
        ("tests/service/process/test_http_answers.py -k share",),
    ),
    # --- Tasks of Spark ---
    Mutant(
        "early_end_of_a_tasks_rows_is_taken_for_their_end",
        "workers/spark/written_files.py",
        "        rows.require_whole()\n        files = writer.close()\n",
        "        files = writer.close()\n",
        ("tests/workers/spark/test_task_input.py",),
    ),
    Mutant(
        "task_that_spark_gave_up_keeps_its_files",
        "workers/spark/written_files.py",
        "        rows.require_listener()\n",
        "",
        ("tests/workers/spark/test_task_input.py",),
    ),
    Mutant(
        "files_of_a_durable_request_are_deleted_behind_a_commit_that_raised",
        "workers/sink/unpublished.py",
        "    if None not in messages:\n        return\n",
        "",
        ("tests/workers/sink/test_unpublished.py",),
    ),
    Mutant(
        "property_that_no_writer_knows_is_ignored_in_silence",
        "workers/sink/warnings/unheeded.py",
        'name.startswith("write.") and _asks(name, value)',
        'name.startswith("write.parquet.") and _asks(name, value)',
        ("tests/workers/sink/test_unheeded.py",),
    ),
    Mutant(
        "encrypted_table_gets_plain_files",
        "workers/sink/warnings/unheeded.py",
        'if key := metadata.properties.get("encryption.key-id"):',
        "if key := None:",
        ("tests/workers/sink/test_unheeded.py",),
    ),
)
