"""Expiry: Iceberg's rules beside a slow model of them, our floor, and when it is worth it."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from committer.iceberg.metadata.snapshot import MAIN, SnapshotRef
from committer.iceberg.metadata.table_metadata import TableMetadata
from committer.iceberg.updates.metadata_update import (
    RemoveSnapshotRef,
    SetProperties,
    SetSnapshotRef,
)
from committer.ledger_entry import Landed, ProducerEntry, print_entry, property_key
from committer.plan.cleanup import expiry
from committer.plan.cleanup.expiry import (
    EXPIRED_MAX,
    ExpiredSnapshots,
    Needed,
    applicable_expiry,
    due_expiry,
    expirable,
    may_expire,
)
from committer.plan.ledger.ledger import Ledger
from committer.table_defaults import NEW_TABLE_PROPERTIES
from tests.plan.histories import History

ON = {"frazil.expire.enabled": "true"}


def retention(keep: int, age_ms: int, ref_age_ms: int | None = None) -> dict[str, str]:
    found = {
        "history.expire.min-snapshots-to-keep": str(keep),
        "history.expire.max-snapshot-age-ms": str(age_ms),
    }
    if ref_age_ms is not None:
        found["history.expire.max-ref-age-ms"] = str(ref_age_ms)
    return ON | found


@pytest.fixture
def no_floor(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lower our own floor to 0: with small histories, the rules are Iceberg's alone."""
    monkeypatch.setattr(expiry, "SNAPSHOTS_MIN", 0)


# --- A slow model of the reference's rules -------------------------------------------------------


def model(metadata: TableMetadata, now_ms: int) -> tuple[set[int], set[str]]:
    """Return ids and refs that expire, written down rule by rule with no care for speed."""
    properties = metadata.properties
    keep = int(properties.get("history.expire.min-snapshots-to-keep", "1"))
    age = int(properties.get("history.expire.max-snapshot-age-ms", "432000000"))
    ref_age = int(properties.get("history.expire.max-ref-age-ms", str(2**63 - 1)))
    time = {one.snapshot_id: one.timestamp_ms for one in metadata.snapshots}
    parent = {one.snapshot_id: one.parent_snapshot_id for one in metadata.snapshots}

    def chain(snapshot_id: int | None) -> list[int]:
        if snapshot_id is None or snapshot_id not in time:
            return []
        return [snapshot_id, *chain(parent[snapshot_id])]

    def own(value: int | None, default: int) -> int:
        return default if value is None else value

    refs = {
        name: ref
        for name, ref in metadata.refs.items()
        if name == MAIN or now_ms - time[ref.snapshot_id] <= own(ref.max_ref_age_ms, ref_age)
    }
    stay: set[int] = set()
    referenced: set[int] = set()
    for ref in refs.values():
        stay.add(ref.snapshot_id)
        referenced.add(ref.snapshot_id)
        if ref.type == "branch":
            for position, each in enumerate(chain(ref.snapshot_id)):
                in_number = position < own(ref.min_snapshots_to_keep, keep)
                in_age = time[each] >= now_ms - own(ref.max_snapshot_age_ms, age)
                if not in_number and not in_age:
                    break
                stay.add(each)
            referenced.update(chain(ref.snapshot_id))
    stay.update(each for each in time if each not in referenced and time[each] >= now_ms - age)
    return time.keys() - stay, metadata.refs.keys() - refs.keys()


@st.composite
def histories(draw: st.DrawFn) -> History:
    """Draw snapshots on branches, forks, rollbacks, tags with and without an age, uneven times."""
    history = History.empty(
        retention(draw(st.integers(1, 4)), draw(st.sampled_from([0, 3_000, 10**9])))
    )
    if draw(st.booleans()):
        history.apply(SetProperties({"history.expire.max-ref-age-ms": "5000"}))
    for _ in range(draw(st.integers(1, 14))):
        ids = [one.snapshot_id for one in history.metadata.snapshots]
        match draw(st.sampled_from("cccctbr")) if ids else "c":
            case "c":
                branch = draw(st.sampled_from([MAIN, *history.metadata.refs, None]))
                if branch is not None and history.metadata.refs.get(
                    branch, SnapshotRef(0)
                ).type == ("tag"):
                    branch = MAIN
                step_ms = draw(st.sampled_from([1, 1_000, 4_000]))
                history.commit(branch=branch if ids else MAIN, step_ms=step_ms)
            case "t":
                age = draw(st.sampled_from([None, 2_000]))
                history.tag(f"t{len(ids)}", draw(st.sampled_from(ids)), ref_age_ms=age)
            case "b":
                history.branch(
                    f"b{len(ids)}",
                    draw(st.sampled_from(ids)),
                    keep=draw(st.sampled_from([None, 2])),
                    age_ms=draw(st.sampled_from([None, 1, 6_000])),
                    ref_age_ms=draw(st.sampled_from([None, 1_000])),
                )
            case _:
                target = draw(st.sampled_from(ids))
                history.apply(SetSnapshotRef(MAIN, SnapshotRef(target)))
    return history


