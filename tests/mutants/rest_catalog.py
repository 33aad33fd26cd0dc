"""Breakages of the REST catalog."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

REST_CATALOG = (
    Mutant(
        "refusal_for_timing_rejects_the_request",
        "committer/catalog/rest/rest_swap.py",
        "    if current.metadata_location != swap.base.metadata_location:\n",
        "    if current.metadata_location == '':\n",
        ("tests/catalog/rest/test_rest_swap.py",),
    ),
    Mutant(
        "error_of_the_server_is_taken_for_a_refusal",
        "committer/catalog/rest/rest_swap.py",
        "    if answer.status >= 500:\n        return Unknown(str(answer))\n",
        "    if answer.status >= 500:\n        return Conflict()\n",
        ("tests/catalog/rest/test_rest_swap.py",),
    ),
    Mutant(
        "success_without_our_snapshot_counts",
        "committer/catalog/rest/rest_swap.py",
        "    if not _holds(found.table.metadata, swap):\n",
        "    if found is None:\n",
        ("tests/catalog/rest/test_rest_swap.py",),
    ),
    Mutant(
        "request_is_sent_again_over_a_broken_connection",
        "committer/catalog/rest/rest_transport.py",
        "        session._retry_connection = False\n",
        "",
        ("tests/catalog/rest/test_rest_client.py",),
    ),
    Mutant(
        "token_is_used_to_its_end",
        "committer/catalog/rest/rest_auth.py",
        "    return Token(text, now_s + lifetime_s - early_s, now_s + lifetime_s)\n",
        "    return Token(text, now_s + lifetime_s, now_s + lifetime_s)\n",
        ("tests/catalog/rest/test_rest_client.py",),
    ),
    Mutant(
        "missing_metadata_file_is_a_missing_table",
        "committer/catalog/rest/rest_catalog.py",
        '        if answer.is_error(404, "NotFoundException"):\n            # Of a file',
        '        if answer.is_error(404, ""):\n            # Of a file',
        ("tests/catalog/rest/test_rest_swap.py",),
    ),
    Mutant(
        "request_without_a_key_is_sent_twice",
        "committer/catalog/rest/rest_client.py",
        "        return await (self._send_by_key(request) if has_key else self._send(request))\n",
        "        return await self._send_by_key(request)\n",
        ("tests/catalog/rest/test_rest_idempotency.py -k nothing_is_sent_again",),
    ),
    Mutant(
        "refusal_of_the_second_send_counts_for_the_first",
        "committer/catalog/rest/rest_swap.py",
        "    if answer.is_resent:\n",
        "    if False:\n",
        ("tests/catalog/rest/test_rest_idempotency.py -k tells_nothing",),
    ),
    Mutant(
        "second_send_without_a_token_says_that_nothing_was_applied",
        "committer/catalog/rest/rest_client.py",
        "        except (CatalogUnavailableError, AccessError, LostAnswerError) as error:\n",
        "        except LostAnswerError as error:\n",
        ("tests/catalog/rest/test_rest_idempotency.py -k without_a_token",),
    ),
    Mutant(
        "redirects_are_followed",
        "committer/catalog/rest/rest_transport.py",
        "                allow_redirects=False,\n",
        "",
        ("tests/catalog/rest/test_rest_hostile.py -k redirect",),
    ),
    Mutant(
        "answer_may_have_any_size",
        "committer/catalog/rest/rest_transport.py",
        "            if size_bytes > limit:\n",
        "            if size_bytes < 0:\n",
        ("tests/catalog/rest/test_rest_hostile.py -k limit",),
    ),
    Mutant(
        "pages_that_repeat_end_the_list",
        "committer/catalog/rest/rest_client.py",
        "            if not _is_page_token(token) or token in seen:\n                break\n",
        "            if not _is_page_token(token) or token in seen:\n                return\n",
        ("tests/catalog/rest/test_rest_hostile.py -k without_an_end",),
    ),
    Mutant(
        "header_of_the_configuration_may_begin_another",
        "committer/catalog/rest/rest_configuration.py",
        "        if not (_HEADER_NAME.fullmatch(name) and is_header_text(text)):\n",
        "        if not name:\n",
        ("tests/catalog/rest/test_rest_hostile.py -k header_of",),
    ),
    Mutant(
        "configuration_leads_credentials_out_of_tls",
        "committer/catalog/rest/rest_configuration.py",
        "    if is_tls and not stays_tls:\n",
        "    if False:\n",
        ("tests/catalog/rest/test_rest_configuration.py",),
    ),
    Mutant(
        "property_changes_of_one_base_both_pass",
        "committer/plan/head_move.py",
        "    for branch in (branches or {MAIN}) - moved if keys else ():\n",
        "    for branch in branches - moved if keys else ():\n",
        ("tests/service/admin/test_table_change.py -k build_on_one_another",),
    ),
    Mutant(
        "lost_attempts_are_kept_for_ever",
        "committer/plan/attempt_log.py",
        "        if len(self._lost) > LOST_MAX:\n",
        "        if len(self._lost) < 0:\n",
        ("tests/plan/test_attempt_log.py -k for_ever",),
    ),
    Mutant(
        "attempts_that_are_forgotten_are_in_doubt_no_more",
        "committer/plan/attempt_log.py",
        "        return bool(self._lost or self._doubts)\n",
        "        return bool(self._lost)\n",
        ("tests/plan/test_attempt_log.py -k forgotten",),
    ),
)
