"""The writer of a streaming upsert by positions, with a writer of Spark's that notes its calls."""

from __future__ import annotations

from typing import Any

import pytest

from committer.errors import SettingsError
from workers.streams.foreach_batch import by_positions
from workers.streams.upsert_stream import upsert_stream


class _Frame:
    """A streaming DataFrame, and its writer."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    @property
    def writeStream(self) -> _Frame:
        return self

    def __getattr__(self, name: str) -> Any:
        def noted(*arguments: Any, **named: Any) -> _Frame:
            self.calls.append((name, *arguments, *named.items()))
            return self

        return noted


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


@pytest.mark.parametrize("deletes", ["equality", "positions"])
def test_rows_are_repartitioned_by_their_keys_where_the_sink_does_not_do_so(deletes: str) -> None:
    frame = _Frame()
    upsert_stream(frame, "id", partitions=3, deletes=deletes)
    is_repartitioned = ("repartition", 3, "`id`") in frame.calls
    assert is_repartitioned is (deletes == "equality")


def test_a_name_that_is_none_is_refused() -> None:
    with pytest.raises(SettingsError, match="expected `equality` or `positions`"):
        upsert_stream(_Frame(), "id", deletes="vectors")
    assert by_positions({"Upsert-Deletes": "POSITIONS"})
    assert not by_positions({"upsert-keys": "id"})
