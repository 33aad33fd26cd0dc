"""Which files go: never one that a remaining snapshot needs, and in the end all others."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from committer.errors import InvalidMetadataError
from committer.iceberg.metadata.snapshot import MAIN, MetadataLogEntry, SnapshotRef
from committer.iceberg.updates.metadata_update import (
    RemoveSnapshotRef,
    RemoveSnapshots,
    SetProperties,
    SetSnapshotRef,
)
from committer.plan.cleanup.reachability import Gone, Unreachable, fallen_metadata_files
from committer.plan.ledger.evidence import COUNT_KEY
from tests.plan.histories import History

VERSIONS = (1, 2, 3)
OURS = {COUNT_KEY: "1"}


def expire(history: History, *snapshot_ids: int) -> tuple[Gone, Unreachable]:
    """Remove snapshots from the metadata and look for files that no snapshot needs any more."""
    metadata = history.metadata
    gone = Gone(
        tuple(one for one in metadata.snapshots if one.snapshot_id in snapshot_ids),
        tuple(one for one in metadata.statistics if one.snapshot_id in snapshot_ids),
    )
    history.apply(RemoveSnapshots(snapshot_ids))
    found = history.find_unreachable(gone)
    assert not set(found.in_order) & history.needed()
    return gone, found


def sweep(history: History, found: Unreachable) -> None:
    for each in found.in_order:
        history.objects.pop(each, None)


# --- One chain -----------------------------------------------------------------------------------


@pytest.mark.parametrize("version", VERSIONS)
def test_in_a_chain_the_lists_the_merged_manifests_and_the_deleted_files_go(version: int) -> None:
    history = History.empty(format_version=version)
    first = history.commit(added=["a", "b"])
    second = history.commit(added=["c"])
    history.commit(merged=2)
    third = history.commit(deleted=["a"])
    history.commit(added=["d"])
    _, found = expire(history, first.snapshot_id)
    assert found.manifest_lists == (first.manifest_list,)
    assert found.manifests == found.data_files == ()
    sweep(history, found)

    merging = history.metadata.snapshots[1]
    _, found = expire(history, second.snapshot_id)
    before_merge = {row.manifest_path for row in history.listed[second.snapshot_id]}
    assert set(found.manifests) == before_merge - history.needed()
    assert len(found.manifests) == 2
    assert found.data_files == ()
    sweep(history, found)

    _, found = expire(history, merging.snapshot_id, third.snapshot_id)
    assert found.data_files == ("a",)
    sweep(history, found)
    assert history.objects.keys() == {each for each in history.needed() if "/" in each}


def test_what_a_chain_costs_does_not_grow_with_the_table() -> None:
    history = History.empty()
    for number in range(60):
        history.commit(added=[f"f{number}"], summary=OURS)
    ids = [one.snapshot_id for one in history.metadata.snapshots]
    expire(history, *ids[:5])
    # Five lists that are gone, the oldest that is left, the head's; no manifest at all.
    assert history.reads == 5 + 2
    history.reads = 0
    history.commit(added=["foreign"])
    history.commit(added=["last"], summary=OURS)
    expire(history, *ids[5:10])
    assert history.reads == 5 + 2 + 1


def test_a_file_that_was_added_again_stays() -> None:
    history = History.empty()
    history.commit(added=["a", "b"])
    history.commit(deleted=["a"])
    history.commit(added=["a"])
    history.commit(added=["c"])
    ids = [one.snapshot_id for one in history.metadata.snapshots]
    _, found = expire(history, *ids[:2])
    assert found.data_files == ()
    assert "a" in history.needed()


def test_a_file_that_was_added_again_and_deleted_again_stays_for_who_reads_between() -> None:
    history = History.empty()
    history.commit(added=["a", "b"])
    history.commit(deleted=["a"])
    history.commit(added=["c"])
    history.commit(added=["a"])
    last = history.commit(deleted=["a"])
    history.commit(added=["d"])
    ids = [one.snapshot_id for one in history.metadata.snapshots]
    _, found = expire(history, *ids[:2])
    assert found.data_files == ()
    _, found = expire(history, *ids[2 : ids.index(last.snapshot_id) + 1])
    assert found.data_files == ("a",)


def test_a_manifest_that_was_added_again_and_merged_again_stays_for_who_reads_between() -> None:
    history = History.empty()
    first = history.commit(added=["a"])
    history.commit(added=["b"])
    second = history.commit(merged=2)
    history.again(first.snapshot_id)
    history.commit(merged=2)
    history.commit(added=["c"])
    _, found = expire(history, first.snapshot_id, first.snapshot_id + 1)
    assert second.snapshot_id in history.metadata.snapshots_by_id
    assert len(found.manifests) == 1


def test_a_puffin_file_stays_while_one_of_its_vectors_is_live() -> None:
    history = History.empty(format_version=3)
    history.commit(added=["a", "b"])
    history.commit(added=["dv.puffin#1", "dv.puffin#2"], vectors=True)
    history.commit(deleted=["dv.puffin#1"])
    history.commit(added=["c"])
    ids = [one.snapshot_id for one in history.metadata.snapshots]
    _, found = expire(history, *ids[:3])
    assert found.data_files == ()
    history.commit(deleted=["dv.puffin#2"])
    history.commit(added=["d"])
    _, found = expire(history, ids[3], history.metadata.snapshots[-2].snapshot_id)
    assert found.data_files == ("dv.puffin",)


def test_a_file_goes_with_the_snapshot_that_deleted_it_and_not_before() -> None:
    history = History.empty()
    first = history.commit(added=["a"])
    second = history.commit(deleted=["a"])
    history.commit(added=["b"])
    _, found = expire(history, first.snapshot_id)
    assert found.data_files == ()
    _, found = expire(history, second.snapshot_id)
    assert found.data_files == ("a",)


# --- Anything else -------------------------------------------------------------------------------


def test_a_tag_keeps_its_files_and_what_it_alone_kept_goes_with_it() -> None:
    history = History.empty()
    first = history.commit(added=["a", "b"])
    history.tag("kept", first.snapshot_id)
    second = history.commit(deleted=["a"])
    third = history.commit(added=["c"])
    history.commit(added=["d"])
    _, found = expire(history, second.snapshot_id, third.snapshot_id)
    assert found.data_files == ()
    sweep(history, found)
    history.apply(RemoveSnapshotRef("kept"))
    _, found = expire(history, first.snapshot_id)
    assert found.data_files == ("a",)


def test_a_file_whose_own_manifest_went_before_goes_with_the_snapshot_that_deleted_it() -> None:
    history = History.empty()
    first = history.commit(added=["a", "x"])
    second = history.commit(deleted=["a"])
    third = history.commit(added=["b"])
    _, found = expire(history, first.snapshot_id)
    assert found.data_files == ()
    history.branch("audit", third.snapshot_id)
    staged = history.commit(added=["c"], branch=None)
    history.commit(added=["d"])
    _, found = expire(history, second.snapshot_id, staged.snapshot_id)
    assert found.data_files == ("a", "c")


def test_a_rolled_back_snapshots_own_files_go_with_it() -> None:
    history = History.empty()
    first = history.commit(added=["a"])
    bad = history.commit(added=["b"], deleted=["a"])
    history.apply(SetSnapshotRef(MAIN, SnapshotRef(first.snapshot_id)))
    history.commit(added=["c"])
    _, found = expire(history, bad.snapshot_id)
    assert found.data_files == ("b",)
    assert found.manifest_lists == (bad.manifest_list,)


def test_a_cherry_picked_change_stays_when_what_it_was_picked_from_goes() -> None:
    history = History.empty()
    history.commit(added=["a"])
    staged = history.commit(added=["b"], branch=None)
    history.commit(added=["c"])
    source = {"source-snapshot-id": str(staged.snapshot_id)}
    picked = history.commit(added=["b"], summary=source)
    history.commit(added=["d"])
    _, found = expire(history, staged.snapshot_id)
    assert found.data_files == ()
    assert found.manifest_lists == (staged.manifest_list,)
    assert len(found.manifests) == 1
    sweep(history, found)
    ids = [one.snapshot_id for one in history.metadata.snapshots]
    _, found = expire(history, *ids[: ids.index(picked.snapshot_id) + 1])
    assert found.data_files == ()


def test_two_branches_share_files_until_both_have_lost_them() -> None:
    history = History.empty()
    first = history.commit(added=["a", "b"])
    history.branch("audit", first.snapshot_id)
    second = history.commit(deleted=["a"])
    history.commit(added=["c"])
    history.commit(added=["x"], branch="audit")
    _, found = expire(history, second.snapshot_id)
    assert found.data_files == ()
    history.apply(RemoveSnapshotRef("audit"))
    audit = history.metadata.snapshots[-1]
    _, found = expire(history, first.snapshot_id, audit.snapshot_id)
    assert found.data_files == ("a", "x")


# --- In any history ------------------------------------------------------------------------------


@st.composite
def actions(draw: st.DrawFn) -> list[tuple[str, int, int]]:
    kinds = st.sampled_from("aaaaddRmtTbrspEEE")
    return draw(st.lists(st.tuples(kinds, st.integers(0, 30), st.integers(0, 30)), max_size=30))


@pytest.mark.simulation
@settings(max_examples=250, deadline=None)
@given(actions(), st.sampled_from(VERSIONS))
def test_no_history_loses_what_is_needed_and_in_the_end_only_that_is_left(
    taken: list[tuple[str, int, int]], version: int
) -> None:
    history = History.empty(format_version=version)
    files: set[str] = set()
    history.commit(added=["f0"])
    files.add("f0")
    for kind, one, other in taken:
        _act(history, kind, one, other, files)
        missing = {each for each in history.needed() if "/" in each} - history.objects.keys()
        assert not missing
        assert not {each for each in history.needed() if "/" not in each} - files
    head = history.commit(added=["last"])
    files.add("last")
    for name in [name for name in history.metadata.refs if name != MAIN]:
        history.apply(RemoveSnapshotRef(name))
    left = [one.snapshot_id for one in history.metadata.snapshots if one != head]
    _expire(history, left, files)
    assert history.objects.keys() == {each for each in history.needed() if "/" in each}
    assert history.paths(head.snapshot_id) == files


def _act(history: History, kind: str, one: int, other: int, files: set[str]) -> None:
    metadata = history.metadata
    ids = [each.snapshot_id for each in metadata.snapshots]
    branches = [name for name, ref in metadata.refs.items() if ref.type == "branch"]
    branch = branches[one % len(branches)]
    target = ids[other % len(ids)]
    live = sorted(history.paths(metadata.refs[branch].snapshot_id))
    match kind:
        case "a":
            fresh = [f"f{len(ids)}.{one}.{other}.{history.now_ms}"]
            files.update(fresh)
            history.commit(added=fresh, branch=branch)
        case "d" if live:
            history.commit(deleted=[live[other % len(live)]], branch=branch)
        case "R" if dead := sorted(files - set(live)):
            history.commit(added=[dead[one % len(dead)]], branch=branch)
        case "m":
            history.commit(merged=2 + other % 3, branch=branch)
        case "t":
            history.tag(f"t{other % 3}", target)
        case "T" if f"t{other % 3}" in metadata.refs:
            history.apply(RemoveSnapshotRef(f"t{other % 3}"))
        case "b":
            history.branch("audit", target)
        case "r":
            history.apply(SetSnapshotRef(MAIN, SnapshotRef(target)))
        case "s":
            fresh = [f"s{len(ids)}.{history.now_ms}"]
            files.update(fresh)
            history.commit(added=fresh, branch=None)
        case "p":
            own = {each[0] for each in _added_by(history, target)}
            if own and not own & history.paths(metadata.refs[MAIN].snapshot_id):
                history.commit(added=sorted(own), summary={"source-snapshot-id": str(target)})
        case "E":
            heads = {ref.snapshot_id for ref in metadata.refs.values()}
            gone = [each for each in ids[: 1 + other % len(ids)] if each not in heads]
            _expire(history, gone, files)


def _added_by(history: History, snapshot_id: int) -> list[tuple[str, int, int, bool]]:
    """Return the additions of a snapshot that still exist: a cherry-pick may take them."""
    return [
        entry
        for entries in history.live[snapshot_id].values()
        for entry in entries
        if entry[1] == snapshot_id
    ]


def _expire(history: History, snapshot_ids: list[int], files: set[str]) -> None:
    if not snapshot_ids:
        return
    _, found = expire(history, *snapshot_ids)
    sweep(history, found)
    files -= set(found.data_files)


@settings(max_examples=60, deadline=None)
@given(actions(), st.integers(0, 30))
def test_a_clean_up_that_stops_anywhere_is_finished_by_the_next_one(
    taken: list[tuple[str, int, int]], stop: int
) -> None:
    history = History.empty()
    files = {"f0"}
    history.commit(added=["f0"])
    for kind, one, other in taken:
        _act(history, kind, one, other, files)
    history.commit(added=["last"])
    heads = {ref.snapshot_id for ref in history.metadata.refs.values()}
    ids = [one.snapshot_id for one in history.metadata.snapshots if one.snapshot_id not in heads]
    gone, found = expire(history, *ids)
    done, rest = found.in_order[:stop], found.in_order[stop:]
    for each in done:
        history.objects.pop(each, None)
    again = history.find_unreachable(gone)
    assert set(rest) <= set(again.in_order) <= set(found.in_order)


# --- What else stays -----------------------------------------------------------------------------


def test_what_a_waiting_request_names_stays() -> None:
    history = History.empty()
    first = history.commit(added=["a", "b"])
    second = history.commit(deleted=["a", "b"])
    history.commit(added=["c"])
    gone = Gone((first, second))
    history.apply(RemoveSnapshots((first.snapshot_id, second.snapshot_id)))
    manifest = history.find_unreachable(gone).manifests[0]
    found = history.find_unreachable(gone, named=["a", manifest])
    assert found.data_files == ("b",)
    assert manifest not in found.manifests


def test_statistics_go_with_their_snapshot_unless_another_names_the_file() -> None:
    history = History.empty()
    first = history.commit(added=["a"])
    second = history.commit(added=["b"])
    history.commit(added=["c"])
    paths = [history.statistics(one.snapshot_id) for one in (first, second)]
    _, found = expire(history, first.snapshot_id)
    assert found.statistics == (paths[0],)


def test_nothing_is_deleted_while_a_snapshot_is_there_after_all() -> None:
    history = History.empty()
    first = history.commit(added=["a"])
    history.commit(added=["b"])
    with pytest.raises(InvalidMetadataError, match="has not expired"):
        history.find_unreachable(Gone((first,)))


@pytest.mark.parametrize("tagged", [False, True])
def test_nothing_is_deleted_where_what_stays_cannot_be_read(tagged: bool) -> None:
    history = History.empty()
    first = history.commit(added=["a"])
    second = history.commit(added=["b"])
    if tagged:
        history.tag("kept", second.snapshot_id)
        history.commit(branch=None)
    history.commit(added=["c"])
    del history.objects[second.manifest_list or ""]
    history.apply(RemoveSnapshots((first.snapshot_id,)))
    with pytest.raises(InvalidMetadataError, match="needs it"):
        history.find_unreachable(Gone((first,)))


# --- Metadata files ------------------------------------------------------------------------------


def test_metadata_files_that_fell_off_the_log_go_where_the_table_wants_it() -> None:
    history = History.empty()
    log = tuple(MetadataLogEntry(number, f"m{number}") for number in range(4))
    base = replace(history.metadata, metadata_log=log[:3])
    after = replace(history.metadata, metadata_log=log[2:])
    assert fallen_metadata_files(base, after) == ()
    history.apply(SetProperties({"write.metadata.delete-after-commit.enabled": "true"}))
    after = replace(history.metadata, metadata_log=log[2:])
    assert fallen_metadata_files(base, after) == ("m0", "m1")
