"""The plan of a commit that creates its branch: at the head of main, as Iceberg's writers do."""

from __future__ import annotations

import pytest

from committer.iceberg.metadata.snapshot import SnapshotRef
from committer.iceberg.updates.metadata_update import RemoveSnapshotRef, SetSnapshotRef
from committer.iceberg.updates.requirement import AssertRefSnapshotId
from committer.ledger_entry import property_key
from committer.plan.ledger.ledger import NotLanded, Refused, read_ledger
from committer.reason import Reason
from committer.request.request_format import EncodedRequest
from tests.support.builders.flights import build_flights
from tests.support.builders.request_builders import build_request
from tests.support.plan.committing import Table


def on_main(table: Table, epoch: int = 0) -> EncodedRequest:
    return build_request(table.table, producer="loader", epoch=epoch, partition=("AA",))


def on_audit(table: Table, epoch: int = 0, producer: str = "auditor") -> EncodedRequest:
    return build_request(
        table.table,
        producer=producer,
        epoch=epoch,
        partition=("AA",),
        branch="audit",
        create_branch=True,
    )


@pytest.mark.parametrize("format_version", [1, 2, 3])
def test_the_branch_begins_at_the_head_of_main_which_stays(format_version: int) -> None:
    table = Table.of(build_flights(format_version=format_version))
    head = table.commit(on_main(table)).snapshot
    plan = table.commit(on_audit(table))
    assert plan.snapshot.parent_snapshot_id == head.snapshot_id
    metadata = table.state.metadata
    assert metadata.refs["audit"] == SnapshotRef(plan.snapshot.snapshot_id)
    assert metadata.current_snapshot_id == head.snapshot_id
    # It lists the files of main, too.
    assert (plan.snapshot.summary or {})["total-data-files"] == "2"
    # A catalog that checks requirements refuses it where another one was faster.
    assert AssertRefSnapshotId("audit", None) in plan.swap.requirements


def test_the_branch_goes_on_from_its_own_head() -> None:
    table = Table.of(build_flights())
    table.commit(on_main(table))
    first = table.commit(on_audit(table)).snapshot
    table.commit(on_main(table, 1))
    second = table.commit(on_audit(table, 1))
    assert second.snapshot.parent_snapshot_id == first.snapshot_id
    assert AssertRefSnapshotId("audit", first.snapshot_id) in second.swap.requirements


def test_in_an_empty_table_main_has_no_snapshot_after_it() -> None:
    table = Table.of(build_flights())
    plan = table.commit(on_audit(table))
    metadata = table.state.metadata
    assert (plan.snapshot.parent_snapshot_id, metadata.current_snapshot_id) == (None, None)
    assert list(metadata.refs) == ["audit"]
    assert table.commit(on_main(table)).snapshot.parent_snapshot_id is None


# --- Branches that were removed ------------------------------------------------------------------


def removed_branch(*, is_published: bool) -> Table:
    """Return a table that `auditor` has committed to a branch of, which was removed since."""
    table = Table.of(build_flights())
    table.commit(on_main(table))
    snapshot = table.commit(on_audit(table)).snapshot
    if is_published:
        table.foreign(SetSnapshotRef("main", SnapshotRef(snapshot.snapshot_id)))
    table.foreign(RemoveSnapshotRef("audit"))
    return table


def test_a_producer_goes_on_if_main_has_what_it_committed_to_the_removed_branch() -> None:
    table = removed_branch(is_published=True)
    head = table.state.metadata.current_snapshot_id
    sealed = on_audit(table, 1)
    assert table.state.ledger.ask(sealed.request) == NotLanded(known=True)
    assert table.commit(sealed).snapshot.parent_snapshot_id == head


@pytest.mark.parametrize("epoch", [0, 1])
def test_a_producer_freezes_if_a_new_branch_would_lack_what_it_committed(epoch: int) -> None:
    """As it does once an operator has created the branch again."""
    table = removed_branch(is_published=False)
    ledger = table.state.ledger
    answer = ledger.ask(on_audit(table, epoch).request)
    assert isinstance(answer, Refused)
    assert answer.reason == Reason.PRODUCER_FROZEN
    assert "branch `audit` was removed" in answer.message
    assert not ledger.frozen
    # Another producer creates the branch: the answer stays.
    table.commit(on_audit(table, producer="another"))
    for known in (table.state.ledger, read_ledger(table.state.metadata)):
        answer = known.ask(on_audit(table, epoch).request)
        assert isinstance(answer, Refused) and answer.reason == Reason.PRODUCER_FROZEN
    assert property_key("auditor", "audit") in read_ledger(table.state.metadata).frozen
