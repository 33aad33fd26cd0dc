"""Mutants of work that would hold the event loop, and of the limits of what is read."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_LOOP = "tests/service/table/test_loop_work.py"
_BOUNDED = "tests/storage/test_bounded.py"

LOOP_WORK = (
    Mutant(
        "batch_is_weighed_by_what_is_stored",
        "committer/plan/batch/request_check.py",
        "        return max(self.size_bytes, sum(work))\n",
        "        return self.size_bytes\n",
        (f"{_LOOP} -k joined",),
    ),
    Mutant(
        "checks_of_a_round_share_nothing",
        "committer/service/table/content_checks.py",
        "        loop.spend(before, left)\n",
        "",
        (f"{_LOOP} -k share",),
    ),
    Mutant(
        "manifest_list_is_decoded_on_the_loop",
        "committer/service/table/commit_planner.py",
        "        if reads.read:\n            return OFF_LOOP_BYTES\n",
        "",
        (f"{_LOOP} -k list",),
    ),
    Mutant(
        "history_is_printed_on_the_loop",
        "committer/service/table/batch_committer.py",
        "        weight = history_bytes(plan.swap.metadata)\n",
        "        weight = 0\n",
        (f"{_LOOP} -k history",),
    ),
    Mutant(
        "threads_keep_the_interpreter",
        "committer/place_threads.py",
        "                sys.setswitchinterval(SWITCH_INTERVAL_S)\n",
        "                pass\n",
        ("tests/test_place_threads.py -k computes",),
    ),
    Mutant(
        "large_json_holds_the_interpreter",
        "committer/iceberg/metadata/json_text.py",
        "            object_hook=_yielding,\n",
        "",
        ("tests/iceberg/metadata/test_json_text.py",),
    ),
    Mutant(
        "large_file_is_read_and_then_refused",
        "committer/storage/bounded.py",
        "offset=offset, size_bytes_max=limit.bytes_max",
        "offset=offset",
        (f"{_BOUNDED} -k stored",),
    ),
    Mutant(
        "inflated_bytes_have_no_limit",
        "committer/storage/bounded.py",
        "        if len(content) * inflation_max > limit.bytes_max:\n",
        "        if len(content) > limit.bytes_max:\n",
        (f"{_BOUNDED} -k inflates",),
    ),
    Mutant(
        "manifest_list_has_the_limit_of_a_manifest",
        "committer/storage/bounded.py",
        "            return self.manifest_list\n",
        "            return self.manifest\n",
        (f"{_BOUNDED} -k inflates",),
    ),
    Mutant(
        "table_grows_beyond_what_is_read",
        "committer/storage/bounded.py",
        "            await self._require(one.location, one.content, _OWN_INFLATION_MAX)\n",
        "            pass\n",
        (f"{_BOUNDED} -k written",),
    ),
    Mutant(
        "large_answer_is_a_catalog_that_is_away",
        "committer/catalog/rest/client/rest_client.py",
        "        except AnswerTooLargeError as error:\n",
        "        except ZeroDivisionError as error:\n",
        ("tests/catalog/rest/test_rest_hostile.py -k no_byte_more",),
    ),
    Mutant(
        "merge_looks_at_a_long_list_on_the_loop",
        "committer/service/upkeep/merger.py",
        "        if selecting_bytes(state, branch) < OFF_LOOP_BYTES:\n",
        "        if True:\n",
        (f"{_LOOP} -k upkeep",),
    ),
    Mutant(
        "dangling_deletes_are_looked_for_in_a_long_list_each_round",
        "committer/service/upkeep/dangling_remover.py",
        "        if selecting_bytes(state, branch) >= OFF_LOOP_BYTES:\n",
        "        if False:\n",
        ("tests/service/upkeep/test_dangling_remover.py -k long_list",),
    ),
    Mutant(
        "expiry_looks_at_a_long_history_on_the_loop",
        "committer/service/upkeep/expirer.py",
        "            self._is_look_due = history_bytes(state.metadata) >= OFF_LOOP_BYTES\n",
        "            self._is_look_due = False\n",
        (f"{_LOOP} -k upkeep",),
    ),
)
