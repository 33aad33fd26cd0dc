"""Manifests are decoded once while they are remembered, and never taken for one another."""

from __future__ import annotations

from dataclasses import replace

from committer.plan.operations.decoded_manifests import DecodedManifests
from tests.plan.branches import Branch, data_file


def test_a_manifest_is_decoded_once() -> None:
    branch = Branch.build(3)
    branch.append(data_file("a1"), data_file("a2"))
    (row,) = (one.row for one in branch.manifests)
    content = branch.objects[row.manifest_path]
    decoded = DecodedManifests()

    first = decoded.entries(content, row)

    assert decoded.entries(bytes(bytearray(content)), row) is first
    assert [entry.data_file.first_row_id for entry in first] == [0, 10]


def test_another_row_says_something_else_of_the_same_bytes() -> None:
    branch = Branch.build(3)
    branch.append(data_file("a1"))
    (row,) = (one.row for one in branch.manifests)
    content = branch.objects[row.manifest_path]
    decoded = DecodedManifests()
    decoded.entries(content, row)

    (entry,) = decoded.entries(content, replace(row, first_row_id=700, sequence_number=9))

    assert (entry.data_file.first_row_id, entry.sequence_number) == (700, 9)


def test_no_more_entries_are_kept_than_allowed() -> None:
    branch = Branch.build(2)
    branch.append(*(data_file(f"a{number}") for number in range(3)))
    branch.append(data_file("b1"), data_file("b2"))
    branch.append(*(data_file(f"c{number}") for number in range(5)))
    large, small, middle = (one.row for one in branch.manifests)
    decoded = DecodedManifests(entries_max=4)

    kept = {}
    for row in (middle, small, large):
        found = decoded.entries(branch.objects[row.manifest_path], row)
        kept[row] = found is decoded.entries(branch.objects[row.manifest_path], row)

    assert kept == {middle: True, small: True, large: False}
    again = decoded.entries(branch.objects[middle.manifest_path], middle)
    assert len(again) == 3
