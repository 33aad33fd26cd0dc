from __future__ import annotations

import os
import sys

import pytest
from pyspark import cloudpickle
from pyspark.sql import SparkSession

from committer.errors import SettingsError
from workers.session import configure, configured_source


def test_a_builder_hands_settings_on_by_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("FRAZIL_INBOX", "FRAZIL_CATALOG__URI", "PYSPARK_PYTHON"):
        monkeypatch.setenv(variable, "before")
        monkeypatch.delenv(variable)
    builder = SparkSession.builder.master("local[2]")
    assert configure(builder, inbox="file:/i", catalog_uri="sqlite:////c.db") is builder
    assert os.environ["FRAZIL_INBOX"] == "file:/i"
    assert os.environ["FRAZIL_CATALOG__URI"] == "sqlite:////c.db"
    assert os.environ["PYSPARK_PYTHON"] == sys.executable
    assert builder._options["spark.sql.execution.arrow.maxBytesPerBatch"] == "2147483647"


def test_properties_of_the_catalog_are_handed_on_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FRAZIL_CATALOG__CLIENT__REGION", "before")
    configure(SparkSession.builder, properties={"client.region": "eu-central-1"})
    assert os.environ["FRAZIL_CATALOG__CLIENT__REGION"] == "eu-central-1"
    with pytest.raises(SettingsError, match=r"setting `catalog\.secret`") as raised:
        configure(SparkSession.builder, properties={"secret": "hush"})
    assert "hush" not in str(raised.value)


@pytest.mark.parametrize(("master", "chosen"), [("local[2]", "/mine"), ("yarn", "/mine")])
def test_an_interpreter_that_was_chosen_stays(
    master: str, chosen: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", chosen)
    configure(SparkSession.builder.master(master))
    assert os.environ["PYSPARK_PYTHON"] == chosen


def test_the_interpreter_of_a_cluster_is_left_to_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", "before")
    monkeypatch.delenv("PYSPARK_PYTHON")
    configure(SparkSession.builder.master("spark://host:7077"))
    assert "PYSPARK_PYTHON" not in os.environ


def test_the_source_of_a_running_session_travels_with_its_settings() -> None:
    shipped = cloudpickle.loads(cloudpickle.dumps(configured_source({"inbox": "file:/i"})))
    assert shipped.name() == "frazil"
    source = shipped({"table": "db.t", "Inbox": "file:/other"})
    assert shipped.defaults == {"inbox": "file:/i"}
    assert source._all_options() == {"inbox": "file:/other", "table": "db.t"}
