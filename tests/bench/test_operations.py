"""Scenario (f): the requests of its writers, and the proof that a foreign reader gives."""

from __future__ import annotations

import pytest

from bench.operating import KINDS, OWN_FILES, OperatingWriter, first_epoch
from bench.operations import is_proven
from bench.runs import Operating, Outcome
from bench.tables import Live
from tests.bench.builders import committed, table_with_a_head


def test_each_vector_takes_the_place_of_the_one_before_and_rests_on_it() -> None:
    table = table_with_a_head()
    writer = OperatingWriter("vectors", 1, 4, table)
    first = writer.next()
    assert writer.next() == first, "a change that failed is made again"
    assert first.needs.base_snapshot_id == 7
    [vector] = first.files
    assert vector.referenced_data_file in {file.file_path for file in first_epoch(table, 4).files}
    writer.landed(first, committed(8, 2))
    for _ in range(OWN_FILES - 1):
        written = writer.next()
        assert not written.needs.removed_delete_files
        writer.landed(written, committed(9, 3))
    again = writer.next()
    assert [one.file_path for one in again.needs.removed_delete_files] == [vector.file_path]
    assert again.files[0].record_count == 2
    assert again.needs.base_sequence_number == 3


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_is_proven_by_what_is_live_alone(kind: str) -> None:
    outcome = Outcome(0.0, requests=[(0.0, None, 1.0)] * 5)
    load = Operating(kind, writers=2, window_s=1.0)
    live = {
        "vectors": Live(data_files=8, delete_files=3, deleted_rows=5, overwrites=0),
        "upserts": Live(data_files=13, delete_files=5, deleted_rows=0, overwrites=5),
        "overwrites": Live(data_files=2, delete_files=0, deleted_rows=0, overwrites=5),
    }[kind]
    assert is_proven(load, outcome, live)
    less = Outcome(0.0, requests=[(0.0, None, 1.0)] * 4)
    assert not is_proven(load, less, live)
