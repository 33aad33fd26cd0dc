from __future__ import annotations

import pytest
from pyspark.errors import PySparkNotImplementedError

from committer.errors import SettingsError
from tests.support.builders.table_builders import build_metadata
from workers.branches import branch_state
from workers.streams.foreach_batch import sink


class _ConnectSession:
    """A session that refuses to return its context, as Spark Connect's does."""

    @property
    def sparkContext(self) -> object:
        raise PySparkNotImplementedError(
            errorClass="NOT_IMPLEMENTED", messageParameters={"feature": "sparkContext"}
        )


class _ConnectFrame:
    sparkSession = _ConnectSession()

    def __init__(self) -> None:
        self.written: dict[str, str] | None = None
        self._options: dict[str, str] = {}

    @property
    def write(self) -> _ConnectFrame:
        return self

    def format(self, name: str) -> _ConnectFrame:
        return self.option("format", name)

    def mode(self, name: str) -> _ConnectFrame:
        return self.option("mode", name)

    def option(self, name: str, value: str) -> _ConnectFrame:
        self._options[name] = value
        return self

    def options(self, **options: str) -> _ConnectFrame:
        self._options |= options
        return self

    def save(self) -> None:
        self.written = self._options


def test_on_spark_connect_a_producer_must_be_named() -> None:
    frame = _ConnectFrame()
    with pytest.raises(SettingsError, match=r"producer= is needed here \(Spark Connect"):
        sink("db.t")(frame, 7)
    assert frame.written is None


def test_on_spark_connect_a_named_producer_counts_micro_batches() -> None:
    frame = _ConnectFrame()
    sink("db.t", producer="loader", sink="side", wait="committed")(frame, 7)
    assert frame.written == {
        "format": "frazil",
        "mode": "append",
        "table": "db.t",
        "sink": "side",
        "producer": "loader",
        "epoch": "7",
        "wait": "committed",
    }


def test_an_upsert_keeps_its_kind_of_deletes_until_it_is_started_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    properties: dict[str, str] = {}
    metadata = build_metadata(location="file:/t", properties=properties)
    monkeypatch.setattr(branch_state, "load_metadata", lambda *_: metadata)
    write, options = sink("db.t", producer="loader", **{"upsert-keys": "id"}), []
    for epoch in range(2):
        frame = _ConnectFrame()
        write(frame, epoch)
        options.append(frame.written)
        properties["frazil.upsert.deletes"] = "positions"
    assert [each and each["upsert-deletes"] for each in options] == ["equality", "equality"]
