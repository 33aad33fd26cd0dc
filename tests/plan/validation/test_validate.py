"""Each check of an operation: what conflicts, and what lands beside it.

Tests that name Java show a hole of Iceberg Java 1.12.0: its answer stands in a comment.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from committer.iceberg.entry.data_file import DataFile
from committer.iceberg.expressions.expression import (
    ALWAYS_TRUE,
    EqualTo,
    Expression,
    GreaterThan,
    LessThan,
    Reference,
)
from committer.iceberg.metadata.snapshot import SnapshotRef
from committer.iceberg.schema.partition_spec import PartitionField
from committer.iceberg.updates.metadata_update import (
    AddPartitionSpec,
    SetDefaultPartitionSpec,
    SetSnapshotRef,
    UpgradeFormatVersion,
)
from committer.iceberg.values.transforms import parse_transform
from committer.plan.operations.change import Base, Change, RemovedDelete
from tests.plan.branches import (
    data_file,
    equality_delete,
    path_of,
    position_delete,
)
from tests.plan.worlds import (
    AA,
    World,
    bare_equality_delete,
    build_world,
    empty_world,
    positions,
)

SERIALIZABLE = "serializable"
SNAPSHOT = "snapshot"
SMALL_IDS: Expression = LessThan(Reference("id"), 10)


def overwrite(world: World, base: Base, isolation: str = SERIALIZABLE, **needs: object) -> Change:
    """Overwrite carrier AA by a filter, as if the client had read the base."""
    found = {"row_filter": AA, "base": base, "isolation_level": isolation, **needs}
    return world.change("overwrite", data_file("new"), **found)


def rewrite(world: World, base: Base, *removed: str, **needs: object) -> Change:
    return world.change("rewrite-files", data_file("new"), removed=removed, base=base, **needs)


# --- The base ------------------------------------------------------------------------------------


def test_a_base_that_is_the_head_sees_no_conflict_and_reads_nothing() -> None:
    world = build_world()
    assert world.validate(overwrite(world, world.base)) is None
    assert world.rounds == ()


def test_a_base_of_another_branch_is_no_ancestor() -> None:
    world = build_world()
    fork = world.metadata.snapshots[-2].snapshot_id
    world.append(data_file("c"))
    other = world.base
    # The branch goes back: the base stays known, and is not in its history any more.
    world.update(SetSnapshotRef("main", SnapshotRef(fork)))
    assert world.code(overwrite(world, other)) == "ancestor"
    assert world.code(overwrite(world, replace(other, sequence_number=None))) == "ancestor"


def test_a_number_of_a_snapshot_that_was_rolled_back_is_no_base() -> None:
    world = build_world()
    fork, kept = world.metadata.snapshots[-1].snapshot_id, world.manifests
    world.append(data_file("c"))
    rolled_back = Base(sequence_number=world.base.sequence_number)
    world.update(SetSnapshotRef("main", SnapshotRef(fork)))
    world.manifests = kept
    assert world.code(overwrite(world, rolled_back)) == "ancestor"
    world.append(data_file("b2", "BB"))
    assert world.code(overwrite(world, rolled_back)) == "ancestor"
    assert world.code(overwrite(world, Base(sequence_number=3))) is None


def test_a_fork_has_the_base_that_was_read_before_it() -> None:
    world = build_world()
    base = world.base
    world.update(SetSnapshotRef("audit", SnapshotRef(base.snapshot_id or 0)))
    assert world.code(overwrite(world, base)) is None


@pytest.mark.parametrize(
    ("base", "code", "words"),
    [
        (Base(sequence_number=99), "ancestor", "no such state"),
        (Base(snapshot_id=101, sequence_number=2), "ancestor", "expected 2"),
        (Base(snapshot_id=77), "history", "has expired or never was"),
        (Base(snapshot_id=77, sequence_number=2), "ancestor", "not in the history of branch"),
    ],
)
def test_a_base_that_never_was_conflicts_with_a_sentence(base: Base, code: str, words: str) -> None:
    world = build_world()
    found = world.validate(overwrite(world, base))
    assert found is not None
    assert (found.code, words in found.message) == (code, True)


@pytest.mark.parametrize("operation", ["overwrite", "delete", "replace-partitions"])
def test_a_base_that_never_was_conflicts_where_nothing_else_rests_on_it(operation: str) -> None:
    world = build_world()
    files = () if operation == "delete" else (data_file("new"),)
    change = world.change(operation, *files)
    for base in (Base(snapshot_id=12345, sequence_number=99), Base(sequence_number=99)):
        found = world.validate(replace(change, base=base))
        assert found is not None and found.code == "ancestor"
        assert "there was no such state" in found.message
    found = world.validate(replace(change, base=replace(world.base, sequence_number=0)))
    assert found is not None and "expected 0" in found.message
    # It may have expired.
    assert world.code(replace(change, base=Base(snapshot_id=77, sequence_number=2))) is None
    assert world.code(replace(change, base=world.base)) is None


def test_no_base_asks_for_no_check_that_needs_one() -> None:
    world = build_world()
    assert world.validate(world.change("row-delta", bare_equality_delete("e"))) is None
    assert world.validate(world.change("overwrite", row_filter=AA)) is None
    assert world.rounds == ()


def test_a_base_that_has_expired_leaves_it_to_the_head() -> None:
    world = build_world()
    base = world.base
    world.append(data_file("b2", "BB"))
    world.append(data_file("b3", "BB"))
    world.expire()
    # Java, `pairs x` of the fixtures: X-history for everything.
    assert world.code(rewrite(world, base, "a1")) is None
    update = world.change(
        "row-delta",
        positions(world, "d", "a1"),
        base=base,
        isolation_level=SERIALIZABLE,
        conflict_filter=AA,
        referenced_data_files=frozenset({path_of("a1")}),
    )
    assert world.code(update) is None
    world.append(data_file("a3"))
    world.expire()
    assert world.code(update) == "added"


def test_a_vector_without_a_base_lands_where_history_has_expired() -> None:
    # Java has no start, so it asks for all ancestors: once the oldest has expired, it refuses every
    # vector, as of a Flink upsert.
    world = build_world(3)
    world.land(world.change("row-delta", *world.vectors("v1", a1=[1])))
    world.append(data_file("a3"))
    world.expire()
    change = world.change("row-delta", *world.vectors("v2", a1=[5], a3=[2]), base=Base())
    assert world.code(change) is None
    world.land(change)
    assert (world.positions("a1"), world.positions("a3")) == ([1, 5], [2])


@pytest.mark.parametrize(
    "base",
    [
        Base(sequence_number=0),
        Base(snapshot_id=0, sequence_number=0),
        Base(snapshot_id=0),
    ],
)
def test_an_empty_table_is_a_base_by_its_number(base: Base) -> None:
    world = empty_world()
    assert world.code(overwrite(world, base)) is None
    world.append(data_file("a1"))
    assert world.code(overwrite(world, base)) == "added"


def test_version_1_knows_what_is_new_by_its_snapshots() -> None:
    world = build_world(1)
    base = world.base
    assert base.sequence_number == 0
    assert world.code(overwrite(world, base)) is None
    world.append(data_file("a3"))
    assert world.code(overwrite(world, base)) == "added"
    assert world.code(overwrite(world, world.base)) is None
    world.expire()
    # The base is the parent of the last snapshot that is retained.
    assert world.code(overwrite(world, base)) == "added"
    world.append(data_file("b2", "BB"))
    world.expire()
    assert world.code(overwrite(world, base)) == "history"
    assert world.code(overwrite(world, Base(sequence_number=0))) == "added"


@pytest.mark.parametrize("version", [1, 2])
def test_a_base_that_has_just_expired_has_its_whole_history(version: int) -> None:
    world = build_world(version)
    base = Base(snapshot_id=world.base.snapshot_id)
    world.append(data_file("b2", "BB"))
    world.expire()
    assert world.code(overwrite(world, base)) is None
    world.append(data_file("a3"))
    assert world.code(overwrite(world, base)) == "added"


def test_version_1_tells_a_removed_file_by_the_history() -> None:
    world = build_world(1)
    base = world.base
    world.land(world.change("delete", removed=("a1",)))
    assert world.code(overwrite(world, base)) == "deleted"
    assert world.code(overwrite(world, world.base)) is None
    assert world.code(world.change("delete", removed=("a1",))) == "missing"


def test_files_of_version_1_stay_newer_than_their_base_after_an_upgrade() -> None:
    world = build_world(1)
    base = world.base
    world.append(data_file("a3"))
    world.update(UpgradeFormatVersion(2))
    world.append(data_file("b2", "BB"))
    found = world.validate(overwrite(world, base))
    assert found is not None
    assert (found.code, found.paths) == ("added", (path_of("a3"),))


# --- Added data files ----------------------------------------------------------------------------


def test_an_added_file_conflicts_in_scope_only() -> None:
    world = build_world()
    base = world.base
    change = world.change(
        "row-delta", data_file("x"), base=base, isolation_level=SERIALIZABLE, conflict_filter=AA
    )
    world.append(data_file("b2", "BB"))
    assert world.validate(change) is None
    assert not world.rounds  # the manifest's partition summary tells
    world.append(data_file("a3"), data_file("a4"))
    found = world.validate(change)
    assert found is not None
    assert found.code == "added"
    assert found.snapshot_id == world.snapshot.snapshot_id
    assert found.paths == (path_of("a3"), path_of("a4"))
    assert f"snapshot {found.snapshot_id} added 2 data files that may hold" in found.message
    assert f'rows with ref(name="carrier") == "AA", first {path_of("a3")}' in found.message
    assert [len(one) for one in world.rounds] == [1]
    assert world.code(replace(change, isolation_level="snapshot")) is None
    assert world.code(overwrite(world, base)) == "added"


def test_the_metrics_of_an_added_file_keep_it_out_of_scope() -> None:
    world = build_world()
    base = world.base
    world.append(data_file("a3", ids=(10, 20)))
    small = overwrite(world, base, row_filter=SMALL_IDS)
    assert world.code(small) is None
    world.append(data_file("a4", ids=(9, 20)))
    assert world.code(small) == "added"


def test_values_that_another_engine_has_written_wrong_prove_nothing() -> None:
    world = build_world()
    base = world.base
    file = data_file("a3", ids=(50, 60))
    wrong = world.added(replace(file, upper_bounds={1: b"abc"}, lower_bounds={1: b"abc"}))
    world.land(replace(world.change("append"), added=wrong))
    assert world.code(overwrite(world, base, row_filter=SMALL_IDS)) == "added"


def test_a_name_in_another_case_is_bound_as_the_request_says() -> None:
    world = build_world()
    base = world.base
    world.append(data_file("b2", "BB"))
    other = overwrite(
        world, base, row_filter=EqualTo(Reference("CARRIER"), "AA"), case_sensitive=False
    )
    assert world.code(other) is None
    world.append(data_file("a3"))
    assert world.code(other) == "added"


@pytest.mark.parametrize("version", [1, 2])
def test_rewritten_files_are_not_added_ones(version: int) -> None:
    world = build_world(version)
    base = world.base
    world.land(rewrite(world, base, "a1", "a2"))
    update = world.change("row-delta", data_file("x"), base=base, isolation_level=SERIALIZABLE)
    assert world.code(update) is None
    # Without its snapshot nothing says that it was a rewrite.
    world.append(data_file("b2", "BB"))
    world.expire()
    assert world.code(update) == ("history" if version == 1 else "added")


def test_a_rewrite_with_a_number_stays_known_without_its_snapshot() -> None:
    world = build_world()
    base = world.base
    world.land(rewrite(world, base, "a1", "a2", data_sequence_number=base.sequence_number))
    world.append(data_file("b2", "BB"))
    world.expire()
    update = world.change(
        "row-delta", data_file("x"), base=base, isolation_level=SERIALIZABLE, conflict_filter=AA
    )
    assert world.code(update) is None


@pytest.mark.parametrize("version", [1, 2])
def test_a_rewrite_of_files_newer_than_the_base_hides_none_of_them(version: int) -> None:
    world = build_world(version)
    base = world.base
    world.append(data_file("a3"))
    world.land(rewrite(world, world.base, "a2", "a3"))
    assert world.code(overwrite(world, base)) == "added"


@pytest.mark.parametrize("version", [1, 2])
def test_a_rewrite_of_rewritten_files_is_one(version: int) -> None:
    world = build_world(version)
    base = world.base
    world.land(rewrite(world, base, "a1", "a2"))
    again = world.change("rewrite-files", data_file("x2"), removed=("new",), base=world.base)
    world.land(again)
    update = world.change("row-delta", data_file("x"), base=base, isolation_level=SERIALIZABLE)
    assert world.code(update) is None
    world.land(world.change("overwrite", data_file("x3", rows=9), removed=("x2",)))
    assert world.code(update) == "added"


def test_data_added_under_the_label_of_a_rewrite_conflicts() -> None:
    # Java trusts the label: it lands, and the overwrite deletes rows that it has not read.
    world = build_world()
    base = world.base
    world.label = "replace"
    world.append(data_file("a3"))
    assert world.code(overwrite(world, base)) == "added"


def test_more_rows_than_a_rewrite_removed_are_added_ones() -> None:
    # Java as before: the label says that nothing was added.
    world = build_world()
    base = world.base
    world.label = "replace"
    world.land(world.change("overwrite", data_file("a3", rows=11), removed=("a1",)))
    update = world.change("row-delta", data_file("x"), base=base, isolation_level=SERIALIZABLE)
    assert world.code(update) == "added"


def test_data_added_under_any_other_label_conflicts() -> None:
    # Java looks at appends and overwrites only: behind a row delta that is labeled delete it lands.
    world = build_world()
    base = world.base
    world.label = "delete"
    world.append(data_file("a3"))
    assert world.code(overwrite(world, base)) == "added"


def test_a_conflict_filter_that_is_narrower_than_the_row_filter_is_widened_by_it() -> None:
    # Java takes the conflict filter: it lands, and a3 is removed unread.
    world = build_world()
    base = world.base
    world.append(data_file("a3", ids=(50, 60)))
    assert world.code(overwrite(world, base, conflict_filter=SMALL_IDS)) == "added"


def test_a_conflict_filter_that_matches_less_than_was_read_is_not_believed() -> None:
    # Java believes it: a client that reads more than its filter is not serializable.
    world = build_world()
    base = world.base
    change = world.change(
        "overwrite",
        data_file("x"),
        removed=("a1", "b1"),
        base=base,
        isolation_level=SERIALIZABLE,
        conflict_filter=AA,
    )
    assert world.code(change) is None
    world.append(data_file("b2", "BB"))
    assert world.code(change) == "added"
    assert world.code(replace(change, removed_data_files=frozenset({path_of("a1")}))) is None


# --- Deletes in scope ----------------------------------------------------------------------------


def test_equality_deletes_conflict_where_their_values_are_in_scope() -> None:
    world = build_world()
    base = world.base
    small = overwrite(world, base, SNAPSHOT, row_filter=SMALL_IDS)
    world.land(world.change("row-delta", equality_delete("e1", ids=(10, 20))))
    assert world.code(small) is None
    assert world.code(overwrite(world, base, SNAPSHOT)) == "newdel"
    world.land(world.change("row-delta", equality_delete("e2", ids=(9, 9))))
    found = world.validate(small)
    assert found is not None
    assert (found.code, found.paths) == ("newdel", (path_of("e2"),))


def test_values_that_an_equality_delete_does_not_compare_say_nothing() -> None:
    # Java asks for all metrics of the delete file: of a column that is only carried it believes
    # bounds that are not those of the deleted rows.
    world = build_world()
    base = world.base
    file = equality_delete("e1", ids=(50, 60))
    world.land(world.change("row-delta", replace(file, equality_ids=(2,))))
    assert world.code(overwrite(world, base, SNAPSHOT, row_filter=SMALL_IDS)) == "newdel"


@pytest.mark.parametrize("version", [2, 3])
def test_position_deletes_conflict_by_their_partition(version: int) -> None:
    world = build_world(version)
    base = world.base
    others = overwrite(world, base, SNAPSHOT, row_filter=EqualTo(Reference("carrier"), "BB"))
    world.land(world.change("row-delta", positions(world, "d", "a1")))
    assert world.code(others) is None
    assert world.code(overwrite(world, base, SNAPSHOT)) == "newdel"
    # Metrics of a position delete are not those of the rows that it deletes.
    assert world.code(overwrite(world, base, SNAPSHOT, row_filter=SMALL_IDS)) == "newdel"


def test_deletes_conflict_whatever_their_snapshot_is_labeled() -> None:
    # Java looks at overwrites and deletes only.
    world = build_world()
    base = world.base
    world.label = "append"
    world.land(world.change("row-delta", bare_equality_delete("e1")))
    assert world.code(overwrite(world, base, SNAPSHOT)) == "newdel"
    world.label = "replace"
    world.land(world.change("row-delta", bare_equality_delete("e2")))
    assert (
        world.code(overwrite(world, replace(base, sequence_number=4, snapshot_id=None))) is not None
    )
    later = Base(sequence_number=4)
    assert world.code(overwrite(world, later, SNAPSHOT)) == "newdel"


def test_an_update_lands_beside_deletes_in_files_that_it_does_not_touch() -> None:
    world = build_world()
    base = world.base
    update = world.change(
        "row-delta",
        position_delete("d1", of="a1"),
        data_file("n1"),
        base=base,
        conflict_filter=AA,
        isolation_level=SNAPSHOT,
        updates_rows=True,
        referenced_data_files=frozenset({path_of("a1")}),
    )
    world.land(world.change("row-delta", position_delete("d2", of="a2")))
    # Java: X-newdel.
    assert world.code(update) is None
    # A row that it has read and left alone is gone: under serializable that counts.
    assert world.code(replace(update, isolation_level="serializable")) == "newdel"
    world.land(world.change("row-delta", position_delete("d3", of="a1")))
    found = world.validate(update)
    assert found is not None
    assert (found.code, found.paths) == ("newdel", (path_of("d3"),))


def test_an_update_conflicts_with_equality_deletes_in_the_range_of_its_files() -> None:
    world = empty_world()
    world.append(data_file("a1", ids=(0, 9)))
    base = world.base
    update = world.change(
        "row-delta",
        position_delete("d1", of="a1"),
        data_file("n1"),
        base=base,
        updates_rows=True,
        referenced_data_files=frozenset({path_of("a1")}),
    )
    world.land(world.change("row-delta", equality_delete("e1", ids=(10, 20))))
    assert world.code(update) is None
    world.land(world.change("row-delta", equality_delete("e2", ids=(9, 9))))
    assert world.code(update) == "newdel"


def test_an_update_that_does_not_say_which_files_conflicts_with_any_delete_in_scope() -> None:
    world = build_world()
    base = world.base
    update = world.change(
        "row-delta", position_delete("d1"), data_file("n1"), base=base, updates_rows=True
    )
    world.land(world.change("row-delta", position_delete("d2", "BB", of="b1")))
    assert world.code(update) == "newdel"
    assert world.code(replace(update, conflict_filter=AA)) is None


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("isolation", [None, SNAPSHOT, SERIALIZABLE])
def test_an_update_conflicts_with_deletes_in_its_files_beside_its_conflict_filter(
    version: int, isolation: str | None
) -> None:
    # Java takes the conflict filter: it lands, and a deleted row is back.
    world = empty_world(version)
    world.append(data_file("a1", ids=(0, 9)))
    world.append(data_file("a2", ids=(20, 22)))
    update = world.change(
        "row-delta",
        world.vectors("v", a2=[1])[0] if version > 2 else position_delete("d1", of="a2"),
        data_file("n1", ids=(21, 21)),
        base=world.base,
        isolation_level=isolation,
        conflict_filter=EqualTo(Reference("id"), 999),
        updates_rows=True,
        referenced_data_files=frozenset({path_of("a2")}),
    )
    world.land(world.change("row-delta", equality_delete("e1", ids=(5, 5))))
    assert world.code(update) is None
    world.land(world.change("row-delta", equality_delete("e2", ids=(21, 21))))
    found = world.validate(update)
    assert found is not None
    assert (found.code, found.paths) == ("newdel", (path_of("e2"),))
    assert world.code(replace(update, base=world.base)) is None


def test_an_update_of_unnamed_files_conflicts_with_deletes_that_may_be_of_them() -> None:
    # Java takes the conflict filter, as above.
    world = build_world()
    update = world.change(
        "row-delta",
        position_delete("d1"),
        data_file("n1"),
        base=world.base,
        conflict_filter=EqualTo(Reference("carrier"), "CC"),
        updates_rows=True,
    )
    world.land(world.change("row-delta", equality_delete("e1", "BB", ids=(5, 5))))
    assert world.code(update) is None
    base = world.base
    world.land(world.change("row-delta", equality_delete("e2", ids=(5, 5))))
    assert world.code(update) == "newdel"
    assert world.code(replace(update, base=base)) == "newdel"
    base = world.base
    assert world.code(replace(update, base=base)) is None
    _change_spec(world)
    everywhere = equality_delete("e3", ids=(5, 5))
    world.land(world.change("row-delta", replace(everywhere, spec_id=1, partition=())))
    by_id = replace(update, base=base, conflict_filter=EqualTo(Reference("id"), 999))
    assert world.code(by_id) == "newdel"


# --- Moved rows ----------------------------------------------------------------------------------


def delete_of(world: World, of: str, isolation: str = SNAPSHOT) -> Change:
    """Build a DELETE by positions in a file, as if its client had read the head."""
    delete = position_delete("d1", of=of)
    return world.change("row-delta", delete, base=world.base, isolation_level=isolation)


def land_update(world: World, of: str | None = "a1") -> None:
    """Land an UPDATE of rows of a file, or of any of its partition: `u` deletes, `n` adds."""
    world.land(world.change("row-delta", position_delete("u", of=of), data_file("n")))


@pytest.mark.parametrize("isolation", [SNAPSHOT, SERIALIZABLE])
def test_a_delete_conflicts_with_an_update_that_has_moved_rows_of_its_file(isolation: str) -> None:
    # Java looks at added data only, and that under serializable: a row that was moved within the
    # conflict filter, or out of it, survives its delete.
    world = build_world()
    delete = replace(delete_of(world, "a1", isolation), conflict_filter=SMALL_IDS)
    other = replace(delete_of(world, "a2", isolation), conflict_filter=SMALL_IDS)
    file = data_file("n", ids=(50, 60))
    world.land(world.change("row-delta", position_delete("u", of="a1"), file))
    found = world.validate(delete)
    assert found is not None
    assert (found.code, found.paths) == ("newdel", (path_of("u"),))
    assert found.snapshot_id == world.snapshot.snapshot_id
    assert "may have moved rows" in found.message
    assert world.code(other) is None
    # Without an isolation level only the files that it names count.
    assert world.code(replace(delete, isolation_level=None)) is None


def test_a_delete_lands_beside_deletes_upserts_and_appends() -> None:
    world = build_world()
    delete = delete_of(world, "a1")
    world.land(world.change("row-delta", position_delete("d2", of="a1")))
    world.land(world.change("row-delta", position_delete("d3")))
    world.land(world.change("row-delta", bare_equality_delete("e1"), data_file("a3")))
    world.append(data_file("a4"))
    assert world.code(delete) is None


def test_an_update_that_does_not_say_which_files_may_have_moved_rows_of_any() -> None:
    world = build_world()
    delete = delete_of(world, "a1")
    needs = {"base": world.base, "isolation_level": SNAPSHOT}
    bare = world.change("row-delta", position_delete("d1"), **needs)
    elsewhere = world.change("row-delta", position_delete("d1", "BB"), **needs)
    land_update(world, of=None)
    assert world.code(delete) == "newdel"
    assert world.code(bare) == "newdel"
    assert world.code(elsewhere) is None


def test_a_moved_row_is_known_once_its_snapshot_has_expired() -> None:
    world = build_world()
    delete = delete_of(world, "a1")
    land_update(world)
    world.append(data_file("b2", "BB"))
    world.expire()
    assert world.code(delete) == "newdel"
    world.land(world.change("rewrite-files", data_file("x"), removed=("n",), base=world.base))
    assert world.code(delete) == "newdel"
    world.expire()
    assert world.code(delete) == "newdel"


def test_rows_that_may_have_been_moved_by_an_expired_update_are_taken_for_moved() -> None:
    world = build_world()
    delete = delete_of(world, "a1")
    world.land(world.change("row-delta", position_delete("d2", of="a1")))
    world.expire()
    assert world.code(delete) is None
    # Of rows that were in the table at the base, or were appended by a snapshot that is retained.
    base = replace(world.base, snapshot_id=None)
    world.land(world.change("rewrite-files", data_file("x"), removed=("a2",), base=base))
    world.append(data_file("a4"))
    assert world.code(delete) is None
    world.append(data_file("a5"))
    world.expire()
    assert world.code(delete) == "newdel"


def test_a_moved_row_is_known_once_its_files_were_rewritten() -> None:
    world = build_world()
    delete = delete_of(world, "a1")
    land_update(world)
    world.land(world.change("rewrite-files", data_file("x"), removed=("n",), base=world.base))
    assert world.code(delete) == "newdel"
    names = frozenset({world.identity("u")})
    rewritten = position_delete("u2", of="a1")
    world.land(
        world.change("rewrite-files", rewritten, removed_delete_files=names, base=world.base)
    )
    found = world.validate(delete)
    assert found is not None
    assert (found.code, found.paths) == ("newdel", (path_of("u2"),))


def test_rewritten_deletes_without_an_update_have_moved_nothing() -> None:
    world = build_world()
    delete = delete_of(world, "a1")
    world.land(world.change("row-delta", position_delete("d2", of="a1")))
    names = frozenset({world.identity("d2")})
    rewritten = position_delete("d3", of="a1")
    world.land(
        world.change("rewrite-files", rewritten, removed_delete_files=names, base=world.base)
    )
    assert world.code(delete) is None


def test_a_delete_on_the_head_reads_nothing_for_rows_that_others_may_have_moved() -> None:
    world = build_world()
    land_update(world)
    delete = delete_of(world, "a1")
    assert world.code(delete) is None
    rounds = world.rounds
    assert world.code(replace(delete, isolation_level=None)) is None
    assert world.rounds == rounds


# --- Deletes of removed files --------------------------------------------------------------------


def test_a_file_that_an_update_replaces_has_got_no_deletes_since() -> None:
    world = build_world()
    base = world.base
    update = world.change(
        "row-delta",
        position_delete("d1", of="a2"),
        data_file("n1"),
        removed=("a1",),
        base=base,
        updates_rows=True,
        referenced_data_files=frozenset({path_of("a2")}),
    )
    world.land(world.change("row-delta", position_delete("d2", "BB", of="b1")))
    assert world.code(update) is None
    world.land(world.change("row-delta", position_delete("d3", of="a1")))
    found = world.validate(update)
    assert found is not None
    assert (found.code, found.paths) == ("filedel", (path_of("d3"),))


def test_partition_wide_position_deletes_hit_each_file_of_their_partition() -> None:
    world = build_world()
    base = world.base
    world.land(world.change("row-delta", position_delete("d1", "BB")))
    assert world.code(rewrite(world, base, "a1", "a2")) is None
    world.land(world.change("row-delta", position_delete("d2")))
    found = world.validate(rewrite(world, base, "a1", "a2"))
    assert found is not None
    assert (found.code, found.paths) == ("filedel", (path_of("d2"),))
    assert "hit files to be removed" in found.message


@pytest.mark.parametrize("number", [None, 3])
def test_file_scoped_position_deletes_hit_their_file_alone(number: int | None) -> None:
    world = build_world()
    base = world.base
    world.land(world.change("row-delta", position_delete("d1", of="a2")))
    code = "filedel" if number is None else "filepos"
    assert world.code(rewrite(world, base, "a1", data_sequence_number=number)) is None
    assert world.code(rewrite(world, base, "a2", data_sequence_number=number)) == code


def test_deletion_vectors_hit_their_file_alone() -> None:
    world = build_world(3)
    base = world.base
    world.land(world.change("row-delta", *world.vectors("d1", a2=[1])))
    assert world.code(rewrite(world, base, "a1")) is None
    assert world.code(rewrite(world, base, "a2")) == "filedel"
    # Two of an unrelated file, as a hole of other writers leaves them, hinder nothing.
    broken = world.added(*world.vectors("d2", a2=[2]))
    world.land(replace(world.change("append"), added=broken))
    assert world.code(rewrite(world, base, "a1")) is None


def test_equality_deletes_hit_files_by_partition_ranges_and_nulls() -> None:
    world = empty_world()
    world.append(data_file("a1", ids=(0, 9)), data_file("b1", "BB", ids=(0, 9)))
    base = world.base
    world.land(world.change("row-delta", equality_delete("e1", ids=(10, 20))))
    assert world.code(rewrite(world, base, "a1")) is None
    nulls = replace(
        equality_delete("e2", ids=(10, 20)), null_value_counts={1: 1}, value_counts={1: 11}
    )
    world.land(world.change("row-delta", nulls))
    assert world.code(rewrite(world, base, "a1")) is None  # it has no nulls
    world.land(world.change("row-delta", equality_delete("e3", ids=(9, 20))))
    assert world.code(rewrite(world, base, "a1")) == "filedel"
    assert world.code(rewrite(world, base, "b1")) is None
    assert world.code(rewrite(world, base, "a1", data_sequence_number=1)) is None


def test_equality_deletes_without_a_partition_hit_files_of_every_partition() -> None:
    world = build_world()
    base = world.base
    _change_spec(world)
    everywhere = replace(bare_equality_delete("e1"), partition=(), spec_id=1)
    world.land(world.change("row-delta", everywhere))
    assert world.code(rewrite(world, base, "b1")) == "filedel"


def test_deletes_of_the_base_are_not_new_for_it() -> None:
    world = build_world()
    world.land(world.change("row-delta", bare_equality_delete("e1"), position_delete("d1")))
    assert world.code(rewrite(world, world.base, "a1", "a2")) is None


def test_rewritten_deletes_are_not_new_ones() -> None:
    world = build_world()
    world.land(world.change("row-delta", position_delete("d1"), position_delete("d2")))
    base = world.base
    names = frozenset({world.identity("d1"), world.identity("d2")})
    world.land(
        world.change("rewrite-files", position_delete("d3"), removed_delete_files=names, base=base)
    )
    assert world.code(rewrite(world, base, "a1")) is None
    world.append(data_file("b2", "BB"))
    world.expire()
    assert world.code(rewrite(world, base, "a1")) == "filedel"


# --- Removed files -------------------------------------------------------------------------------


def test_a_file_that_was_removed_from_the_scope_conflicts() -> None:
    world = build_world()
    base = world.base
    world.land(world.change("delete", removed=("b1",)))
    assert world.code(overwrite(world, base, SNAPSHOT)) is None
    world.land(world.change("delete", removed=("a1",)))
    found = world.validate(overwrite(world, base, SNAPSHOT))
    assert found is not None
    assert (found.code, found.paths) == ("deleted", (path_of("a1"),))
    assert found.snapshot_id == world.snapshot.snapshot_id


def test_a_file_that_came_and_went_was_never_read() -> None:
    world = build_world()
    base = world.base
    world.append(data_file("a3"))
    world.land(world.change("delete", removed=("a3",)))
    # Java: X-deleted.
    assert world.code(overwrite(world, base)) is None


def test_removed_files_are_never_guessed_at_once_their_history_has_expired() -> None:
    world = build_world()
    base = world.base
    world.append(data_file("b2", "BB"))
    world.expire()
    # No snapshot is missing between the two.
    assert world.code(overwrite(world, base, SNAPSHOT)) is None
    assert world.code(overwrite(world, Base(sequence_number=3), SNAPSHOT)) is None
    world.append(data_file("b3", "BB"))
    world.expire()
    found = world.validate(overwrite(world, base, SNAPSHOT))
    assert found is not None
    assert (found.code, "has expired" in found.message) == ("history", True)


@pytest.mark.parametrize("version", [2, 3])
def test_deletes_of_a_file_that_never_was_conflict(version: int) -> None:
    # Java sees removals only: `exist` passes for a path that never was.
    world = build_world(version)
    is_third = version > 2
    delete = (
        world.vectors("d1", nowhere=[0])[0] if is_third else position_delete("d1", of="nowhere")
    )
    change = world.change("row-delta", delete)
    found = world.validate(replace(change, referenced_data_files=frozenset({path_of("gone")})))
    assert found is not None
    assert (found.code, found.paths) == ("exist", (path_of("gone"), path_of("nowhere")))


def with_bounds(delete: DataFile, lower: str, upper: str) -> DataFile:
    """Give a position delete file bounds of its column `file_path`."""
    column = 2147483546
    return replace(
        delete,
        lower_bounds={column: path_of(lower).encode()},
        upper_bounds={column: path_of(upper).encode()},
    )


def test_equal_bounds_name_the_data_file_of_a_position_delete() -> None:
    world = build_world()
    delete = position_delete("d1")
    change = world.change("row-delta", with_bounds(delete, "a1", "a1"))
    several = world.change("row-delta", with_bounds(delete, "a1", "a2"))
    assert world.code(change) is None
    world.land(rewrite(world, world.base, "a1"))
    found = world.validate(change)
    assert found is not None
    assert (found.code, found.paths) == ("exist", (path_of("a1"),))
    assert world.code(several) is None


def test_position_deletes_of_unnamed_files_conflict_with_a_removal_in_their_partition() -> None:
    # Java looks at the files that its client lists, and at none here: it lands, and rows that a
    # compaction has moved survive their delete.
    world = build_world()
    base = world.base
    delete = world.change("row-delta", position_delete("d1"), base=base)
    world.append(data_file("a3"))
    world.land(world.change("delete", removed=("b1",)))
    world.land(world.change("delete", removed=("a3",)))
    assert world.code(delete) is None
    world.land(rewrite(world, base, "a1"))
    found = world.validate(delete)
    assert found is not None
    assert (found.code, found.paths) == ("deleted", (path_of("a1"),))
    # A client that has listed its files, or has read nothing, is asked for nothing else.
    listed = replace(delete, referenced_data_files=frozenset({path_of("a2")}))
    assert world.code(listed) is None
    assert world.code(replace(delete, base=Base())) is None
    bound = world.change("row-delta", with_bounds(position_delete("d1"), "a2", "a2"), base=base)
    assert world.code(bound) is None


@pytest.mark.parametrize("version", [2, 3])
def test_deletes_of_a_file_that_was_deleted_meanwhile_conflict(version: int) -> None:
    # Java does not look at deletes for a DELETE: it lands, and its vector or delete file dangles.
    world = build_world(version)
    base = world.base
    delete = world.vectors("d1", a1=[0])[0] if version > 2 else position_delete("d1", of="a1")
    change = world.change("row-delta", delete, base=base, isolation_level=SNAPSHOT)
    world.land(world.change("delete", removed=("a1",)))
    assert world.code(change) == "exist"


def test_a_named_file_that_a_rewrite_has_replaced_is_missing() -> None:
    # Java lets both land, and the rows live on in the file of the rewrite.
    world = build_world()
    base = world.base
    world.land(rewrite(world, base, "a1"))
    found = world.validate(world.change("delete", removed=("a1", "a2")))
    assert found is not None
    assert (found.code, found.paths) == ("missing", (path_of("a1"),))


def test_a_copy_of_a_file_that_was_never_there_is_refused_at_any_isolation() -> None:
    # Java without a check doubles the rows: the file is skipped, its copy is added.
    world = build_world()
    assert world.code(world.change("overwrite", data_file("x"), removed=("zz",))) == "missing"


def test_a_named_file_outside_of_the_likely_manifests_is_found_in_the_others() -> None:
    world = build_world()
    change = world.change(
        "overwrite",
        data_file("x"),
        removed=("b1",),
        base=world.base,
        conflict_filter=AA,
        isolation_level=SNAPSHOT,
    )
    assert world.code(change) is None
    assert [len(one) for one in world.rounds] == [2, 1]


# --- Partitions and specs ------------------------------------------------------------------------


def _change_spec(world: World, *fields: PartitionField) -> None:
    """Give the table another spec, with the id 1."""
    world.update(AddPartitionSpec(replace(world.metadata.default_spec, spec_id=1, fields=fields)))
    world.update(SetDefaultPartitionSpec(1))


BY_DAY = PartitionField((3,), 1001, "day", parse_transform("identity"))


def test_a_file_of_another_spec_is_in_a_replaced_partition_by_its_values() -> None:
    # Java compares spec and tuple: it lands, leaves the file live, and the rows are there twice.
    world = build_world()
    base = world.base
    replaced = world.change(
        "replace-partitions", data_file("x"), base=base, isolation_level=SERIALIZABLE
    )
    _change_spec(world, BY_DAY)
    world.append(data_file("c1", "BB", spec_id=1, partition=(1,)))
    assert world.code(replaced) is None
    world.append(data_file("c2", "AA", spec_id=1, partition=(1,)))
    found = world.validate(replaced)
    assert found is not None
    assert (found.code, found.paths) == ("added", (path_of("c2"),))
    assert "1 partitions of spec 0" in found.message


def test_a_removal_under_another_spec_conflicts_with_a_replaced_partition() -> None:
    world = build_world()
    _change_spec(world, BY_DAY)
    world.append(data_file("c1", "AA", spec_id=1, partition=(1,)))
    base = world.base
    replaced = world.change(
        "replace-partitions", data_file("x"), base=base, isolation_level=SNAPSHOT
    )
    world.land(world.change("delete", removed=("c1",)))
    # Java: ok, it misses the removal.
    assert world.code(replaced) == "deleted"


def test_a_replaced_partition_of_no_fields_is_the_whole_table() -> None:
    world = build_world()
    base = world.base
    _change_spec(world)
    change = world.change(
        "replace-partitions",
        data_file("x", spec_id=1, partition=()),
        base=base,
        isolation_level=SERIALIZABLE,
    )
    assert world.code(change) is None
    world.append(data_file("b2", "BB"))
    assert world.code(change) == "added"


def test_partitions_that_are_only_appended_to_have_to_be_empty() -> None:
    world = build_world()
    change = world.change("replace-partitions", data_file("x", "CC"), append_only=True)
    assert world.code(change) is None
    change = world.change("replace-partitions", data_file("x", "AA"), append_only=True)
    found = world.validate(change)
    assert found is not None
    assert (found.code, set(found.paths)) == ("live", {path_of("a1"), path_of("a2")})


def test_deletes_of_a_file_have_to_be_of_its_partition() -> None:
    world = build_world(3)
    vector = world.vectors("d1", b1=[0])[0]
    assert vector.partition == ("AA",)
    found = world.validate(world.change("row-delta", vector))
    assert found is not None
    assert (found.code, "another partition" in found.message) == ("partition", True)
    right = world.change("row-delta", replace(vector, partition=("BB",)))
    assert world.code(right) is None
    rewritten = world.change(
        "rewrite-files",
        vector,
        base=world.base,
        removed_delete_files=frozenset({RemovedDelete(path_of("d0"))}),
    )
    assert world.code(rewritten) == "partition"


def test_a_vector_may_be_for_a_file_of_its_own_request() -> None:
    # Flink deletes rows of the same checkpoint so.
    world = build_world(3)
    own = world.vectors("d1", x=[0])[0]
    assert world.code(world.change("row-delta", data_file("x"), own)) is None
    wrong = world.change("row-delta", data_file("x", "BB"), own)
    assert world.code(wrong) == "partition"
    assert world.code(world.change("row-delta", data_file("y"), own)) == "exist"


# --- Added and rewritten rows --------------------------------------------------------------------


def test_added_files_lie_within_the_row_filter_where_that_is_asked() -> None:
    world = build_world()
    change = world.change(
        "overwrite", data_file("x", ids=(0, 9)), row_filter=AA, added_files_match_filter=True
    )
    assert world.code(change) is None
    assert world.code(replace(change, row_filter=SMALL_IDS)) is None
    assert world.code(replace(change, row_filter=GreaterThan(Reference("id"), 0))) == "partial"
    other = world.change(
        "overwrite", data_file("y", "BB"), row_filter=AA, added_files_match_filter=True
    )
    found = world.validate(other)
    assert found is not None
    assert (found.code, found.paths) == ("partial", (path_of("y"),))
    assert world.code(replace(other, added_files_match_filter=False)) is None
    assert world.code(replace(other, row_filter=ALWAYS_TRUE)) is None


def test_a_rewrite_adds_no_rows() -> None:
    world = build_world()
    base = world.base
    same = world.change("rewrite-files", data_file("x", rows=20), removed=("a1", "a2"), base=base)
    assert world.code(same) is None
    more = world.change("rewrite-files", data_file("x", rows=21), removed=("a1", "a2"), base=base)
    found = world.validate(more)
    assert found is not None
    assert (found.code, "21 rows in the place of 20" in found.message) == ("rows", True)


def test_a_rewrite_gives_no_file_a_number_below_that_of_its_rows() -> None:
    # Java takes any number: an equality delete of number 2 hits a2, of number 2, no more.
    world = build_world()
    base = world.base
    assert world.code(rewrite(world, base, "a1", "a2", data_sequence_number=2)) is None
    found = world.validate(rewrite(world, base, "a1", "a2", data_sequence_number=1))
    assert found is not None
    assert (found.code, found.paths) == ("rows", (path_of("a2"),))


def test_a_rewrite_gives_no_file_a_number_above_its_base() -> None:
    # Java takes any number: an equality delete between the two would never hit the new file.
    world = build_world()
    base = world.base
    world.land(world.change("row-delta", bare_equality_delete("e1")))
    assert world.code(rewrite(world, base, "a1", data_sequence_number=3)) is None
    assert world.code(rewrite(world, base, "a1", data_sequence_number=4)) == "rows"


def rewritten_positions(world: World, of: str, number: int) -> Change:
    """Write position deletes of number 4 anew, under another number."""
    is_v2 = world.metadata.format_version == 2
    old = world.identity("d" if is_v2 else f"d@{of}")
    return world.change(
        "rewrite-files",
        positions(world, "rewritten", of),
        base=world.base,
        removed_delete_files=frozenset({old}),
        referenced_data_files=frozenset({path_of(of)}),
        data_sequence_number=number,
    )


@pytest.mark.parametrize("version", [2, 3])
def test_rewritten_position_deletes_get_no_number_below_that_of_their_data(version: int) -> None:
    # Java takes any number: the deleted row is back, or no scan takes the vector.
    world = build_world(version)
    world.land(world.change("row-delta", positions(world, "d", "a2")))
    assert world.code(rewritten_positions(world, "a2", 2)) is None
    found = world.validate(rewritten_positions(world, "a2", 1))
    assert found is not None
    assert (found.code, found.paths) == ("rows", (path_of("a2"),))
    assert "below the 2 of" in found.message


@pytest.mark.parametrize("version", [2, 3])
def test_rewritten_position_deletes_get_no_number_above_their_base(version: int) -> None:
    # Java takes any number, also one that the table has not reached.
    world = build_world(version)
    world.land(world.change("row-delta", positions(world, "d", "a2")))
    assert world.code(rewritten_positions(world, "a2", 4)) is None
    assert world.code(rewritten_positions(world, "a2", 5)) == "rows"


def test_a_rewrite_gives_vectors_of_other_files_no_number_below_that_of_these() -> None:
    world = build_world(3)
    change = rewrite(world, world.base, "a1", data_sequence_number=1)
    change = replace(change, added=(*change.added, *world.added(positions(world, "d", "a2"))))
    found = world.validate(change)
    assert found is not None
    assert (found.code, found.paths) == ("rows", (path_of("a2"),))
    assert world.code(replace(change, data_sequence_number=2)) is None


@pytest.mark.parametrize("version", [1, 2])
def test_a_rewrite_has_read_the_files_that_it_removes_at_its_base(version: int) -> None:
    # Java finds the path live: rows that were deleted before the base, and that came back with the
    # file, are gone without a delete.
    world = build_world(version)
    base = world.base
    world.land(world.change("delete", removed=("a1",)))
    world.append(data_file("a1"))
    found = world.validate(rewrite(world, base, "a1", "a2"))
    assert found is not None
    assert (found.code, found.paths) == ("missing", (path_of("a1"),))
    assert "added after its base" in found.message
    assert world.code(rewrite(world, base, "a2")) is None
    assert world.code(rewrite(world, world.base, "a1", "a2")) is None


# --- What is read --------------------------------------------------------------------------------


def test_manifests_older_than_the_base_are_read_for_named_files_only() -> None:
    world = build_world()
    for number in range(5):
        world.append(data_file(f"c{number}", "AA"))
    base = world.base
    world.append(data_file("a9"))
    world.validate(overwrite(world, base))
    assert [len(one) for one in world.rounds] == [1]
    vector = position_delete("d1", "BB", of="b1")
    assert world.code(world.change("row-delta", vector)) is None
    assert [len(one) for one in world.rounds] == [1]


def test_all_checks_of_an_operation_ask_in_one_round() -> None:
    world = build_world()
    base = world.base
    world.append(data_file("b2", "BB"))
    world.land(world.change("row-delta", position_delete("d1", "BB")))
    change = world.change(
        "overwrite",
        data_file("x"),
        removed=("a1", "a2"),
        base=base,
        isolation_level=SERIALIZABLE,
        conflict_filter=AA,
    )
    assert world.code(change) is None
    assert len(world.rounds) == 1
