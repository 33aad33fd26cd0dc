"""A transaction names its tables once each, the request's own among them."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from pydantic import ValidationError

from committer.request.commit_request import CommitRequest
from committer.request.request_format import read_request, seal_request
from committer.request.transaction import TRANSACTION_TABLES_MAX
from tests.support.builders.flights import build_flights
from tests.support.builders.request_builders import build_line

ID = "00000000-0000-4000-8000-000000000001"
OTHER = {
    "table": {"namespace": ["db"], "name": "trains"},
    "table-uuid": "00000000-0000-4000-8000-000000000002",
}
LINE = build_line(build_flights(warehouse="memory://warehouse"))


def own(**changes: Any) -> dict[str, Any]:
    return {
        "table": LINE.table.model_dump(mode="json"),
        "table-uuid": str(LINE.table_uuid),
        **changes,
    }


def with_transaction(*tables: dict[str, Any]) -> CommitRequest:
    document = LINE.model_dump(mode="json", by_alias=True, exclude_none=True)
    return CommitRequest.model_validate(
        document | {"transaction": {"id": ID, "tables": list(tables)}}
    )


def numbered(count: int) -> list[dict[str, Any]]:
    return [
        {"table": {"namespace": ["db"], "name": f"t{n}"}, "table-uuid": str(UUID(int=n + 1))}
        for n in range(count)
    ]


def test_requests_that_name_the_tables_in_another_order_are_of_one_transaction() -> None:
    ours, theirs = with_transaction(own(), OTHER), with_transaction(OTHER, own())
    assert ours.transaction is not None
    assert theirs.transaction is not None
    assert ours.transaction.members == theirs.transaction.members
    assert [str(name) for name, _ in ours.transaction.members] == ["db.flights", "db.trains"]


def test_a_sealed_request_keeps_its_transaction_and_another_has_none() -> None:
    line = with_transaction(own(), OTHER)
    sealed = seal_request(line, ())
    assert read_request(sealed.content, key=line.inbox_key).request == line
    assert b"transaction" not in seal_request(LINE, ()).content


@pytest.mark.parametrize(
    ("tables", "expected"),
    [
        ([own()], "at least 2"),
        (numbered(2), "the request's own table"),
        ([own(**{"table-uuid": ID}), OTHER], "the request's own table"),
        ([own(), OTHER, OTHER], "each table once, found `[^`]+` twice"),
        (
            [own(), {**OTHER, "table-uuid": str(LINE.table_uuid)}],
            f"found table uuid {LINE.table_uuid} twice",
        ),
        ([own(), own(**{"table-uuid": ID})], f"found `{LINE.identifier}` twice"),
        ([own(), *numbered(TRANSACTION_TABLES_MAX)], f"at most {TRANSACTION_TABLES_MAX}"),
        ([own(), {**OTHER, "branch": "main"}], "Extra inputs"),
    ],
    # The texts name uuids that are drawn at random.
    ids=range(8),
)
def test_tables_that_are_no_transaction_of_the_request_are_refused(
    tables: list[dict[str, Any]], expected: str
) -> None:
    with pytest.raises(ValidationError, match=expected):
        with_transaction(*tables)


def test_as_many_tables_as_allowed_are_taken() -> None:
    line = with_transaction(own(), *numbered(TRANSACTION_TABLES_MAX - 1))
    assert line.transaction is not None
    assert len(line.transaction.members) == TRANSACTION_TABLES_MAX
