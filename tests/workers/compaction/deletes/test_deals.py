"""How the groups of a rewrite of delete files are dealt to requests."""

from __future__ import annotations

from committer.iceberg.entry.data_file import DataFile, ManifestEntry, ManifestEntryStatus
from workers.compaction.deletes.delete_groups import DeletesGroup
from workers.compaction.deletes.rewrite_deletes import deal


def group(files: int) -> DeletesGroup:
    file = DataFile(file_path="d", record_count=1, file_size_in_bytes=1)
    entry = ManifestEntry(ManifestEntryStatus.ADDED, 1, 1, 1, file)
    return DeletesGroup((entry,) * files, ())


def dealt(*files: int, commits_max: int | None) -> list[list[int]]:
    parts = deal([group(count) for count in files], commits_max)
    return [[len(one.removed) for one in part] for part in parts]


def test_groups_land_by_few_requests_and_each_has_enough_to_do() -> None:
    assert dealt(commits_max=10) == dealt(commits_max=None) == []
    assert dealt(100, 200, 200, 1, commits_max=10) == [[100, 200, 200], [1]]
    assert dealt(*[600] * 4, commits_max=2) == [[600, 600], [600, 600]]
    assert dealt(9_000, 9_000, commits_max=1) == [[9_000], [9_000]]


def test_what_lands_whole_is_one_request() -> None:
    assert dealt(9_000, 9_000, 9_000, commits_max=None) == [[9_000] * 3]
