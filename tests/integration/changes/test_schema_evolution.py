"""Merges whose source has columns that the table lacks."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from pyspark.sql import functions as F

from committer.errors import PublishError, SettingsError
from frazil.spark import MergeBuilder, merge_into
from tests.integration.changes.harness import ChangesHarness
from workers.branches.attempt_identity import AttemptIdentity
from workers.changes.change_options import parse_change_options
from workers.changes.change_run import ChangeRun
from workers.changes.changed_table import ChangedTable
from workers.changes.merge_clauses import Clauses
from workers.changes.merged_rows import Merge, prepare_merge
from workers.changes.publish_change import PreparedChange, run_change

pytestmark = [
    pytest.mark.server,
    pytest.mark.spark,
    pytest.mark.timeout(600),
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas"),
    # PySpark leaves the connection of a `collect` to the garbage collector.
    pytest.mark.filterwarnings("ignore:.*socket:pytest.PytestUnraisableExceptionWarning"),
]

ON = "target.id = source.id"
SCHEMA = "id bigint, region string, amount bigint, Gate string, place struct<x: int, y: string>"
SOURCE = [(1, "A", 100, "g1", (1, "y1")), (2**40, "C", 300, None, None)]


def create(harness: ChangesHarness, name: str, **properties: Any) -> MergeBuilder:
    """Create a table that lacks two columns of a source, and begin a merge of it."""
    columns = "id INT, region STRING, amount BIGINT, place STRUCT<x: INT>"
    harness.create(name, columns, **properties)
    harness.insert(name, "(1, 'a', 10, named_struct('x', 7)), (2, 'b', 20, NULL)")
    return merge_into(name, harness.frame(SOURCE, SCHEMA), ON)


def columns(harness: ChangesHarness, name: str) -> dict[str, str]:
    return {
        field.name: str(field.field_type) for field in harness.metadata(name).current_schema.fields
    }


@pytest.mark.parametrize(
    ("version", "mode"),
    [
        (3, "merge-on-read"),
        pytest.param(2, "copy-on-write", marks=pytest.mark.heavy),
        pytest.param(2, "merge-on-read", marks=pytest.mark.heavy),
        pytest.param(3, "copy-on-write", marks=pytest.mark.heavy),
        pytest.param(1, "copy-on-write", marks=pytest.mark.heavy),
    ],
)
def test_columns_of_the_source_come_with_the_rows_of_a_merge(
    harness: ChangesHarness, version: int, mode: str
) -> None:
    name = f"evolved.all_{mode[:4]}_{version}"
    merge = create(harness, name, version=version, write_merge_mode=mode)
    merge = merge.when_matched_update_all().when_not_matched_insert_all()
    changed = merge.with_schema_evolution().execute()
    assert (changed.updated_rows, changed.inserted_rows) == (1, 1)
    assert harness.rows(name, "id, region, amount, Gate, place.x, place.y") == [
        (1, "A", 100, "g1", 1, "y1"),
        (2**40, "C", 300, None, None, None),
        (2, "b", 20, None, None, None),
    ]
    assert columns(harness, name) | {"place": ""} == {
        "id": "long",
        "region": "string",
        "amount": "long",
        "place": "",
        "Gate": "string",
    }
    metadata = harness.metadata(name)
    head = metadata.current_snapshot
    assert head is not None
    assert head.schema_id == metadata.current_schema_id
    assert len(harness.operations(name)) == 2
    # Nothing is new to the next one.
    again = merge.with_schema_evolution().execute()
    assert (again.updated_rows, again.inserted_rows) == (2, 0)
    assert harness.metadata(name).current_schema_id == metadata.current_schema_id


@pytest.mark.heavy
def test_columns_that_are_left_out_are_named(
    harness: ChangesHarness, caplog: pytest.LogCaptureFixture
) -> None:
    name = "evolved.left_out"
    create(harness, name)
    source = harness.frame(SOURCE, SCHEMA).drop("place").withColumn("Place", F.lit(None))
    merge = merge_into(name, source.select("*", F.lit(1).alias("more")), ON)
    inserts = merge.when_not_matched_insert_all("source.id < 9")
    with caplog.at_level(logging.WARNING, "frazil.workers"):
        inserts.execute()
        merge.when_matched_delete("false").execute()
    [said] = [record.getMessage() for record in caplog.records if "left out" in record.getMessage()]
    assert said.startswith(
        f"merge into table `{name}`: the source has columns that the table lacks"
    )
    assert "`Gate`, `more`" in said
    assert "with_schema_evolution()" in said
    caplog.clear()
    with caplog.at_level(logging.WARNING, "frazil.workers"):
        inserts.with_schema_evolution().execute()
    assert caplog.records == []


def test_a_clause_that_assigns_brings_only_what_it_assigns(harness: ChangesHarness) -> None:
    name = "evolved.assigned"
    merge = create(harness, name, write_merge_mode="merge-on-read")
    updates = merge.when_matched_update(set={"gate": "upper(source.gate)"})
    with pytest.raises(SettingsError, match="the table has no column `gate`"):
        updates.execute()
    inserts = updates.when_not_matched_insert(values={"id": "1", "region": "source.region"})
    inserts.with_schema_evolution().execute()
    assert harness.rows(name, "id, amount, Gate") == [(1, 10, "G1"), (1, None, None), (2, 20, None)]
    assert columns(harness, name)["id"] == "int"


def test_columns_that_the_source_lacks_stay_as_they_are(harness: ChangesHarness) -> None:
    name = "evolved.lacking"
    create(harness, name, write_merge_mode="merge-on-read")
    source = harness.frame([(1, "new"), (5, "newer")], "id int, gate string")
    merge = merge_into(name, source, ON, mergeSchema=True)
    merge.when_matched_update_all().when_not_matched_insert_all().execute()
    assert harness.rows(name, "id, region, gate") == [
        (1, "a", "new"),
        (2, "b", None),
        (5, None, "newer"),
    ]


def test_inserts_alone_are_an_append_with_its_columns(harness: ChangesHarness) -> None:
    name = "evolved.appended"
    merge = create(harness, name)
    merge.when_not_matched_insert_all().with_schema_evolution().execute()
    assert harness.rows(name, "id, gate, place.y")[-1] == (2, None, None)
    assert harness.operations(name) == ["append", "append"]
    assert "Gate" in columns(harness, name)


def test_a_merge_that_conflicts_adds_no_column(harness: ChangesHarness) -> None:
    name = "evolved.conflict"
    builder = create(harness, name, write_merge_mode="merge-on-read")
    builder = builder.when_matched_update_all()
    merge = Merge(builder._source, builder._on, Clauses(builder._clauses), evolves_schema=True)

    def beside(found: ChangedTable, identity: AttemptIdentity) -> PreparedChange | None:
        prepared = prepare_merge(ChangeRun(harness.spark, found, identity, "merge"), merge)
        harness.insert(name, "(1, 'z', 1, NULL)")
        return prepared

    with pytest.raises(PublishError, match="conflicts with what others have changed"):
        run_change(parse_change_options(name, {}), "merges", beside)
    assert "Gate" not in columns(harness, name)
    assert len(harness.rows(name)) == 3