@pytest.mark.simulation
@settings(max_examples=300, deadline=None)
@given(histories(), st.integers(0, 12_000))
def test_what_expires_is_what_a_slow_reading_of_the_rules_says(history: History, wait: int) -> None:
    now_ms = history.now_ms + wait
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(expiry, "SNAPSHOTS_MIN", 0)
        found = expirable(history.state, now_ms=now_ms) or ExpiredSnapshots(())
    assert (set(found.snapshot_ids), set(found.refs)) == model(history.metadata, now_ms)
    assert MAIN not in found.refs
    in_order = [one.snapshot_id for one in history.metadata.snapshots]
    assert list(found.snapshot_ids) == [one for one in in_order if one in found.snapshot_ids]


# --- What stays in any case ----------------------------------------------------------------------


def aged(count: int, properties: dict[str, str]) -> History:
    """Build a line of snapshots, one a second, the newest an hour old by now."""
    history = History.empty(properties)
    for _ in range(count):
        history.commit()
    history.now_ms += 3_600_000
    return history


def test_the_snapshots_that_hold_proofs_stay_whatever_the_properties_say() -> None:
    history = aged(105, retention(1, 0))
    found = expirable(history.state, now_ms=history.now_ms)
    assert found is not None
    assert len(found.snapshots) == 5


def test_of_staged_snapshots_alone_the_newest_stays(no_floor: None) -> None:
    """No branch holds one back; the journal of the expiry names a snapshot that stays."""
    history = aged(3, retention(1, 0))
    table = replace(history.state.table, metadata=replace(history.metadata, refs={}))
    state = replace(history.state, table=table)
    found = expirable(state, now_ms=history.now_ms)
    assert found is not None
    ids = [one.snapshot_id for one in history.metadata.snapshots]
    assert found.snapshot_ids == tuple(ids[:2])


def test_nothing_expires_while_the_history_of_a_producer_is_in_doubt(no_floor: None) -> None:
    history = aged(5, retention(1, 0))
    key = "frazil.producer.q"
    in_doubt = Ledger({}, {key: "rolled back"}, frozenset({key}))
    state = replace(history.state, ledger=in_doubt)
    assert expirable(history.state, now_ms=history.now_ms) is not None
    assert expirable(state, now_ms=history.now_ms) is None
    stopped = replace(history.state, ledger=Ledger({}, {key: "an operator said so"}))
    assert expirable(stopped, now_ms=history.now_ms) is not None


def test_what_a_waiting_request_was_made_against_stays_with_all_behind_it(no_floor: None) -> None:
    history = aged(6, retention(1, 0))
    ids = [one.snapshot_id for one in history.metadata.snapshots]
    needed = Needed(frozenset({ids[2]}))
    found = expirable(history.state, now_ms=history.now_ms, needed=needed)
    assert found is not None
    assert found.snapshot_ids == tuple(ids[:2])


@pytest.mark.parametrize("by_name", [False, True])
def test_a_staged_snapshot_that_a_waiting_request_picks_stays_with_its_parent(
    no_floor: None, by_name: bool
) -> None:
    history = aged(3, retention(1, 0))
    parent = history.metadata.snapshots[1].snapshot_id
    staged = history.commit(added=["s"], branch=None, parent=parent, summary={"wap.id": "w"})
    other = history.commit(added=["t"], branch=None, summary={"wap.id": "x"})
    history.now_ms += 10_000
    needed = Needed(wap_ids=frozenset({"w"}))
    if not by_name:
        needed = Needed(picked_ids=frozenset({staged.snapshot_id}))
    found = expirable(history.state, now_ms=history.now_ms, needed=needed)
    assert found is not None
    assert found.snapshot_ids == (history.metadata.snapshots[0].snapshot_id, other.snapshot_id)
    assert not needed.takes_any_of(found)
    everything = expirable(history.state, now_ms=history.now_ms)
    assert everything is not None
    assert staged.snapshot_id in everything.snapshot_ids
    assert needed.takes_any_of(everything)


def test_a_branch_that_waiting_requests_go_to_stays(no_floor: None) -> None:
    history = aged(3, retention(1, 0, ref_age_ms=1))
    history.branch("audit", history.metadata.snapshots[0].snapshot_id)
    found = expirable(history.state, now_ms=history.now_ms)
    assert found is not None
    assert found.refs == ("audit",)
    needed = Needed(branches=frozenset({"audit"}))
    found = expirable(history.state, now_ms=history.now_ms, needed=needed)
    assert found is not None
    assert found.refs == ()


def test_a_branch_that_producers_have_landed_on_does_not_go_by_its_age(no_floor: None) -> None:
    # Without it what they publish next would be refused.
    history = aged(3, retention(1, 0, ref_age_ms=1))
    landed_in = history.metadata.snapshots[0]
    history.branch("audit", landed_in.snapshot_id)
    history.branch("idle", landed_in.snapshot_id)
    landed = Landed(0, "test", "0" * 32, UUID(int=1), landed_in.snapshot_id, 1)
    entry = ProducerEntry(history.metadata.require_uuid()).with_landed(landed)
    history.apply(SetProperties({property_key("query-1", "audit"): print_entry(entry)}))
    found = expirable(history.state, now_ms=history.now_ms)
    assert found is not None
    assert found.refs == ("idle",)
    history.apply(*found.updates)
    assert not history.state.ledger.frozen


