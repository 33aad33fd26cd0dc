"""Breakages of what keeps a client from listing a path twice."""

from __future__ import annotations

from tests.mutants.mutant import Mutant
from tests.mutants.run import seeds_from

_ONE_SHOTS = "tests/service/table/test_one_shots.py"
_OF_PLAN = "tests/plan/ledger/test_one_shots.py"

PATHS = (
    # --- Clients of the simulation ---
    Mutant(
        "another_requests_attempt_is_taken",
        "committer/request/request_format.py",
        "    if not request.has_its_attempt:\n",
        "    if not request.attempt:\n",
        (seeds_from(1),),
    ),
    Mutant(
        "another_requests_file_is_taken",
        "committer/plan/batch/request_check.py",
        "            if not names_attempt(path, attempt):\n",
        "            if not path:\n",
        (seeds_from(1),),
    ),
    Mutant(
        "one_file_of_two_attempts_is_taken_twice",
        "committer/plan/batch/data_locations.py",
        "    return is_too_short_for_another or _UUID.search(path, at + 1) is None\n",
        "    return True\n",
        (seeds_from(1),),
    ),
    Mutant(
        "forgotten_one_shot_requests_land_again_before_the_horizon",
        "committer/plan/ledger/one_shots.py",
        "        if self.has_tombstone(request.producer.id):\n",
        "        if self.has_tombstone(request.branch):\n",
        (seeds_from(288),),
    ),
    Mutant(
        "forgotten_one_shot_requests_land_again_behind_the_horizon",
        "committer/plan/ledger/one_shots.py",
        "        if made_ms is None or made_ms > self.horizon_ms:\n",
        "        if self.horizon_ms:\n",
        (seeds_from(588),),
    ),
    Mutant(
        "tombstones_go_and_no_horizon_rises",
        "committer/plan/ledger/one_shots.py",
        "max(horizon_ms, oldest.nonce_ms)",
        "horizon_ms",
        (seeds_from(588),),
    ),
    # --- The attempt, and whose a file is ---
    Mutant(
        "attempt_is_what_the_line_says",
        "committer/request/request_format.py",
        "    if not request.has_its_attempt:\n",
        "    if not request.attempt:\n",
        ("tests/request/test_request.py",),
    ),
    Mutant(
        "attempt_is_that_of_all_branches",
        "committer/request/attempt.py",
        'f"{branch}\\n{producer}',
        'f"{producer}',
        ("tests/request/test_request.py",),
    ),
    Mutant(
        "another_uuid_may_follow_the_attempt",
        "committer/plan/batch/data_locations.py",
        "    return is_too_short_for_another or _UUID.search(path, at + 1) is None\n",
        "    return True\n",
        ("tests/plan/batch/test_data_locations.py",),
    ),
    Mutant(
        "paths_may_hold_lines",
        "committer/plan/batch/data_locations.py",
        'lines.count("\\n") != len(paths) - 1 or ',
        "",
        ("tests/plan/batch/test_data_locations.py -k looked_at_by_itself",),
    ),
    Mutant(
        "paths_are_checked_together_only_for_their_number",
        "committer/plan/batch/data_locations.py",
        "return names if len(names) == len(paths) else None",
        "return names",
        ("tests/plan/batch/test_data_locations.py -k looked_at_by_itself",),
    ),
    Mutant(
        "one_name_with_the_attempt_is_enough",
        "committer/plan/batch/data_locations.py",
        "return min(places) >= 0 and",
        "return max(places) >= 0 and",
        ("tests/plan/batch/test_data_locations.py -k without_the_attempt",),
    ),
    Mutant(
        "only_a_whole_uuid_is_another_one",
        "committer/plan/batch/data_locations.py",
        "_SHARED_MAX = 8\n",
        "_SHARED_MAX = 0\n",
        ("tests/plan/batch/test_data_locations.py",),
    ),
    Mutant(
        "file_names_have_percent_signs",
        "committer/plan/batch/data_locations.py",
        '    if "%" in name or not name.isascii():\n',
        "    if not name.isascii():\n",
        ("tests/plan/batch/test_data_locations.py",),
    ),
    Mutant(
        "one_name_in_two_spellings",
        "committer/plan/batch/data_locations.py",
        '    return path[path.rfind("/") + 1 :].lower()\n',
        "    return path\n",
        ("tests/plan/batch/test_request_check.py",),
    ),
    # --- One-shot producers ---
    Mutant(
        "tombstones_are_ignored",
        "committer/plan/ledger/one_shots.py",
        "        if self.has_tombstone(request.producer.id):\n",
        "        if self.has_tombstone(request.branch):\n",
        (_ONE_SHOTS,),
    ),
    Mutant(
        "horizon_is_ignored",
        "committer/plan/ledger/one_shots.py",
        "        if made_ms is None or made_ms > self.horizon_ms:\n",
        "        if self.horizon_ms:\n",
        (_ONE_SHOTS,),
    ),
    Mutant(
        "horizon_asks_who_promised_to_publish_once",
        "committer/plan/ledger/one_shots.py",
        "        if made_ms is None or made_ms > self.horizon_ms:\n",
        "        if not request.producer.one_shot or (made_ms or 0) > self.horizon_ms:\n",
        (_ONE_SHOTS,),
    ),
    Mutant(
        "horizon_does_not_rise",
        "committer/plan/ledger/one_shots.py",
        "max(horizon_ms, oldest.nonce_ms)",
        "horizon_ms",
        (_OF_PLAN,),
    ),
    Mutant(
        "horizon_rises_with_the_clock",
        "committer/plan/ledger/one_shots.py",
        "        return replace(self, horizon_ms=horizon_ms, groups=tuple(groups))\n",
        "        horizon_ms = now_ms - KEPT_MS\n"
        "        return replace(self, horizon_ms=horizon_ms, groups=tuple(groups))\n",
        (_ONE_SHOTS + " -k weeks",),
    ),
    Mutant(
        "only_the_last_nonce_of_a_one_shot_producer_counts",
        "committer/ledger_entry.py",
        "max(kept_ms or 0, one_shot_ms or 0) if is_one_shot else None",
        "one_shot_ms if is_one_shot else None",
        (_OF_PLAN,),
    ),
    Mutant(
        "nonces_of_the_future_are_forgotten",
        "committer/plan/ledger/one_shots.py",
        "    return entry.one_shot_ms is not None and entry.one_shot_ms <= now_ms\n",
        "    return entry.one_shot_ms is not None\n",
        (_ONE_SHOTS + " -k future",),
    ),
    Mutant(
        "any_nonce_is_that_of_a_one_shot_producer",
        "committer/request/commit_request.py",
        "        if self.producer.one_shot and nonce_ms(self.nonce) is None:\n",
        "        if self.producer.one_shot and not self.nonce:\n",
        ("tests/request/test_request.py",),
    ),
    Mutant(
        "an_operators_word_counts_as_a_landing",
        "committer/plan/ledger/ledger.py",
        "        if entry is None or not entry.has_landed:\n",
        "        if entry is None:\n",
        (_ONE_SHOTS + " -k operators_word",),
    ),
    Mutant(
        "what_may_have_landed_is_accepted_unseen",
        "committer/service/admin/producer_admin.py",
        "if landed is None or one.epoch in landed]\n",
        "if landed is not None and one.epoch in landed]\n",
        (_ONE_SHOTS + " -k operator_tells",),
    ),
)
