"""The groups of a compaction, dealt to its requests."""

from __future__ import annotations

from annotated_types import MaxLen
from hypothesis import given
from hypothesis import strategies as st

from committer.plan.batch.batch_policy import BatchPolicy
from committer.request.needs import FILES_NAMED_MAX, Needs
from workers.requests.rewrite_parts import GROUPS_MAX, REMOVED_FILES_MAX, rewrite_parts


def _groups(*sizes: int) -> list[list[str]]:
    return [[f"{number}-{file}" for file in range(size)] for number, size in enumerate(sizes)]


def test_a_part_ends_before_the_group_that_is_too_much() -> None:
    parts = rewrite_parts(_groups(4, 4, 3, 20, 1), removed_files_max=10)
    assert [[len(group) for group in part] for part in parts] == [[4, 4], [3], [20], [1]]
    parts = rewrite_parts(_groups(1, 1, 1), groups_max=2)
    assert [len(part) for part in parts] == [2, 1]
    assert list(rewrite_parts([])) == []


@given(st.lists(st.integers(1, 12), max_size=20), st.integers(1, 10), st.integers(1, 5))
def test_each_group_is_in_one_part(sizes: list[int], files_max: int, groups_max: int) -> None:
    groups = _groups(*sizes)
    parts = list(rewrite_parts(groups, removed_files_max=files_max, groups_max=groups_max))
    assert [group for part in parts for group in part] == groups
    for part in parts:
        assert 0 < len(part) <= groups_max
        assert len(part) == 1 or sum(map(len, part)) <= files_max


def test_a_part_is_within_what_a_request_may_name_and_a_batch_has_room_for_some() -> None:
    metadata = Needs.model_fields["groups"].metadata
    (limit,) = (each.max_length for each in metadata if isinstance(each, MaxLen))
    assert limit == GROUPS_MAX
    assert REMOVED_FILES_MAX <= FILES_NAMED_MAX
    assert BatchPolicy().removed_files_max >= 2 * REMOVED_FILES_MAX