def test_a_table_with_an_old_snapshot_without_a_manifest_list_is_left_alone(
    no_floor: None,
) -> None:
    history = aged(5, retention(1, 0))
    first, *rest = history.metadata.snapshots
    inline = replace(first, manifest_list=None, manifests=("memory://m",))
    history.metadata = replace(history.metadata, snapshots=(inline, *rest))
    assert expirable(history.state, now_ms=history.now_ms) is None


@pytest.mark.parametrize(
    "wrong",
    [
        {"history.expire.min-snapshots-to-keep": "many"},
        {"history.expire.min-snapshots-to-keep": "0"},
        {"history.expire.max-snapshot-age-ms": "5 days"},
        {"history.expire.max-ref-age-ms": ""},
    ],
)
def test_a_property_that_cannot_be_read_expires_nothing(
    no_floor: None, wrong: dict[str, str]
) -> None:
    history = aged(5, retention(1, 0) | wrong)
    assert expirable(history.state, now_ms=history.now_ms) is None


# --- Whether and when ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("properties", "default", "expected"),
    [
        ({}, False, False),
        ({}, True, True),
        ({"frazil.expire.enabled": "true"}, False, True),
        ({"frazil.expire.enabled": " TRUE "}, False, True),
        ({"frazil.expire.enabled": "false"}, True, False),
        ({"frazil.expire.enabled": "yes"}, True, False),
        ({"gc.enabled": "false"}, True, False),
        ({"frazil.expire.enabled": "true", "gc.enabled": "false"}, True, False),
        ({"frazil.expire.enabled": "true", "gc.enabled": "true"}, False, True),
        (dict(NEW_TABLE_PROPERTIES), False, True),
    ],
)
def test_a_table_expires_where_it_or_the_operator_says_so_and_garbage_may_go(
    properties: dict[str, str], default: bool, expected: bool
) -> None:
    assert may_expire(properties, default=default) is expected


def due(history: History) -> ExpiredSnapshots | None:
    return due_expiry(history.state, now_ms=history.now_ms, needed=Needed(), default=False)


def test_an_expiry_waits_until_a_share_of_what_stays_has_gathered() -> None:
    history = aged(204, retention(200, 0))
    assert due(history) is None
    for _ in range(6):
        history.commit()
    history.now_ms += 1
    found = due(history)
    assert found is not None
    assert len(found.snapshots) == 10


def test_one_expiry_takes_a_bounded_number_the_oldest_first() -> None:
    history = aged(100 + EXPIRED_MAX + 7, retention(1, 0))
    found = due(history)
    assert found is not None
    assert found.snapshots == history.metadata.snapshots[:EXPIRED_MAX]


# --- Whether it still applies --------------------------------------------------------------------


def chosen(history: History) -> ExpiredSnapshots:
    found = expirable(history.state, now_ms=history.now_ms)
    assert found is not None
    return found


def test_what_was_chosen_applies_until_something_needs_it(no_floor: None) -> None:
    history = aged(5, retention(2, 0))
    found = chosen(history)
    now_ms = history.now_ms
    assert applicable_expiry(found, history.state, MAIN, now_ms=now_ms) is found
    history.commit()
    assert applicable_expiry(found, history.state, MAIN, now_ms=now_ms) is found
    history.tag("kept", found.snapshot_ids[-1])
    assert applicable_expiry(found, history.state, MAIN, now_ms=now_ms) is None
    history.apply(RemoveSnapshotRef("kept"))
    assert applicable_expiry(found, history.state, MAIN, now_ms=now_ms) is found
    history.apply(SetProperties({"gc.enabled": "false"}))
    assert applicable_expiry(found, history.state, MAIN, now_ms=now_ms) is None


def test_what_another_engine_has_removed_in_part_does_not_apply(no_floor: None) -> None:
    history = aged(5, retention(2, 0))
    found = chosen(history)
    history.apply(*ExpiredSnapshots(found.snapshots[:1]).updates)
    assert applicable_expiry(found, history.state, MAIN, now_ms=history.now_ms) is None
    assert not found.is_gone_from(history.metadata)
    history.apply(*found.updates)
    assert found.is_gone_from(history.metadata)


def test_a_commit_to_a_branch_does_not_take_along_that_the_branch_goes(no_floor: None) -> None:
    history = aged(3, retention(1, 0, ref_age_ms=1))
    history.branch("audit", history.metadata.snapshots[0].snapshot_id)
    found = chosen(history)
    assert applicable_expiry(found, history.state, "audit", now_ms=history.now_ms) is None
    assert applicable_expiry(found, history.state, MAIN, now_ms=history.now_ms) is found
