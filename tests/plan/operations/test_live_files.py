"""A file that is adopted may not be live, in any spelling; and few manifests are read for that."""

from __future__ import annotations

from dataclasses import replace

import pytest

from committer.iceberg.entry.data_file import DataFile
from committer.iceberg.schema.partition_spec import PartitionSpec
from committer.iceberg.updates.metadata_update import AddPartitionSpec, SetDefaultPartitionSpec
from committer.plan.operations import head, live_files
from committer.plan.operations.conflict import PATHS_MAX, Conflict, ConflictCode
from committer.plan.operations.head import Head, MissingObjectsError, ObjectRange, Objects
from committer.plan.operations.live_files import AddedFiles, check_not_live
from tests.plan.branches import FOLDER, Branch, data_file

OUTSIDE = "s3://old/flights/a.parquet"


def at(path: str, carrier: str | None = "AA") -> DataFile:
    return replace(data_file("any", carrier), file_path=path)


def asked(branch: Branch, *files: DataFile) -> tuple[Conflict | None, int]:
    """Return the conflict of adopting these files, and how many manifests were read for it."""
    head, added = branch.head, [AddedFiles.of(one) for one in branch.added(*files)]
    try:
        return check_not_live(added, head), 0
    except MissingObjectsError as missing:
        read = {one: branch.objects[one.location] for one in missing.needs}
        assert all(one == ObjectRange(one.location) for one in missing.needs)
        return check_not_live(added, replace(head, objects=Objects(read))), len(read)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_live_file_is_named_with_the_snapshot_that_added_it(version: int) -> None:
    branch = Branch.build(version)
    branch.append(data_file("other"))
    branch.append(at(OUTSIDE), data_file("one"))
    added_by = branch.snapshot.snapshot_id
    branch.append(data_file("two"))
    found, _ = asked(branch, at("s3://old/flights/b.parquet"), at(OUTSIDE))
    assert found is not None
    assert (found.code, found.snapshot_id, found.paths) == (
        ConflictCode.ALREADY_LIVE,
        added_by,
        (OUTSIDE,),
    )
    assert "1 of its files" in found.message and found.message.endswith(f"`{OUTSIDE}`")


@pytest.mark.parametrize(
    "spelled",
    ["s3a://old/flights/a.parquet", "s3://old/flights/%61.parquet", "s3://old//flights/a.parquet"],
)
def test_another_spelling_of_a_live_path_is_the_same_file(spelled: str) -> None:
    branch = Branch.build()
    branch.append(at(OUTSIDE))
    found, _ = asked(branch, at(spelled))
    assert found is not None and f"`{OUTSIDE}` (in another spelling)" in found.message
    other = Branch.build()
    other.append(at(spelled))
    assert asked(other, at(OUTSIDE))[0] is not None


def test_the_same_name_in_another_folder_is_another_file() -> None:
    branch = Branch.build()
    branch.append(at(OUTSIDE), data_file("one"))
    assert asked(branch, at("s3://new/flights/a.parquet"), at("s3://old/one.parquet"))[0] is None


def test_a_removed_file_may_be_adopted_again() -> None:
    branch = Branch.build()
    branch.append(at(OUTSIDE), data_file("one"))
    removal = branch.change("delete")
    branch.land(replace(removal, removed_data_files=frozenset({OUTSIDE})))
    assert asked(branch, at(OUTSIDE))[0] is None
    branch.append(at(OUTSIDE))
    assert asked(branch, at(OUTSIDE))[0] is not None


def test_many_live_files_are_counted_and_some_are_named() -> None:
    branch = Branch.build()
    files = [data_file(f"f{number}") for number in range(PATHS_MAX + 3)]
    branch.append(*files)
    found, _ = asked(branch, *files)
    assert found is not None and len(found.paths) == PATHS_MAX
    assert f"{PATHS_MAX + 3} of its files" in found.message and "and 3 more" in found.message


def test_an_empty_branch_has_no_live_file() -> None:
    branch = Branch.build()
    head = Head(branch.metadata, "main", None, (), Objects())
    assert (
        check_not_live([AddedFiles.of(one) for one in branch.added(data_file("one"))], head) is None
    )


# --- What is read ---------------------------------------------------------------------------------


