"""The writer of a streaming upsert, with a writer of Spark's that notes its calls."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import datasource
from pyspark.sql.types import StructType

from committer.errors import NoSuchTableError, SettingsError, UnsupportedError
from tests.support.builders.table_builders import build_metadata
from workers.branches import branch_state
from workers.sink.datasource import make_stream_writer
from workers.streams.foreach_batch import sink
from workers.streams.upsert_stream import upsert_stream
from workers.streams.wanted_deletes import looks_up

PROPERTY = "frazil.upsert.deletes"
UPSERT = {"table": "db.t", "upsert-keys": "id"}


class _Frame:
    """A streaming DataFrame, and its writer."""

    def __init__(self, *, is_connected: bool = False) -> None:
        self.calls: list[tuple[Any, ...]] = []
        context = {} if is_connected else {"sparkContext": "classic"}
        self.sparkSession = SimpleNamespace(**context)

    @property
    def writeStream(self) -> _Frame:
        return self

    def options(self, **options: object) -> _Frame:
        """Note each like an `option`, as Spark does."""
        self.calls += [("option", *one) for one in options.items()]
        return self

    def __getattr__(self, name: str) -> Any:
        def noted(*arguments: Any, **named: Any) -> _Frame:
            self.calls.append((name, *arguments, *named.items()))
            return self

        return noted


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Mapping[str, str]]]:
    """Give the table `db.by_position` such a property, all others none; note who is asked for."""
    found: list[tuple[str, Mapping[str, str]]] = []

    def load_metadata(table: str, settings: Mapping[str, str]) -> Any:
        found.append((table, settings))
        if table == "db.missing":
            raise NoSuchTableError(table)
        properties = {PROPERTY: "positions"} if table == "db.by_position" else {}
        return build_metadata(location="file:/t", properties=properties)

    monkeypatch.setattr(branch_state, "load_metadata", load_metadata)
    return found


def test_options_of_spark_go_to_its_writer_and_the_others_to_each_micro_batch() -> None:
    frame = _Frame()
    writer = upsert_stream(frame, ["id", "a`b"], partitions=2, deletes="positions")
    writer.option("checkpointLocation", "/c").options(create=True, Branch="audit")
    writer.trigger(availableNow=True).outputMode("update").queryName("q").start("db.t")
    *before, (each, write), start = frame.calls
    assert before == [
        ("option", "checkpointLocation", "/c"),
        ("trigger", ("availableNow", True)),
        ("outputMode", "update"),
        ("queryName", "q"),
    ]
    assert (each, start) == ("foreachBatch", ("start",))
    assert options_of(write) == {
        "upsert-keys": "`id`, `a``b`",
        "upsert-deletes": "positions",
        "upsert-partitions": "2",
        "create": "true",
        "branch": "audit",
    }


def options_of(write: Any) -> Any:
    """Return the options that a function of `sink` was made with."""
    named = dict(zip(write.__code__.co_freevars, write.__closure__, strict=True))
    return named["options"].cell_contents


def test_a_table_is_named_once() -> None:
    writer = upsert_stream(_Frame(), "id", deletes="positions").option("table", "db.t")
    with pytest.raises(SettingsError, match=r"`db\.t`, but the path is `db\.u`"):
        writer.start("db.u")
    writer.start()


def test_rows_to_delete_by_key_are_repartitioned_for_the_data_source() -> None:
    frame = _Frame()
    writer = upsert_stream(frame, "id", partitions=3, deletes="equality", delete_column="gone")
    writer.option("checkpointLocation", "/c").start("db.t")
    assert frame.calls == [
        ("repartition", 3, "`id`"),
        ("option", "checkpointLocation", "/c"),
        ("format", "frazil"),
        ("option", "upsert-keys", "`id`"),
        ("option", "upsert-delete-column", "gone"),
        ("option", "upsert-deletes", "equality"),
        ("option", "path", "db.t"),
        ("option", "distribution-mode", "none"),
        ("start",),
    ]


def test_pyspark_4_0_repartitions_rows_for_each_micro_batch_as_well(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr(datasource, "DataSourceStreamArrowWriter")
    frame = _Frame()
    upsert_stream(frame, "id", partitions=3, deletes="equality").start("db.t")
    first, (each, write), start = frame.calls
    assert (first, each, start) == (("repartition", 3, "`id`"), "foreachBatch", ("start",))
    assert options_of(write) == {
        "upsert-keys": "`id`",
        "upsert-deletes": "equality",
        "distribution-mode": "none",
    }


def test_pyspark_4_0_is_told_what_takes_its_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(datasource, "DataSourceStreamArrowWriter")
    with pytest.raises(UnsupportedError, match=r"need PySpark 4\.1, found .*foreachBatch"):
        make_stream_writer({"table": "db.t"}, StructType(), overwrite=False)


@pytest.mark.parametrize(("table", "by_position"), [("db.by_position", True), ("db.t", False)])
def test_the_table_decides_where_the_writer_does_not_say(
    asked: list[Any], table: str, by_position: bool
) -> None:
    frame = _Frame()
    upsert_stream(frame, "id").option("catalog.uri", "sqlite:///c").start(table)
    assert ("foreachBatch" in {call[0] for call in frame.calls}) is by_position
    # For as long as the query runs.
    assert (("option", "upsert-deletes", "equality") in frame.calls) is not by_position
    assert asked == [(table, {"catalog.uri": "sqlite:///c"})]


def test_what_the_writer_says_counts_and_asks_no_table(asked: list[Any]) -> None:
    frame = _Frame()
    upsert_stream(frame, "id", deletes="equality").start("db.by_position")
    assert ("repartition", 1, "`id`") in frame.calls
    assert looks_up({"Upsert-Deletes": "POSITIONS"})
    assert not looks_up({"table": "db.by_position"})
    assert not asked


def test_spark_connect_leaves_the_question_to_the_server(asked: list[Any]) -> None:
    frame = _Frame(is_connected=True)
    upsert_stream(frame, "id").start("db.by_position")
    assert ("format", "frazil") in frame.calls
    assert not [call for call in frame.calls if "upsert-deletes" in call]
    assert not asked


def test_a_table_that_is_to_be_created_is_as_its_options_say(asked: list[Any]) -> None:
    missing = {**UPSERT, "table": "db.missing"}
    created = {**missing, "create": "true", f"table-property.{PROPERTY}": "positions"}
    assert (looks_up(missing), looks_up(created)) == (False, True)


def test_a_query_asks_the_table_once(asked: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    upserted: list[Any] = []
    monkeypatch.setattr(
        "workers.streams.foreach_batch._upsert", lambda *all_: upserted.append(all_)
    )
    write = sink("db.by_position", producer="p", **{"upsert-keys": "id"})
    for batch in range(2):
        write(_Frame(is_connected=True), batch)
    assert [given["epoch"] for _, given in upserted] == ["0", "1"]
    assert {given["upsert-deletes"] for _, given in upserted} == {"positions"}
    assert len(asked) == 1


def test_a_property_that_says_neither_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    metadata = build_metadata(location="file:/t", properties={PROPERTY: "vectors"})
    monkeypatch.setattr(branch_state, "load_metadata", lambda *_: metadata)
    with pytest.raises(SettingsError, match=r"`frazil\.upsert\.deletes` is `vectors`, expected"):
        looks_up(UPSERT)


def test_a_name_that_is_none_is_refused() -> None:
    with pytest.raises(SettingsError, match="expected `equality` or `positions`"):
        upsert_stream(_Frame(), "id", deletes="vectors")
