"""What the request of a rewrite of delete files says, and what becomes of its files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from committer.iceberg.entry.data_file import (
    DataFile,
    DataFileContent,
    ManifestEntry,
    ManifestEntryStatus,
)
from committer.iceberg.metadata.snapshot import Snapshot
from committer.request.needs import Needs
from committer.request.receipt_model import Receipt, ReceiptState
from tests.workers.branch_states import branch_state
from workers.branches.attempt_identity import AttemptIdentity
from workers.compaction.deletes import publish_deletes as publishing
from workers.compaction.deletes.delete_groups import DeletesGroup
from workers.compaction.deletes.delete_task import DeletesWritten
from workers.compaction.deletes.deletes_options import Purpose, parse_deletes_options
from workers.compaction.deletes.deletes_table import DeletesTable
from workers.compaction.deletes.live_deletes import delete_key
from workers.compaction.deletes.publish_deletes import WrittenDeletes, publish_deletes
from workers.compaction.publication.part_run import Published
from workers.compaction.publication.rewrite_request import NotLanded

LANDED = Receipt("p", 0, "a", ReceiptState.COMMITTED, snapshot_id=7)


def delete(path: str) -> DataFile:
    return DataFile(
        content=DataFileContent.EQUALITY_DELETES,
        file_path=path,
        record_count=1,
        file_size_in_bytes=4,
    )


@contextmanager
def table(folder: Path, purpose: Purpose, version: int, granularity: str) -> Iterator[DeletesTable]:
    options = parse_deletes_options(purpose, "db.t", None, {"delete-granularity": granularity})
    base = Snapshot(snapshot_id=3, timestamp_ms=0, sequence_number=9, manifest_list="file:/list")
    with branch_state(folder, snapshot=base, format_version=version) as state:
        yield DeletesTable(options, state)


def published(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    answer: Receipt | NotLanded = LANDED,
    *,
    purpose: Purpose = "convert equality",
    version: int = 2,
    granularity: str = "partition",
) -> tuple[Published[DeletesGroup, WrittenDeletes], Needs, bool]:
    """Publish one new delete file; return what is told, what was asked for, and whether the file is
    there still."""
    path = folder / "new.parquet"
    path.write_bytes(b"rows")
    new, old, replaced = (delete(f"file:{name}") for name in (path, "/old", "/replaced"))
    entry = ManifestEntry(ManifestEntryStatus.ADDED, 1, 4, 4, old)
    written = DeletesWritten((new,), (replaced,), ("file:/a", "file:/b"), 2)
    group = WrittenDeletes(DeletesGroup((entry,), ()), (written,))
    asked: list[Any] = []

    def send_rewrite(*about: Any) -> Receipt | NotLanded:
        asked.append(about)
        return answer

    monkeypatch.setattr(publishing, "send_rewrite", send_rewrite)
    monkeypatch.setattr(publishing, "_discard_united", lambda *_: None)
    identity = AttemptIdentity.one_shot(None)
    numbers = {delete_key(old): 4, delete_key(replaced): 6}
    with table(folder, purpose, version, granularity) as found:
        told = publish_deletes(found, identity, [group], numbers)
    [(_, _, needs, files, _)] = asked
    assert files == [new]
    return told, needs, path.exists()


def test_a_request_names_what_goes_and_what_has_to_be_live(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told, needs, is_there = published(tmp_path, monkeypatch)
    assert is_there and (told.snapshot_id, len(told.landed), told.lost) == (7, 1, ())
    assert (needs.base_snapshot_id, needs.base_sequence_number) == (3, 9)
    assert [one.file_path for one in needs.removed_delete_files] == ["file:/old", "file:/replaced"]
    # The newest of them, so that a compaction which has not seen it finds it.
    assert (needs.data_sequence_number, needs.on_conflict) == (6, "fail")
    assert needs.referenced_data_files == ("file:/a", "file:/b")


@pytest.mark.parametrize(
    "about",
    [{"granularity": "file"}, {"version": 3}, {"purpose": "join positions"}],
)
def test_deletes_of_one_data_file_name_it_and_joined_ones_need_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, about: dict[str, Any]
) -> None:
    _, needs, _ = published(tmp_path, monkeypatch, **about)
    assert needs.referenced_data_files == ()


@pytest.mark.parametrize("in_doubt", [True, False])
def test_files_that_may_land_yet_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_doubt: bool
) -> None:
    told, _, is_there = published(tmp_path, monkeypatch, NotLanded("no", in_doubt))
    [lost] = told.lost
    assert (lost.in_doubt, is_there, told.landed) == (in_doubt, in_doubt, ())
    assert lost.why == "no"
