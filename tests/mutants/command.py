"""Breakages of the command, its settings and its private queue server."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

COMMAND = (
    Mutant(
        "reader_makes_a_catalog",
        "committer/table_reader.py",
        "self._world, create=False\n",
        "self._world, create=True\n",
        ("tests/test_table_reader.py -k not_made",),
    ),
    Mutant(
        "missing_package_is_an_internal_error",
        "committer/__main__.py",
        "    if isinstance(error, ModuleNotFoundError):\n",
        "    if False:\n",
        ("tests/cli/test_extras.py -k without_the_extra",),
    ),
    Mutant(
        "settings_file_may_be_a_pipe",
        "committer/config_files.py",
        "        if not stat.S_ISREG(mode):\n",
        "        if False:\n",
        ("tests/cli/test_boundary.py -k settings_file",),
    ),
    Mutant(
        "values_of_kubernetes_are_not_looked_at",
        "committer/setting_names.py",
        " and re.fullmatch(form, value)\n",
        "\n",
        ("tests/test_settings.py -k misspelt",),
    ),
    Mutant(
        "unknown_variables_are_ignored",
        "committer/setting_names.py",
        "        if not _is_injected(variable, str(value)):\n",
        "        if False:\n",
        ("tests/test_settings.py -k misspelt",),
    ),
    Mutant(
        "commands_that_look_make_a_catalog",
        "committer/catalog/sql_engine.py",
        "    if not create and _is_absent(Path(database)):\n",
        "    if False:\n",
        ("tests/cli/test_reading.py",),
    ),
    Mutant(
        "words_are_broken_on_a_narrow_screen",
        "committer/cli/layout.py",
        "        if sum(floors) > room:\n",
        "        if False:\n",
        ("tests/cli/test_layout.py -k each_value",),
    ),
    Mutant(
        "dead_queue_server_stays_dead",
        "committer/service/process/startup.py",
        "asyncio.create_task(keep_running(server, world)) if server else None",
        "None",
        ("tests/cli/test_serve.py -k killed_comes_back",),
    ),
    Mutant(
        "dead_queue_server_is_started_without_a_pause",
        "committer/service/process/redis_server.py",
        "            failures = failures + 1 if now_s - looked_s < _LASTED_S else 1\n",
        "            failures = 0\n",
        ("tests/service/process/test_redis_server.py -k less_often",),
    ),
    Mutant(
        "two_committers_share_a_private_queue",
        "committer/service/process/redis_server.py",
        "    if _try_lock(claim):\n        return claim\n",
        "    return claim\n",
        ("tests/service/process/test_redis_server.py -k second_committer",),
    ),
    Mutant(
        "acceptance_is_asked_for_before_it_is_looked_at",
        "committer/cli/quarantine.py",
        "    refused = run_with_parts(lambda parts: refusals(parts, named)) if named else {}\n",
        "    refused: dict[str, str] = {}\n",
        ("tests/cli/test_producer.py -k asked_about",),
    ),
    Mutant(
        "ledger_may_be_set_by_hand",
        "committer/cli/table_properties.py",
        "        if key.startswith(LEDGER_PREFIX):\n",
        "        if False:\n",
        ("tests/cli/test_table_set.py",),
    ),
    Mutant(
        "properties_are_not_read_before_they_are_set",
        "committer/cli/table_properties.py",
        "        if not fits(text):\n",
        "        if False:\n",
        ("tests/cli/test_table_set.py",),
    ),
    Mutant(
        "drivers_warn_with_every_epoch",
        "workers/sparse_log.py",
        "now_s - told_s < PERIOD_S",
        "now_s - told_s < 0",
        ("tests/workers/test_sparse_log.py",),
    ),
    Mutant(
        "name_of_a_producer_is_lost_with_its_next_epoch",
        "committer/ledger_entry.py",
        "        return replace(self, name=name) if name else self\n",
        '        return replace(self, name=name or "")\n',
        ("tests/test_ledger_entry.py -k name",),
    ),
    Mutant(
        "time_is_broken_between_its_words",
        "committer/cli/layout.py",
        r'_BREAK = re.compile(r"(?<!\d{4}-\d\d-\d\d) | (?!\d\d:\d\d:\d\d)")',
        '_BREAK = re.compile(" ")',
        ("tests/cli/test_layout.py -k one_word",),
    ),
)
