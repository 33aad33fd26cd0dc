"""Scenario (g): a stream of row deltas, a compaction beside it, and a foreign reader's proof."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bench.compacting import Compaction, DeltaStream, first_files
from bench.fairness import is_proven, values_of
from bench.operating import OWN_FILES
from bench.runs import Compacted, Compacting, Outcome, compacted_of
from bench.tables import Live
from committer.iceberg.metadata.snapshot import Snapshot
from committer.iceberg.updates.metadata_update import AddSnapshot, apply_updates
from committer.ports.pointer_swap import LoadedTable
from tests.bench.builders import committed, table_with_a_head

LOAD = Compacting(4, 3, 2, work_s=1.0, period_s=0.1, hit_every=2, window_s=2.0)


def first_paths(table: LoadedTable) -> list[str]:
    return [file.file_path for file in first_files(table, LOAD).files]


def with_rewrite(table: LoadedTable, summary: dict[str, str]) -> LoadedTable:
    rewrite = Snapshot(
        snapshot_id=70,
        parent_snapshot_id=7,
        sequence_number=2,
        timestamp_ms=table.metadata.last_updated_ms,
        first_row_id=0,
        added_rows=0,
        manifest_list="memory:/list-2",
        summary={"operation": "replace", **summary},
    )
    metadata = apply_updates(
        table.metadata,
        (AddSnapshot(rewrite),),
        base_location=table.metadata_location,
        now_ms=rewrite.timestamp_ms,
    )
    return replace(table, metadata=metadata)


def test_the_stream_hits_a_group_now_and_then_until_the_table_tells_that_it_was_rewritten() -> None:
    table = table_with_a_head()
    stream = DeltaStream(LOAD, table)
    rewrite = Compaction(LOAD, table, table, 0).rewrite(0, [2])
    regions = []
    for number in range(16):
        if number == 8:
            stream.saw(with_rewrite(table, dict(rewrite.summary)))
        written = stream.next()
        assert written.files[0].referenced_data_file in first_paths(table)
        regions.append(written.files[0].partition[0])
        stream.ended(written, committed(8, 2))
    assert regions[:8] == ["r0", "r2", "r0", "r3", "r0", "r4", "r0", "r1"]
    assert regions[8:] == ["r0", "r2", "r0", "r0", "r0", "r4", "r0", "r1"]
    assert (stream.own, stream.hits) == (9, {1: 2, 2: 1, 3: 2, 0: 2})


def test_a_delta_that_has_failed_is_not_made_again() -> None:
    stream = DeltaStream(LOAD, table_with_a_head())
    stream.ended(stream.next(), committed(8, 2))
    assert stream.is_hit
    stream.ended(stream.next(), None)
    regions = []
    for _ in range(8):
        written = stream.next()
        regions.append(written.files[0].partition[0])
        stream.ended(written, committed(9, 3))
    assert "r2" not in regions
    assert stream.own == 6


def test_the_compaction_deals_all_groups_to_its_commits_and_knows_which_are_left() -> None:
    table = table_with_a_head()
    compaction = Compaction(LOAD, table, table, 0)
    assert compaction.parts(range(4)) == [[0, 1], [2, 3]]
    written = compaction.rewrite(5, [1, 3])
    needs = written.needs
    assert written.epoch == 5
    assert set(needs.removed_data_files) <= set(first_paths(table))
    assert len(needs.removed_data_files) == 2 * LOAD.files
    added = [file.file_path for file in written.files]
    assert [one.added_data_files for one in needs.groups] == [(path,) for path in added]
    assert not set(added).intersection(first_paths(table))
    gone = {*first_paths(table), *added}.difference(needs.groups[0].removed_data_files)
    assert compaction.left([1, 3], gone) == [3]
    later = Compaction(LOAD, table, table, 1)
    assert later.parts([3]) == [[3]]
    assert later.rewrite(6, [3]).files[0].file_path not in added


@pytest.mark.parametrize(
    ("live", "expected"),
    [
        # Group 0 was rewritten, with the row that had been deleted of it.
        (Live(OWN_FILES + 10, 3, 7, 0), True),
        (Live(OWN_FILES + 12, 3, 7, 0), False),
        (Live(OWN_FILES + 10, 3, 8, 0), False),
    ],
)
def test_files_and_deleted_rows_are_what_both_were_told(live: Live, expected: bool) -> None:
    found = Compacted(landed=(0,), own=5, hits={0: 1, 2: 2})
    assert is_proven(LOAD, Outcome(0.0, compacted=found), live) is expected


def test_what_is_recorded_tells_the_stream_from_the_compaction() -> None:
    answer = {"landed": [0, 1], "hits": [[2, 3]], "commits_ms": [5.0, 7.0], "took_s": 1.5}
    outcome = Outcome(0.0, requests=[(1.0, None, 1.25)], failed={"PublishError": 1})
    outcome.compacted = Compacted(**compacted_of(answer))
    assert outcome.compacted.hits == {2: 3}
    values = values_of(LOAD, outcome)
    assert (values["p50_ms"], values["failed"], values["errors"]) == (250.0, 1, "PublishError 1")
    assert (values["groups_landed"], values["compaction_s"], values["part_max_ms"]) == (2, 1.5, 7.0)
    assert "compaction_s" not in values_of(replace(LOAD, compacts=False), outcome)