def test_only_manifests_that_may_hold_one_of_the_partitions_are_read() -> None:
    branch = Branch.build()
    for number, carrier in enumerate(("AA", "BB", "MM", "ZZ")):
        branch.append(data_file(f"f{number}", carrier))
    assert asked(branch, at(OUTSIDE, "MM")) == (None, 1)
    assert asked(branch, at(OUTSIDE, "C"), at(f"{OUTSIDE}2", "MM")) == (None, 1)
    assert asked(branch, at(OUTSIDE, "C"), at(f"{OUTSIDE}2", "N")) == (None, 0)
    assert asked(branch, at(OUTSIDE, None)) == (None, 0)
    branch.append(data_file("nulls", None))
    assert asked(branch, at(OUTSIDE, None)) == (None, 1)
    assert asked(branch, at(OUTSIDE, None), at(f"{OUTSIDE}2", "AA")) == (None, 2)
    # A field without bounds may have any value.
    assert asked(branch, at(OUTSIDE, "AA")) == (None, 2)
    conflict, reads = asked(branch, at(f"{FOLDER}/data/f2.parquet", "MM"))
    assert conflict is not None and reads == 2


@pytest.mark.parametrize(
    ("carrier", "lower", "upper"),
    [
        ("A" * 20, b"A" * 16, b"A" * 16),
        ("\U0001f600", "\U0001f600".encode(), "\uff5e".encode()),
        ("AA", b"\xff\xfe", b"\xff\xff"),
    ],
    ids=["cut", "UTF-16", "no text"],
)
def test_bounds_as_other_writers_have_them_hide_no_live_file(
    carrier: str, lower: bytes, upper: bytes
) -> None:
    branch = Branch.build()
    branch.append(at(OUTSIDE, carrier))
    [listed] = branch.manifests
    [summary] = listed.row.partitions or ()
    summary = replace(summary, lower_bound=lower, upper_bound=upper)
    branch.manifests = (replace(listed, row=replace(listed.row, partitions=(summary,))),)
    assert branch.entries()  # a reader takes these bounds
    found, reads = asked(branch, at(OUTSIDE, carrier))
    assert found is not None and found.code is ConflictCode.ALREADY_LIVE
    assert reads == 1


def test_the_partitions_of_a_large_request_are_not_compared_one_by_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    branch = Branch.build()
    branch.append(data_file("one", "AA"))
    monkeypatch.setattr(live_files, "_PARTITIONS_MAX", 2)
    files = [at(f"{OUTSIDE}{number}", f"M{number}") for number in range(3)]
    assert asked(branch, *files[:2]) == (None, 0)
    assert asked(branch, *files) == (None, 1)


def test_manifests_of_other_specs_are_read() -> None:
    branch = Branch.build()
    branch.append(at(OUTSIDE, "ZZ"))
    branch.update(AddPartitionSpec(PartitionSpec(1)), SetDefaultPartitionSpec(1))
    unpartitioned = replace(at(OUTSIDE), spec_id=1, partition=())
    conflict, reads = asked(branch, unpartitioned)
    assert conflict is not None and reads == 1


def test_a_look_up_that_would_read_too_much_is_refused_with_the_way_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    branch = Branch.build()
    branch.append(data_file("one", "AA"))
    branch.append(data_file("two", "ZZ"))
    one, two = (listed.row.manifest_length for listed in branch.manifests)
    monkeypatch.setattr(head, "READ_BYTES_MAX", one + two - 1)
    found, reads = asked(branch, at(OUTSIDE, "AA"), at(f"{OUTSIDE}2", "ZZ"))
    assert found is not None and reads == 0
    assert found.code is ConflictCode.UNDECIDED
    assert "2 manifests" in found.message and "fewer partitions" in found.message
    assert asked(branch, at(OUTSIDE, "AA")) == (None, 1)


def test_manifests_without_live_files_and_of_deletes_are_not_read() -> None:
    branch = Branch.build()
    branch.append(data_file("one"))
    [listed] = branch.manifests
    dead = replace(listed.row, added_files_count=0, existing_files_count=0)
    branch.manifests = (replace(listed, row=dead),)
    assert asked(branch, data_file("one")) == (None, 0)
