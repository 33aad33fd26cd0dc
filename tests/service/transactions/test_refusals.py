"""What is known of refused requests of transactions, and who is told."""

from __future__ import annotations

from uuid import UUID

import pytest

from committer.reason import Reason
from committer.request.commit_request import CommitRequest
from committer.request.request_key import inbox_key
from committer.service.transactions.refusals import REFUSALS_MAX, Refusals
from tests.support.builders.table_builders import build_table
from tests.support.builders.transactions import build_group

KEY = inbox_key(UUID(int=1), "p", 0, UUID(int=2))


def a_request() -> CommitRequest:
    tables = [build_table(f"db.{name}", warehouse="memory://warehouse") for name in ("a", "b")]
    return build_group(tables)[0].request


@pytest.mark.parametrize(
    "reason",
    [
        Reason.SIGNATURE_INVALID,
        Reason.SIGNATURE_MISSING,
        Reason.UNSIGNED_OPERATION,
        Reason.DATA_FILE_MISSING,
    ],
)
def test_a_forged_request_ends_no_transaction(reason: Reason) -> None:
    refusals, request = Refusals(), a_request()
    refusals.note(7, request, reason)
    assert refusals.find(7, KEY) is None
    refusals.note(7, request, Reason.BRANCH_UNKNOWN)
    found = refusals.find(7, KEY)
    assert found is not None
    assert (found.identifier, found.reason) == (request.identifier, Reason.BRANCH_UNKNOWN)


def test_an_incomplete_transaction_names_the_request_that_was_refused_first() -> None:
    refusals, request = Refusals(), a_request()
    refusals.note(7, request, Reason.CONFLICT)
    refusals.note(7, request, Reason.TRANSACTION_INCOMPLETE)
    found = refusals.find(7, KEY)
    assert found is not None
    assert found.reason is Reason.CONFLICT


def test_a_replay_waits_for_the_replays_of_the_others() -> None:
    refusals = Refusals()
    refusals.note(7, a_request(), Reason.CONFLICT)
    assert refusals.find(7, KEY) is not None
    assert refusals.find(7, f"{KEY}.{UUID(int=1)}") is None


def test_the_newest_refusals_are_known() -> None:
    refusals, request = Refusals(), a_request()
    for number in range(REFUSALS_MAX + 1):
        refusals.note(number, request, Reason.CONFLICT)
    assert refusals.find(0, KEY) is None
    assert refusals.find(1, KEY) is not None
    refusals.came(1, UUID(int=5))
    assert refusals.find(1, KEY) is not None
    refusals.came(1, request.table_uuid)
    assert refusals.find(1, KEY) is None
